package textworld

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"skillmaster/env"
	"skillmaster/episode"
)

// Split is the only split of a Suite.
const Split = "games"

const (
	suffix      = ".tw-pddl"
	largestFile = 32 << 20 // bytes; the largest released one has about 130 kB
)

// Options say how games are played. The zero Options are those of TextWorld.
type Options struct {
	Naming    Naming
	StepLimit int // 0 stands for DefaultLimit
}

// Suite plays the game files of a folder. A task's family is the domain of its game. It is safe for concurrent use.
type Suite struct {
	o     Options
	dir   string
	paths []string // of the files under dir, slashes whatever the system; sorted
	kept  Kept

	list    sync.Once
	tasks   []episode.Task
	skipped []env.Skipped
	err     error
}

// Open finds the game files (*.tw-pddl) under a folder, however deep, or takes a single file. Files are read when they
// are asked for.
func Open(path string, o Options) (*Suite, error) {
	s := &Suite{o: o, dir: path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open games: %w", err)
	}
	if !info.IsDir() {
		s.dir, s.paths = filepath.Dir(path), []string{filepath.Base(path)}
		return s, nil
	}
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(d.Name(), suffix) {
			return err
		}
		rel, err := filepath.Rel(path, p)
		s.paths = append(s.paths, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for games: %w", err)
	}
	if len(s.paths) == 0 {
		return nil, fmt.Errorf("no games in %s: want files *%s there or in folders below (or give one such file)", path, suffix)
	}
	slices.Sort(s.paths)
	return s, nil
}

// Splits names the splits there are.
func (s *Suite) Splits() []string { return []string{Split} }

// Tasks lists the games that can be played, sorted by id, which is the file's path. The first call reads them all.
func (s *Suite) Tasks(split string) ([]episode.Task, error) {
	if split != Split {
		return nil, fmt.Errorf("no split %q: there is %s", split, Split)
	}
	s.read()
	return slices.Clone(s.tasks), s.err
}

// Skipped lists the files that cannot be played, sorted by id.
func (s *Suite) Skipped(split string) ([]env.Skipped, error) {
	if split != Split {
		return nil, fmt.Errorf("no split %q: there is %s", split, Split)
	}
	s.read()
	return slices.Clone(s.skipped), s.err
}

// read makes the list of tasks. Files that cannot be read at all are an error; games that cannot be played are skipped,
// unless all are.
func (s *Suite) read() {
	s.list.Do(func() {
		tasks := make([]*episode.Task, len(s.paths))
		errs := make([]error, len(s.paths))
		var wait sync.WaitGroup
		next := make(chan int)
		for range runtime.GOMAXPROCS(0) {
			wait.Go(func() {
				for i := range next {
					g, err := s.load(s.paths[i])
					if errs[i] = err; err == nil {
						t := g.task()
						tasks[i] = &t
					}
				}
			})
		}
		for i := range s.paths {
			next <- i
		}
		close(next)
		wait.Wait()
		for i, t := range tasks {
			switch {
			case t != nil:
				s.tasks = append(s.tasks, *t)
			case errors.Is(errs[i], fs.ErrNotExist) || errors.Is(errs[i], fs.ErrPermission):
				s.err = errors.Join(s.err, errs[i])
			default:
				s.skipped = append(s.skipped, env.Skipped{ID: s.paths[i], Reason: errs[i].Error()})
			}
		}
		if len(s.tasks) == 0 && s.err == nil {
			s.err = fmt.Errorf("none of the %d games in %s can be played, the first because: %w", len(s.paths), s.dir, cmp.Or(errs...))
		}
	})
}

func (g *Game) task() episode.Task {
	return episode.Task{ID: g.ID, Split: Split, Family: g.Domain(), Category: g.Domain(), Goal: cmp.Or(g.Task(), g.ID)}
}

// Game finds a game by the id of its task.
func (s *Suite) Game(id string) (*Game, error) {
	if _, found := slices.BinarySearch(s.paths, id); !found {
		return nil, fmt.Errorf("no game %s in %s", id, s.dir)
	}
	return s.kept.Game(id, func() (*Game, error) { return s.load(id) })
}

func (s *Suite) load(id string) (*Game, error) {
	return LoadFile(id, filepath.Join(s.dir, filepath.FromSlash(id)), s.o.Naming)
}

// LoadFile reads a game from a file.
func LoadFile(id, path string, n Naming) (*Game, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("game %s: %w", id, err)
	}
	if info.Size() > largestFile {
		return nil, fmt.Errorf("game %s: %s has %d bytes: at most %d are read", id, path, info.Size(), largestFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("game %s: %w", id, err)
	}
	f, err := ReadFile(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return NewGame(id, f, n)
}

// Guide describes text games in general: what can be done differs from game to game.
func (s *Suite) Guide() env.Guide {
	limit := s.o.StepLimit
	if limit <= 0 {
		limit = DefaultLimit
	}
	g := env.Guide{
		Role:    "You play a text game and carry out its task.",
		Rules:   "Every action is one of the commands that are possible now, word for word.",
		Horizon: limit, SuccessReward: 1, Categories: map[string][]string{},
	}
	s.read()
	for _, t := range s.tasks {
		g.Categories[t.Category] = []string{t.Family}
	}
	return g
}

// Open starts an episode of a task. The games have no chance in them: the seed changes nothing.
func (s *Suite) Open(ctx context.Context, t episode.Task, _ episode.Seed) (env.Env, episode.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, episode.Observation{}, err
	}
	g, err := s.Game(t.ID)
	if err != nil {
		return nil, episode.Observation{}, fmt.Errorf("open task %s: %w", t.ID, err)
	}
	e, o, err := g.Open(s.o.StepLimit)
	if err != nil {
		return nil, episode.Observation{}, err
	}
	return e, o, nil
}
