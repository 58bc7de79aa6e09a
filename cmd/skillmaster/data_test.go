package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/env/alfworld"
	"skillmaster/episode"
)

func TestDataListAndVerify(t *testing.T) {
	out, _ := must(t, 0, "data", "list", "--split", "valid", "--json", "--tasks")
	var rows []splitRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Games == 0 || rows[0].Games != len(rows[0].Tasks) || len(rows[0].Families) != 6 {
		t.Errorf("list prints %+v", rows)
	}
	if _, errs := must(t, 1, "data", "list", "--split", "vallid"); !strings.Contains(errs, "probe") {
		t.Errorf("an unknown split is answered with %q", errs)
	}
	if _, errs := must(t, 1, "data", "verify", "--env", "alfworld", "--data", t.TempDir()); !strings.Contains(errs, "no household games") {
		t.Errorf("an empty folder is answered with %q", errs)
	}
}

// Packed games are read again as they were, are all won by the expert, and are not overwritten; a game file that is cut
// short is named.
func TestDataPack(t *testing.T) {
	dir := t.TempDir()
	must(t, 0, "data", "pack", "--games", "6", "--split", "train", "--split", "valid_seen", "--to", dir)
	out, _ := must(t, 0, "data", "verify", "--env", "alfworld", "--data", dir, "--play", "--json")
	var found verified
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Splits) != 2 || found.Splits[0].Games != 6 || len(found.Splits[1].Families) != 6 {
		t.Errorf("verify prints %+v", found)
	}
	if out, _ := must(t, 1, "data", "verify", "--env", "alfworld", "--data", dir, "--released"); !strings.Contains(out, "split train has 1 games of pick_and_place_simple, the release 790") ||
		!strings.Contains(out, "split valid_unseen is not there") {
		t.Errorf("fewer games than released: %s", out)
	}
	again := filepath.Join(t.TempDir(), "again")
	must(t, 0, "data", "pack", "--env", "alfworld", "--data", dir, "--to", again)
	a, err := os.ReadFile(filepath.Join(dir, "train.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(again, "train.jsonl.gz"))
	if err != nil || string(a) != string(b) {
		t.Errorf("packed games packed again are others (%v)", err)
	}
	fewer, custom := filepath.Join(t.TempDir(), "fewer"), filepath.Join(t.TempDir(), "custom")
	must(t, 0, "data", "pack", "--env", "alfworld", "--data", dir, "--games", "3", "--split", "train", "--to", fewer)
	must(t, 0, "data", "pack", "--games", "6", "--custom", "0.8", "--split", "train", "--to", custom)
	for folder, want := range map[string]int{fewer: 3, custom: 6} {
		out, _ := must(t, 0, "data", "list", "--env", "alfworld", "--data", folder, "--json", "--tasks")
		var rows []splitRow
		if err := json.Unmarshal([]byte(out), &rows); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 1 || rows[0].Games != want {
			t.Errorf("%s: got %+v, want %d games", folder, rows, want)
		}
		if got := strings.Contains(rows[0].Tasks[0].ID, "gen-c0.8-1_"); got != (folder == custom) {
			t.Errorf("%s: a game has the id %s", folder, rows[0].Tasks[0].ID)
		}
	}
	old := filepath.Join(t.TempDir(), "old")
	must(t, 0, "data", "pack", "--env", "alfworld", "--data", dir, "--wording", "put", "--split", "train", "--to", old)
	suite, err := alfworld.Open(old, alfworld.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := suite.Tasks("train")
	if err != nil {
		t.Fatal(err)
	}
	if g, err := suite.Game(tasks[0].ID); err != nil || g.Wording != alfworld.Put {
		t.Errorf("a game packed with --wording put speaks as %v (%v)", g.Wording, err)
	}
	must(t, 2, "data", "pack", "--games", "-1", "--to", filepath.Join(dir, "none"))
	if _, errs := must(t, 1, "data", "pack", "--games", "6", "--to", dir); !strings.Contains(errs, "there already") {
		t.Errorf("packing over it is answered with %q", errs)
	}
	cut := filepath.Join(again, "train.jsonl.gz")
	if err := os.WriteFile(cut, a[:len(a)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := must(t, 1, "data", "verify", "--env", "alfworld", "--data", again); !strings.Contains(out, cut+": line") {
		t.Errorf("half a file is answered with %q", out)
	}
}

// traceStep is a step of a recording.
type traceStep struct {
	Action      string           `json:"a"`
	Observation string           `json:"obs"`
	Reward      float64          `json:"r"`
	Done        bool             `json:"done"`
	Won         bool             `json:"won"`
	Admissible  []episode.Action `json:"adm"`
}

// record plays some actions in a household game and returns the episode as a recording.
func record(t *testing.T, spoil func(*traceStep)) []byte {
	t.Helper()
	suite, err := openGames(defaultWorld(household), "")
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := suite.Tasks("valid")
	if err != nil {
		t.Fatal(err)
	}
	e, obs, err := suite.Open(t.Context(), tasks[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	var steps []traceStep
	rng := episode.Seed(1).Rand()
	admissible := obs.Admissible
	for range 5 {
		a := admissible[rng.IntN(len(admissible))]
		r, err := e.Step(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, traceStep{string(a), r.Observation.Text, r.Reward, r.Done, r.Success, r.Observation.Admissible})
		admissible = r.Observation.Admissible
	}
	spoil(&steps[2])
	b, err := json.Marshal(map[string]any{
		"game": tasks[0].ID, "kind": "test", "reset": map[string]any{"obs": obs.Text, "adm": obs.Admissible}, "steps": steps,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	same := write("same.jsonl", record(t, func(*traceStep) {}))
	out, _ := must(t, 0, "replay", "--env", "household", "--json", same)
	var rows []replayRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Episodes != 1 || rows[0].Steps != 5 || rows[0].First != nil {
		t.Errorf("replay prints %+v", rows)
	}
	write("other.jsonl", record(t, func(s *traceStep) { s.Observation += "!" }))
	out, errs := must(t, 1, "replay", "--env", "household", "--json", dir)
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].First == nil || rows[0].First.Step != 3 || rows[0].First.What != "observation" || rows[1].First != nil || !strings.Contains(errs, "1 of 2") {
		t.Errorf("a changed word: %+v, %s", rows, errs)
	}
	foreign := write("foreign.json", []byte(`{"game":"x","kind":"test","reset":{"obs":"","adm":[]},"steps":[]}`))
	if out, errs := must(t, 1, "replay", "--env", "household", foreign); !strings.Contains(errs, "no episode could be played") || !strings.Contains(out, "skipped") {
		t.Errorf("a recording of another world is answered with %q", errs)
	}
	must(t, 0, "replay", "--env", "household", same, foreign)
	must(t, 0, "replay", "--env", "household", "--all", same)
	if _, errs := must(t, 1, "replay", "--env", "household", "--all", same, foreign); !strings.Contains(errs, "1 episodes could not") {
		t.Errorf("an episode that cannot be played is answered with %q", errs)
	}
	must(t, 1, "replay", "--env", "household", filepath.Join(dir, "none"))
}

// The 134 unseen games are there, and recordings of the original engine on them play as they were recorded. All games and
// recordings: make golden, skillmaster data verify --released.
func TestRealGames(t *testing.T) {
	data := realData(t)
	out, _ := must(t, 0, "data", "list", "--env", "alfworld", "--data", data, "--split", "valid_unseen", "--json")
	var rows []splitRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if rows[0].Games != 134 || len(rows[0].Skipped) != 0 {
		t.Errorf("%d unseen games, %d left out", rows[0].Games, len(rows[0].Skipped))
	}
	must(t, 0, "replay", "--data", data, filepath.Join(data, "alfworld", "golden", "unseen.0.jsonl.gz"), filepath.Join(data, "alfworld", "transcripts", "old_wording"))
}

// realData is the folder of the real games. Without it the test is skipped, or fails where CI says so.
func realData(t *testing.T) string {
	t.Helper()
	data := dataFolder()
	if !filepath.IsAbs(data) {
		data = filepath.Join("..", "..", data) // of the module's root
	}
	if _, err := alfworld.Open(data, alfworld.Options{}); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the real games are needed in CI: %v (SKILLMASTER_DATA)", err)
		}
		t.Skipf("NOT TESTED ON THE REAL GAMES: %v (SKILLMASTER_DATA)", err)
	}
	return data
}
