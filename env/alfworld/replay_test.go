package alfworld

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRecordingsOfTheOriginal plays every recording of the original engine again.
func TestRecordingsOfTheOriginal(t *testing.T) {
	s := openData(t, Options{})
	for pattern, want := range map[string]Replayed{
		"golden/*.jsonl.gz":              {Episodes: 411, Steps: 10107},
		"transcripts/ref_run_*.jsonl":    {Episodes: 280, Unparsable: 1},
		"transcripts/public/*.json":      {Episodes: 5, Skipped: make([]Skipped, 3)},
		"transcripts/old_wording/*.json": {Episodes: 14},
	} {
		t.Run(pattern, func(t *testing.T) {
			got := replayAll(t, s, filepath.Join(dataDir(t), "alfworld", pattern))
			if got.Episodes != want.Episodes || len(got.Skipped) != len(want.Skipped) || got.Unparsable != want.Unparsable ||
				want.Steps > 0 && got.Steps != want.Steps {
				t.Errorf("got %d episodes, %d steps, %d unparsable, skipped %v; want %+v", got.Episodes, got.Steps, got.Unparsable, got.Skipped, want)
			}
			t.Logf("%d episodes, %d steps equal; skipped: %v", got.Episodes, got.Steps, got.Skipped)
		})
	}
}

// replayAll adds up the recordings of some files.
func replayAll(t *testing.T, s *Suite, pattern string) Replayed {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %s (%v)", pattern, err)
	}
	var sum Replayed
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Replay(t.Context(), s, f)
		f.Close()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if r.First != nil {
			t.Errorf("%s: %v", path, r.First)
		}
		sum.Episodes += r.Episodes
		sum.Steps += r.Steps
		sum.Unparsable += r.Unparsable
		sum.Skipped = append(sum.Skipped, r.Skipped...)
	}
	return sum
}
