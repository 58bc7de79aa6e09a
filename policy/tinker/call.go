package tinker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"skillmaster/policy"
	"skillmaster/policy/remote"
)

const protobuf = "application/x-protobuf"

// FailedError is a request that the server took and could not do.
type FailedError struct {
	Category string // user, server or unknown
	Message  string // the server's own words, cut, without keys and control characters
}

func (e *FailedError) Error() string { return "the server failed: " + e.Message }

// errGone says that the server no longer knows a result: what it was for is to be asked again.
var errGone = errors.New("the server has lost the result")

// ErrLost says that the server no longer knows the model that was being trained, or that a step broke off in the middle, so
// that nobody knows its weights.
var ErrLost = errors.New("the server has lost the weights")

// body is what is sent: a value as JSON, or bytes of protobuf.
type body struct {
	data []byte
	kind string
}

func jsonBody(v any) (body, error) {
	data, err := json.Marshal(v)
	return body{data, "application/json"}, err
}

// once sends a request a single time, and leaves the reply.
func (c *Client) once(ctx context.Context, path string, v any) error {
	b, err := jsonBody(v)
	if err != nil {
		return err
	}
	_, _, err = c.exchange(ctx, http.MethodPost, path, b, nil)
	return err
}

// post sends JSON and reads JSON, and tries again where that may help.
func (c *Client) post(ctx context.Context, path string, v, reply any) error {
	b, err := jsonBody(v)
	if err != nil {
		return err
	}
	return c.send(ctx, path, b, reply)
}

func (c *Client) send(ctx context.Context, path string, b body, reply any) error {
	return c.ask(ctx, http.MethodPost, path, b, reply)
}

func (c *Client) get(ctx context.Context, path string, reply any) error {
	return c.ask(ctx, http.MethodGet, path, body{}, reply)
}

// ask tries until there is an answer. Every try of one request carries the same idempotency key.
func (c *Client) ask(ctx context.Context, method, path string, b body, reply any) error {
	header := http.Header{}
	if method == http.MethodPost {
		header.Set("X-Idempotency-Key", random())
	}
	if path == "asample" {
		header.Set("X-Tinker-Sampling-Backpressure", "1")
	}
	l := c.options.Limits
	err := remote.Retries{Tries: l.Tries, Pause: l.Pause, Notice: c.options.Notice}.Do(ctx, b.data, func() error {
		data, _, err := c.exchange(ctx, method, path, b, header)
		if err != nil {
			return err
		}
		return decode(data, reply)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s/%s: %w", c.api, path, err)
	}
	return nil
}

// decode reads a reply. Fields nobody asked for are passed over, wrong types are errors.
func decode(reply []byte, v any) error {
	if err := json.Unmarshal(reply, v); err != nil {
		return fmt.Errorf("the reply cannot be read: %w (it begins %q)", err, remote.Printable(string(reply[:min(len(reply), 80)])))
	}
	return nil
}

// exchange sends a request once.
func (c *Client) exchange(ctx context.Context, method, path string, b body, header http.Header) (reply []byte, kind string, err error) {
	key, err := c.options.Key.Secret()
	if err != nil {
		return nil, "", remote.Final(err)
	}
	defer func() { err = remote.Scrubbed(err, key) }()
	req, err := http.NewRequestWithContext(ctx, method, c.api+"/"+path, bytes.NewReader(b.data))
	if err != nil {
		return nil, "", remote.Final(err)
	}
	for name, v := range header {
		req.Header[name] = v
	}
	req.Header.Set("User-Agent", "skillmaster")
	if b.kind != "" {
		req.Header.Set("Content-Type", b.kind)
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	l := c.options.Limits
	reply, got, _, err := remote.Exchange(ctx, c.http, req, key, l.Patience, l.Reply)
	if err != nil {
		return nil, "", err
	}
	kind, _, _ = mime.ParseMediaType(got.Get("Content-Type")) // what cannot be read is no protobuf
	return reply, kind, nil
}

// Times of waiting for results.
const (
	shortPoll = 50 * time.Millisecond  // between questions, where the server answers at once
	longPoll  = 500 * time.Millisecond // in the end
	badTries  = 3                      // of a refusal without words, which a proxy may have made up
	billing   = 5 * time.Second        // between questions while the account is paused
	billed    = 12 * 60                // so often
)

// await asks for the result of a promise until it is there. Protobuf is accepted where proto is set; isProto says what came.
// A result may take any time while the server answers.
func (c *Client) await(ctx context.Context, p promise, kind string, proto bool) (reply []byte, isProto bool, err error) {
	most := c.options.Limits.Wait
	limited, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("%w: no result within %v", policy.ErrUnavailable, most))
	defer cancel()
	w := waiting{client: c, header: http.Header{}, metadata: true, pause: shortPoll}
	w.header.Set("X-Tinker-Request-Type", kind)
	if proto {
		w.header.Set("Accept", protobuf)
	}
	for {
		next := time.NewTimer(w.pause)
		reply, isProto, err := w.poll(limited, p)
		if reply != nil || err != nil {
			next.Stop()
			if err != nil && limited.Err() != nil {
				err = context.Cause(limited)
			}
			return reply, isProto, err
		}
		if w.broken > 0 {
			next.Reset(min(500*time.Millisecond<<min(w.broken, 6), c.options.Limits.Pause))
		}
		select {
		case <-next.C:
		case <-limited.Done():
			return nil, false, context.Cause(limited)
		}
		w.pause = min(w.pause*5/4, longPoll)
	}
}

// waiting is the state of a wait.
type waiting struct {
	client   *Client
	header   http.Header
	metadata bool
	pause    time.Duration // least between two polls
	polls    int
	broken   int // polls in a row that broke
	bad      int
	paused   int
}

// poll asks once. Neither reply nor error: ask again.
func (w *waiting) poll(ctx context.Context, p promise) ([]byte, bool, error) {
	b, err := jsonBody(retrieve{p.Request, w.metadata})
	if err != nil {
		return nil, false, err
	}
	w.header.Set("X-Tinker-Request-Iteration", strconv.Itoa(w.polls))
	w.polls++
	reply, kind, err := w.client.exchange(ctx, http.MethodPost, "retrieve_future", b, w.header)
	if err != nil {
		return nil, false, w.refused(ctx, err)
	}
	if kind == protobuf {
		return reply, true, nil
	}
	var r struct {
		Type     string          `json:"type"`
		Status   string          `json:"status"`
		Error    json.RawMessage `json:"error"`
		Category string          `json:"category"`
	}
	if err := decode(reply, &r); err != nil {
		return nil, false, w.again(err)
	}
	w.broken, w.bad, w.paused = 0, 0, 0
	switch {
	case r.Type == "try_again":
		return nil, false, nil
	case r.Status == "complete_metadata":
		w.metadata = false
		return nil, false, nil
	case len(r.Error) > 0 && string(r.Error) != "null":
		var text string
		if json.Unmarshal(r.Error, &text) != nil {
			text = string(r.Error)
		}
		key, _ := w.client.options.Key.Secret() // it was asked for a moment ago
		return nil, false, failed(r.Category, remote.Strike(text, key))
	}
	return reply, false, nil
}

// failed is the error of a request that could not be done. What is not the asker's fault may go better later.
func failed(category, text string) error {
	err := error(&FailedError{category, remote.Printable(text)})
	if category != "user" {
		err = fmt.Errorf("%w: %w", policy.ErrUnavailable, err)
	}
	return err
}

// refused says what an answer that is no result means; nil: ask again.
func (w *waiting) refused(ctx context.Context, err error) error {
	var e *remote.StatusError
	if !errors.As(err, &e) {
		// A server may hold the question longer than a request may take: it stalls only where it answers nothing at all.
		if _, _, dead := w.client.exchange(ctx, http.MethodGet, "healthz", body{}, nil); dead == nil && ctx.Err() == nil {
			return nil
		}
		return w.again(err)
	}
	switch {
	case e.Status == http.StatusRequestTimeout:
		w.broken = 0
		return nil
	case e.Status == http.StatusGone:
		return errGone
	case e.Status == http.StatusPaymentRequired && w.paused < billed:
		w.paused++
		return remote.Sleep(ctx, billing)
	case e.Status == http.StatusBadRequest && e.Message == "" && w.bad < badTries:
		w.bad++
		return nil
	case e.Status == http.StatusBadRequest, e.Status == http.StatusUnprocessableEntity:
		return failed("unknown", e.Message)
	case e.Passing():
		return w.again(err)
	}
	return err
}

// again counts a poll that broke; nil: there may be another.
func (w *waiting) again(err error) error {
	if errors.Is(err, remote.ErrFinal) {
		return err
	}
	w.broken++
	if w.broken >= w.client.options.Limits.Tries {
		return fmt.Errorf("%w at each of %d tries, the last time: %w", policy.ErrUnavailable, w.broken, err)
	}
	if w.client.options.Notice != nil {
		w.client.options.Notice(err.Error() + ", asking again for the result")
	}
	return nil
}

// lost says that a server knows a model or a session no more.
func lost(err error) bool {
	var e *remote.StatusError
	return errors.As(err, &e) && e.Status == http.StatusNotFound || errors.Is(err, errGone) || errors.Is(err, ErrLost)
}

// result waits for a result in JSON.
func (c *Client) result(ctx context.Context, p promise, kind string, v any) error {
	reply, _, err := c.await(ctx, p, kind, false)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.ToLower(kind), err)
	}
	return decode(reply, v)
}
