package web

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"skillmaster/chat"
	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/train"
)

// registry knows the runs by name. Directories come from whoever started the program; browsers say names only.
type registry struct {
	dirs, folders []string
	now           func() time.Time

	mu      sync.Mutex
	byName  map[string]*watched
	byDir   map[string]*watched
	scanned time.Time
}

// watched is a run that is looked at.
type watched struct {
	name, dir string
	now       func() time.Time

	mu        sync.Mutex
	run       *store.Run
	history   *report.History
	tokenizer *chat.Tokenizer // nil: not read yet, or there is none
	checked   time.Time
	doing     string // what training says it does now
}

func newRegistry(dirs, folders []string, now func() time.Time) *registry {
	return &registry{dirs: dirs, folders: folders, now: now, byName: map[string]*watched{}, byDir: map[string]*watched{}}
}

// fresh is how long what was read counts as new.
const fresh = 500 * time.Millisecond

// all are the runs by name, newly found ones included.
func (g *registry) all() []*watched {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now().Sub(g.scanned) >= 4*fresh {
		g.scanned = g.now()
		for _, d := range g.dirs {
			g.add(d)
		}
		for _, f := range g.folders {
			entries, err := os.ReadDir(f)
			if err != nil {
				continue // not there yet
			}
			for _, e := range entries {
				if _, err := os.Stat(filepath.Join(f, e.Name(), "run.db")); err == nil {
					g.add(filepath.Join(f, e.Name()))
				}
			}
		}
	}
	out := make([]*watched, 0, len(g.byName))
	for _, w := range g.byName {
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *watched) int { return strings.Compare(a.name, b.name) })
	return out
}

// add gives a directory a name of its own.
func (g *registry) add(dir string) {
	key, err := filepath.Abs(dir)
	if err != nil {
		key = dir
	}
	if g.byDir[key] != nil {
		return
	}
	base := filepath.Base(key)
	name := base
	for n := 2; g.byName[name] != nil; n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	w := &watched{name: name, dir: dir, now: g.now}
	g.byName[name], g.byDir[key] = w, w
}

func (g *registry) get(name string) (*watched, error) {
	g.all()
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.byName[name]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("%w: no run is called %q", errNotFound, name)
}

func (g *registry) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, w := range g.byName {
		w.mu.Lock()
		if w.run != nil {
			errs = append(errs, w.run.Close())
			w.run = nil
		}
		w.mu.Unlock()
	}
	return errors.Join(errs...)
}

// state is another text whenever the named run, or for "" any run, has recorded something.
func (g *registry) state(ctx context.Context, name string) string {
	var b strings.Builder
	for _, w := range g.all() {
		if name != "" && w.name != name {
			continue
		}
		h, _, err := w.follow(ctx)
		if err != nil {
			fmt.Fprintf(&b, "%s: cannot be read;", w.name)
			continue
		}
		fmt.Fprintf(&b, "%s: %d rounds, %d evaluations, %.8s;", w.name, len(h.Rounds), len(h.Evaluations), h.Head)
	}
	return b.String()
}

// progress is what training says it does now; empty for runs that are trained elsewhere.
func (g *registry) progress(name string) string {
	g.mu.Lock()
	w := g.byName[name]
	g.mu.Unlock()
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.doing
}

// follow returns the run with its newest history.
func (w *watched) follow(ctx context.Context) (*report.History, *store.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.history != nil && w.now().Sub(w.checked) < fresh {
		return w.history, w.run, nil
	}
	if w.run == nil {
		run, err := store.View(ctx, w.dir, w.now)
		if err != nil {
			return nil, nil, err
		}
		w.run = run
	}
	var err error
	h := w.history
	if h == nil {
		h, err = report.Read(ctx, w.run, w.name)
	} else {
		h, err = h.Follow(ctx, w.run)
	}
	if err != nil {
		return nil, nil, err
	}
	w.history, w.checked = h, w.now()
	return h, w.run, nil
}

// words is the run's tokenizer, nil if it has none.
func (w *watched) words(ctx context.Context) *chat.Tokenizer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokenizer == nil && w.run != nil {
		if b, err := w.run.Document(ctx, "tokenizer.json"); err == nil {
			w.tokenizer, _ = readTokenizer(b) // without one, completions are shown as text
		}
	}
	return w.tokenizer
}

// Preload reads the runs one after another, so that the first look at each is as quick as the next.
func (s *Server) Preload(ctx context.Context) {
	for _, w := range s.runs.all() {
		if ctx.Err() != nil {
			return
		}
		_, _, _ = w.follow(ctx) // the page will say what is wrong with it
	}
}

// Progress is told what the training of a run does now; it may be given to a trainer that runs in the same program.
func (s *Server) Progress(dir string) func(train.Progress) {
	s.runs.mu.Lock()
	s.runs.add(dir)
	key, _ := filepath.Abs(dir)
	w := s.runs.byDir[key]
	s.runs.mu.Unlock()
	return func(p train.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.doing = fmt.Sprintf("%s %d of %d: %s", p.Phase, p.Done, p.Total, p.Part)
	}
}
