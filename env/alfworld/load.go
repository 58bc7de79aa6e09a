package alfworld

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"skillmaster/episode"
)

const packedSuffix = ".jsonl.gz"

// folder is a source that reads each split when it is first asked for.
type folder struct {
	splits  map[string]*lazySplit
	wording Wording // of the games, as far as one of them tells
	texts   Texts   // zero if no game file carries released ones
}

// Wording is what the games speak.
func (f *folder) Wording() Wording { return f.wording }

// Texts are the rule texts of the game files.
func (f *folder) Texts() (Texts, bool) { return f.texts, f.texts != Texts{} }

// lazySplit is a split that is read when it is first asked for.
type lazySplit struct {
	name string
	read func(ctx context.Context, watch watch) (found, error)

	mu sync.Mutex
	found
	isRead bool
}

// found is what reading a split found.
type found struct {
	games   []*Game    // sorted by id
	general []*general // sorted by id
	skipped []Skipped
	broken  []error // each names a file
}

// watch is told how many games of how many (0: not known) are read; nil if nobody wants to know.
type watch func(done, total int)

func openFolder(dir string) (*folder, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: want a folder of games (skillmaster data import %s --to DIR reads an archive)", dir, dir)
	}
	for _, d := range []string{filepath.Join(dir, "alfworld"), dir} {
		f, err := openPacked(d)
		if f != nil || err != nil {
			return f, err
		}
	}
	return openOfficial([]Layer{{Name: dir, FS: os.DirFS(dir)}})
}

// openPacked opens the packed games directly in a folder; nil if there are none.
func openPacked(dir string) (*folder, error) {
	packed, err := filepath.Glob(filepath.Join(dir, "*"+packedSuffix))
	if err != nil {
		return nil, fmt.Errorf("look for packed games: %w", err)
	}
	if len(packed) == 0 {
		return nil, nil
	}
	f := &folder{splits: map[string]*lazySplit{}, wording: packedWording(packed[0])}
	for _, path := range packed {
		f.add(strings.TrimSuffix(filepath.Base(path), packedSuffix), func(ctx context.Context, w watch) (found, error) {
			return readPackedFile(ctx, path, w)
		})
	}
	return f, nil
}

func openOfficial(all layers) (*folder, error) {
	roots, err := all.roots()
	if err != nil {
		return nil, err
	}
	splits, err := roots.folders(".")
	if err != nil {
		return nil, fmt.Errorf("look for official games: %w", err)
	}
	f := &folder{splits: map[string]*lazySplit{}}
	for _, split := range splits {
		f.add(split, func(ctx context.Context, w watch) (found, error) { return roots.readSplit(ctx, split, w) })
	}
	f.wording, f.texts = roots.texts(splits)
	return f, nil
}

func (f *folder) add(split string, read func(context.Context, watch) (found, error)) {
	f.splits[split] = &lazySplit{name: split, read: read}
}

// Splits names the splits there are.
func (f *folder) Splits() []string { return slices.Sorted(maps.Keys(f.splits)) }

// scan reads a split, if that was not done before.
func (f *folder) scan(ctx context.Context, name string, w watch) (*lazySplit, error) {
	s := f.splits[name]
	if s == nil {
		return nil, fmt.Errorf("no split %q: there are %s", name, strings.Join(f.Splits(), ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRead {
		return s, nil
	}
	got, err := s.read(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("read split %s: %w", name, err)
	}
	s.found, s.isRead = got, true
	s.order()
	return s, nil
}

// split is a split that can be played: nothing in it is damaged, and something is left of it.
func (f *folder) split(name string) (*lazySplit, error) {
	s, err := f.scan(context.Background(), name, nil)
	switch {
	case err != nil:
		return nil, err
	case len(s.broken) == 1:
		return nil, fmt.Errorf("read split %s: %w", name, s.broken[0])
	case len(s.broken) > 1:
		return nil, fmt.Errorf("read split %s: %w (and %d more errors: skillmaster data verify lists them)", name, s.broken[0], len(s.broken)-1)
	case len(s.games)+len(s.general) == 0 && len(s.skipped) > 0:
		return nil, fmt.Errorf("split %s has no game that can be played: %d are left out, the first, %s, because: %s", name, len(s.skipped), s.skipped[0].ID, s.skipped[0].Reason)
	}
	return s, nil
}

// order sorts what was read and sees that ids are given once.
func (s *lazySplit) order() {
	slices.SortStableFunc(s.skipped, func(a, b Skipped) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.games, func(a, b *Game) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.general, func(a, b *general) int { return cmp.Compare(a.task.ID, b.task.ID) })
	for i, g := range s.games {
		if i > 0 && s.games[i-1].ID == g.ID {
			s.broken = append(s.broken, fmt.Errorf("game %s is there twice", g.ID))
		}
		if !strings.HasPrefix(g.ID, s.name+"/") {
			s.broken = append(s.broken, fmt.Errorf("game %s is of another split", g.ID))
		}
	}
}

func (s *lazySplit) tasks() []episode.Task {
	tasks := make([]episode.Task, 0, len(s.games)+len(s.general))
	for _, g := range s.games {
		tasks = append(tasks, g.task(s.name))
	}
	if len(s.general) == 0 {
		return tasks
	}
	for _, g := range s.general {
		tasks = append(tasks, g.task)
	}
	slices.SortFunc(tasks, func(a, b episode.Task) int { return cmp.Compare(a.ID, b.ID) })
	return tasks
}

// Tasks lists a split.
func (f *folder) Tasks(split string) ([]episode.Task, error) {
	s, err := f.split(split)
	if err != nil {
		return nil, err
	}
	return s.tasks(), nil
}

// Game finds a game by its id, which starts with the split's name. A general game is an error, with which Suite.Open
// plays it.
func (f *folder) Game(id string) (*Game, error) {
	name, _, _ := strings.Cut(id, "/")
	if f.splits[name] == nil {
		return nil, fmt.Errorf("%w: %s is in none of the splits %s", ErrNoGame, id, strings.Join(f.Splits(), ", "))
	}
	s, err := f.split(name)
	if err != nil {
		return nil, err
	}
	i, found := slices.BinarySearchFunc(s.games, id, func(g *Game, id string) int { return cmp.Compare(g.ID, id) })
	if found {
		return s.games[i], nil
	}
	if g, ok := generalTask(s.general, id); ok {
		return nil, g
	}
	return nil, fmt.Errorf("%w: %s is not in split %s", ErrNoGame, id, name)
}

// Scan implements Suite.Scan.
func (f *folder) Scan(ctx context.Context, split string, watch func(done, total int)) (Contents, error) {
	s, err := f.scan(ctx, split, watch)
	if err != nil {
		return Contents{}, err
	}
	c := Contents{Tasks: s.tasks(), Skipped: slices.Clone(s.skipped), Broken: slices.Clone(s.broken)}
	for _, g := range s.general {
		c.General = append(c.General, Skipped{ID: g.task.ID, Reason: g.why.Error()})
	}
	for _, g := range s.games {
		if len(g.Annotations) > 0 {
			c.Annotated++
		}
	}
	return c, nil
}

// outcome is what came of reading one game: a game of either kind, a reason to skip it, or an error.
type outcome struct {
	game    *Game
	general *general
	skipped *Skipped
	err     error
}

// judge turns an error that only means "not a game of ours" into a reason to skip.
func judge(id string, g *Game, err error) outcome {
	if errors.Is(err, ErrUnsupported) || errors.Is(err, ErrTexts) {
		return outcome{skipped: &Skipped{ID: id, Reason: err.Error()}}
	}
	return outcome{game: g, err: err}
}

// inParallel runs work for 0…n−1 on all processors, fewer if the context ends.
func inParallel(ctx context.Context, n int, w watch, work func(i int)) error {
	var wait sync.WaitGroup
	next := make(chan int)
	count := counter{watch: w, total: n}
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				work(i)
				count.add()
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	wait.Wait()
	return ctx.Err()
}

// counter counts for a watch. It is safe for concurrent use.
type counter struct {
	watch watch
	total int

	mu   sync.Mutex
	done int
}

func (c *counter) add() {
	if c.watch == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.watch(c.done, c.total)
}

// gather parts outcomes.
func gather(all []outcome) (f found) {
	for _, o := range all {
		switch {
		case o.err != nil:
			f.broken = append(f.broken, o.err)
		case o.skipped != nil:
			f.skipped = append(f.skipped, *o.skipped)
		case o.general != nil:
			f.general = append(f.general, o.general)
		default:
			f.games = append(f.games, o.game)
		}
	}
	return f
}
