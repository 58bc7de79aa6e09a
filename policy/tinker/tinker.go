// Package tinker is both ends of the Tinker API, in which a client owns the algorithm and a server the weights: a client
// that samples, scores and learns on servers others run (hosted, SkyRL, TuFT, …), and a server over any policy.Learner.
//
// A Learner here asks for the log-probabilities of a batch (forward), computes the loss and its slope g = ∂L/∂log p at every
// position itself, and sends −g as the advantages of an importance-sampled loss whose ratio is 1. The server's gradient
// Σ −g·∂(−log p) is then the gradient of the whole loss: both streams, clipping, KL and all, whatever the server knows
// of them.
//
// Servers differ in ways that change gradients and show nowhere. dialect.go says how each is asked, and Client.Check
// believes it only after a look at what a throw-away model learns.
package tinker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"skillmaster/policy/remote"
)

// Options say which server is asked, and how.
type Options struct {
	// URL is the server's address: http://127.0.0.1:8000, or with the path that /api/v1 stands under.
	URL     string
	Dialect Dialect
	Key     remote.Key // nil: none is sent
	// Cleartext allows the key to travel over http to another machine, where everybody between can read it.
	Cleartext bool
	// Transport carries requests; nil: one that heeds HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Certificates are always
	// verified.
	Transport http.RoundTripper
	Limits    Limits
	Notice    func(text string) // told what went wrong and is tried again; safe for concurrent use; nil: nobody
}

// Limits bound what one client asks and takes.
type Limits struct {
	Parallel int           // most samples and scores asked for at a time; 0: 64
	Tries    int           // most tries of a request; 0: 8
	Patience time.Duration // longest that one request may take; 0: 1 minute. Results are asked for again and again
	Wait     time.Duration // longest wait for a result; 0: 1 hour
	Pause    time.Duration // longest wait between tries, whatever the server asks for; 0: 2 minutes
	Reply    int64         // most bytes of a reply; 0: 256 MiB
}

func (l Limits) complete() Limits {
	return Limits{
		Parallel: positive(l.Parallel, 64), Tries: positive(l.Tries, 8), Patience: positive(l.Patience, time.Minute),
		Wait: positive(l.Wait, time.Hour), Pause: positive(l.Pause, 2*time.Minute), Reply: positive(l.Reply, 256<<20),
	}
}

// positive is n, or what stands for 0.
func positive[T int | int64 | time.Duration](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

// Client talks to one server. Safe for concurrent use. Close it: a session is kept alive in the background.
type Client struct {
	options Options
	dialect dialect
	api     string // address of /api/v1
	http    *http.Client
	own     *http.Transport // nil: the user's
	slots   chan struct{}   // of samples and scores

	mu       sync.Mutex
	session  string // "": none yet
	models   int    // created in it
	samplers int
	stop     context.CancelFunc // of the heartbeat
	ended    chan struct{}      // closed when it has stopped
}

// New returns a client. Nothing is asked yet.
func New(o Options) (*Client, error) {
	d, known := dialects[o.Dialect]
	if !known {
		return nil, fmt.Errorf("no dialect %q: servers add up gradients in different ways, name the server's own, one of %s", o.Dialect, strings.Join(Dialects(), ", "))
	}
	if d.refuse != "" {
		return nil, fmt.Errorf("dialect %s: %s", o.Dialect, d.refuse)
	}
	u, err := remote.Address(o.URL, o.Key != nil, o.Cleartext)
	if err != nil {
		return nil, err
	}
	o.Limits = o.Limits.complete()
	c := &Client{options: o, dialect: d, slots: make(chan struct{}, o.Limits.Parallel)}
	c.api = strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/api/v1") + "/api/v1"
	if o.Transport == nil {
		c.own = remote.NewTransport(o.Limits.Parallel + 8)
		o.Transport = c.own
	}
	c.http, err = remote.NewClient(o.Transport)
	return c, err
}

// Close ends the session's heartbeat and lets idle connections go. It may be called twice.
func (c *Client) Close() error {
	c.mu.Lock()
	stop, ended := c.stop, c.ended
	c.session, c.stop = "", nil
	c.mu.Unlock()
	if stop != nil {
		stop()
		<-ended
	}
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// Model is one that a server offers.
type Model struct {
	Name    string
	Context int // most ids of a sequence; 0: the server does not say
}

// Models returns what the server offers.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	var r capabilities
	if err := c.get(ctx, "get_server_capabilities", &r); err != nil {
		return nil, err
	}
	var out []Model
	for _, m := range r.Models {
		out = append(out, Model{m.Name, m.Context})
	}
	return out, nil
}

// beat is how often a session says that it is alive.
const beat = 10 * time.Second

// open returns the session, and makes one first if there is none.
func (c *Client) open(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != "" {
		return c.session, nil
	}
	var r createdSession
	if err := c.post(ctx, "create_session", createSession{Tags: []string{"skillmaster"}, Metadata: map[string]any{}, SDK: sdkVersion, Type: "create_session"}, &r); err != nil {
		return "", err
	}
	if r.ID == "" {
		return "", errors.New("the server made a session without a name")
	}
	for _, text := range []string{r.Warning, r.Error} {
		if text != "" && c.options.Notice != nil {
			c.options.Notice("the server says: " + remote.Printable(text))
		}
	}
	c.session, c.models, c.samplers = r.ID, 0, 0
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop, c.ended = stop, make(chan struct{})
	go c.keepAlive(alive, r.ID, c.ended)
	return c.session, nil
}

// sdkVersion is the release of the Python SDK whose fields are sent.
const sdkVersion = "0.38.0"

// keepAlive tells the server every now and then that the session is alive. A beat that fails is made up for by the next.
func (c *Client) keepAlive(ctx context.Context, session string, ended chan<- struct{}) {
	defer close(ended)
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := c.once(ctx, "session_heartbeat", heartbeat{session, "session_heartbeat"})
		if err != nil && ctx.Err() == nil && c.options.Notice != nil {
			c.options.Notice(fmt.Sprintf("heartbeat: %v", err))
		}
	}
}

// forget drops a session that the server no longer knows.
func (c *Client) forget(session string) {
	c.mu.Lock()
	stop, ended := c.stop, c.ended
	known := c.session == session && session != ""
	if known {
		c.session, c.stop = "", nil
	}
	c.mu.Unlock()
	if known && stop != nil {
		stop()
		<-ended
	}
}

// numbered returns the session and the next number of a model or a sampler in it.
func (c *Client) numbered(ctx context.Context, counter *int) (session string, n int, err error) {
	if session, err = c.open(ctx); err != nil {
		return "", 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n = *counter
	*counter++
	return session, n, nil
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

// random is a name that nobody else has.
func random() string { return strings.ToLower(rand.Text()) }
