package textworld_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"skillmaster/env/textworld"
)

// TestGameFiles replays episodes of whole game files (testdata/games): a harbour, a laboratory, a library. The original
// played them alone and in ALFWorld's folders and environment; testdata/games/record.py makes the recording.
func TestGameFiles(t *testing.T) {
	won := map[string]int{}
	for i, want := range lines[foreign](t, "testdata/games/golden.jsonl.gz") {
		t.Run(fmt.Sprintf("%s by %s %d", want.Game, want.Names, i), func(t *testing.T) {
			n, ok := namings[want.Names]
			if !ok {
				t.Fatalf("names %q", want.Names)
			}
			g, err := textworld.LoadFile(want.Game, filepath.Join("testdata", "games", want.Game, "game.tw-pddl"), n)
			if err != nil {
				t.Fatal(err)
			}
			replayForeign(t, g, want)
			if want.Steps[len(want.Steps)-1].Won {
				won[want.Game+want.Names]++
			}
		})
	}
	if len(won) != 6 {
		t.Errorf("won %v, want each of three games with either names", won)
	}
}
