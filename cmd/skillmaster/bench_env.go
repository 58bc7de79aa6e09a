package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"skillmaster/env"
	"skillmaster/env/textworld"
	"skillmaster/env/webshop"
	"skillmaster/episode"

	"golang.org/x/sync/errgroup"
)

// benchEnvCmd measures a world.
type benchEnvCmd struct {
	Env      string `help:"World: household or shop (generated), alfworld or webshop (the real ones under --data), textworld (any game files)." default:"household" enum:"household,shop,alfworld,webshop,textworld"`
	Data     string `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Full     bool   `help:"webshop: the catalogue of 1.18 million products."`
	Split    string `help:"Split to play. Default: valid_unseen of the real games, report elsewhere." placeholder:"NAME"`
	Episodes int    `help:"Episodes open at once, of the split's tasks in turn." default:"10000"`
	Rounds   int    `help:"Rounds; what is printed are medians over them." default:"5"`
	Workers  int    `help:"Workers to compare with one. Default: one a core." default:"0"`
	Seed     uint64 `help:"Seed of the random actions." default:"1"`
}

// Help is shown under --help.
func (benchEnvCmd) Help() string {
	return `Each round reads the split anew, opens the episodes all at once and plays each with random admissible actions to its end,
first with one worker on one core, which the garbage collector has to share, then with all. Prints JSON, medians over the
rounds. Times are those of one worker, but for ready_ms. Memory is what the heap holds: the games, the open episodes, and
what the last step of each returned. Steps are timed one by one in a thousand episodes more.

Examples:
  skillmaster bench env
  skillmaster bench env --env alfworld --data ../shared/data --rounds 9
  skillmaster bench env --env webshop --data ../shared/data --full --rounds 1`
}

// envBench is what was measured.
type envBench struct {
	Machine     machine   `json:"machine"`
	Env         string    `json:"env"`
	Split       string    `json:"split"`
	Tasks       int       `json:"tasks"`
	Episodes    int       `json:"episodes_open_at_once"`
	Rounds      int       `json:"rounds"`
	Steps       int64     `json:"steps_a_round"`
	Successes   int64     `json:"successes_a_round"` // by luck
	One         envSpeed  `json:"one_worker"`
	All         envSpeed  `json:"all_workers"`
	Scaling     float64   `json:"steps_all_over_one"` // of the same round
	Ready       float64   `json:"ready_ms"`           // reading the split with all cores
	Load        float64   `json:"load_us_per_task"`   // reading the split and compiling its games, or settling what they are
	First       float64   `json:"first_open_us"`      // of each task
	Reset       float64   `json:"reset_us"`           // opening it again
	Held        float64   `json:"bytes_per_open_episode"`
	Heap        float64   `json:"heap_mb_all_open"`
	Played      float64   `json:"heap_mb_all_played"`
	Allocs      float64   `json:"allocations_per_step"`
	Bytes       float64   `json:"allocated_bytes_per_step"`
	Kinds       []envKind `json:"kinds_of_steps"`
	Fork        *float64  `json:"fork_us,omitempty"` // nil: its episodes cannot be copied
	ForkedBytes *float64  `json:"fork_bytes,omitempty"`
}

// envKind is what steps of a kind take, by the first word of their actions.
type envKind struct {
	Name   string  `json:"name"`
	Steps  int     `json:"steps"`
	Median float64 `json:"median_us"`
	Most   float64 `json:"us_of_99_in_100"`
}

// envSpeed is how fast some workers were.
type envSpeed struct {
	Workers int     `json:"workers"`
	Steps   float64 `json:"steps_per_second"`
	Resets  float64 `json:"resets_per_second"`
}

func (c *benchEnvCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	if c.Rounds < 1 || c.Episodes < 1 {
		return usage(errors.New("--rounds and --episodes must be positive"))
	}
	if c.Full && c.Env != realShop {
		return usage(fmt.Errorf("--full is for --env %s", realShop))
	}
	if c.Workers <= 0 {
		c.Workers = runtime.NumCPU()
	}
	if c.Split == "" {
		c.Split = map[string]string{household: "report", realGames: "valid_unseen", madeShop: "report", realShop: "report", textGames: textworld.Split}[c.Env]
	}
	b := envBench{Machine: thisMachine(), Env: c.Env, Split: c.Split, Episodes: c.Episodes, Rounds: c.Rounds}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rounds := make([]envRound, c.Rounds)
	for i := range rounds {
		fmt.Fprintf(stderr, "round %d of %d\n", i+1, c.Rounds)
		if err := c.round(ctx, &rounds[i], stderr); err != nil {
			return err
		}
	}
	c.summarise(&b, rounds)
	return printJSON(stdout, b)
}

// envRound is one measurement of everything.
type envRound struct {
	tasks       int
	ready       float64 // seconds
	load, first float64 // seconds of one task
	one, all    envPlay
	kinds       map[string][]float64 // seconds of each step
}

// envPlay is what some workers did. Times are seconds of all episodes, memory is bytes.
type envPlay struct {
	steps, successes                 int64
	opening, playing, forking        float64
	before, opened, played           float64 // on the heap
	allocations, allocated, fromFork float64
	forks                            bool
}

func (c *benchEnvCmd) round(ctx context.Context, r *envRound, stderr io.Writer) (err error) {
	runtime.GOMAXPROCS(c.Workers)
	suite, _, took, err := c.open(ctx, stderr)
	if err != nil {
		return err
	}
	r.ready = took
	if err := closeSuite(suite); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	suite, tasks, took, err := c.open(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSuite(suite)) }()
	r.tasks = len(tasks)
	r.load = took / float64(r.tasks)
	began := time.Now()
	for _, t := range tasks {
		e, _, err := suite.Open(ctx, t, episode.Seed(c.Seed))
		if err == nil {
			err = e.Close()
		}
		if err != nil {
			return err
		}
	}
	r.first = time.Since(began).Seconds() / float64(r.tasks)
	if r.one, err = c.play(ctx, suite, tasks, 1); err != nil {
		return err
	}
	if r.kinds, err = c.timeKinds(ctx, suite, tasks); err != nil {
		return err
	}
	r.all, err = c.play(ctx, suite, tasks, c.Workers)
	return err
}

// open opens the world and lists the split, and tells the seconds that it took.
func (c *benchEnvCmd) open(ctx context.Context, stderr io.Writer) (playable, []episode.Task, float64, error) {
	w := gamesOf(c.Env)
	w.Full = c.Full
	runtime.GC()
	began := time.Now()
	suite, err := openSuite(ctx, w, c.Data, stderr)
	if err != nil {
		return nil, nil, 0, err
	}
	tasks, err := suite.Tasks(c.Split)
	if err != nil {
		return nil, nil, 0, usage(err)
	}
	return suite, tasks, time.Since(began).Seconds(), nil
}

// closeSuite lets go of the files of a world that has some open.
func closeSuite(suite playable) error {
	if s, ok := suite.(*webshop.Suite); ok {
		return s.Shop().Close()
	}
	return nil
}

// timedEpisodes are played to time their steps one by one.
const timedEpisodes = 1000

// timeKinds plays episodes, one after another, and notes what each step takes.
func (c *benchEnvCmd) timeKinds(ctx context.Context, suite env.Suite, tasks []episode.Task) (map[string][]float64, error) {
	kinds := map[string][]float64{}
	horizon := suite.Guide().Horizon
	for i := range timedEpisodes {
		e, obs, err := suite.Open(ctx, tasks[i%len(tasks)], episode.Seed(c.Seed))
		if err != nil {
			return nil, err
		}
		r := running{env: e, obs: obs}
		r.timed = func(a episode.Action, took time.Duration) {
			name, _, _ := strings.Cut(string(a), " ")
			name, _, _ = strings.Cut(name, "[")
			kinds[name] = append(kinds[name], took.Seconds())
		}
		_, _, err = wander(ctx, &r, horizon, episode.Seed(c.Seed).Derive("timed", uint64(i)))
		if err := errors.Join(err, e.Close()); err != nil {
			return nil, err
		}
	}
	return kinds, nil
}

// running is an open episode.
type running struct {
	env, fork env.Env
	obs       episode.Observation
	timed     func(a episode.Action, took time.Duration) // hears of each step; nil: nobody does
}

// play opens the episodes, plays them and copies them, with so many workers on as many cores.
func (c *benchEnvCmd) play(ctx context.Context, suite env.Suite, tasks []episode.Task, workers int) (p envPlay, err error) {
	runtime.GOMAXPROCS(workers)
	open := make([]running, c.Episodes)
	defer func() {
		for _, r := range open {
			for _, e := range []env.Env{r.env, r.fork} {
				if e != nil {
					_ = e.Close() // it is measured already
				}
			}
		}
	}()
	p.before = float64(memory().HeapAlloc)
	if p.opening, err = each(ctx, workers, len(open), func(i int) (err error) {
		open[i].env, open[i].obs, err = suite.Open(ctx, tasks[i%len(tasks)], episode.Seed(c.Seed))
		return err
	}); err != nil {
		return p, err
	}
	start := memory()
	p.opened = float64(start.HeapAlloc)
	horizon := suite.Guide().Horizon
	if p.playing, err = each(ctx, workers, len(open), func(i int) error {
		steps, won, err := wander(ctx, &open[i], horizon, episode.Seed(c.Seed).Derive("wander", uint64(i)))
		atomic.AddInt64(&p.steps, int64(steps))
		if won {
			atomic.AddInt64(&p.successes, 1)
		}
		return err
	}); err != nil {
		return p, err
	}
	var end runtime.MemStats
	runtime.ReadMemStats(&end)
	p.allocations, p.allocated = float64(end.Mallocs-start.Mallocs), float64(end.TotalAlloc-start.TotalAlloc)
	played := memory()
	p.played = float64(played.HeapAlloc)
	if _, p.forks = open[0].env.(env.Snapshotter); !p.forks {
		return p, nil
	}
	p.forking, err = each(ctx, workers, len(open), func(i int) (err error) {
		open[i].fork, err = open[i].env.(env.Snapshotter).Fork()
		return err
	})
	p.fromFork = float64(memory().TotalAlloc - played.TotalAlloc)
	return p, err
}

func (c *benchEnvCmd) summarise(b *envBench, rounds []envRound) {
	n := float64(c.Episodes)
	median := func(of func(r *envRound) float64) float64 {
		xs := make([]float64, len(rounds))
		for i := range rounds {
			xs[i] = of(&rounds[i])
		}
		return median(xs)
	}
	speed := func(workers int, of func(r *envRound) *envPlay) envSpeed {
		return envSpeed{
			Workers: workers,
			Steps:   median(func(r *envRound) float64 { return float64(of(r).steps) / of(r).playing }),
			Resets:  median(func(r *envRound) float64 { return n / of(r).opening }),
		}
	}
	b.Tasks, b.Steps, b.Successes = rounds[0].tasks, rounds[0].one.steps, rounds[0].one.successes
	steps := float64(b.Steps)
	b.One = speed(1, func(r *envRound) *envPlay { return &r.one })
	b.All = speed(c.Workers, func(r *envRound) *envPlay { return &r.all })
	b.Scaling = median(func(r *envRound) float64 { return r.one.playing / r.all.playing })
	b.Ready = 1e3 * median(func(r *envRound) float64 { return r.ready })
	for _, name := range slices.Sorted(maps.Keys(rounds[0].kinds)) {
		at := func(percent int) float64 {
			return 1e6 * median(func(r *envRound) float64 {
				took := r.kinds[name]
				slices.Sort(took)
				return took[(len(took)-1)*percent/100]
			})
		}
		b.Kinds = append(b.Kinds, envKind{Name: name, Steps: len(rounds[0].kinds[name]), Median: at(50), Most: at(99)})
	}
	b.Load = 1e6 * median(func(r *envRound) float64 { return r.load })
	b.First = 1e6 * median(func(r *envRound) float64 { return r.first })
	b.Reset = 1e6 * median(func(r *envRound) float64 { return r.one.opening / n })
	b.Held = median(func(r *envRound) float64 { return (r.one.opened - r.one.before) / n })
	b.Heap = median(func(r *envRound) float64 { return r.one.opened / 1e6 })
	b.Played = median(func(r *envRound) float64 { return r.one.played / 1e6 })
	b.Allocs = median(func(r *envRound) float64 { return r.one.allocations / steps })
	b.Bytes = median(func(r *envRound) float64 { return r.one.allocated / steps })
	if rounds[0].one.forks {
		fork := 1e6 * median(func(r *envRound) float64 { return r.one.forking / n })
		bytes := median(func(r *envRound) float64 { return r.one.fromFork / n })
		b.Fork, b.ForkedBytes = &fork, &bytes
	}
}

// memory is what the heap holds once nothing on it is garbage.
func memory() runtime.MemStats {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

// each runs f(0) … f(n−1), so many at once as there are workers, and returns the seconds it took.
func each(ctx context.Context, workers, n int, f func(i int) error) (float64, error) {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	began := time.Now()
	for range workers {
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
		a := r.obs.Admissible[rng.IntN(len(r.obs.Admissible))]
		var began time.Time
		if r.timed != nil {
			began = time.Now()
		}
		result, err := r.env.Step(ctx, a)
		if err != nil {
			return steps, false, err
		}
		if r.timed != nil {
			r.timed(a, time.Since(began))
		}
		steps++
		r.obs = result.Observation
		if result.Done {
			return steps, result.Success, nil
		}
	}
	return steps, false, nil
}
