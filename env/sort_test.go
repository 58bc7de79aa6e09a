package env_test

import (
	"testing"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/episode"
)

// sorted is a world that sorts actions itself.
type sorted struct{ envtest.World }

func (sorted) Sort(episode.Action) string { return "own" }

func TestSortOf(t *testing.T) {
	for action, want := range map[episode.Action]string{
		"go to shelf 1": "go", "look": "look", "search[red]": "search", "": "other", "Go": "other", " go": "other", "<": "other",
	} {
		if got := env.SortOf(envtest.World{}, action); got != want {
			t.Errorf("%q is of kind %q, want %q", action, got, want)
		}
	}
	if got := env.SortOf(sorted{}, "go"); got != "own" {
		t.Errorf("a world that sorts actions is not asked: %q", got)
	}
}
