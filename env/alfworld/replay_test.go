package alfworld

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/episode"
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

// TestOriginalOnGeneratedGames plays again what ALFWorld's own engine, release 0.4.2, said of generated games, a quarter of
// them in the wording before 0.4. testdata/python/original.sh golden made games and traces.
func TestOriginalOnGeneratedGames(t *testing.T) {
	dir := filepath.Join("testdata", "original")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := replayAll(t, s, filepath.Join(dir, "traces", "*.jsonl.gz"))
	if got.Episodes != 62 || got.Steps != 1327 || len(got.Skipped) > 0 {
		t.Errorf("got %d episodes, %d steps, skipped %v; want 62 episodes, 1327 steps", got.Episodes, got.Steps, got.Skipped)
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

// recorded is a trace of the kitchen as the engine itself says it.
func recorded(t *testing.T, s *Suite) string {
	t.Helper()
	g, err := s.Game(kitchen().ID)
	if err != nil {
		t.Fatal(err)
	}
	e := newEnv(g.NewState(FromFile), unlimited)
	type step = map[string]any
	tr := map[string]any{"game": g.ID + "/" + gameFileName, "kind": "by hand", "reset": step{"obs": e.state.Intro(), "adm": e.state.Admissible()}}
	var steps []step
	for _, a := range kitchenWalkthrough {
		r, err := e.Step(t.Context(), episode.Action(a))
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step{"a": a, "obs": r.Observation.Text, "r": r.Reward, "done": r.Done, "won": r.Success, "adm": r.Observation.Admissible})
	}
	tr["steps"] = steps
	b, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReplayFindsDifferences(t *testing.T) {
	s := NewSuite(shelf{mustGame(t, kitchen())}, Options{})
	trace := recorded(t, s)
	run := `{"gamefile":"` + kitchen().ID + `/game.tw-pddl","task_type":"clean","won":true,"n_steps":8,"n_invalid":1,"n_inadmissible":0,` +
		`"actions":["a reply of thirty bytes, uncut","` + strings.Join(kitchenWalkthrough, `","`) + `"]}`
	script := `{"task":"` + kitchen().ID + `","wording":"0.3","won":false,"initial":"` + strings.ReplaceAll(kitchenIntro, "\n", `\n`) + `","steps":[` +
		`{"action":"check valid actions","observation":"Valid actions:\n  - go to cabinet 1\n  - go to cabinet 2\n  - go to countertop 1\n  - go to fridge 1\n  - go to microwave 1\n  - go to sinkbasin 1\n  - inventory\n  - look"},` +
		`{"action":"go to fridge 1","observation":"You arrive at loc 5. The fridge 1 is closed.","score":0,"done":false}]}`
	for name, c := range map[string]struct {
		recording, old, new string
		step                int
		what                string // "" for no difference
	}{
		"trace":              {trace, "", "", 0, ""},
		"first observation":  {trace, "a fridge 1", "a fridge 2", 0, "observation"},
		"first admissible":   {trace, `"help",`, ``, 0, "admissible actions"},
		"order":              {trace, `"inventory","look"`, `"look","inventory"`, 0, "order of admissible actions"},
		"observation":        {trace, "You clean the", "You wash the", 4, "observation"},
		"admissible":         {trace, `"close fridge 1"`, `"shut fridge 1"`, 6, "admissible actions"},
		"reward":             {trace, `"r":1`, `"r":10`, 7, "reward"},
		"done":               {trace, `"done":true`, `"done":false`, 7, "done"},
		"won":                {trace, `"won":true`, `"won":false`, 7, "success"},
		"limit":              {trace, `"kind"`, `"limit":3,"kind"`, 3, "done"},
		"limit kept":         {trace, `"kind"`, `"limit":7,"kind"`, 0, ""},
		"run":                {run, "", "", 0, ""},
		"run lost":           {run, `"won":true`, `"won":false`, 9, "success"},
		"run longer":         {run, `"n_steps":8`, `"n_steps":9`, 9, "steps"},
		"run cut off":        {run, `,"` + kitchenWalkthrough[6] + `"`, ``, 8, "success"},
		"run goes on":        {run, `fridge 1"]`, `fridge 1","look"]`, 8, "end"},
		"run less valid":     {run, `"n_inadmissible":0`, `"n_inadmissible":1`, 9, "inadmissible actions"},
		"run without tail":   {run, `"n_invalid":1`, `"n_invalid":0`, 9, "inadmissible actions"},
		"transcript":         {script, "", "", 0, ""},
		"transcript start":   {script, "a fridge 1", "a fridge 2", 0, "observation"},
		"transcript list":    {script, `\n  - look`, ``, 0, "admissible actions"},
		"transcript answer":  {script, "loc 5", "fridge 1", 1, "observation"},
		"transcript wording": {script, `"0.3"`, `"0.4+"`, 0, "admissible actions"},
		"transcript score":   {script, `"score":0`, `"score":1`, 1, "reward"},
		"transcript done":    {script, `"done":false`, `"done":true`, 1, "done"},
		"transcript won":     {script, `"won":false`, `"won":true`, 2, "success"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.old != "" && !strings.Contains(c.recording, c.old) {
				t.Fatalf("nothing to spoil: %q is not in %s", c.old, c.recording)
			}
			got, err := Replay(t.Context(), s, strings.NewReader(strings.Replace(c.recording, c.old, c.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.what == "" && got.First != nil:
				t.Errorf("got difference %v, want none", got.First)
			case c.what != "" && got.First == nil:
				t.Error("got no difference")
			case c.what != "" && (got.First.What != c.what || got.First.Step != c.step):
				t.Errorf("got step %d, %s; want step %d, %s", got.First.Step, got.First.What, c.step, c.what)
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	s := NewSuite(shelf{mustGame(t, kitchen())}, Options{})
	for name, c := range map[string]struct{ recording, want string }{
		"no JSON":          {"hello", "episode 1"},
		"unknown form":     {`{"actions":[]}`, "want a trace"},
		"unknown field":    {`{"gamefile":"x","colour":"red"}`, "colour"},
		"limit below zero": {`{"reset":{},"limit":-1}`, "-1 steps"},
		"unknown wording":  {`{"task":"x","wording":"0.9","steps":[]}`, "0.9"},
		"cut off":          {recorded(t, s)[:300], "episode 1"},
		"cut off, packed":  {string(gz(recorded(t, s))[:100]), "episode 1"},
		"the second is no": {recorded(t, s) + "[]", "episode 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Replay(t.Context(), s, strings.NewReader(c.recording)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
}

func TestReplayCountsUnknownGames(t *testing.T) {
	s := NewSuite(shelf{mustGame(t, kitchen())}, Options{})
	got, err := Replay(t.Context(), s, strings.NewReader(`{"gamefile":"train/x/y/game.tw-pddl"}{"task":"z","wording":"0.3","game_file_available":false,"steps":[]}`))
	if err != nil || got.Episodes != 0 || len(got.Skipped) != 2 || got.Skipped[0].ID != "train/x/y" {
		t.Errorf("got %+v, %v; want two skipped", got, err)
	}
}

func FuzzReplay(f *testing.F) {
	g, err := NewGame(kitchen())
	if err != nil {
		f.Fatal(err)
	}
	s := NewSuite(shelf{g}, Options{})
	f.Add(`{"gamefile":"` + g.ID + `/game.tw-pddl","actions":["look","go to fridge 1"]}`)
	f.Add(`{"task":"` + g.ID + `","wording":"0.3","initial":"","steps":[{"action":"look","observation":""}]}`)
	f.Add(`{"game":"` + g.ID + `","reset":{"obs":"","adm":[]},"steps":[]}`)
	f.Fuzz(func(t *testing.T, recording string) {
		got, err := Replay(t.Context(), s, strings.NewReader(recording))
		if err == nil && got.First == nil && got.Steps > len(recording) {
			t.Errorf("%d steps out of %d bytes", got.Steps, len(recording))
		}
	})
}
