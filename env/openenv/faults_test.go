package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skillmaster/env/envtest"
	"skillmaster/episode"

	"github.com/coder/websocket"
)

// broken is a server of ours that answers some messages its own way.
type broken struct {
	*Handler
	connections atomic.Int32
	// answer takes the number of the connection and of the message in it, from 1; false: the real session goes on.
	answer func(c *websocket.Conn, connection, message int) bool
}

func (b *broken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/ws" {
		b.Handler.ServeHTTP(w, r)
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	s := &session{h: b.Handler}
	defer s.end()
	n := int(b.connections.Add(1))
	for m := 1; ; m++ {
		_, data, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if b.answer(c, n, m) {
			continue
		}
		t, reply, more := s.answer(r.Context(), data)
		if !more || send(r.Context(), c, t, reply) != nil {
			return
		}
	}
}

func breaks(t *testing.T, answer func(c *websocket.Conn, connection, message int) bool) (*broken, string) {
	t.Helper()
	h, err := NewHandler(Served{Suite: envtest.World{}, Splits: halls, Name: "halls"})
	if err != nil {
		t.Fatal(err)
	}
	b := &broken{Handler: h, answer: answer}
	server := httptest.NewServer(b)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return b, server.URL
}

// write sends raw bytes.
func write(c *websocket.Conn, text string) bool {
	_ = c.Write(context.Background(), websocket.MessageText, []byte(text))
	return true
}

// stall answers nothing for longer than any test waits.
func stall(c *websocket.Conn) bool {
	_, _, _ = c.Read(context.Background())
	return true
}

// faults are answers that are none.
var faults = map[string]struct {
	answer func(c *websocket.Conn) bool
	says   string
}{
	"stalls":       {stall, "no answer within"},
	"resets":       {func(c *websocket.Conn) bool { return c.CloseNow() == nil }, "the connection broke"},
	"goes away":    {func(c *websocket.Conn) bool { return c.Close(websocket.StatusGoingAway, "restart") == nil }, "closed the connection"},
	"no JSON":      {func(c *websocket.Conn) bool { return write(c, "<html>") }, "cannot be read"},
	"nothing":      {func(c *websocket.Conn) bool { return write(c, "") }, "cannot be read"},
	"two values":   {func(c *websocket.Conn) bool { return write(c, `{"type":"state"}{}`) }, "more than one value"},
	"another type": {func(c *websocket.Conn) bool { return write(c, `{"type":"state","data":{}}`) }, "of type"},
	"no data":      {func(c *websocket.Conn) bool { return write(c, `{"type":"observation"}`) }, "cannot be read"},
	"no observation": {func(c *websocket.Conn) bool {
		return write(c, `{"type":"observation","data":{"reward":0,"done":true}}`)
	}, "not whole"},
	"no done": {func(c *websocket.Conn) bool {
		return write(c, `{"type":"observation","data":{"observation":{},"reward":0}}`)
	}, "not whole"},
	"reward in words": {func(c *websocket.Conn) bool {
		return write(c, `{"type":"observation","data":{"observation":{},"reward":"much","done":true}}`)
	}, "cannot be read"},
	"another world": {func(c *websocket.Conn) bool {
		return write(c, `{"type":"observation","data":{"observation":{"board":[]},"reward":0,"done":true}}`)
	}, "observation cannot be read"},
	"execution error": {func(c *websocket.Conn) bool {
		return write(c, `{"type":"error","data":{"message":"KeyError","code":"EXECUTION_ERROR"}}`)
	}, "KeyError (EXECUTION_ERROR)"},
	"error without code": {func(c *websocket.Conn) bool { return write(c, `{"type":"error","data":"oops"}`) }, "error cannot be read"},
}

// limits of a client that tries twice. An answer that never comes is not waited for long, one that is wrong has all the time
// that a busy machine takes.
func limits(fault string) Limits {
	l := Limits{Tries: 2, Reply: time.Minute}
	if fault == "stalls" {
		l.Reply = 2 * time.Second
	}
	return l
}

func hall(t *testing.T, w World) episode.Task {
	t.Helper()
	tasks, err := w.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	return tasks[0]
}

// A step that is not answered as it should be is an error, the episode is lost, and the connection is given up.
func TestFaultyStep(t *testing.T) {
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := breaks(t, func(c *websocket.Conn, _, message int) bool { return message == 3 && f.answer(c) })
			w := dial(t, Options{URL: url, Limits: limits(name)})
			e, _, err := w.Open(t.Context(), hall(t, w), 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Step(t.Context(), "look"); err != nil {
				t.Fatal(err)
			}
			_, err = e.Step(t.Context(), "look")
			if err == nil || !strings.Contains(err.Error(), f.says) {
				t.Errorf("got %v, want an error that says %q", err, f.says)
			}
			if _, again := e.Step(t.Context(), "look"); !errors.Is(again, err) {
				t.Errorf("the next step says %v, not that the episode is lost", again)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An opening that fails is tried again over another connection, and ends with an error if it never goes well.
func TestFaultyReset(t *testing.T) {
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, url := breaks(t, func(c *websocket.Conn, connection, message int) bool {
				return message == 1 && connection != 2 && f.answer(c)
			})
			var noticed atomic.Int32
			w := dial(t, Options{URL: url, Limits: limits(name), Notice: func(string) { noticed.Add(1) }})
			e, o, err := w.Open(t.Context(), hall(t, w), 1)
			if err != nil || o.Text == "" {
				t.Fatalf("second try: %+v, %v", o, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if n := noticed.Load(); n != 1 {
				t.Errorf("%d notices, want 1", n)
			}
			_, _, err = w.Open(t.Context(), hall(t, w), 1)
			if err == nil || !strings.Contains(err.Error(), "each of 2 tries") || b.connections.Load() != 4 {
				t.Errorf("after %d connections: %v", b.connections.Load(), err)
			}
		})
	}
}

func TestDialSaysWhatIsWrong(t *testing.T) {
	_, url := serve(t, Served{Token: "a token of some length"})
	token := func() (string, error) { return "a token of some length", nil }
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"no token":          {Options{URL: url}, "is the token right?"},
		"another token":     {Options{URL: url, Token: func() (string, error) { return "another token", nil }}, "is the token right?"},
		"no address":        {Options{URL: "127.0.0.1:8000"}, "cannot be read"},
		"user in address":   {Options{URL: strings.Replace(url, "://", "://me:secret@", 1)}, "give the token apart"},
		"token in the open": {Options{URL: "ws://example.com", Token: token}, "in clear text"},
		"nobody listens":    {Options{URL: "ws://127.0.0.1:1"}, "refused"},
		"token is missing":  {Options{URL: url, Token: func() (string, error) { return "", errors.New("no such file") }}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Dial(t.Context(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
	w := dial(t, Options{URL: url, Token: token})
	if e, _, err := w.Open(t.Context(), hall(t, w), 1); err != nil {
		t.Error(err)
	} else if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A redirect is not followed: nobody has chosen where it leads.
func TestRedirectIsNotFollowed(t *testing.T) {
	_, url := serve(t, Served{})
	away := httptest.NewServer(http.RedirectHandler("http"+strings.TrimPrefix(url, "ws")+"/guide", http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	if _, err := Dial(t.Context(), Options{URL: away.URL}); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("got %v, want that the server says 307", err)
	}
}

// A full server is waited for, and waiting is no failure.
func TestFullServer(t *testing.T) {
	h, url := serve(t, Served{Sessions: 1})
	w := dial(t, Options{URL: url, Limits: Limits{Tries: 1, Queue: time.Minute}})
	task := hall(t, w)
	first, _, err := w.Open(t.Context(), task, 1)
	if err != nil {
		t.Fatal(err)
	}
	impatient := dial(t, Options{URL: url, Limits: Limits{Tries: 1, Queue: 300 * time.Millisecond}})
	if _, _, err := impatient.Open(t.Context(), task, 1); err == nil || !strings.Contains(err.Error(), "CAPACITY_REACHED") {
		t.Errorf("got %v, want that the server is full", err)
	}
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			e, _, err := w.Open(t.Context(), task, 1)
			if err != nil {
				t.Error(err)
				return
			}
			if n := h.Sessions(); n != 1 {
				t.Errorf("%d sessions where 1 is allowed", n)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	wait.Wait()
}

// The client itself opens no more connections than it may.
func TestClientLimit(t *testing.T) {
	_, url := serve(t, Served{})
	w := dial(t, Options{URL: url, Limits: Limits{Sessions: 1}})
	e, _, err := w.Open(t.Context(), hall(t, w), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := w.Open(ctx, hall(t, w), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second connection: %v", err)
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if e, _, err = w.Open(t.Context(), hall(t, w), 1); err != nil {
		t.Errorf("after the first was closed: %v", err)
	} else if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// raw is a client that says what it likes.
func raw(t *testing.T, url string, header http.Header) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url+"/ws", &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // whoever dials need not close it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func ask(t *testing.T, c *websocket.Conn, text string) (kind string, data map[string]any) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, reply, err := c.Read(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var m struct {
		Type string         `json:"type"`
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal(reply, &m); err != nil {
		t.Fatal(err)
	}
	return m.Type, m.Data
}

// What a client may say wrongly is answered with the protocol's code, and the session goes on.
func TestServerRefuses(t *testing.T) {
	_, url := serve(t, Served{})
	c := raw(t, url, nil)
	for _, m := range []struct{ say, code string }{
		{`{`, codeJSON},
		{`{"type":"step","data":{"message":"look"}}`, codeExecution}, // before a reset
		{`{"type":"dance"}`, codeType},
		{`{"type":"reset","extra":1}`, codeInvalid},
		{`{"type":"reset","data":{"seed":-1}}`, codeInvalid},
		{`{"type":"reset","data":{"seed":"one"}}`, codeInvalid},
		{`{"type":"reset","data":{"split":"no"}}`, codeInvalid},
		{`{"type":"reset","data":{"index":24}}`, codeInvalid},
		{`{"type":"reset","data":{"task_id":"../../etc/passwd"}}`, codeInvalid},
		{`{"type":"reset","data":{"task_id":"` + strings.Repeat("a", 600) + `"}}`, codeInvalid},
		{`{"type":"reset","data":{"episode_id":"` + strings.Repeat("a", 600) + `"}}`, codeInvalid},
		{`{"type":"reset","data":{"seed":3,"difficulty":"hard"}}`, ""},
		{`{"type":"step","data":{"massage":"look"}}`, codeInvalid},
		{`{"type":"step","data":{"message":7}}`, codeInvalid},
		{`{"type":"step","data":{}}`, codeInvalid},
		{`{"type":"step"}`, codeInvalid},
		{`{"type":"step","data":{"message":"look","metadata":{"id":1}}}`, ""},
		{`{"type":"step","data":{"type":"call_tool","tool_name":"act","arguments":{"action":"look"}}}`, ""},
		{`{"type":"state"}`, ""},
		{`{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}`, ""},
	} {
		kind, data := ask(t, c, m.say)
		if code, _ := data["code"].(string); code != m.code || (kind == typeError) != (m.code != "") {
			t.Errorf("%.80s: got %s %v, want code %q", m.say, kind, data, m.code)
		}
	}
}

// Seeds say which task is played; without one each reset plays the next.
func TestResetChooses(t *testing.T) {
	_, url := serve(t, Served{})
	tasks, err := envtest.World{}.Tasks("probe")
	if err != nil {
		t.Fatal(err)
	}
	c := raw(t, url, nil)
	for say, want := range map[string]string{
		`{"seed":5,"split":"probe"}`:                           tasks[5].ID,
		`{"seed":29,"split":"probe"}`:                          tasks[5].ID,
		`{"seed":5,"split":"probe","index":2}`:                 tasks[2].ID,
		`{"seed":5,"task_id":"` + tasks[7].ID + `"}`:           tasks[7].ID,
		`{"seed":18446744073709551615,"split":"probe"}`:        tasks[18446744073709551615%24].ID,
		`{"seed":1,"task_id":"varied/00/` + tasks[7].ID + `"}`: "varied/00/" + tasks[7].ID,
	} {
		_, data := ask(t, c, `{"type":"reset","data":`+say+`}`)
		m, _ := data["metadata"].(map[string]any)
		if m["task_id"] != want {
			t.Errorf("reset %s plays %v, want %s", say, m["task_id"], want)
		}
	}
	train, err := envtest.World{}.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, data := ask(t, c, `{"type":"reset"}`)
		m, _ := data["metadata"].(map[string]any)
		if m["task_id"] != train[i].ID || m["seed"] != float64(i) {
			t.Errorf("reset %d without a seed plays %v with seed %v", i, m["task_id"], m["seed"])
		}
	}
}

// A tool says the same as a step.
func TestTool(t *testing.T) {
	_, url := serve(t, Served{})
	c := raw(t, url, nil)
	rpc := func(method, params string) map[string]any {
		_, data := ask(t, c, fmt.Sprintf(`{"type":"mcp","data":{"jsonrpc":"2.0","id":"a","method":%q,"params":%s}}`, method, params))
		return data
	}
	if e, _ := rpc("tools/call", `{"name":"act","arguments":{"action":"look"}}`)["error"].(map[string]any); !strings.Contains(fmt.Sprint(e["message"]), "reset first") {
		t.Errorf("a call before a reset: %v", e)
	}
	ask(t, c, `{"type":"reset","data":{"seed":0}}`)
	r, _ := rpc("tools/call", `{"name":"act","arguments":{"action":"open blue door 1"}}`)["result"].(map[string]any)
	if s := fmt.Sprint(r); !strings.Contains(s, "Behind the blue door 1") || !strings.Contains(s, "task_id") {
		t.Errorf("a call of the tool: %s", s)
	}
	for params, code := range map[string]float64{`{"name":"fly"}`: rpcParams, `{"name":"act","arguments":{"act":1}}`: rpcParams} {
		if e, _ := rpc("tools/call", params)["error"].(map[string]any); e["code"] != code {
			t.Errorf("%s: %v, want code %v", params, e, code)
		}
	}
	_, data := ask(t, c, `{"type":"step","data":{"type":"call_tool","tool_name":"fly","arguments":{}}}`)
	if s := fmt.Sprint(data["observation"]); !strings.Contains(s, "tool_not_found") {
		t.Errorf("an unknown tool: %s", s)
	}
}

// A session that says nothing is closed, and so is one whose client is gone without a word.
func TestIdleSessionsEnd(t *testing.T) {
	h, url := serve(t, Served{Idle: 50 * time.Millisecond})
	c := raw(t, url, nil)
	if _, _, err := c.Read(t.Context()); err == nil {
		t.Error("a silent session goes on")
	}
	waitFor(t, func() bool { return h.Sessions() == 0 })

	h, url = serve(t, Served{Pulse: 20 * time.Millisecond})
	c = raw(t, url, nil)
	ask(t, c, `{"type":"reset"}`)
	time.Sleep(100 * time.Millisecond) // nobody reads, so no ping is answered
	waitFor(t, func() bool { return h.Sessions() == 0 })
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for range 500 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it did not come to that within 5 seconds")
}

// Closing a handler ends its sessions.
func TestHandlerCloses(t *testing.T) {
	h, url := serve(t, Served{})
	c := raw(t, url, nil)
	ask(t, c, `{"type":"reset"}`)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if n := h.Sessions(); n != 0 {
		t.Errorf("%d sessions after Close", n)
	}
	if _, _, err := c.Read(t.Context()); err == nil {
		t.Error("a session goes on after Close")
	}
}

// A message that is too long ends its session, and no other.
func TestLongMessage(t *testing.T) {
	_, url := serve(t, Served{Body: 1000})
	other, c := raw(t, url, nil), raw(t, url, nil)
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"step","data":{"message":"`+strings.Repeat("a", 2000)+`"}}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("got %v, want that the message is too big", err)
	}
	if kind, _ := ask(t, other, `{"type":"reset"}`); kind != typeObservation {
		t.Errorf("another session answers %s", kind)
	}
}

// Without a token only programs of this machine may ask; with one, only who shows it.
func TestWhoMayAsk(t *testing.T) {
	open, err := NewHandler(Served{Suite: envtest.World{}, Splits: halls, Name: "halls"})
	if err != nil {
		t.Fatal(err)
	}
	locked, err := NewHandler(Served{Suite: envtest.World{}, Splits: halls, Name: "halls", Token: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		h      *Handler
		change func(r *http.Request)
		status int
	}{
		"a program here":          {open, func(*http.Request) {}, 200},
		"another machine":         {open, func(r *http.Request) { r.RemoteAddr = "10.0.0.7:1234" }, 403},
		"a page in a browser":     {open, func(r *http.Request) { r.Header.Set("Origin", "https://example.com") }, 403},
		"a name made to mean us":  {open, func(r *http.Request) { r.Host = "example.com" }, 403},
		"no token":                {locked, func(*http.Request) {}, 401},
		"another token":           {locked, func(r *http.Request) { r.Header.Set("Authorization", "Bearer 0123456789abcdeg") }, 401},
		"the token":               {locked, func(r *http.Request) { r.Header.Set("Authorization", "Bearer 0123456789abcdef") }, 200},
		"the token as a password": {locked, func(r *http.Request) { r.SetBasicAuth("any", "0123456789abcdef") }, 200},
		"from afar with a token": {locked, func(r *http.Request) {
			r.RemoteAddr, r.Host = "10.0.0.7:1234", "example.com"
			r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		}, 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8000/health", nil)
		r.RemoteAddr = "127.0.0.1:4321"
		c.change(r)
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: got %d, want %d", name, w.Code, c.status)
		}
	}
	if _, err := NewHandler(Served{Suite: envtest.World{}, Splits: halls, Name: "halls", Token: "short"}); err == nil {
		t.Error("a short token is taken")
	}
}

// FuzzMessage says anything to a session. It must answer, and never break.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"type":"reset","data":{"seed":1}}`, `{"type":"step","data":{"message":"look"}}`, `{"type":"state"}`, `{"type":"close"}`, `{`, `null`, `[]`,
		`{"type":"mcp","data":{"jsonrpc":"2.0","method":"tools/call","params":{"name":"act","arguments":{"action":"look"}}}}`,
		`{"type":"step","data":{"type":"call_tool","tool_name":"act","arguments":{"action":"a"}}}`, `{"type":"reset","data":{"task_id":"varied/1/train/find_gem/0"}}`,
	} {
		f.Add([]byte(s))
	}
	h, err := NewHandler(Served{Suite: envtest.World{}, Splits: halls, Name: "halls"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &session{h: h}
		defer s.end()
		for _, m := range [][]byte{data, []byte(`{"type":"reset"}`), data} {
			kind, reply, more := s.answer(t.Context(), m)
			if _, err := json.Marshal(reply); err != nil || more == (kind == "") {
				t.Fatalf("%q: %s, %v, %v", m, kind, more, err)
			}
		}
	})
}

// FuzzAnswer reads anything as a server's answer: it is a result that makes sense, or an error.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"type":"observation","data":{"observation":{"text":"a","won":true},"reward":1,"done":true}}`,
		`{"type":"observation","data":{"observation":{"text":"a"},"reward":null,"done":false}}`, `{"type":"error","data":{"code":"X"}}`, `{"type":"observation","data":null}`,
	} {
		f.Add([]byte(s))
	}
	text := looks{Properties: map[string]property{"text": {Type: "string"}, "won": {Type: "boolean"}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range []*suite{{ours: true}, {format: newFormat(looks{}, text)}, {format: newFormat(looks{}, looks{})}} {
			r, err := s.read(data, false)
			if err == nil && s.ours && r.Success && !r.Done {
				t.Fatalf("%q is a success that goes on", data)
			}
		}
	})
}
