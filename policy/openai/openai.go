// Package openai is both ends of the OpenAI protocol and of its relatives: a client of inference servers (vLLM, SGLang,
// llama.cpp, Ollama, hosted ones), and a handler that serves a policy of ours to anybody who speaks it.
//
// What a server can do decides what a Client gives:
//
//   - messages in, text out, everywhere: Policy;
//   - token ids in, token ids and log-probabilities out (vLLM, SGLang, llama.cpp, our own handler): Sampler, from which
//     policy.NewChat makes a policy whose turns can be learnt from;
//   - log-probabilities of given ids (vLLM, SGLang, our own handler): Scorer;
//   - Embed, and adapters loaded while the server runs.
//
// The table in dialect.go says how each is asked, and Client.Sampler believes none of it before it has seen it. A server
// that stalls, breaks off, refuses or talks nonsense is asked again; in the end there is an error, never an empty reply.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"skillmaster/policy/remote"
)

// Options say which server is asked, and how.
type Options struct {
	// URL is the server's address: http://127.0.0.1:8000, or with the path that its OpenAI endpoints stand under, such as
	// https://host/api/v1. Without a path it is /v1.
	URL     string
	Dialect Dialect
	Model   string     // as the server names it
	Key     remote.Key // nil: none is sent
	// Cleartext allows the key to travel over http to another machine, where everybody between can read it.
	Cleartext bool
	// Transport carries requests; nil: one that heeds HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Certificates are always
	// verified.
	Transport http.RoundTripper
	Limits    Limits
	Budget    Budget
	Notice    func(text string) // told what went wrong and is tried again; safe for concurrent use; nil: nobody
}

// Limits bound what one client asks and takes.
type Limits struct {
	Parallel int           // most requests at a time; 0: 16
	Tries    int           // most tries of a request; 0: 6
	Patience time.Duration // longest that one try may take; 0: 10 minutes
	Pause    time.Duration // longest wait between tries, whatever the server asks for; 0: 2 minutes
	Reply    int64         // most bytes of a reply; 0: 64 MiB
}

func (l Limits) complete() Limits {
	return Limits{
		Parallel: positive(l.Parallel, 16), Tries: positive(l.Tries, 6), Patience: positive(l.Patience, 10*time.Minute),
		Pause: positive(l.Pause, 2*time.Minute), Reply: positive(l.Reply, 64<<20),
	}
}

// positive is n, or what stands for 0.
func positive[T int | int64 | time.Duration](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

// Client asks one server for one model. Safe for concurrent use.
type Client struct {
	options Options
	dialect dialect
	api     string // address of what the table calls /v1
	root    string // address of what stands beside it
	http    *http.Client
	own     *http.Transport // nil: the user's
	slots   chan struct{}
	ledger  ledger
}

// New returns a client. Nothing is asked yet.
func New(o Options) (*Client, error) {
	d, known := dialects[o.Dialect]
	if !known {
		return nil, fmt.Errorf("no dialect %q: there are %s", o.Dialect, strings.Join(Dialects(), ", "))
	}
	if o.Model == "" {
		return nil, errors.New("no model is named: give the name the server lists under /v1/models")
	}
	if err := o.Budget.Validate(); err != nil {
		return nil, err
	}
	o.Limits = o.Limits.complete()
	c := &Client{options: o, dialect: d, slots: make(chan struct{}, o.Limits.Parallel), ledger: ledger{budget: o.Budget}}
	if err := c.address(o.URL); err != nil {
		return nil, err
	}
	if o.Transport == nil {
		c.own = remote.NewTransport(o.Limits.Parallel)
		o.Transport = c.own
	}
	var err error
	c.http, err = remote.NewClient(o.Transport)
	return c, err
}

// address reads the server's address.
func (c *Client) address(text string) error {
	u, err := remote.Address(text, c.options.Key != nil, c.options.Cleartext)
	if err != nil {
		return err
	}
	c.api = strings.TrimRight(u.String(), "/")
	if strings.Trim(u.Path, "/") == "" {
		c.api += "/v1"
	}
	c.root = strings.TrimSuffix(c.api, "/v1")
	return nil
}

// at is the address of a path of the table.
func (c *Client) at(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1/"); ok {
		return c.api + "/" + rest
	}
	return c.root + path
}

// Close lets idle connections go. The client can still be used.
func (c *Client) Close() error {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// enter waits for a slot.
func (c *Client) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) leave() { <-c.slots }
