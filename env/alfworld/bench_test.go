package alfworld

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"skillmaster/episode"
)

// benchGames are the games of valid_seen with their phrases made.
func benchGames(b *testing.B) []*Game {
	b.Helper()
	s := openData(b, Options{})
	tasks, err := s.Tasks("valid_seen")
	if err != nil {
		b.Fatal(err)
	}
	var games []*Game
	for _, t := range tasks {
		g, err := s.Game(t.ID)
		if err != nil {
			b.Fatal(err)
		}
		g.NewState(FromFile)
		games = append(games, g)
	}
	return games
}

// playSteps takes n random admissible actions, in episodes of at most 50 steps.
func playSteps(b *testing.B, games []*Game, n int, seed episode.Seed) {
	r := seed.Rand()
	ctx := b.Context()
	var e *Env
	var as []episode.Action
	for range n {
		if e == nil {
			e = newEnv(games[r.IntN(len(games))].NewState(FromFile), defaultLimit)
			as = e.state.Admissible()
		}
		result, err := e.Step(ctx, as[r.IntN(len(as))])
		if err != nil || !result.Admissible {
			b.Error(err, result)
			return
		}
		if as = result.Observation.Admissible; result.Done {
			e = nil
		}
	}
}

// BenchmarkStep is one step with answer, admissible list and goal test, its share of starting episodes included, by so
// many workers on as many cores: the garbage collector has to share them. Time of the processors tells apart what workers
// cost each other from what other programs on the machine cost them all.
func BenchmarkStep(b *testing.B) {
	games := benchGames(b)
	for _, workers := range []int{1, 2, 4} {
		if workers > runtime.NumCPU() {
			continue
		}
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			b.ReportAllocs()
			runtime.GC()
			b.ResetTimer()
			before, known := processorSeconds()
			var wait sync.WaitGroup
			for w := range workers {
				wait.Go(func() { playSteps(b, games, (b.N+w)/workers, episode.Seed(w)) })
			}
			wait.Wait()
			after, _ := processorSeconds()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
			if known {
				b.ReportMetric((after-before)/float64(b.N)*1e9, "processor-ns/step")
			}
		})
	}
}

func BenchmarkReset(b *testing.B) {
	s := openData(b, Options{})
	tasks, err := s.Tasks("valid_seen")
	if err != nil {
		b.Fatal(err)
	}
	for i := range tasks {
		if _, _, err := s.Open(b.Context(), tasks[i], 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, _, err := s.Open(b.Context(), tasks[i%len(tasks)], 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFork copies an episode on its way, which is a copy of its sets.
func BenchmarkFork(b *testing.B) {
	games := benchGames(b)
	e := newEnv(games[0].NewState(FromFile), defaultLimit)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Fork(); err != nil {
			b.Fatal(err)
		}
	}
}
