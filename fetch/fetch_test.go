package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var contents [16][]byte

func init() {
	for v := range contents {
		r := rand.NewChaCha8([32]byte{byte(v)})
		contents[v] = make([]byte, 100_000)
		r.Read(contents[v])
	}
}

// content is a version of a file; it does not look like any other.
func content(version byte) []byte { return contents[version] }

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// host serves a file. Each request is answered by the next of its answers, the last one again and again.
type host struct {
	*httptest.Server
	mu      sync.Mutex
	answers []answer
	asked   []string // "Range" of each request
}

type answer func(w http.ResponseWriter, r *http.Request)

func serve(t *testing.T, answers ...answer) *host {
	t.Helper()
	h := &host{answers: answers}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	a := h.answers[0]
	if len(h.answers) > 1 {
		h.answers = h.answers[1:]
	}
	h.asked = append(h.asked, r.Header.Get("Range"))
	h.mu.Unlock()
	a(w, r)
}

func (h *host) ranges() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.asked, ";")
}

var long = time.Unix(1_700_000_000, 0)

// whole answers as a good server does.
func whole(version byte) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
		http.ServeContent(w, r, "", long.Add(time.Duration(version)*time.Hour), bytes.NewReader(content(version)))
	}
}

// broken sends some bytes and lets the connection fall.
func broken(version byte, n int) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		whole(version)(&cutter{ResponseWriter: w, left: n}, r)
	}
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) < c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	c.ResponseWriter.Write(b[:c.left])
	c.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func status(code int, header ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// noRanges is a server that always sends all of it; it cuts off after n bytes, if n is not 0.
func noRanges(version byte, n int) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		b := content(version)
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
		if n > 0 {
			w = &cutter{w, n}
		}
		w.Write(b)
	}
}

// deaf goes on with another version, whatever If-Range says; it may keep silent about its ETag.
func deaf(version byte, tag bool) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Range")
		if tag {
			w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
		}
		http.ServeContent(w, r, "", long.Add(time.Duration(version)*time.Hour), bytes.NewReader(content(version)))
	}
}

// silent sends some bytes and then nothing.
func silent(version byte, n int) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		b := content(version)
		w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		w.Write(b[:n])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// chunked says no size, and cuts off after n bytes, if n is not 0.
func chunked(version byte, n int) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf(`"v%d"`, version))
		w.(http.Flusher).Flush()
		if n > 0 {
			w = &cutter{w, n}
		}
		w.Write(content(version))
	}
}

// plain has nothing that tells versions apart.
func plain(version byte, n int) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(&cutter{w, n}, r, "", time.Time{}, bytes.NewReader(content(version)))
	}
}

func hasty() *Client {
	return &Client{Stall: 5 * time.Second, Pause: func(int) time.Duration { return 0 }}
}

func TestDownload(t *testing.T) {
	const all = 1 << 20
	for name, c := range map[string]struct {
		answers []answer
		ranges  string // of the requests
		version byte   // that is got; 0 for none
		wrong   string // what the error says
	}{
		"at once":                 {[]answer{whole(1)}, "", 1, ""},
		"in three pieces":         {[]answer{broken(1, 30_000), broken(1, 30_000), whole(1)}, ";bytes=30000-;bytes=60000-", 1, ""},
		"no ranges":               {[]answer{noRanges(1, 30_000), noRanges(1, 0)}, ";bytes=30000-", 1, ""},
		"new version":             {[]answer{broken(1, 30_000), whole(2)}, ";bytes=30000-", 2, ""},
		"new version, deaf":       {[]answer{broken(1, 30_000), deaf(2, true), whole(2)}, ";bytes=30000-;", 2, ""},
		"new version, tagless":    {[]answer{broken(1, 30_000), deaf(2, false), whole(2)}, ";bytes=30000-;", 2, ""},
		"no validator":            {[]answer{plain(1, 30_000), plain(2, all)}, ";", 2, ""},
		"silence":                 {[]answer{silent(1, 30_000), whole(1)}, ";bytes=30000-", 1, ""},
		"chunked":                 {[]answer{chunked(1, 0)}, "", 1, ""},
		"chunked, cut off":        {[]answer{chunked(1, 30_000), whole(1)}, ";bytes=30000-", 1, ""},
		"unavailable":             {[]answer{status(503, "Retry-After", "0"), status(429), whole(1)}, ";;", 1, ""},
		"not satisfiable":         {[]answer{broken(1, 30_000), status(416), whole(1)}, ";bytes=30000-;", 1, ""},
		"not satisfiable, other":  {[]answer{broken(1, 30_000), status(416, "Content-Range", "bytes */20000"), whole(2)}, ";bytes=30000-;", 2, ""},
		"not satisfiable, at all": {[]answer{status(416)}, "", 0, "416"},
		"other bytes": {[]answer{
			broken(1, 30_000), status(206, "Content-Range", "bytes 0-99999/100000"), whole(1),
		}, ";bytes=30000-;", 1, ""},
		"no range said": {[]answer{broken(1, 30_000), status(206), whole(1)}, ";bytes=30000-;", 1, ""},
		"part unasked":  {[]answer{status(206)}, "", 0, "206"},
		"not public":    {[]answer{status(409)}, "", 0, "409 Conflict: it does not give this file to everybody"},
		"not there":     {[]answer{status(404)}, "", 0, "404"},
		"never":         {[]answer{status(500)}, ";;;;;", 0, "6 tries"},
		"never further": {[]answer{noRanges(1, 30_000)}, ";bytes=30000-;bytes=30000-;bytes=30000-;bytes=30000-;bytes=30000-", 0, "6 tries"},
		"redirect":      {[]answer{status(302, "Location", "/elsewhere"), whole(1)}, ";", 1, ""},
		"redirects":     {[]answer{status(302, "Location", "/")}, ";;;;;;;;;", 0, "ten redirects"},
		"empty":         {[]answer{status(200, "Content-Length", "0", "ETag", `"e"`)}, "", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, c.answers...)
			path := filepath.Join(t.TempDir(), "file")
			client := hasty()
			if name == "silence" {
				client.Stall = 100 * time.Millisecond
			}
			got, err := client.Download(t.Context(), Request{URL: h.URL, Path: path})
			if ranges := h.ranges(); ranges != c.ranges {
				t.Errorf("asked for %q, want %q", ranges, c.ranges)
			}
			if c.version == 0 {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("got %+v, %v, want an error with %q", got, err, c.wrong)
				}
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a file in its place: %v", err)
				}
				return
			}
			want := content(c.version)
			if name == "empty" {
				want = nil
			}
			is(t, path, want, got, err)
		})
	}
}

// is sees that a file is there, and nothing else.
func is(t *testing.T, path string, want []byte, got Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b, want) {
		t.Errorf("the file has %d bytes that are not the version's %d (%v)", len(b), len(want), err)
	}
	if got.SHA256 != sum(want) || got.Bytes != int64(len(want)) {
		t.Errorf("got %+v, want %s, %d bytes", got, sum(want), len(want))
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestResume stops a download, and goes on with it later where it can.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		kept   int64
	}{
		"as it was":       {func(*testing.T, string) {}, 30_000},
		"no state":        {func(t *testing.T, path string) { check(t, os.Remove(path+".part.json")) }, 0},
		"state cut off":   {func(t *testing.T, path string) { check(t, os.Truncate(path+".part.json", 9)) }, 0},
		"part too long":   {func(t *testing.T, path string) { check(t, os.Truncate(path+".part", 100_001)) }, 0},
		"part cut off":    {func(t *testing.T, path string) { check(t, os.Truncate(path+".part", 20_000)) }, 20_000},
		"another address": {nil, 0},
		"whole already":   {func(t *testing.T, path string) { check(t, os.WriteFile(path+".part", content(1), 0o600)) }, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			h := serve(t, silent(1, 30_000), whole(1))
			path := filepath.Join(t.TempDir(), "file")
			client := hasty()
			client.Progress = func(done, total int64) {
				if total != 100_000 {
					t.Errorf("progress of %d", total)
				}
				if done == 30_000 {
					stop()
				}
			}
			r := Request{URL: h.URL + "/a", Path: path}
			if _, err := client.Download(ctx, r); !errors.Is(err, context.Canceled) {
				t.Fatalf("a stopped download says %v", err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("a stopped download left a file in its place")
			}
			if c.change == nil {
				r.URL = h.URL + "/b"
			} else {
				c.change(t, path)
			}
			client.Progress = nil
			got, err := client.Download(t.Context(), r)
			is(t, path, content(1), got, err)
			if got.Kept != c.kept {
				t.Errorf("kept %d bytes, want %d", got.Kept, c.kept)
			}
			want := map[int64]string{0: ";", 20_000: ";bytes=20000-", 30_000: ";bytes=30000-", 100_000: ""}[c.kept]
			if ranges := h.ranges(); ranges != want {
				t.Errorf("asked for %q, want %q", ranges, want)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWholeOn416 finds that nothing was missing but the knowledge of it.
func TestWholeOn416(t *testing.T) {
	h := serve(t, chunked(1, 99_999), deaf(1, true))
	path := filepath.Join(t.TempDir(), "file")
	client := hasty()
	client.Tries = 1
	if _, err := client.Download(t.Context(), Request{URL: h.URL, Path: path}); err == nil {
		t.Fatal("got no error")
	}
	check(t, os.WriteFile(path+".part", content(1), 0o600))
	got, err := client.Download(t.Context(), Request{URL: h.URL, Path: path})
	is(t, path, content(1), got, err)
	if ranges := h.ranges(); ranges != ";bytes=100000-" {
		t.Errorf("asked for %q", ranges)
	}
}

func TestChecksum(t *testing.T) {
	h := serve(t, whole(1))
	path := filepath.Join(t.TempDir(), "file")
	r := Request{URL: h.URL, Path: path, SHA256: sum(content(2))}
	if _, err := hasty().Download(t.Context(), r); !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), sum(content(1))) {
		t.Errorf("the wrong file: %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	r.SHA256 = strings.ToUpper(sum(content(1)))
	got, err := hasty().Download(t.Context(), r)
	is(t, path, content(1), got, err)
	got, err = hasty().Download(t.Context(), r) // it is there
	is(t, path, content(1), got, err)
	if got.Kept != 100_000 || h.ranges() != ";" {
		t.Errorf("a file that was there was fetched: %+v, %q", got, h.ranges())
	}
	r.SHA256 = sum(content(2))
	if _, err := hasty().Download(t.Context(), r); !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), "there already") {
		t.Errorf("another file is there: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, content(1)) {
		t.Errorf("a file that was there was changed (%v)", err)
	}
}

func TestRefuses(t *testing.T) {
	h := serve(t, whole(1))
	secure := httptest.NewTLSServer(status(302, "Location", h.URL).handler())
	t.Cleanup(secure.Close)
	strange := httptest.NewTLSServer(whole(1).handler())
	t.Cleanup(strange.Close)
	strange.Config.ErrorLog = nil
	for name, c := range map[string]struct {
		url    string
		client Client
		want   string
	}{
		"no address":       {"file.zip", Client{}, "want an address"},
		"another protocol": {"ftp://host/file.zip", Client{}, "want an address"},
		"no room":          {h.URL, Client{free: func(string) (int64, error) { return 99_999, nil }}, "0.1 MB are missing of the file, 0.1 MB are free"},
		"from https to http": {
			secure.URL, Client{Transport: secure.Client().Transport}, "from https to http",
		},
		"unknown certificate": {strange.URL, Client{}, "certificate"},
		"nobody":              {"http://127.0.0.1:1/x", Client{Tries: 2, Pause: hasty().Pause}, "2 tries"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if _, err := c.client.Download(t.Context(), Request{URL: c.url, Path: path}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := hasty().Download(t.Context(), Request{URL: h.URL, Path: filepath.Join(t.TempDir(), "no", "folder")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func (a answer) handler() http.Handler { return http.HandlerFunc(a) }

// TestPasswordsStaySecret keeps a password out of errors and files.
func TestPasswordsStaySecret(t *testing.T) {
	h := serve(t, broken(1, 30_000), status(403))
	path := filepath.Join(t.TempDir(), "file")
	_, err := hasty().Download(t.Context(), Request{URL: strings.Replace(h.URL, "://", "://me:secret@", 1), Path: path})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(path + ".part.json"); err != nil || strings.Contains(string(b), "secret") {
		t.Errorf("state %s, %v", b, err)
	}
}

func TestBusy(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	h := serve(t, silent(1, 30_000), whole(1))
	path := filepath.Join(t.TempDir(), "file")
	begun := make(chan struct{})
	var once sync.Once
	client := hasty()
	client.Progress = func(int64, int64) { once.Do(func() { close(begun) }) }
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := client.Download(ctx, Request{URL: h.URL, Path: path}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	<-begun
	if _, err := hasty().Download(t.Context(), Request{URL: h.URL, Path: path}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second download says %v", err)
	}
	stop()
	wait.Wait()
	got, err := hasty().Download(t.Context(), Request{URL: h.URL, Path: path})
	is(t, path, content(1), got, err)
}

// TestAnyTrouble lets servers do whatever they do, in any order, with versions that change: what is in place in the end is
// one version, whole, or nothing.
func TestAnyTrouble(t *testing.T) {
	got, failed := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		version := byte(1)
		answers := make([]answer, 12)
		for i := range answers {
			if r.IntN(4) == 0 {
				version++
			}
			n := 1 + r.IntN(50_000)
			answers[i] = []answer{
				whole(version), broken(version, n), broken(version, n), broken(version, n), noRanges(version, n), deaf(version, true), deaf(version, false),
				chunked(version, n), plain(version, n), status(416), status(503), status(206), noRanges(version, 0),
			}[r.IntN(13)]
		}
		h := serve(t, answers...)
		path := filepath.Join(t.TempDir(), "file")
		var err error
		for range 3 { // what is left is gone on with
			var res Result
			client := hasty()
			client.Tries = 3
			if res, err = client.Download(t.Context(), Request{URL: h.URL, Path: path}); err == nil {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				one := false
				for v := byte(1); v <= version; v++ {
					one = one || res.SHA256 == sum(content(v)) && bytes.Equal(b, content(v))
				}
				if !one {
					t.Fatalf("seed %d: %d bytes that are no version (%+v); asked for %q", seed, len(b), res, h.ranges())
				}
				break
			}
			if _, err := os.Stat(path); err == nil {
				t.Fatalf("seed %d: an error, and a file in its place", seed)
			}
		}
		if err == nil {
			got++
		} else {
			failed++
		}
	}
	if got < 20 || failed == 0 {
		t.Errorf("%d downloads came to an end, %d did not: the test tries too little", got, failed)
	}
	t.Logf("%d whole, %d given up", got, failed)
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"url":"u","etag":"\"v1\"","total":100000}`), []byte("part"))
	f.Add([]byte(`{"url":"`), []byte{})
	h := httptest.NewServer(whole(1).handler())
	f.Cleanup(h.Close)
	f.Fuzz(func(t *testing.T, state, part []byte) {
		path := filepath.Join(t.TempDir(), "file")
		check(t, os.WriteFile(path+".part", part, 0o600))
		check(t, os.WriteFile(path+".part.json", bytes.ReplaceAll(state, []byte(`"u"`), []byte(`"`+h.URL+`"`)), 0o600))
		if _, err := hasty().Download(t.Context(), Request{URL: h.URL, Path: path, SHA256: sum(content(1))}); err != nil && !errors.Is(err, ErrChecksum) {
			t.Error(err)
		}
	})
}
