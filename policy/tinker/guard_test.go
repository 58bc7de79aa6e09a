package tinker

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skillmaster/policy/remote"

	"github.com/klauspost/compress/zstd"
)

const testToken = "tml-Zm9vYmFy-0123456789"

func knows(key string) remote.Key { return func() (string, error) { return key, nil } }

// asked sends a request of its own making, and returns status and answer.
func asked(t testing.TB, url, path string, body io.Reader, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Who shows the token may ask; without one, programs on this machine may, and no web page.
func TestServerAdmits(t *testing.T) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		token  string
		change func(*http.Request)
		want   int
	}{
		"the token":              {testToken, header("X-API-Key", testToken), http.StatusOK},
		"no token":               {testToken, nil, http.StatusUnauthorized},
		"another token":          {testToken, header("X-API-Key", testToken[1:]), http.StatusUnauthorized},
		"the token elsewhere":    {testToken, header("Authorization", "Bearer "+testToken), http.StatusUnauthorized},
		"none is asked for":      {"", nil, http.StatusOK},
		"a web page":             {"", header("Origin", "http://127.0.0.1"), http.StatusForbidden},
		"a name made to mean us": {"", func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			url := listen(t, serve(t, t.TempDir(), func(s *Served) { s.Token = c.token }))
			status, text := asked(t, url, "create_session", strings.NewReader(`{"tags":[],"sdk_version":"1","type":"create_session"}`), c.change)
			if status != c.want || strings.Contains(text, testToken) {
				t.Errorf("got %d: %s, want %d", status, text, c.want)
			}
		})
	}
	if _, err := NewServer(Served{Model: "m", Vocab: 2, Context: 2, Folder: t.TempDir(), Now: time.Now, Token: "short", Open: serve(t, t.TempDir(), nil).served.Open}); err == nil {
		t.Error("a token that others can guess")
	}
}

// An address that other machines can reach is not served without a token.
func TestServerListens(t *testing.T) {
	for _, token := range []string{"", testToken} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		v := serve(t, t.TempDir(), func(s *Served) { s.Token, s.Log = token, slog.New(slog.DiscardHandler) })
		err = v.Serve(ctx, l, 0)
		if (err == nil) != (token != "") || err != nil && !strings.Contains(err.Error(), "set a token") {
			t.Errorf("token %q: %v", token, err)
		}
	}
}

// A body is read up to its limit, packed or not.
func TestServerBody(t *testing.T) {
	url := listen(t, serve(t, t.TempDir(), func(s *Served) { s.Body = 1 << 16 }))
	long := []byte(`{"sdk_version":"` + strings.Repeat("x", 1<<17) + `"}`)
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := z.EncodeAll(long, nil)
	if len(bomb) > 1<<10 {
		t.Fatalf("it packs to %d bytes only", len(bomb))
	}
	packed := func(kind string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Content-Encoding", kind) }
	}
	for name, c := range map[string]struct {
		body   []byte
		change func(*http.Request)
		want   int
	}{
		"long":            {long, nil, http.StatusRequestEntityTooLarge},
		"long when open":  {bomb, packed("zstd"), http.StatusRequestEntityTooLarge},
		"no zstd":         {long[:9], packed("zstd"), http.StatusUnprocessableEntity},
		"packed as ever":  {long[:9], packed("br"), http.StatusUnsupportedMediaType},
		"half":            {long[:99], nil, http.StatusUnprocessableEntity},
		"two":             {[]byte(`{} {}`), nil, http.StatusUnprocessableEntity},
		"an unknown word": {[]byte(`{"sdk_versoin":"1"}`), nil, http.StatusUnprocessableEntity},
		"good":            {[]byte(`{"sdk_version":"1"}`), nil, http.StatusOK},
	} {
		if status, text := asked(t, url, "client/config", bytes.NewReader(c.body), c.change); status != c.want {
			t.Errorf("%s: got %d: %s, want %d", name, status, text, c.want)
		}
	}
}

// No name that a client gives leads out of the server's folder.
func TestServerKeepsToItsFolder(t *testing.T) {
	outside := t.TempDir()
	folder := filepath.Join(outside, "kept")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	url := listen(t, serve(t, folder, nil))
	l := there(t, client(t, Options{URL: url}), LearnerOptions{Unchecked: true})
	ask := func(path string, body any) {
		t.Helper()
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if status, text := asked(t, url, path, bytes.NewReader(data), nil); status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s: got %d: %s", path, data, status, text)
		}
	}
	for _, name := range []string{"..", "../x", "/x", "a/b", `a\b`, "a.b", "a\x00b", strings.Repeat("a", 129)} {
		ask("save_weights", saveWeights{Model: l.model, Path: name, Seq: l.next(), Type: "save_weights"})
		ask("save_weights_for_sampler", saveWeights{Model: l.model, Path: name, Seq: l.next(), Type: "save_weights_for_sampler"})
		for _, model := range []string{l.model, "..", "x/../.."} {
			path := "tinker://" + model + "/weights/" + name
			ask("load_weights", loadWeights{Model: l.model, Seq: l.next(), Path: path, Type: "load_weights"})
			ask("create_sampling_session", createSampler{Session: l.session, Path: path, Type: "create_sampling_session"})
		}
	}
	for _, dir := range []string{outside, folder} {
		found, err := os.ReadDir(dir)
		if err != nil || len(found) > 1 || len(found) == 1 && found[0].Name() != "kept" {
			t.Errorf("%s holds %v, %v", dir, found, err)
		}
	}
}

// A session that is silent for long loses its model, so that another may be made.
func TestServerForgetsTheSilent(t *testing.T) {
	now := time.Unix(1000, 0)
	v := serve(t, t.TempDir(), func(s *Served) { s.Models, s.Idle, s.Now = 1, time.Minute, func() time.Time { return now } })
	url := listen(t, v)
	first := there(t, client(t, Options{URL: url}), LearnerOptions{Unchecked: true})
	second := client(t, Options{URL: url, Limits: Limits{Tries: 1}})
	if _, err := second.NewLearner(t.Context(), LearnerOptions{Base: "tiny", Unchecked: true}); err == nil {
		t.Fatal("a second model where one is the most")
	}
	v.mu.Lock() // the server reads its clock under it
	now = now.Add(2 * time.Minute)
	v.mu.Unlock()
	there(t, client(t, Options{URL: url}), LearnerOptions{Unchecked: true})
	if _, err := first.Sampler(t.Context()); err == nil {
		t.Error("the first model is still there, too")
	}
}

// The key goes to the server that was named, over a connection that is safe, and comes back in no error.
func TestClientKey(t *testing.T) {
	elsewhere := 0
	other := listen(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	seen := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") == testToken {
			seen++
		}
		switch r.URL.Path {
		case "/api/v1/create_session":
			http.Redirect(w, r, other, http.StatusTemporaryRedirect)
		case "/api/v1/retrieve_future":
			respond(w, http.StatusOK, map[string]string{"error": "not allowed for " + testToken, "category": "user"})
		default:
			respond(w, http.StatusForbidden, map[string]string{"detail": "bad key " + testToken})
		}
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer trusting.CloseIdleConnections()

	o := Options{URL: server.URL, Dialect: Hosted, Key: knows(testToken), Limits: Limits{Tries: 1}}
	if _, err := client(t, o).Models(t.Context()); err == nil || !errors.As(err, new(*tls.CertificateVerificationError)) || seen > 0 {
		t.Errorf("a certificate that nobody vouches for: %v, the key was sent %d times", err, seen)
	}
	o.Transport = trusting
	c := client(t, o)
	_, refusal := c.Models(t.Context())
	_, redirect := c.open(t.Context())
	_, _, future := c.await(t.Context(), promise{Request: "1"}, "Sample", true)
	for name, err := range map[string]error{"a refusal": refusal, "a redirect": redirect, "a result": future} {
		if err == nil || strings.Contains(err.Error(), testToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if seen != 3 || elsewhere != 0 {
		t.Errorf("the key was sent %d times, want 3; a redirect was followed %d times", seen, elsewhere)
	}
	for name, o := range map[string]Options{
		"clear text": {URL: "http://example.com", Dialect: Hosted, Key: knows(testToken)},
		"no check of certificates": {URL: server.URL, Dialect: Hosted, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // what is refused
		}},
		"a key in the address": {URL: "https://user:" + testToken + "@example.com", Dialect: Hosted},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), testToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
