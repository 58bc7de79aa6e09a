package textworld_test

import (
	"path/filepath"
	"testing"

	"skillmaster/env/alfworld"
	"skillmaster/env/textworld"
	"skillmaster/episode"
)

const benchGames = 20

// BenchmarkLoad reads, grounds and checks released games from their texts.
func BenchmarkLoad(b *testing.B) {
	r := openReleased(b, "valid_seen")
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r.game(b, r.games[i*7%len(r.games)])
	}
}

// BenchmarkStep is one random admissible step with answer, admissible list and goal test, its share of starting
// episodes of 50 steps included: of the general player, and of the compiled games beside it.
func BenchmarkStep(b *testing.B) {
	r := openReleased(b, "valid_seen")
	suite, err := alfworld.Open(filepath.Dir(dataDir(b)), alfworld.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var general []*textworld.Game
	var compiled []*alfworld.Game
	for i := range benchGames {
		packed := r.games[i*7%len(r.games)]
		general = append(general, r.game(b, packed))
		g, err := suite.Game(packed.ID)
		if err != nil {
			b.Fatal(err)
		}
		compiled = append(compiled, g)
	}
	b.Run("general", func(b *testing.B) {
		random := episode.Seed(1).Rand()
		var s *textworld.State
		b.ReportAllocs()
		for i := range b.N {
			if i%50 == 0 {
				if s, err = general[i/50%benchGames].Start(); err != nil {
					b.Fatal(err)
				}
			}
			possible := s.Admissible()
			if _, _, err := s.Step(string(possible[random.IntN(len(possible))])); err != nil {
				b.Fatal(err)
			}
			s.Won()
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	})
	b.Run("compiled", func(b *testing.B) {
		random := episode.Seed(1).Rand()
		var s *alfworld.State
		b.ReportAllocs()
		for i := range b.N {
			if i%50 == 0 {
				s = compiled[i/50%benchGames].NewState(alfworld.FromFile)
			}
			possible := s.Admissible()
			s.Step(string(possible[random.IntN(len(possible))]))
			s.Admissible()
			s.Won()
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	})
}
