package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The kinds of errors that a request ends with, besides a context's own and ErrBudget.
var (
	// ErrUnavailable: the server failed at every try. What was asked for may be asked again later; what it was for is to be
	// dropped whole, not counted as a bad reply.
	ErrUnavailable = errors.New("the server failed")
	// ErrVersion: other weights answered than those that were asked for.
	ErrVersion = errors.New("other weights answered")
	// ErrNotOffered: the dialect has no way to ask for this.
	ErrNotOffered = errors.New("the server does not offer this")
)

// StatusError is a server's answer that is no success.
type StatusError struct {
	Status  int
	Code    string // of the error, as the server calls it; may be empty
	Message string // the server's own words, cut, without keys and control characters

	wait  time.Duration // asked for by the server; 0: nothing was
	again *bool         // what the server says about another try; nil: nothing
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server says %d", e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += " (is the key right, and allowed to use this model?)"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		text += " (are address, dialect and model right?)"
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		text += " (redirects are not followed: give the address it leads to)"
	}
	return text
}

// passing says whether another try may go better.
func (e *StatusError) passing() bool {
	if e.again != nil {
		return *e.again
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return e.Status >= 500 && e.Status != http.StatusNotImplemented
	}
}

// final is an error that another try will not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// request is one thing asked of a server.
type request struct {
	method string
	path   string // of the table
	body   any    // nil: none
	most   usage  // it may cost
	// read takes the reply; what it finds wrong is a reason to ask again, unless it is final. A zero usage says that the
	// server did not count.
	read func(reply []byte) (usage, error)
}

// call asks until there is an answer.
func (c *Client) call(ctx context.Context, r request) error {
	err := c.ask(ctx, r)
	switch {
	case err == nil:
		c.ledger.count(func(s *Spent) { s.Requests++ })
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		c.ledger.count(func(s *Spent) { s.Failed++ })
		err = fmt.Errorf("%s: %w", c.at(r.path), err)
	}
	return err
}

func (c *Client) ask(ctx context.Context, r request) error {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return err
		}
	}
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.leave()
	for try := 1; ; try++ {
		err := c.try(ctx, r, body)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.As(err, new(final)) || errors.Is(err, ErrBudget):
			return err
		}
		var refused *StatusError
		if errors.As(err, &refused) && !refused.passing() {
			return err
		}
		if try == c.options.Limits.Tries {
			return fmt.Errorf("%w at each of %d tries, the last time: %w", ErrUnavailable, try, err)
		}
		if refused != nil && refused.wait > c.options.Limits.Pause {
			return fmt.Errorf("%w and wants to be left alone for %v, which is more than %v: %w", ErrUnavailable, refused.wait, c.options.Limits.Pause, err)
		}
		if c.options.Notice != nil {
			c.options.Notice(err.Error() + ", trying again")
		}
		c.ledger.count(func(s *Spent) { s.Retries++ })
		if err := c.pause(ctx, try, refused, body); err != nil {
			return err
		}
	}
}

// pause waits before another try: as long as the server asks for, else 0.5, 1, 2 … s, cut by up to a half so that clients
// that failed together do not come back together.
func (c *Client) pause(ctx context.Context, try int, refused *StatusError, body []byte) error {
	d := min(500*time.Millisecond<<min(try-1, 20), c.options.Limits.Pause)
	d -= time.Duration(jitter(body, try) * float64(d) / 2)
	if refused != nil && refused.wait > 0 {
		d = refused.wait + min(d, refused.wait/10)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

var jitterSeed = maphash.MakeSeed()

// jitter is a number in 0…1 of a request and a try, another one in every process. It changes when a request is sent, and
// nothing else.
func jitter(body []byte, try int) float64 {
	var h maphash.Hash
	h.SetSeed(jitterSeed)
	_, _ = h.Write(body)
	_ = h.WriteByte(byte(try))
	return float64(h.Sum64()>>11) / (1 << 53)
}

// try asks once.
func (c *Client) try(ctx context.Context, r request, body []byte) (err error) {
	key, err := c.options.Key.secret()
	if err != nil {
		return final{err}
	}
	defer func() { err = scrubbed(err, key) }()
	if err := c.ledger.reserve(r.most); err != nil {
		return err
	}
	spent, guessed := usage{}, false
	defer func() { c.ledger.settle(r.most, spent, guessed) }()
	reply, sent, err := c.exchange(ctx, r, body, key)
	if err != nil {
		if sent {
			spent, guessed = r.most, true
		}
		return err
	}
	spent, err = r.read(reply)
	if spent == (usage{}) {
		spent, guessed = r.most, r.most != usage{}
	}
	return err
}

// exchange sends a request and reads the reply. sent says, where that failed, that the server may have done the work.
func (c *Client) exchange(ctx context.Context, r request, body []byte, key string) (reply []byte, sent bool, err error) {
	patience := c.options.Limits.Patience
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no whole answer within %v", patience))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.at(r.path), bytes.NewReader(body))
	if err != nil {
		return nil, false, final{err}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "skillmaster")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, !unsent(err), cause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, false, refusal(resp, key)
	}
	reply, err = io.ReadAll(io.LimitReader(resp.Body, c.options.Limits.Reply+1))
	switch {
	case err != nil:
		return nil, true, cause(ctx, err)
	case int64(len(reply)) > c.options.Limits.Reply:
		return nil, true, final{fmt.Errorf("the reply has more than %d bytes: ask for less, or raise the limit", c.options.Limits.Reply)}
	}
	return reply, true, nil
}

// unsent says that a request never reached the server.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, new(*tls.CertificateVerificationError))
}

// cause says why a request failed.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	if errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, &dns) && dns.IsNotFound {
		return final{err}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the connection broke: %w", err)
	}
	return err
}

// refusal reads an answer that is no success.
func refusal(resp *http.Response, key string) error {
	e := &StatusError{Status: resp.StatusCode, wait: retryAfter(resp.Header)}
	if again, err := strconv.ParseBool(resp.Header.Get("X-Should-Retry")); err == nil {
		e.again = &again
	}
	// What of it can be read is its message.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	code, text := message(body)
	e.Code, e.Message = printable(strike(code, key)), printable(strike(text, key)) // before it is cut
	return e
}

// message finds the words of an error reply: {"error": {"message", "code" or "type"}}, {"error": text}, {"message"} or
// {"detail"}, else the reply itself.
func message(body []byte) (code, text string) {
	type said struct {
		Message string          `json:"message"`
		Code    json.RawMessage `json:"code"`
		Type    string          `json:"type"`
	}
	var reply struct {
		said
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return "", string(body)
	}
	var e said
	if json.Unmarshal(reply.Error, &e) != nil || e.Message == "" {
		e = reply.said
	}
	for _, other := range []json.RawMessage{reply.Error, reply.Detail, body} {
		if e.Message == "" && json.Unmarshal(other, &e.Message) != nil {
			e.Message = string(other)
		}
	}
	if json.Unmarshal(e.Code, &code) != nil || code == "" {
		code = e.Type
	}
	return code, e.Message
}

// printable is foreign text for a line of an error: cut, without control characters.
func printable(s string) string {
	const most = 400 // bytes
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s))
}

// retryAfter is how long a server asks to be left alone: retry-after-ms, or Retry-After in seconds or as a date, which is
// compared with the server's own.
func retryAfter(h http.Header) time.Duration {
	const most = 1e6 // seconds; beyond, the number is of no use
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return time.Duration(min(ms, most*1000) * float64(time.Millisecond))
	}
	after := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil && s >= 0 {
		return time.Duration(min(s, most) * float64(time.Second))
	}
	until, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, until.Sub(now))
}

// scrubbed is an error whose text does not hold the key. It goes on being what it was for errors.Is and errors.As.
func scrubbed(err error, key string) error {
	if err == nil || key == "" {
		return err
	}
	if text := err.Error(); strike(text, key) != text {
		return struck{err, strike(text, key)}
	}
	return err
}

// struck is an error with other words.
type struck struct {
	error
	text string
}

func (s struck) Error() string { return s.text }
func (s struck) Unwrap() error { return s.error }

// strike takes a key out of a text, in the ways it may be written there.
func strike(text, key string) string {
	if key == "" {
		return text
	}
	quoted, _ := json.Marshal(key) // a string can be
	for _, form := range []string{key, strings.Trim(string(quoted), `"`), url.QueryEscape(key), url.PathEscape(key)} {
		text = strings.ReplaceAll(text, form, "[key]")
	}
	return text
}
