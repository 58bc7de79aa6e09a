package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/remote"
)

var update = flag.Bool("update", false, "record testdata anew")

const token = "a-token-of-some-length"

func post(t *testing.T, h http.Handler, path, body string, change func(r *http.Request)) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8000"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4000"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A request that the handler would not heed in full is refused, with the field's name.
func TestHandlerRefuses(t *testing.T) {
	h := offer(t, func(s *Served) { s.Body, s.Prompts = 2000, 3 })
	noScores := offer(t, func(s *Served) { s.Scorer = nil })
	for body, want := range map[string]string{
		`{`:                               "cannot be read",
		`{} {}`:                           "more than one",
		`[]`:                              "cannot be read",
		`{"prompt":[1]}`:                  `no model \"\"`,
		`{"model":"gpt-4o","prompt":[1]}`: `no model \"gpt-4o\"`,
		`{"model":"tiny"}`:                "0 prompts",
		`{"model":"tiny","prompt":[]}`:    "0 prompts",
		`{"model":"tiny","prompt":[[]]}`:  "prompt 0 is empty",
		`{"model":"tiny","prompt":[[1],[1],[1],[1]]}`:                          "4 prompts",
		`{"model":"tiny","prompt":[290]}`:                                      "id 290 is outside",
		`{"model":"tiny","prompt":[-1]}`:                                       "id -1 is outside",
		`{"model":"tiny","prompt":[1.5]}`:                                      "prompt: want",
		`{"model":"tiny","prompt":[1,"a"]}`:                                    "prompt: want",
		`{"model":"tiny","prompt":{"a":1}}`:                                    "prompt: want",
		`{"model":"tiny","prompt":[1],"temperature":-1}`:                       "temperature is -1",
		`{"model":"tiny","prompt":[1],"top_p":0}`:                              "top_p is 0",
		`{"model":"tiny","prompt":[1],"top_p":1.1}`:                            "top_p is 1.1",
		`{"model":"tiny","prompt":[1],"max_tokens":0}`:                         "max_tokens is 0",
		`{"model":"tiny","prompt":[1],"stream":true}`:                          "stream",
		`{"model":"tiny","prompt":[1],"n":2}`:                                  "n is 2",
		`{"model":"tiny","prompt":[1],"presence_penalty":1}`:                   "penalties",
		`{"model":"tiny","prompt":[1],"repetition_penalty":1.1}`:               "penalties",
		`{"model":"tiny","prompt":[1],"stop_token_ids":[999]}`:                 "stop_token_ids: id 999",
		`{"model":"tiny","prompt":[1],"stop":"x"}`:                             `unknown field \"stop\"`,
		`{"model":"tiny","prompt":[1],"logprobs":5}`:                           "logprobs",
		`{"model":"tiny","prompt":[1],"prompt_logprobs":-1}`:                   "prompt_logprobs",
		`{"model":"tiny","prompt":[1],"echo":true}`:                            "echo",
		`{"model":"tiny","prompt":[1],"seed":-1}`:                              "cannot be read",
		`{"model":"tiny","prompt":[` + strings.Repeat("1,", 159) + `1]}`:       "maximum context length is 160",
		`{"model":"tiny","prompt":"` + strings.Repeat("x ", 1500) + `"}`:       "more than 2000 bytes",
		`{"model":"tiny","messages":[{"role":"user","content":"a","name":1}]}`: "unknown field",
	} {
		code, reply := post(t, h, "/v1/completions", body, nil)
		if code < 400 || code >= 500 || !strings.Contains(reply, want) || !json.Valid([]byte(reply)) {
			t.Errorf("%.60s: got %d %s, want an error that says %s", body, code, reply, want)
		}
	}
	if code, reply := post(t, noScores, "/v1/completions", `{"model":"tiny","prompt":[1],"prompt_logprobs":0}`, nil); code != 400 || !strings.Contains(reply, "not offered") {
		t.Errorf("no scores: got %d %s", code, reply)
	}
	for body, want := range map[string]string{
		`{"model":"tiny","messages":[]}`:                                                                          "without messages",
		`{"model":"tiny","messages":[{"role":"tool","content":"a"}]}`:                                             "no such role",
		`{"model":"tiny","messages":[{"role":"assistant","content":"a"}]}`:                                        "own",
		`{"model":"tiny","messages":[{"role":"user","content":"a"}],"tools":[]}`:                                  `unknown field \"tools\"`,
		`{"model":"tiny","messages":[{"role":"user","content":[{"type":"text"}]}]}`:                               "cannot be read",
		`{"model":"tiny","messages":[{"role":"user","content":"a"}],"structured_outputs":{"regex":"a"}}`:          "unknown field",
		`{"model":"tiny","messages":[{"role":"user","content":"a"}],"structured_outputs":{"choice":["\ufffda"]}}`: "",
	} {
		code, reply := post(t, h, "/v1/chat/completions", body, nil)
		if (code < 400 || code >= 500) != (want == "") || !strings.Contains(reply, want) {
			t.Errorf("%.60s: got %d %s, want an error that says %s", body, code, reply, want)
		}
	}
	if code, reply := post(t, h, "/v1/embeddings", `{}`, nil); code != 404 || !json.Valid([]byte(reply)) {
		t.Errorf("embeddings: got %d %s", code, reply)
	}
}

// Without a token only programs of this machine may ask; with one, who shows it.
func TestHandlerAdmits(t *testing.T) {
	open, closed := offer(t, nil), offer(t, func(s *Served) { s.Token = token })
	const body = `{"model":"tiny","prompt":[1],"max_tokens":1}`
	for name, c := range map[string]struct {
		h      http.Handler
		change func(r *http.Request)
		want   int
	}{
		"here":                  {open, nil, 200},
		"by its name":           {open, func(r *http.Request) { r.Host = "localhost:8000" }, 200},
		"by six":                {open, func(r *http.Request) { r.Host, r.RemoteAddr = "[::1]:8000", "[::1]:70" }, 200},
		"from elsewhere":        {open, func(r *http.Request) { r.RemoteAddr = "10.0.0.7:70" }, 403},
		"from nowhere":          {open, func(r *http.Request) { r.RemoteAddr = "pipe" }, 403},
		"a page":                {open, func(r *http.Request) { r.Header.Set("Origin", "https://evil") }, 403},
		"a host that means us":  {open, func(r *http.Request) { r.Host = "evil.example:8000" }, 403},
		"no token":              {closed, nil, 401},
		"a wrong one":           {closed, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, 401},
		"the right one":         {closed, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }, 200},
		"the right one, afar":   {closed, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token); r.RemoteAddr = "10.0.0.7:70" }, 200},
		"a token without words": {closed, func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
	} {
		if code, reply := post(t, c.h, "/v1/completions", body, c.change); code != c.want || strings.Contains(reply, token) {
			t.Errorf("%s: got %d %s, want %d", name, code, reply, c.want)
		}
	}
	for name, s := range map[string]func(s *Served){
		"short token": func(s *Served) { s.Token = "short" }, "no sampler": func(s *Served) { s.Sampler = nil }, "no name": func(s *Served) { s.Model = "" },
		"no context": func(s *Served) { s.Context = 0 }, "another template": func(s *Served) { s.Template = chat.Llama3() },
	} {
		served := Served{Model: "m", Sampler: tiny(t), Tokenizer: testTokenizer(t), Template: chat.ChatML(), Vocab: 290, Context: 10}
		s(&served)
		if _, err := NewHandler(served); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// The replies' form, as OpenAI's and vLLM's clients read it.
func TestHandlerReplies(t *testing.T) {
	h := offer(t, nil)
	code, reply := post(t, h, "/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"go"}],"max_completion_tokens":2,
		"temperature":0,"logprobs":true,"return_token_ids":true,"n":1,"stream":false,"user":"me","frequency_penalty":0}`, nil)
	var c struct {
		Object, Model string
		Prompt        []int32 `json:"prompt_token_ids"`
		Choices       []struct {
			Finish   string  `json:"finish_reason"`
			IDs      []int32 `json:"token_ids"`
			Message  struct{ Role, Content string }
			LogProbs struct {
				Content []struct {
					Token   string
					LogProb float32
					Bytes   []int
				}
			}
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Reply  int `json:"completion_tokens"`
			Total  int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(reply), &c); err != nil || code != 200 {
		t.Fatal(code, reply, err)
	}
	a := c.Choices[0]
	if c.Object != "chat.completion" || c.Model != "tiny" || a.Finish != "length" || len(a.IDs) != 2 || len(a.LogProbs.Content) != 2 ||
		a.Message.Role != "assistant" || c.Usage.Reply != 2 || c.Usage.Prompt != len(c.Prompt) || c.Usage.Total != 2+len(c.Prompt) {
		t.Errorf("got %s", reply)
	}
	if code, reply = post(t, h, "/v1/completions", `{"model":"tiny","prompt":["go to the","shelf"],"max_tokens":3,"temperature":0}`, nil); code != 200 ||
		!strings.Contains(reply, `"index":1`) || strings.Contains(reply, "token_ids") || strings.Contains(reply, "logprobs") {
		t.Errorf("texts: got %d %s", code, reply)
	}
}

// failing is a sampler that breaks.
type failing struct{ err error }

func (f failing) Sample(context.Context, []int32, policy.Sampling) (policy.Sample, error) {
	return policy.Sample{}, f.err
}

// What breaks inside is told to the log, not to the network.
func TestHandlerFails(t *testing.T) {
	var log bytes.Buffer
	h := offer(t, func(s *Served) {
		s.Sampler, s.Log = failing{errors.New("layer 3 of /secret/place is NaN")}, slog.New(slog.NewTextHandler(&log, nil))
	})
	code, reply := post(t, h, "/v1/completions", `{"model":"tiny","prompt":[1]}`, nil)
	if code != 500 || strings.Contains(reply, "secret") || !strings.Contains(log.String(), "/secret/place") {
		t.Errorf("got %d %s, logged %s", code, reply, log.String())
	}
}

// waiting is a sampler that waits for its context.
type waiting struct{ begun chan struct{} }

func (s waiting) Sample(ctx context.Context, _ []int32, _ policy.Sampling) (policy.Sample, error) {
	s.begun <- struct{}{}
	<-ctx.Done()
	return policy.Sample{}, ctx.Err()
}

// Requests beyond the limit are sent away and may come back; those under way end with who asked, or soon after the
// server.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{}, 10)
		h := offer(t, func(s *Served) { s.Sampler, s.Token, s.Parallel = waiting{begun}, token, 2 })
		p := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(ctx, p, 0) }()
		transport := &http.Transport{DialContext: p.dial}
		defer transport.CloseIdleConnections()
		c := client(t, Options{
			URL: "http://127.0.0.1:1", Dialect: SkillMaster, Model: "tiny", Key: func() (string, error) { return token, nil }, Transport: transport,
			Limits: Limits{Tries: 1},
		})
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Policy(0).Complete(first, talk()); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: got %v", err)
			}
		})
		wg.Go(func() {
			if _, err := c.Policy(0).Complete(t.Context(), talk()); !errors.Is(err, policy.ErrUnavailable) {
				t.Errorf("at the end of the server: got %v", err)
			}
		})
		<-begun
		<-begun
		_, err := c.Policy(0).Complete(t.Context(), talk())
		if e := (*remote.StatusError)(nil); !errors.As(err, &e) || e.Status != 429 || e.Wait != time.Second {
			t.Errorf("a third one: got %v", err)
		}
		cancel()
		synctest.Wait()
		if n := len(h.slots); n != 1 {
			t.Errorf("%d requests under way after one was cancelled, want 1", n)
		}
		began := time.Now()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		wg.Wait()
		if took := time.Since(began); took != remote.Grace {
			t.Errorf("the server took %v to end", took)
		}
	})
}

// A body that does not come is not waited for, a connection that idles is closed, and there are no more connections than
// allowed.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := offer(t, func(s *Served) { s.Token = token })
		p := newPipes()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Serve(ctx, p, 1) }()
		defer func() {
			stop()
			<-ended
		}()
		for name, c := range map[string]struct {
			send string
			most time.Duration
		}{
			"no header": {"POST /v1/comp", remote.HeaderTime},
			"no body":   {"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: Bearer " + token + "\r\n\r\n{", remote.BodyTime},
			"idle":      {"GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n", remote.IdleTime},
		} {
			began := time.Now()
			conn, err := p.dial(ctx, "", "")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.WriteString(conn, c.send) }()
			_, _ = io.Copy(io.Discard, conn) // until the server hangs up
			if took := time.Since(began); took < c.most || took > c.most+2*time.Second {
				t.Errorf("%s: hung up after %v, want %v", name, took, c.most)
			}
			_ = conn.Close()
		}
		one, err := p.dial(ctx, "", "")
		if err != nil {
			t.Fatal(err)
		}
		late, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := p.dial(late, "", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second connection: got %v", err)
		}
		_ = one.Close()
	})
}

// An address that others can reach needs a token.
func TestServeAddress(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip(err) // no such network here
	}
	if err := offer(t, nil).Serve(t.Context(), l, 0); err == nil || !strings.Contains(err.Error(), "set a token") {
		t.Errorf("got %v", err)
	}
	if l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- offer(t, nil).Serve(ctx, l, 0) }()
	distant(t, "http://"+l.Addr().String(), SkillMaster)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
