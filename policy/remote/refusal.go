package remote

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
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

// StatusError is a server's answer that is no success.
type StatusError struct {
	Status  int
	Code    string // of the error, as the server calls it; may be empty
	Message string // the server's own words, cut, without keys and control characters

	Wait  time.Duration // asked for by the server; 0: nothing was
	Again *bool         // what the server says about another try; nil: nothing
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

// Passing says whether another try may go better.
func (e *StatusError) Passing() bool {
	if e.Again != nil {
		return *e.Again
	}
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	default:
		return e.Status >= 500 && e.Status != http.StatusNotImplemented
	}
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
		return Final(err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the connection broke: %w", err)
	}
	return err
}

// refusal reads an answer that is no success.
func refusal(resp *http.Response, key string) error {
	e := &StatusError{Status: resp.StatusCode, Wait: retryAfter(resp.Header)}
	if again, err := strconv.ParseBool(resp.Header.Get("X-Should-Retry")); err == nil {
		e.Again = &again
	}
	// What of it can be read is its message.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	code, text := message(body)
	e.Code, e.Message = Printable(Strike(code, key)), Printable(Strike(text, key)) // before it is cut
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

// Printable is foreign text for a line of an error: cut, without control characters.
func Printable(s string) string {
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
