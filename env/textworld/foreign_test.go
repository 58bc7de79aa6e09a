package textworld_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skillmaster/env/textworld"
	"skillmaster/episode"
)

// foreignFile is a game of our own: NAME.twl2 and NAME.pddl, a domain and a problem.
func foreignFile(t testing.TB, name string) textworld.File {
	t.Helper()
	grammar, err := os.ReadFile(filepath.Join("testdata", name+".twl2"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", name+".pddl"))
	if err != nil {
		text, err = os.ReadFile(filepath.Join("pddl", "testdata", name+".pddl"))
	}
	if err != nil {
		t.Fatal(err)
	}
	domain, problem, ok := strings.Cut(string(text), "(define (problem")
	if !ok {
		t.Fatalf("%s.pddl has no problem", name)
	}
	return textworld.File{Domain: domain, Grammar: string(grammar), Problem: "(define (problem" + problem}
}

// foreign is an episode of a game of our own in the original engine; testdata/record.py makes it.
type foreign struct {
	Game, Names string
	Limit       int
	Reset       struct {
		Observation string           `json:"obs"`
		Admissible  []episode.Action `json:"adm"`
	}
	Steps []struct {
		Action      episode.Action   `json:"a"`
		Observation string           `json:"obs"`
		Reward      float64          `json:"r"`
		Done        bool             `json:"done"`
		Won         bool             `json:"won"`
		Admissible  []episode.Action `json:"adm"`
	}
}

var namings = map[string]textworld.Naming{"id": textworld.ByID, "alfworld": textworld.ByAlfworld}

// TestForeignGames replays episodes of games with other domains and grammars than the released ones, as TextWorld alone
// and as ALFWorld runs them: every word, every list, reward, end and verdict, also after the end.
func TestForeignGames(t *testing.T) {
	games := map[string]*textworld.Game{}
	for i, want := range lines[foreign](t, "testdata/recorded.jsonl.gz") {
		t.Run(fmt.Sprintf("%s by %s %d", want.Game, want.Names, i), func(t *testing.T) {
			n, ok := namings[want.Names]
			if !ok {
				t.Fatalf("names %q", want.Names)
			}
			g := games[want.Game+want.Names]
			if g == nil {
				var err error
				if g, err = textworld.NewGame(want.Game, foreignFile(t, want.Game), n); err != nil {
					t.Fatal(err)
				}
				games[want.Game+want.Names] = g
			}
			replayForeign(t, g, want)
		})
	}
}

func replayForeign(t *testing.T, g *textworld.Game, want foreign) {
	t.Helper()
	e, first, err := g.Open(want.Limit)
	if err != nil {
		t.Fatal(err)
	}
	if first.Text != want.Reset.Observation {
		t.Fatalf("intro:\ngot  %q\nwant %q", first.Text, want.Reset.Observation)
	}
	if !slices.Equal(first.Admissible, want.Reset.Admissible) {
		t.Fatalf("admissible at the start:\ngot  %q\nwant %q", first.Admissible, want.Reset.Admissible)
	}
	for n, step := range want.Steps {
		r, err := e.Step(t.Context(), step.Action)
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if r.Observation.Text != step.Observation {
			t.Fatalf("step %d: %q:\ngot  %q\nwant %q", n, step.Action, r.Observation.Text, step.Observation)
		}
		if !slices.Equal(r.Observation.Admissible, step.Admissible) {
			t.Fatalf("step %d: %q: admissible:\ngot  %q\nwant %q", n, step.Action, r.Observation.Admissible, step.Admissible)
		}
		if r.Done != step.Done || r.Success != step.Won || r.Reward != step.Reward {
			t.Fatalf("step %d: %q: done %v, success %v, reward %v; want %v, %v, %v", n, step.Action, r.Done, r.Success, r.Reward, step.Done, step.Won, step.Reward)
		}
	}
}
