package alfworld

import (
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

// playSteps takes n random admissible actions, in episodes of at most 50 steps, and returns the number of episodes.
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
			b.Fatal(err, result)
		}
		if as = result.Observation.Admissible; result.Done {
			e = nil
		}
	}
}

// BenchmarkStep is one step with answer, admissible list and goal test, its share of starting episodes included.
func BenchmarkStep(b *testing.B) {
	games := benchGames(b)
	b.ReportAllocs()
	b.ResetTimer()
	playSteps(b, games, b.N, 1)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkStepParallel is BenchmarkStep on all processors.
func BenchmarkStepParallel(b *testing.B) {
	games := benchGames(b)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			playSteps(b, games, 1000, 1)
		}
	})
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
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
