// Package web is the dashboard: pages about runs, made on the server, that only read. Nothing in it writes to a run,
// takes a path or a query from the browser, or asks another machine for anything.
package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"skillmaster/plot"
	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/track"
)

//go:embed static templates
var files embed.FS

// Server shows runs. Safe for concurrent use. Close it.
type Server struct {
	now     func() time.Time
	log     *slog.Logger
	runs    *registry
	pairs   pairs
	pages   map[string]*template.Template
	static  map[string]asset
	streams chan struct{} // a place for each open event stream
	every   time.Duration // between two looks for news
}

type asset struct {
	body []byte
	kind string
	tag  string
}

// most event streams at once, and how long one lives before the browser asks again.
const (
	mostStreams   = 64
	streamLife    = 10 * time.Minute
	streamTimeout = 10 * time.Second // of a write to a slow browser
)

// New returns a server of the runs in the given directories, and of those found right below the folders.
func New(dirs, folders []string, now func() time.Time, log *slog.Logger) *Server {
	s := &Server{
		now: now, log: log, runs: newRegistry(dirs, folders, now), pages: map[string]*template.Template{},
		static: map[string]asset{}, streams: make(chan struct{}, mostStreams), every: time.Second,
	}
	s.load()
	return s
}

// load parses what is embedded; it panics if that is wrong.
func (s *Server) load() {
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err)
	}
	statics, err := fs.ReadDir(files, "static")
	if err != nil {
		panic(err)
	}
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	add := func(name string, body []byte) {
		sum := sha256.Sum256(body)
		s.static[name] = asset{body, kinds[path.Ext(name)], hex.EncodeToString(sum[:8])}
	}
	for _, e := range statics {
		body, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		add(e.Name(), body)
	}
	add("plot.css", []byte(plot.Style))
	for _, n := range names {
		base := path.Base(n)
		if base == "layout.html" {
			continue
		}
		s.pages[strings.TrimSuffix(base, ".html")] = template.Must(template.New("layout.html").Funcs(s.functions()).
			ParseFS(files, "templates/layout.html", n))
	}
}

// Close closes the runs.
func (s *Server) Close() error { return s.runs.close() }

// Handler serves the dashboard, for requests that name this machine itself as their host.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, page := range map[string]func(*http.Request) (view, error){
		"GET /{$}":                     s.home,
		"GET /compare":                 s.compare,
		"GET /runs/{run}/{$}":          s.overview,
		"GET /runs/{run}/trajectories": s.trajectories,
		"GET /runs/{run}/trajectories/{report}/{group}/{member}": s.trajectory,
		"GET /runs/{run}/edits":                                  s.edits,
		"GET /runs/{run}/edits/{report}/{group}/{member}":        s.edit,
		"GET /runs/{run}/bank":                                   s.bank,
		"GET /runs/{run}/evaluations":                            s.evaluations,
		"GET /runs/{run}/evaluations/{id}":                       s.evaluation,
		"GET /runs/{run}/health":                                 s.health,
	} {
		mux.HandleFunc(pattern, s.page(page))
	}
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /static/{file}", s.asset)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, errNotFound) })
	return s.guard(mux)
}

// guard sets what every answer carries, and refuses what does not come from a page of this server: names other than
// this machine's (a foreign page that had its own name point here) and anything that would change something.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !Local(r.Host):
			http.Error(w, "this dashboard answers only to names of this machine, such as localhost", http.StatusMisdirectedRequest)
		case r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+r.Host:
			http.Error(w, "this dashboard answers only to its own pages", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the dashboard only reads", http.StatusMethodNotAllowed)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, 0)
			next.ServeHTTP(w, r)
		}
	})
}

// Local tells whether a host, with or without a port, is this machine by a name that no name server decides.
func Local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// view is what a page shows.
type view struct {
	page  string // name of the template
	Title string
	Run   *runView // nil: a page about no run in particular
	Tab   string
	Prev  string // address of the page before this one, for the key k
	Next  string
	Body  any
}

// runView is what every page of a run shows of it.
type runView struct {
	Name     string
	State    string // "training", "finished", "stopped"
	Findings int    // warnings and errors
	*report.History
}

// Skills is how many there are in the current bank.
func (v *runView) Skills() int {
	b, _ := v.Bank(v.Head)
	return b.Len()
}

// errNotFound is answered with 404.
var errNotFound = errors.New("there is no such page")

func (s *Server) page(f func(*http.Request) (view, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.render(w, r, http.StatusOK, v)
	}
}

// render makes the whole page before any of it is sent.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, v view) {
	var b bytes.Buffer
	if err := s.pages[v.page].Execute(&b, v); err != nil {
		s.log.ErrorContext(r.Context(), "page could not be made", "page", v.page, "error", err)
		http.Error(w, "the page could not be made; the program's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD"))) // the browser may have gone
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, what := http.StatusInternalServerError, "This could not be read"
	switch {
	case errors.Is(err, errNotFound), errors.Is(err, store.ErrNotFound):
		status, what = http.StatusNotFound, "There is nothing here"
	case errors.Is(err, context.Canceled):
		return // nobody is there to be answered
	default:
		s.log.ErrorContext(r.Context(), "page failed", "error", err)
	}
	s.render(w, r, status, view{page: "error", Title: what, Body: err.Error()})
}

// metrics answers Prometheus: the newest numbers of every run.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	var runs []*report.History
	var unreadable []string
	for _, run := range s.runs.all() {
		h, _, err := run.follow(r.Context())
		switch {
		case r.Context().Err() != nil:
			return // nobody is there to be answered
		case err != nil:
			s.log.WarnContext(r.Context(), "run cannot be read", "run", run.name, "error", err)
			unreadable = append(unreadable, run.name)
		default:
			runs = append(runs, h)
		}
	}
	w.Header().Set("Content-Type", track.PrometheusType)
	_ = track.WritePrometheus(w, runs, unreadable) // the other end may have gone
}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := s.static[r.PathValue("file")]
	if !ok {
		s.fail(w, r, errNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+a.tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}

// events tells a browser when the run it looks at (or, without one, any run) has recorded something.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	name := r.URL.Query().Get("run")
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	seen := s.runs.state(ctx, name)
	text := ": hello\n\n"
	for {
		_ = rc.SetWriteDeadline(s.now().Add(streamTimeout)) // not every writer has one
		if _, err := w.Write([]byte(text)); err != nil || rc.Flush() != nil {
			return
		}
		for text = ""; text == ""; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now := s.runs.state(ctx, name); now != seen {
				seen = now
				text = "event: change\ndata: " + strconv.Quote(now) + "\n\n"
			} else if text = s.runs.progress(name); text != "" {
				text = "event: progress\ndata: " + strconv.Quote(text) + "\n\n"
			}
		}
	}
}

// number reads a part of the address that counts something.
func number(r *http.Request, name string) (int, error) {
	n, err := strconv.Atoi(r.PathValue(name))
	if err != nil || n < 0 {
		return 0, errNotFound
	}
	return n, nil
}

// asked reads a number behind the address's question mark; otherwise if it is not there.
func asked(r *http.Request, name string, otherwise int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is not a number", errNotFound, name)
	}
	return n, nil
}
