package alfworld

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/env/textworld"
	"skillmaster/episode"
)

// writeGameFile writes a game file and what goes with it as a trial of the official layout.
func writeGameFile(t *testing.T, dir, id string, f gameFile, taskType string) {
	t.Helper()
	folder := filepath.Join(dir, officialFolder, filepath.FromSlash(id))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	solvable := true
	f.Solvable = &solvable
	for name, content := range map[string]any{gameFileName: f, trialFileName: map[string]string{"task_type": taskType}} {
		b, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// attic is a game of another domain, whose episodes in ALFWorld itself package textworld has on record.
func attic(t testing.TB) gameFile {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "textworld", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	domain, problem, ok := strings.Cut(read("attic.pddl"), "(define (problem")
	if !ok {
		t.Fatal("attic.pddl has no problem")
	}
	return gameFile{Domain: domain, Problem: "(define (problem" + problem, Grammar: read("attic.twl2")}
}

const (
	atticID   = "train/look_at_obj_in_light-Lamp-None-Basin-1/trial_1"
	strangeID = "train/tidy-Attic-None-None-1/trial_1"
	brokenID  = "train/tidy-Attic-None-None-1/trial_2"
)

func openAttic(t *testing.T, o Options) *Suite {
	t.Helper()
	dir := t.TempDir()
	writeGameFile(t, dir, atticID, attic(t), "pick_two_obj_and_place")
	writeGameFile(t, dir, strangeID, attic(t), "")
	broken := attic(t)
	broken.Domain = strings.Replace(broken.Domain, "(:action go", "(:derived (on ?l - lamp) (seen ?l)) (:action go", 1)
	writeGameFile(t, dir, brokenID, broken, "")
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGeneralGames(t *testing.T) {
	s := openAttic(t, Options{})
	got, err := s.Scan(t.Context(), "train", nil)
	if err != nil || len(got.Broken) > 0 {
		t.Fatal(err, got.Broken)
	}
	want := []episode.Task{
		{ID: atticID, Split: "train", Family: "pick_two_obj_and_place", Category: "pick_and_place", Goal: "find the key and light the basin."},
		{ID: strangeID, Split: "train", Goal: "find the key and light the basin."},
	}
	if !slices.Equal(got.Tasks, want) {
		t.Errorf("tasks: got %+v, want %+v", got.Tasks, want)
	}
	if len(got.General) != 2 || got.General[0].ID != atticID || !strings.Contains(got.General[0].Reason, "the domain differs") {
		t.Errorf("general games: %+v", got.General)
	}
	if len(got.Skipped) != 1 || got.Skipped[0].ID != brokenID || !strings.Contains(got.Skipped[0].Reason, "domain, line ") ||
		!strings.Contains(got.Skipped[0].Reason, ":derived cannot be played") {
		t.Errorf("skipped: %+v", got.Skipped)
	}
	task := got.Tasks[0]
	_, err = s.Game(task.ID)
	_, varyErr := s.Vary(task, 1)
	e, _, openErr := s.Open(t.Context(), task, 0)
	if openErr != nil {
		t.Fatal(openErr)
	}
	_, expertErr := s.Expert(e, env.Knows, nil, nil)
	for what, err := range map[string]error{"game": err, "variation": varyErr, "expert": expertErr} {
		if !errors.Is(err, ErrGeneral) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if a, ok := s.Advice(task, true, episode.Seed(1).Rand()); ok {
		t.Errorf("advice: %v", a)
	}
	_, _, err = s.Open(t.Context(), episode.Task{ID: task.ID + variationMark + "1"}, 0)
	if !errors.Is(err, ErrGeneral) {
		t.Errorf("a variation opens: %v", err)
	}
}

// TestGeneralEpisodes replays what ALFWorld itself recorded of the attic, through suites alone and joined.
func TestGeneralEpisodes(t *testing.T) {
	s := openAttic(t, Options{StepLimit: 40})
	for name, s := range map[string]*Suite{"alone": s, "joined": NewSuite(shelf{}, Options{StepLimit: 40}).With(s)} {
		played := 0
		for _, want := range atticRecords(t) {
			if want.Game != "attic" || want.Names != "alfworld" {
				continue
			}
			played++
			e, first, err := s.Open(t.Context(), episode.Task{ID: atticID}, 0)
			if err != nil {
				t.Fatal(name, err)
			}
			if first.Text != want.Reset.Observation || !slices.Equal(first.Admissible, want.Reset.Admissible) {
				t.Fatalf("%s: begins with %+v, want %+v", name, first, want.Reset)
			}
			for i, step := range want.Steps {
				r, err := e.Step(t.Context(), episode.Action(step.Action))
				if err != nil {
					t.Fatal(name, err)
				}
				if r.Observation.Text != step.Observation || !slices.Equal(r.Observation.Admissible, step.Admissible) || r.Done != step.Done || r.Success != step.Won {
					t.Fatalf("%s, step %d, %q: got %+v, want %+v", name, i, step.Action, r, step)
				}
			}
		}
		if played == 0 {
			t.Error("no episode is on record")
		}
	}
}

// attributed is a trace that says who named the things in it.
type attributed struct {
	trace
	Names string
}

func atticRecords(t *testing.T) (all []attributed) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "textworld", "testdata", "recorded.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = env.Records(f, func(_ int, raw json.RawMessage) error {
		var one attributed
		err := json.Unmarshal(raw, &one)
		all = append(all, one)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGeneralEqualsCompiled plays a household whose grammar has one rule more than the released one, which changes
// nothing.
func TestGeneralEqualsCompiled(t *testing.T) {
	dir, ts := t.TempDir(), texts(t)
	g := kitchens(t, "train/"+kitchenTask+"/trial_1")[0]
	ts.Grammar += "\ngrammar :: \"\"\" { \"never.said\": [ { \"rhs\": \"x\" } ] } \"\"\";\n"
	if err := WriteOfficial(dir, g, ts); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := s.Tasks("train")
	if err != nil || len(tasks) != 1 || tasks[0] != g.task("train") {
		t.Fatalf("tasks %+v, want %+v (%v)", tasks, g.task("train"), err)
	}
	envtest.Run(t, struct{ env.Suite }{s}, envtest.Config{Splits: []string{"train"}, Seed: 3})
	e, first, err := s.Open(t.Context(), tasks[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.(*textworld.Env); !ok {
		t.Fatalf("the game is played by a %T", e)
	}
	want := newEnv(g.NewState(FromFile), defaultLimit)
	if first.Text != want.state.Intro() {
		t.Errorf("begins with %q, want %q", first.Text, want.state.Intro())
	}
	r := episode.Seed(4).Rand()
	for possible := first.Admissible; ; {
		a := possible[r.IntN(len(possible))]
		got, err := e.Step(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := want.Step(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if got.Observation.Text != wanted.Observation.Text || !slices.Equal(got.Observation.Admissible, wanted.Observation.Admissible) ||
			got.Done != wanted.Done || got.Success != wanted.Success || got.Reward != wanted.Reward || got.Admissible != wanted.Admissible {
			t.Fatalf("%q: got %+v, want %+v", a, got, wanted)
		}
		if possible = got.Observation.Admissible; got.Done {
			return
		}
	}
}
