package alfworld

import (
	"bytes"
	"runtime"
	"testing"
)

// releasedCounts are the games of each split that were released and are at hand.
var releasedCounts = map[string]int{"train": 3553, "valid_seen": 140, "valid_unseen": 134, "valid_train": 200}

func openData(t testing.TB, o Options) *Suite {
	t.Helper()
	s, err := Open(dataDir(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAllReleasedGamesLoad(t *testing.T) {
	s := openData(t, Options{})
	for split, want := range releasedCounts {
		tasks, err := s.Tasks(split)
		if err != nil {
			t.Error(err)
			continue
		}
		skipped, err := s.Skipped(split)
		if err != nil || len(skipped) > 0 {
			t.Errorf("%s: skipped %v (%v)", split, skipped, err)
		}
		if len(tasks) != want {
			t.Errorf("%s: got %d games, want %d", split, len(tasks), want)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, split := range []string{"valid_unseen", "train"} {
		b.Run(split, func(b *testing.B) {
			var before, after runtime.MemStats
			var s *Suite
			games := 0
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				s = openData(b, Options{})
				tasks, err := s.Tasks(split)
				if err != nil {
					b.Fatal(err)
				}
				games = len(tasks)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(games), "B/game")
			b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N)/float64(games)*1e6, "µs/game")
			runtime.KeepAlive(s)
		})
	}
}

var _ = bytes.NewReader
