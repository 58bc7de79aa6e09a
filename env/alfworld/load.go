package alfworld

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"skillmaster/episode"
)

// officialFolder is where the official layout keeps its splits.
const officialFolder = "json_2.1.1"

const packedSuffix = ".jsonl.gz"

// folder is a source that reads each split when it is first asked for.
type folder struct {
	splits  map[string]*lazySplit
	wording Wording // of the games, as far as one of them tells
}

// Wording is what the games speak; packed ones do not say, and are played in Move.
func (f *folder) Wording() Wording { return f.wording }

// lazySplit is a split that is read at most once.
type lazySplit struct {
	name string
	once sync.Once
	read func() (games []*Game, skipped []Skipped, err error)

	games   []*Game // sorted by id
	skipped []Skipped
	err     error
}

func openFolder(dir string) (*folder, error) {
	f := &folder{splits: map[string]*lazySplit{}, wording: Move}
	for _, d := range []string{filepath.Join(dir, "alfworld"), dir} {
		packed, err := filepath.Glob(filepath.Join(d, "*"+packedSuffix))
		if err != nil {
			return nil, fmt.Errorf("look for packed games: %w", err)
		}
		for _, path := range packed {
			split := strings.TrimSuffix(filepath.Base(path), packedSuffix)
			f.add(split, func() ([]*Game, []Skipped, error) { return readPackedFile(path) })
		}
		if len(packed) > 0 {
			return f, nil
		}
	}
	official := filepath.Join(dir, officialFolder)
	entries, err := os.ReadDir(official)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for official games: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			f.add(e.Name(), func() ([]*Game, []Skipped, error) { return readOfficialSplit(official, e.Name()) })
		}
	}
	if len(f.splits) == 0 {
		return nil, fmt.Errorf("no household games in %s: want <split>%s there or under alfworld/, or %s/<split>/ (give the folder that alfworld-download filled)",
			dir, packedSuffix, officialFolder)
	}
	f.wording = officialWording(official, f.Splits())
	return f, nil
}

func (f *folder) add(split string, read func() ([]*Game, []Skipped, error)) {
	f.splits[split] = &lazySplit{name: split, read: read}
}

// Splits names the splits there are.
func (f *folder) Splits() []string { return slices.Sorted(maps.Keys(f.splits)) }

func (f *folder) split(name string) (*lazySplit, error) {
	s := f.splits[name]
	if s == nil {
		return nil, fmt.Errorf("no split %q: there are %s", name, strings.Join(f.Splits(), ", "))
	}
	s.once.Do(func() {
		s.games, s.skipped, s.err = s.read()
		if s.err == nil {
			s.err = s.order()
		}
		if s.err != nil {
			s.games, s.skipped = nil, nil
			s.err = fmt.Errorf("read split %s: %w", name, s.err)
		}
	})
	return s, s.err
}

// order sorts what was read and sees that ids are given once.
func (s *lazySplit) order() error {
	slices.SortFunc(s.skipped, func(a, b Skipped) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.games, func(a, b *Game) int { return cmp.Compare(a.ID, b.ID) })
	for i, g := range s.games {
		if i > 0 && s.games[i-1].ID == g.ID {
			return fmt.Errorf("game %s is there twice", g.ID)
		}
		if !strings.HasPrefix(g.ID, s.name+"/") {
			return fmt.Errorf("game %s is of another split", g.ID)
		}
	}
	return nil
}

// Tasks lists a split.
func (f *folder) Tasks(split string) ([]episode.Task, error) {
	s, err := f.split(split)
	if err != nil {
		return nil, err
	}
	tasks := make([]episode.Task, len(s.games))
	for i, g := range s.games {
		tasks[i] = g.task(split)
	}
	return tasks, nil
}

// Game finds a game by its id, which starts with the split's name.
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
	if !found {
		return nil, fmt.Errorf("%w: %s is not in split %s", ErrNoGame, id, name)
	}
	return s.games[i], nil
}

// Skipped lists what a split leaves out.
func (f *folder) Skipped(split string) ([]Skipped, error) {
	s, err := f.split(split)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.skipped), nil
}

// outcome is what came of reading one game: a game, a reason to skip it, or an error.
type outcome struct {
	game    *Game
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

// inParallel runs work for 0…n−1 on all processors.
func inParallel(n int, work func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// gather parts outcomes; the first error in order wins.
func gather(all []outcome) (games []*Game, skipped []Skipped, err error) {
	for _, o := range all {
		switch {
		case o.err != nil:
			return nil, nil, o.err
		case o.skipped != nil:
			skipped = append(skipped, *o.skipped)
		default:
			games = append(games, o.game)
		}
	}
	return games, skipped, nil
}
