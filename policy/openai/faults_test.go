package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skillmaster/chat"
	"skillmaster/policy"
)

// pipes is a listener without a network. Inside a synctest bubble time passes only when everybody waits, and a goroutine
// that is left behind is a failure.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, &net.OpError{Op: "dial", Err: errors.New("nobody listens")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inMemory is a client of h without a network; what is not set in o is for a vLLM.
func inMemory(t *testing.T, h http.Handler, o Options) *Client {
	t.Helper()
	p := newPipes()
	server := &http.Server{Handler: h}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-ended
	})
	if o.URL == "" {
		o.URL = "http://127.0.0.1:1"
	}
	if o.Dialect == "" {
		o.Dialect = VLLM
	}
	o.Model, o.Transport = "tiny", transport
	return client(t, o)
}

// answersInTurn serves one after the other, then the last one again and again, and counts.
type answersInTurn struct {
	mu    sync.Mutex
	all   []http.HandlerFunc
	asked int
}

func inTurn(all ...http.HandlerFunc) *answersInTurn { return &answersInTurn{all: all} }

func (a *answersInTurn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	a.mu.Lock()
	answer := a.all[min(a.asked, len(a.all)-1)]
	a.asked++
	a.mu.Unlock()
	answer(w, r)
}

func (a *answersInTurn) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const goodChat = `{"model":"tiny","choices":[{"index":0,"finish_reason":"stop","message":{"content":"look"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}`

// hang waits until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// reset breaks the connection after some of the reply.
func reset(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		if part != "" {
			_, _ = fmt.Fprintf(buf, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n%s", part)
			_ = buf.Flush()
		}
		_ = conn.Close()
	}
}

func talk() policy.Request {
	return policy.Request{Messages: []chat.Message{{Role: chat.User, Text: "hello"}}, Sampling: policy.Sampling{Temperature: 1, MaxTokens: 8, Seed: 1}}
}

// What a server may do wrong: it is asked again, or there is an error that says what to do. There is never an empty reply.
func TestFaults(t *testing.T) {
	ok := status(200, goodChat)
	say := func(choice string) http.HandlerFunc { return status(200, `{"model":"tiny","choices":[`+choice+`]}`) }
	date := func(after time.Duration) http.HandlerFunc {
		now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) // the server's clock may be far from ours
		return status(429, "", "Date", now.Format(http.TimeFormat), "Retry-After", now.Add(after).Format(http.TimeFormat))
	}
	always := func(h http.HandlerFunc) []http.HandlerFunc { return []http.HandlerFunc{h} }
	for name, c := range map[string]struct {
		answers  []http.HandlerFunc
		asked    int
		least    time.Duration // that passes
		most     time.Duration
		is       error  // nil: it works out
		contains string // in the error
	}{
		"works":                      {always(ok), 1, 0, 0, nil, ""},
		"500 once":                   {[]http.HandlerFunc{status(500, "oh"), ok}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil, ""},
		"502, 503, 504":              {[]http.HandlerFunc{status(502, ""), status(503, ""), status(504, ""), ok}, 4, 1750 * time.Millisecond, 3500 * time.Millisecond, nil, ""},
		"429 with seconds":           {[]http.HandlerFunc{status(429, "", "Retry-After", "7"), ok}, 2, 7 * time.Second, 8 * time.Second, nil, ""},
		"429 with a date":            {[]http.HandlerFunc{date(20 * time.Second), ok}, 2, 20 * time.Second, 22 * time.Second, nil, ""},
		"429 with a date gone by":    {[]http.HandlerFunc{date(-time.Hour), ok}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil, ""},
		"429 with milliseconds":      {[]http.HandlerFunc{status(429, "", "Retry-After-Ms", "1500", "Retry-After", "9"), ok}, 2, 1500 * time.Millisecond, 1700 * time.Millisecond, nil, ""},
		"429 with nonsense":          {[]http.HandlerFunc{status(429, "", "Retry-After", "soon"), ok}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil, ""},
		"429 with an hour":           {always(status(429, "", "Retry-After", "3600")), 1, 0, 0, policy.ErrUnavailable, "left alone for 1h0m0s"},
		"429 without end":            {always(status(429, "busy")), 6, 7 * time.Second, 16 * time.Second, policy.ErrUnavailable, "429: busy"},
		"500 that says no":           {always(status(500, "", "X-Should-Retry", "false")), 1, 0, 0, nil, "500"},
		"400 that says again":        {[]http.HandlerFunc{status(400, "", "X-Should-Retry", "true"), ok}, 2, 250 * time.Millisecond, 500 * time.Millisecond, nil, ""},
		"400":                        {always(status(400, `{"error":{"message":"no such field","code":"bad"}}`)), 1, 0, 0, nil, "400: no such field"},
		"401":                        {always(status(401, `{"detail":"who are you"}`)), 1, 0, 0, nil, "is the key right"},
		"404":                        {always(status(404, "<html>\x1b[2Jnot here")), 1, 0, 0, nil, "are address, dialect and model right"},
		"a redirect":                 {always(status(307, "", "Location", "http://elsewhere/v1/chat/completions")), 1, 0, 0, nil, "redirects are not followed"},
		"stalls":                     {[]http.HandlerFunc{hang, ok}, 2, time.Minute, 61 * time.Second, nil, ""},
		"stalls for ever":            {always(hang), 6, 6 * time.Minute, 7 * time.Minute, policy.ErrUnavailable, "no whole answer within 1m0s"},
		"breaks off at once":         {[]http.HandlerFunc{reset(""), ok}, 2, 0, time.Second, nil, ""},
		"breaks off midway":          {[]http.HandlerFunc{reset(goodChat[:40]), ok}, 2, 0, time.Second, nil, ""},
		"breaks off for ever":        {always(reset(goodChat[:40])), 6, 0, time.Minute, policy.ErrUnavailable, "the connection broke"},
		"cut JSON":                   {[]http.HandlerFunc{status(200, goodChat[:60]), ok}, 2, 0, time.Second, nil, ""},
		"no body":                    {always(status(200, "")), 6, 0, time.Minute, policy.ErrUnavailable, "cannot be read"},
		"a page":                     {always(status(200, "<html>login</html>")), 6, 0, time.Minute, policy.ErrUnavailable, "login"},
		"two values":                 {always(status(200, goodChat+goodChat)), 6, 0, time.Minute, policy.ErrUnavailable, "cannot be read"},
		"another type":               {always(say(`{"finish_reason":"stop","message":{"content":7}}`)), 6, 0, time.Minute, policy.ErrUnavailable, "cannot be read"},
		"no answer":                  {always(say("")), 6, 0, time.Minute, policy.ErrUnavailable, "0 answers came"},
		"two answers":                {always(say(`{"finish_reason":"stop","message":{"content":"a"}},{"finish_reason":"stop","message":{"content":"b"}}`)), 6, 0, time.Minute, policy.ErrUnavailable, "2 answers"},
		"an empty reply":             {always(say(`{"finish_reason":"stop","message":{"content":""}}`)), 6, 0, time.Minute, policy.ErrUnavailable, "no text"},
		"no reply":                   {always(say(`{"finish_reason":"stop","message":{"content":null,"tool_calls":[]}}`)), 6, 0, time.Minute, policy.ErrUnavailable, "no text"},
		"no reason":                  {always(say(`{"message":{"content":"look"}}`)), 6, 0, time.Minute, policy.ErrUnavailable, "because of"},
		"a tool call":                {always(say(`{"finish_reason":"tool_calls","message":{"content":"look"}}`)), 6, 0, time.Minute, policy.ErrUnavailable, "tool_calls"},
		"aborted":                    {[]http.HandlerFunc{say(`{"finish_reason":"abort","message":{"content":"lo"}}`), ok}, 2, 0, time.Second, nil, ""},
		"filtered":                   {always(say(`{"finish_reason":"content_filter","message":{"content":""}}`)), 1, 0, 0, nil, "filter"},
		"reasoning without a reply":  {always(say(`{"finish_reason":"length","message":{"content":null,"reasoning":"hm"}}`)), 1, 0, 0, nil, "allow more"},
		"another model, once":        {[]http.HandlerFunc{status(200, strings.Replace(goodChat, "tiny", "huge", 1)), ok}, 2, 0, time.Second, nil, ""},
		"another model":              {always(status(200, strings.Replace(goodChat, "tiny", "huge", 1))), 6, 0, time.Minute, policy.ErrVersion, `"huge"`},
		"more than the limit":        {always(status(200, strings.Repeat(" ", 5000)+goodChat)), 1, 0, 0, nil, "more than 4096 bytes"},
		"a refusal longer than that": {always(status(400, strings.Repeat("x", 1<<20))), 1, 0, 0, nil, "400: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := inTurn(c.answers...)
				p := inMemory(t, server, Options{Limits: Limits{Patience: time.Minute, Reply: 4096}}).Policy(1)
				began := time.Now()
				got, err := p.Complete(t.Context(), talk())
				took := time.Since(began)
				if fails := c.is != nil || c.contains != ""; fails != (err != nil) || fails && !strings.Contains(err.Error(), c.contains) || c.is != nil && !errors.Is(err, c.is) {
					t.Fatalf("got %+v and error %v, want one that is %v and says %q", got, err, c.is, c.contains)
				}
				if err == nil && (got.Text != "look" || got.Stop != policy.Stopped) || err != nil && got.Text != "" {
					t.Errorf("got %+v", got)
				}
				if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") || err != nil && len(err.Error()) > 1000 {
					t.Errorf("the error is not fit for a line: %q", err)
				}
				if server.count() != c.asked {
					t.Errorf("the server was asked %d times, want %d", server.count(), c.asked)
				}
				if took < c.least || took > c.most {
					t.Errorf("it took %v, want %v…%v", took, c.least, c.most)
				}
				spent := p.client.Spent()
				if spent.Retries != c.asked-1 || spent.Requests+spent.Failed != 1 || (spent.Failed == 1) != (err != nil) {
					t.Errorf("counted %+v", spent)
				}
			})
		})
	}
}

// A server that is not there.
func TestNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		_ = p.Close()
		c := client(t, Options{URL: "http://127.0.0.1:1", Dialect: Generic, Model: "m", Transport: &http.Transport{DialContext: p.dial}})
		if _, err := c.Policy(0).Complete(t.Context(), talk()); !errors.Is(err, policy.ErrUnavailable) || !strings.Contains(err.Error(), "nobody listens") {
			t.Errorf("got %v", err)
		}
		if s := c.Spent(); s.Guessed != 0 || s.Prompt != 0 {
			t.Errorf("what was never sent was counted: %+v", s)
		}
	})
}

// Who stops waiting gets its own reason at once, wherever the request is: in a pause, in the server, before a slot.
func TestCancellation(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"in a pause": status(429, "", "Retry-After", "60"), "in the server": hang,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := inMemory(t, inTurn(answer), Options{Limits: Limits{Parallel: 1}})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				var wg sync.WaitGroup
				for range 3 { // one asks, two wait for the slot
					wg.Go(func() {
						if _, err := c.Policy(0).Complete(ctx, talk()); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, policy.ErrUnavailable) {
							t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("it took %v", took)
				}
				if s := c.Spent(); s.Failed != 0 {
					t.Errorf("cancelled requests were counted as failed: %+v", s)
				}
			})
		})
	}
}

// No more requests at a time than allowed.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		c := inMemory(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			status(200, goodChat)(w, r)
		}), Options{Limits: Limits{Parallel: 3}})
		began := time.Now()
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() {
				if _, err := c.Policy(0).Complete(t.Context(), talk()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); most != 3 || took != 3*time.Second {
			t.Errorf("%d requests at a time, 9 in %v", most, took)
		}
	})
}

// A budget is never overdrawn, not even by requests at the same time, and what nobody counted is guessed high.
func TestBudget(t *testing.T) {
	most := longest(talk().Messages) + 8 // of one request
	for name, c := range map[string]struct {
		budget  Budget
		answer  http.HandlerFunc
		works   int
		spent   int64
		guessed int64
	}{
		"tokens":   {Budget{Tokens: most + 3*9}, status(200, goodChat), 4, 4 * 9, 0},
		"money":    {Budget{Money: 1.5, Prompt: 1e4, Reply: 1e5}, status(200, goodChat), 2, 18, 0},
		"no count": {Budget{Tokens: 2*most + 5}, status(200, strings.Replace(goodChat, "usage", "other", 1)), 2, 2 * most, 2 * most},
		"stalls":   {Budget{Tokens: 2*most + 5}, hang, 0, 2 * most, 2 * most},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := inMemory(t, inTurn(c.answer), Options{Budget: c.budget})
				works := 0
				var err error
				for range 10 {
					if _, err = client.Policy(0).Complete(t.Context(), talk()); err == nil {
						works++
					}
				}
				s := client.Spent()
				if !errors.Is(err, ErrBudget) || works != c.works || s.Prompt+s.Reply != c.spent || s.Guessed != c.guessed {
					t.Errorf("%d requests worked, then %v; spent %+v", works, err, s)
				}
				if b := c.budget; b.Tokens > 0 && s.Prompt+s.Reply > b.Tokens || b.Money > 0 && s.Money > b.Money {
					t.Errorf("spent %+v of %+v", s, b)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		client := inMemory(t, inTurn(hang), Options{Budget: Budget{Tokens: 3 * most}, Limits: Limits{Tries: 1, Parallel: 9}})
		var mu sync.Mutex
		refused := 0
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() {
				_, err := client.Policy(0).Complete(t.Context(), talk())
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, ErrBudget) {
					refused++
				}
			})
		}
		wg.Wait()
		if refused != 6 {
			t.Errorf("%d of 9 requests at the same time were refused, want 6", refused)
		}
	})
	for _, b := range []Budget{{Tokens: -1}, {Money: 1}, {Prompt: -2}} {
		if _, err := New(Options{URL: "http://a", Dialect: VLLM, Model: "m", Budget: b}); err == nil {
			t.Errorf("budget %+v: want an error", b)
		}
	}
}
