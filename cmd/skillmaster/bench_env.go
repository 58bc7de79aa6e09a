package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"skillmaster/env"
	"skillmaster/episode"

	"golang.org/x/sync/errgroup"
)

// benchEnvCmd measures a world.
type benchEnvCmd struct {
	Env     string `help:"World: household (generated games) or alfworld (the real games under --data)." default:"household" enum:"household,alfworld"`
	Data    string `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Split   string `help:"Split to play. Default: valid_unseen of the real games, report of the generated ones." placeholder:"NAME"`
	Rounds  int    `help:"Episodes of each task." default:"10"`
	Workers int    `help:"Episodes played at once. Default: one a core." default:"0"`
	Seed    uint64 `help:"Seed of the random actions." default:"1"`
}

// Help is shown under --help.
func (benchEnvCmd) Help() string {
	return `Opens every task of a split several times, all at once, then plays each with random admissible actions to its end,
and prints JSON. Memory is what the open episodes hold, and what a step allocates.

Examples:
  skillmaster bench env
  skillmaster bench env --env alfworld --data ../shared/data --workers 1`
}

// envBench is what was measured.
type envBench struct {
	Env       string  `json:"env"`
	Split     string  `json:"split"`
	Tasks     int     `json:"tasks"`
	Episodes  int     `json:"episodes"`
	Steps     int64   `json:"steps"`
	Successes int64   `json:"successes"` // by luck
	Workers   int     `json:"workers"`
	First     float64 `json:"first_open_seconds"` // of one task, reading it included
	Resets    float64 `json:"resets_per_second"`
	PerSecond float64 `json:"steps_per_second"`
	Held      float64 `json:"bytes_per_open_episode"`
	Allocs    float64 `json:"allocations_per_step"`
	Bytes     float64 `json:"allocated_bytes_per_step"`
}

func (c *benchEnvCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	if c.Rounds < 1 {
		return usage(errors.New("--rounds must be positive"))
	}
	if c.Workers <= 0 {
		c.Workers = runtime.NumCPU()
	}
	suite, err := openSuite(gamesOf(c.Env), c.Data)
	if err != nil {
		return err
	}
	if c.Split == "" {
		c.Split = map[string]string{household: "report", realGames: "valid_unseen"}[c.Env]
	}
	tasks, err := suite.Tasks(c.Split)
	if err != nil {
		return usage(err)
	}
	b := envBench{Env: c.Env, Split: c.Split, Tasks: len(tasks), Episodes: len(tasks) * c.Rounds, Workers: c.Workers}
	fmt.Fprintf(stderr, "%d tasks, %d episodes\n", b.Tasks, b.Episodes)
	if err := c.measure(ctx, suite, tasks, &b); err != nil {
		return err
	}
	return printJSON(stdout, b)
}

// running is an open episode.
type running struct {
	env env.Env
	obs episode.Observation
}

func (c *benchEnvCmd) measure(ctx context.Context, suite env.Suite, tasks []episode.Task, b *envBench) error {
	open := make([]running, b.Episodes)
	defer func() {
		for _, r := range open {
			if r.env != nil {
				_ = r.env.Close() // it is measured already
			}
		}
	}()
	start := func(i int) (err error) {
		open[i].env, open[i].obs, err = suite.Open(ctx, tasks[i%len(tasks)], episode.Seed(c.Seed))
		return err
	}
	seconds, err := c.all(ctx, len(tasks), start)
	if err != nil {
		return err
	}
	b.First = seconds * float64(c.Workers) / float64(len(tasks))
	for i := range tasks {
		if err := open[i].env.Close(); err != nil {
			return err
		}
		open[i] = running{}
	}
	before := memory()
	if seconds, err = c.all(ctx, b.Episodes, start); err != nil {
		return err
	}
	b.Resets = float64(b.Episodes) / seconds
	opened := memory()
	b.Held = (float64(opened.HeapAlloc) - float64(before.HeapAlloc)) / float64(b.Episodes)
	horizon := suite.Guide().Horizon
	if seconds, err = c.all(ctx, b.Episodes, func(i int) error {
		steps, won, err := wander(ctx, &open[i], horizon, episode.Seed(c.Seed).Derive("wander", uint64(i)))
		atomic.AddInt64(&b.Steps, int64(steps))
		if won {
			atomic.AddInt64(&b.Successes, 1)
		}
		return err
	}); err != nil {
		return err
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	b.PerSecond = float64(b.Steps) / seconds
	b.Allocs = float64(after.Mallocs-opened.Mallocs) / float64(b.Steps)
	b.Bytes = float64(after.TotalAlloc-opened.TotalAlloc) / float64(b.Steps)
	return nil
}

// memory is what the heap holds once nothing on it is garbage.
func memory() runtime.MemStats {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

// all runs f(0) … f(n−1), so many at once as there are workers, and returns the seconds it took.
func (c *benchEnvCmd) all(ctx context.Context, n int, f func(i int) error) (float64, error) {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	began := time.Now()
	for range c.Workers {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := errors.Join(ctx.Err(), f(i)); err != nil {
					return err
				}
			}
		})
	}
	err := g.Wait()
	return time.Since(began).Seconds(), err
}

// wander takes random admissible actions until the episode ends.
func wander(ctx context.Context, r *running, horizon int, s episode.Seed) (steps int, won bool, err error) {
	rng := s.Rand()
	for steps < horizon {
		if len(r.obs.Admissible) == 0 {
			return steps, false, errors.New("the world lists no admissible action")
		}
		result, err := r.env.Step(ctx, r.obs.Admissible[rng.IntN(len(r.obs.Admissible))])
		if err != nil {
			return steps, false, err
		}
		steps++
		r.obs = result.Observation
		if result.Done {
			return steps, result.Success, nil
		}
	}
	return steps, false, nil
}
