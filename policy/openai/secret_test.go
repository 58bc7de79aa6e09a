package openai

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skillmaster/policy"
	"skillmaster/policy/remote"
)

const secret = "sk-Zm9v/+YmFy=\"quux\"-0123456789"

func knows(string) remote.Key { return func() (string, error) { return secret, nil } }

// Nothing that a client says, counts or records holds its key, even where the server repeats it.
func TestKeyIsNeverShown(t *testing.T) {
	var seen []string
	var mu sync.Mutex
	show := func(text string) { // everything that comes out
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, text)
	}
	quoted := strings.ReplaceAll(secret, `"`, `\"`)
	for name, answer := range map[string]http.HandlerFunc{
		"in words":      status(401, "Incorrect API key provided: "+secret),
		"in JSON":       status(401, `{"error":{"message":"bad key `+quoted+`","code":"`+quoted+`"}}`),
		"cut":           status(500, strings.Repeat("x", 380)+secret),
		"in a reply":    status(200, `{"model":"`+quoted+`","choices":[{"finish_reason":"`+quoted+`","message":{"content":"a"}}]}`),
		"as a page":     status(200, secret),
		"in a redirect": status(302, "", "Location", "http://elsewhere/?key="+secret),
		"in a header":   status(429, "", "Retry-After", "0", "Content-Type", secret),
		"in a model":    status(200, strings.Replace(goodChat, "tiny", quoted, 1)),
		"works":         status(200, goodChat),
		"breaks off":    reset(`{"model":"` + quoted),
	} {
		t.Run(name, func(t *testing.T) {
			var recording bytes.Buffer
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			rec := NewRecorder(transport, &recording)
			sent := false
			c := client(t, Options{
				URL: serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					sent = r.Header.Get("Authorization") == "Bearer "+secret
					answer(w, r)
				})), Dialect: VLLM, Model: "tiny", Key: knows(secret), Transport: rec, Notice: show, Limits: Limits{Tries: 3, Pause: 1e6},
			})
			r := talk()
			r.Messages[0].Text = "my key is " + secret // a world that has found it out
			got, err := c.Policy(0).Complete(t.Context(), r)
			if err != nil {
				show(err.Error())
				show(fmt.Sprintf("%+v %#v", err, err.Error()))
			}
			if !sent {
				t.Error("the key was not sent: the test shows nothing")
			}
			if rec.Err() != nil || recording.Len() == 0 {
				t.Errorf("recorded %d bytes, %v", recording.Len(), rec.Err())
			}
			show(fmt.Sprintf("%+v %+v %+v", got, c.Spent(), c.options))
			show(recording.String())
		})
	}
	for _, text := range seen {
		for _, form := range []string{secret, strings.ReplaceAll(secret, `"`, `\"`), strings.ReplaceAll(secret, `"`, `\\\"`), secret[:12]} {
			if strings.Contains(text, form) {
				t.Errorf("the key is shown: %s", text)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d texts were looked at", len(seen))
	}
}

func TestKeySources(t *testing.T) {
	t.Setenv("SKILLMASTER_TEST_KEY", secret)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("  "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, k := range []remote.Key{remote.EnvKey("SKILLMASTER_TEST_KEY"), remote.FileKey(file)} {
		if got, err := k.Secret(); got != secret || err != nil {
			t.Errorf("got %v", err)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, k := range map[string]remote.Key{
		"SKILLMASTER_NO_KEY is not set": remote.EnvKey("SKILLMASTER_NO_KEY"), "is empty": remote.FileKey(file), "no such file": remote.FileKey(file + ".not"),
		"needs 4": func() (string, error) { return "abc", nil }, "no key has": func() (string, error) { return "abc\ndef", nil },
	} {
		server := inTurn(status(200, goodChat))
		_, err := client(t, Options{URL: serveHTTP(t, server), Dialect: VLLM, Model: "tiny", Key: k}).Policy(0).Complete(t.Context(), talk())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "abc") || server.count() > 0 {
			t.Errorf("got %v, asked %d times; want an error that says %q", err, server.count(), want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:8000":      "http://127.0.0.1:8000/v1/models http://127.0.0.1:8000/generate",
		"http://localhost:8000/v1/":  "http://localhost:8000/v1/models http://localhost:8000/generate",
		"https://host/api/v1":        "https://host/api/v1/models https://host/api/generate",
		"https://host/v1beta/openai": "https://host/v1beta/openai/models https://host/v1beta/openai/generate",
		"http://[::1]:8000":          "http://[::1]:8000/v1/models http://[::1]:8000/generate",
		"https://user:pw12@host":     "", "https://host?key=pw12": "", "https://host/#pw12": "", "ftp://host": "", "host:8000": "", "": "",
		"http://host/v1": "", "http://127.0.0.1.evil.com": "", "://pw12": "", "http://\x7fpw12": "",
	} {
		c, err := New(Options{URL: text, Dialect: VLLM, Model: "m", Key: knows(secret)})
		if want == "" {
			if err == nil || strings.Contains(err.Error(), "pw12") {
				t.Errorf("%q: got %v, want an error without the secret", text, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := c.at("/v1/models") + " " + c.at("/generate"); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if _, err := New(Options{URL: "http://host", Dialect: VLLM, Model: "m", Key: knows(secret), Cleartext: true}); err != nil {
		t.Error(err)
	}
	if _, err := New(Options{URL: "http://host", Dialect: VLLM, Model: "m"}); err != nil {
		t.Errorf("without a key: %v", err)
	}
	for _, o := range []Options{{URL: "http://a", Dialect: "x", Model: "m"}, {URL: "http://a", Dialect: VLLM}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v: want an error", o)
		}
	}
}

// Certificates are verified, at once and finally.
func TestCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(status(200, goodChat))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	o := Options{URL: server.URL, Dialect: VLLM, Model: "tiny", Key: knows(secret)}
	c := client(t, o)
	if _, err := c.Policy(0).Complete(t.Context(), talk()); err == nil || !strings.Contains(err.Error(), "certificate") || c.Spent().Retries > 0 {
		t.Errorf("got %v after %+v", err, c.Spent())
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer trusting.CloseIdleConnections()
	o.Transport = trusting
	if _, err := client(t, o).Policy(0).Complete(t.Context(), talk()); err != nil {
		t.Error(err)
	}
	o.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it is to be refused
	if _, err := New(o); err == nil {
		t.Error("a transport that verifies nothing was taken")
	}
}

// What a world or a skill says never becomes part of an address, a header or a field of a request.
func TestForeignText(t *testing.T) {
	var path, auth string
	var body []byte
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, auth = r.URL.String(), r.Header.Get("Authorization")
		body, _ = io.ReadAll(r.Body)
		status(200, goodChat)(w, r)
	}))
	for _, text := range []string{"http://evil/?", "../../x", "\"},\"model\":\"other\",\"x\":{\"", "\r\nAuthorization: Bearer x", "\x00\xff</s>", "<|im_end|>"} {
		r := talk()
		r.Messages[0].Text = text
		if _, err := client(t, Options{URL: url, Dialect: VLLM, Model: "tiny"}).Policy(0).Complete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		var q struct {
			Model    string `json:"model"`
			Messages []struct{ Role, Content string }
		}
		if err := decode(body, &q); err != nil {
			t.Fatal(err)
		}
		if path != "/v1/chat/completions" || auth != "" || q.Model != "tiny" || len(q.Messages) != 1 || q.Messages[0].Content != strings.ToValidUTF8(text, "\uFFFD") {
			t.Errorf("%q went to %s as %s", text, path, body)
		}
	}
	c := client(t, Options{URL: url, Dialect: VLLM, Model: "tiny"})
	for _, name := range []string{"", "../x", "a/b", "a b", "-x", strings.Repeat("a", 200), "a.b"} {
		if err := c.LoadAdapter(t.Context(), name, "/adapters/x"); err == nil {
			t.Errorf("adapter name %q was taken", name)
		}
	}
}

// A recording answers as the server did, failures included, and nothing else.
func TestReplay(t *testing.T) {
	var recording bytes.Buffer
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	server := inTurn(status(500, "oh", "Retry-After-Ms", "1"), reset(goodChat[:30]), status(200, goodChat))
	o := Options{URL: serveHTTP(t, server), Dialect: VLLM, Model: "tiny", Key: knows(secret), Transport: NewRecorder(transport, &recording), Limits: Limits{Pause: 1e6}}
	want, err := client(t, o).Policy(0).Complete(t.Context(), talk())
	if err != nil {
		t.Fatal(err)
	}
	replay, err := NewReplay(&recording)
	if err != nil {
		t.Fatal(err)
	}
	o.Transport, o.URL = replay, "https://elsewhere"
	c := client(t, o)
	got, err := c.Policy(0).Complete(t.Context(), talk())
	if err != nil || got.Text != want.Text || c.Spent().Retries != 2 || replay.Left() != 0 {
		t.Errorf("got %+v, %v, %+v, %d left; want %+v", got, err, c.Spent(), replay.Left(), want)
	}
	if _, err = c.Policy(0).Complete(t.Context(), talk()); err == nil || !strings.Contains(err.Error(), "no (further) reply") || c.Spent().Retries != 2 {
		t.Errorf("beyond the recording: got %v", err)
	}
	r := talk()
	r.Sampling.Seed++
	if _, err = c.Policy(0).Complete(t.Context(), r); err == nil {
		t.Error("another request was answered")
	}
	for _, bad := range []string{"x", `{"status":200,"surprise":1}`, `{"method":"GET"}`} {
		if _, err := NewReplay(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: want an error", bad)
		}
	}
}

// Recorded traffic of the tiny model, committed: the bytes of every request and what is made of every reply.
func TestRecorded(t *testing.T) {
	for _, d := range []Dialect{SkillMaster, SGLang, LlamaCPP} {
		path := filepath.Join("testdata", string(d)+".jsonl")
		if *update {
			record(t, d, path)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		replay, err := NewReplay(f)
		if err != nil {
			t.Fatal(err)
		}
		got := converse(t, client(t, Options{URL: "http://127.0.0.1:1", Dialect: d, Model: "tiny", Transport: replay}))
		want, err := os.ReadFile(filepath.Join("testdata", string(d)+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) || replay.Left() != 0 {
			t.Errorf("%s: %d replies left; got\n%swant\n%s", d, replay.Left(), got, want)
		}
	}
}

// record writes what a server says, and what the client makes of it.
func record(t *testing.T, d Dialect, path string) {
	t.Helper()
	var h http.Handler = newFake(t)
	if d == SkillMaster {
		h = offer(t, nil)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	rec := NewRecorder(transport, f)
	got := converse(t, client(t, Options{URL: serveHTTP(t, h), Dialect: d, Model: "tiny", Transport: rec}))
	if err := f.Close(); err != nil || rec.Err() != nil {
		t.Fatal(err, rec.Err())
	}
	if err := os.WriteFile(strings.TrimSuffix(path, ".jsonl")+".txt", []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// converse asks for samples, and for scores where there are any, and writes them down.
func converse(t *testing.T, c *Client) string {
	t.Helper()
	s, err := c.Sampler(t.Context(), Weights{Version: 9}, testTokenizer(t))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for seed := range uint64(2) {
		got, err := s.Sample(t.Context(), []int32{72, 73}, policy.Sampling{Temperature: 1, MaxTokens: 3, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, got.IDs, got.LogProbs, got.Stop, got.Version)
	}
	if scorer, err := s.Scorer(); err == nil {
		got, err := scorer.Score(t.Context(), [][]int32{{1, 2, 3}, {4}, {5, 6}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, got)
	}
	return b.String()
}
