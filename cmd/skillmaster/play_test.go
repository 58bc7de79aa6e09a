package main

import (
	"strings"
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/episode"
)

// play lets somebody type into an episode of the tiny world's first task.
func play(t *testing.T, typed string) (played, string) {
	t.Helper()
	suite := envtest.World{}
	tasks, err := suite.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p, err := playEpisode(t.Context(), suite, tasks[0], 1, strings.NewReader(typed), &out)
	if err != nil {
		t.Fatal(err)
	}
	return p, out.String()
}

func TestPlay(t *testing.T) {
	// Behind one of the doors is the gem; trying them all takes too long, so find it first.
	var win string
	for _, colour := range []string{"blue", "green", "red", "white"} {
		for _, n := range []string{"1", "2"} {
			open := "open " + colour + " door " + n + "\n"
			if _, out := play(t, open); strings.Contains(out, "a gem") {
				win = open + "take gem\n"
			}
		}
	}
	p, out := play(t, "?\n\n"+win+"look\n")
	if !p.Success || p.Stop != episode.Succeeded || len(p.Steps) != 2 || p.Return != 1 {
		t.Errorf("won as %+v\n%s", p, out)
	}
	if !strings.Contains(out, "open blue door 1\nopen blue door 2") {
		t.Errorf("? lists nothing:\n%s", out)
	}
	if p, _ = play(t, strings.Repeat("dance\n", 20)); p.Stop != episode.Failed || len(p.Steps) != 6 || p.Steps[0].Admissible {
		t.Errorf("lost as %+v", p)
	}
	if p, _ = play(t, "dance\nquit\ndance\n"); p.Stop != episode.GaveUp || len(p.Steps) != 1 {
		t.Errorf("gave up as %+v", p)
	}
}
