package web

import (
	"bufio"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/store/storetest"
	"skillmaster/train"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// served is a server of one made-up run.
func served(t testing.TB, shape storetest.Shape) (*Server, *store.Run) {
	t.Helper()
	dir := filepath.Join(quick(t), "first")
	shape.Start = start
	run, err := storetest.Make(t.Context(), dir, shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	s := New([]string{dir}, nil, func() time.Time { return time.Now() }, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(func() { s.Close() })
	return s, run
}

// quick is a folder in memory where there is one: made-up runs need not survive a crash.
func quick(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "skillmaster-") //nolint:usetesting // TempDir would be on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func small() storetest.Shape {
	return storetest.Shape{Seed: 1, Iterations: 26, Tasks: 6, Group: 4, Evaluate: 5, Panel: 12}
}

// get asks for a page.
func get(t testing.TB, s *Server, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil))
	return w.Code, w.Body.String()
}

var links = regexp.MustCompile(`href="(/[^"]*|\?[^"]*)"`)

// crawl visits every page that can be reached by links, up to most for each sort of page.
func crawl(t testing.TB, s *Server, most int) map[string]string {
	t.Helper()
	pages := map[string]string{}
	sorts := map[string]int{}
	digits := regexp.MustCompile(`[0-9a-f]{10,}|[0-9]+`)
	todo := []string{"/", "/compare?run=first"}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if _, seen := pages[at]; seen || strings.HasPrefix(at, "/static/") {
			continue
		}
		if sort := digits.ReplaceAllString(at, "N"); sorts[sort] >= most {
			continue
		} else {
			sorts[sort]++
		}
		code, body := get(t, s, at)
		if code != http.StatusOK {
			t.Errorf("%s is answered with %d", at, code)
		}
		pages[at] = body
		for _, l := range links.FindAllStringSubmatch(body, -1) {
			to := strings.ReplaceAll(l[1], "&amp;", "&")
			if strings.HasPrefix(to, "?") {
				to = strings.SplitN(at, "?", 2)[0] + to
			}
			todo = append(todo, strings.SplitN(to, "#", 2)[0])
		}
	}
	return pages
}

// Every page that a link leads to is there, and says what it is for.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	s, _ := served(t, small())
	pages := crawl(t, s, 3)
	if len(pages) < 20 {
		t.Errorf("%d pages were found", len(pages))
	}
	for path, want := range map[string][]string{
		"/":                         {"first", "26 of 26", "finished"},
		"/runs/first/":              {"Success while training", "What reviews came to", "Groups without a gradient", "Entropy and KL", "Tokens per second", "skillmaster train"},
		"/runs/first/trajectories":  {"examine", "episodes won"},
		"/runs/first/bank":          {"Number 0: the keychain", "Roll back to it", "when it was committed", "Quarantine", "others report 2 uses, 1 of 1 successful", "shown in"},
		"/runs/first/edits":         {"At the gate", "committed", "rejected", "By iteration"},
		"/runs/first/evaluations":   {"four cells", "frozen bank", "online bank"},
		"/runs/first/evaluations/6": {"Task by task", "open drawer 1", "By family"},
		"/compare?run=first":        {"Settings that differ", "Held-out panel"},
	} {
		for _, w := range want {
			if !strings.Contains(pages[path], w) {
				t.Errorf("%s does not say %q", path, w)
			}
		}
	}
	found := map[string]bool{}
	for path, body := range pages {
		for kind, want := range map[string]string{"/trajectories/": "advantage", "/edits/": "without the edit"} {
			found[kind] = found[kind] || strings.Contains(path, kind) && strings.Contains(body, want)
		}
		if strings.Contains(path, "/edits/") && strings.Contains(body, "Evidence at the gate") && strings.Contains(body, "Committed after") {
			found["committed"] = true
		}
	}
	for _, k := range []string{"/trajectories/", "/edits/", "committed"} {
		if !found[k] {
			t.Errorf("no page of the sort %s is as it should be", k)
		}
	}
}

// Whatever a policy, a world or a person wrote is text: it cannot become a tag, nor leave an attribute.
func TestHostileText(t *testing.T) {
	for name, text := range map[string]string{
		"tag": "<xss onload=boo>", "attribute": "\" onxss=\"boo", "quote": "' onxss='boo", "template": "{{.}}</script><xss>",
		"bytes": "\xff\xfe\xc3(<xss>", "terminal": "\x1b]0;title\x07\x00\u202e<xss>", "markers": "<|im_end|></tool_call><xss>", "length": strings.Repeat("<xss>", 20<<10),
	} {
		t.Run(name, func(t *testing.T) {
			shape := small()
			shape.Text, shape.Iterations = text, 8
			if len(text) > 1000 {
				shape.Iterations, shape.Tasks, shape.Group, shape.Panel = 6, 1, 2, 2
			}
			s, _ := served(t, shape)
			quoted := regexp.MustCompile(`<[^>]*[^a-z;]onxss=`)
			for path, body := range crawl(t, s, 2) {
				if !utf8.ValidString(body) || strings.Contains(body, "\x00") {
					t.Errorf("%s is no text", path)
				}
				if strings.Contains(body, "<xss") || strings.Contains(body, "</script><") && strings.Count(body, "</script>") > 1 {
					t.Errorf("%s has a tag of the text", path)
				}
				if m := quoted.FindString(body); m != "" {
					t.Errorf("%s has an attribute of the text: %s", path, m)
				}
			}
		})
	}
}

// The pages need nothing that their content-security policy forbids: no inline script, style or handler.
func TestNothingInline(t *testing.T) {
	s, _ := served(t, small())
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?: [^>]*)?>[^<]|javascript:|https?://`)
	for path, body := range crawl(t, s, 2) {
		if m := inline.FindString(body); m != "" {
			t.Errorf("%s has %q", path, m)
		}
	}
}

func TestRefusals(t *testing.T) {
	s, _ := served(t, storetest.Shape{Seed: 1, Iterations: 1, Tasks: 1, Group: 1, Panel: 1})
	for name, c := range map[string]struct {
		method, path, host, origin string
		want                       int
	}{
		"a page":                {"GET", "/", "localhost:1", "", 200},
		"by number":             {"GET", "/", "127.0.0.1:8384", "", 200},
		"by number, version 6":  {"HEAD", "/", "[::1]:8384", "", 200},
		"own origin":            {"GET", "/", "localhost:1", "http://localhost:1", 200},
		"a foreign name":        {"GET", "/", "evil.example", "", 421},
		"a name like ours":      {"GET", "/", "localhost.evil.example", "", 421},
		"a foreign origin":      {"GET", "/", "localhost:1", "http://evil.example", 403},
		"writing":               {"POST", "/runs/first/bank", "localhost", "", 405},
		"deleting":              {"DELETE", "/runs/first/", "localhost", "", 405},
		"an unknown run":        {"GET", "/runs/second/", "localhost", "", 404},
		"a path for a run":      {"GET", "/runs/..%2f..%2fetc/", "localhost", "", 404},
		"a path for a file":     {"GET", "/static/..%2fweb.go", "localhost", "", 404},
		"an unknown bank":       {"GET", "/runs/first/bank?at=%27%20OR%201=1", "localhost", "", 404},
		"an unknown iteration":  {"GET", "/runs/first/trajectories?iteration=7", "localhost", "", 404},
		"an iteration in words": {"GET", "/runs/first/trajectories?iteration=1%20OR%201", "localhost", "", 404},
		"an unknown trajectory": {"GET", "/runs/first/trajectories/4/0/9", "localhost", "", 404},
		"a trajectory in words": {"GET", "/runs/first/trajectories/4/0/x", "localhost", "", 404},
		"an unknown edit":       {"GET", "/runs/first/edits/4/9/9", "localhost", "", 404},
		"an unknown evaluation": {"GET", "/runs/first/evaluations/99", "localhost", "", 404},
		"an unknown page":       {"GET", "/admin", "localhost", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, nil)
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("answered with %d, want %d: %.200s", w.Code, c.want, w.Body)
			}
			if !strings.Contains(w.Header().Get("Content-Security-Policy"), "script-src 'self'") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Error("the answer has no policy")
			}
		})
	}
}

// A directory that holds no run is said to be so, and the others are shown.
func TestUnreadableRun(t *testing.T) {
	s, _ := served(t, storetest.Shape{Seed: 1, Iterations: 1, Tasks: 1, Group: 1, Panel: 1})
	s.runs.dirs = append(s.runs.dirs, t.TempDir())
	code, body := get(t, s, "/")
	if code != 200 || !strings.Contains(body, "no run here") || !strings.Contains(body, "/runs/first/") {
		t.Errorf("answered with %d: %s", code, body)
	}
}

// Whoever looks at a run is told when it records something; a run that goes back is read anew.
func TestNews(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "first")
	run, err := store.Create(t.Context(), dir, store.Manifest{Config: []byte(`{}`)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	s := New([]string{dir}, nil, time.Now, slog.New(slog.DiscardHandler))
	s.every = 20 * time.Millisecond
	defer s.Close()
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	progress := s.Progress(dir)
	news, err := http.Get(server.URL + "/events?run=first") //nolint:bodyclose // it is closed below, and the goroutine reads it until then
	if err != nil {
		t.Fatal(err)
	}
	defer news.Body.Close()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(news.Body); in.Scan(); {
			lines <- in.Text()
		}
	}()
	await := func(want string) {
		t.Helper()
		for l := range lines {
			if strings.Contains(l, want) {
				return
			}
		}
		t.Fatalf("%q was never said", want)
	}
	await("hello")
	r := train.Report{Bank: runHead(t, run), Metrics: map[string]float64{"learn/loss": 1}}
	if err := run.Keep(t.Context(), r, nil, nil); err != nil {
		t.Fatal(err)
	}
	await("1 rounds")
	progress(train.Progress{Part: "rollout", Done: 1, Total: 7})
	await("1 of 7: rollout")
	if _, err := run.Rewind(t.Context(), store.Saved{}); err != nil {
		t.Fatal(err)
	}
	await("0 rounds")
}

func runHead(t *testing.T, run *store.Run) string {
	t.Helper()
	h, err := run.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Pages of a run of 1,000 iterations and 100,000 trajectories, with the median in milliseconds, of which 200 are wanted;
// first is what the first look at a run takes.
func BenchmarkLargeRun(b *testing.B) {
	s, _ := served(b, storetest.Shape{Seed: 1, Iterations: 1000, Tasks: 25, Group: 4, Evaluate: 20, Panel: 100})
	other := filepath.Join(quick(b), "second")
	run, err := storetest.Make(b.Context(), other, storetest.Shape{Seed: 2, Iterations: 40, Tasks: 6, Group: 4, Evaluate: 20, Panel: 100, Start: start})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { run.Close() })
	s.runs.dirs = append(s.runs.dirs, other)
	measure := func(name string, page func() (int, string)) {
		b.Run(name, func(b *testing.B) {
			var times []float64
			for b.Loop() {
				began := time.Now()
				if code, body := page(); code != http.StatusOK {
					b.Fatal(code, body)
				}
				times = append(times, time.Since(began).Seconds()*1000)
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2], "median-ms")
		})
	}
	measure("first", func() (int, string) {
		fresh := New(s.runs.dirs, nil, time.Now, slog.New(slog.DiscardHandler))
		defer fresh.Close()
		return get(b, fresh, "/runs/first/")
	})
	for _, path := range []string{
		"/", "/runs/first/", "/runs/first/trajectories?iteration=500", "/runs/first/trajectories/500/3/1", "/runs/first/edits", "/runs/first/edits/494/0/0",
		"/runs/first/bank", "/runs/first/evaluations", "/runs/first/evaluations/30", "/runs/first/health", "/compare?run=first", "/compare?run=first&run=second",
	} {
		measure(path, func() (int, string) { return get(b, s, path) })
	}
}

// Tests of two runs are kept while nothing new was evaluated, and made anew after that.
func TestPairsAreKept(t *testing.T) {
	result := train.Evaluation{Panel: "report", PanelHash: "one", Results: []train.Result{{Task: "t", Success: true, Steps: 3}}}
	a := &report.History{Name: "a", Evaluations: []store.Evaluated{{ID: 1, Evaluation: result}}}
	b := &report.History{Name: "b", Evaluations: []store.Evaluated{{ID: 1, Evaluation: result}}}
	var p pairs
	first := p.of(a, b)
	later := *b // as it is after a round without an evaluation
	if again := p.of(a, &later); len(first) != 1 || &again[0] != &first[0] {
		t.Error("the same tests are made again")
	}
	result.Results = []train.Result{{Task: "t", Success: false, Steps: 3}}
	later.Evaluations = append(slices.Clip(later.Evaluations), store.Evaluated{ID: 2, Evaluation: result})
	if again := p.of(a, &later); again[0].OnlyA != 1 {
		t.Errorf("a new evaluation is not seen: %+v", again[0])
	}
}

// diffWords keeps the words in common and nothing is lost.
func TestDiffWords(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a b c", "a b c", "a b c"},
		{"", "a b", "+[a b]"},
		{"a b", "", "-[a b]"},
		{"look in the drawer first", "look on the shelf first", "look -[in] +[on] the -[drawer] +[shelf] first"},
	} {
		var got []string
		for _, p := range diffWords(c.a, c.b) {
			got = append(got, map[string]string{"": p.Text, "del": "-[" + p.Text + "]", "ins": "+[" + p.Text + "]"}[p.Kind])
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("diffWords(%q, %q) = %q, want %q", c.a, c.b, s, c.want)
		}
	}
	if p := diffWords(strings.Repeat("a ", 10000), "b"); len(p) != 2 {
		t.Errorf("a long text is cut into %d parts", len(p))
	}
}

func TestShade(t *testing.T) {
	for a, want := range map[float64]string{0: "a-0", 0.1: "a-0", 0.4: "a-p1", -0.4: "a-n1", 2: "a-p5", 99: "a-p5", -1: "a-n3"} {
		if got := shade(a); got != want {
			t.Errorf("shade(%v) = %s, want %s", a, got, want)
		}
	}
}
