package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skillmaster/env/textworld"
)

// bell is a game file of a domain of its own.
func bell(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(textworld.File{
		Domain: `(define (domain bell) (:types thing) (:predicates (is ?t - thing) (rung ?t - thing))
  (:action ring :parameters (?t - thing) :precondition (is ?t) :effect (rung ?t)))`,
		Problem: `(define (problem one) (:domain bell) (:objects gong chime - thing) (:init (is gong) (is chime)) (:goal (rung chime)))`,
		Grammar: `grammar :: """{ "intro": [ {"rhs": "Two bells. Your task is to: ring the chime."} ] }""";
action ring { template :: "ring {t.name}"; feedback :: "The {t.name} rings."; }`,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bell.tw-pddl")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A game with texts of its own in the official layout is listed and played with the others, and not packed.
func TestTextGameInOfficialLayout(t *testing.T) {
	b, err := os.ReadFile(bell(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const id = "train/pick_and_place_simple-Bell-None-Gong-1/trial_1"
	folder := filepath.Join(dir, "json_2.1.1", filepath.FromSlash(id))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "game.tw-pddl"), []byte(strings.Replace(string(b), "{", `{"solvable":true,`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := must(t, 0, "data", "list", "--env", "alfworld", "--data", dir, "--json")
	var rows []splitRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Games != 1 || rows[0].Families["pick_and_place_simple"] != 1 || len(rows[0].General) != 1 || rows[0].General[0].ID != id {
		t.Errorf("listed %+v", rows)
	}
	out, _ = must(t, 0, "data", "verify", "--env", "alfworld", "--data", dir, "--play")
	if !strings.Contains(out, "1 played as any TextWorld game: not the released domain and grammar") {
		t.Errorf("verified:\n%s", out)
	}
	if _, _, err := openWorld(t.Context(), gamesOf(realGames), dir, io.Discard); err == nil || !strings.Contains(err.Error(), "cannot learn from all of split train") {
		t.Errorf("a run begins: %v", err)
	}
	to := t.TempDir()
	if out, errs := must(t, 1, "data", "import", dir, "--to", to); !strings.Contains(out+errs, "texts of their own") {
		t.Errorf("imported:\n%s%s", out, errs)
	}
	if packed, err := filepath.Glob(filepath.Join(to, "*.gz")); err != nil || len(packed) > 0 {
		t.Errorf("packed %q, %v", packed, err)
	}
}

// Any game file can be listed, played and measured.
func TestTextGames(t *testing.T) {
	path := bell(t)
	out, _ := must(t, 0, "data", "list", "--env", "textworld", "--data", path, "--tasks")
	if want := "bell.tw-pddl\tring the chime.\n"; out != want {
		t.Errorf("listed %q, want %q", out, want)
	}
	out, _ = must(t, 0, "data", "list", "--env", "textworld", "--data", filepath.Dir(path))
	if !strings.Contains(out, "bell") || !strings.Contains(out, "games") {
		t.Errorf("listed %q", out)
	}
	recording := filepath.Join(t.TempDir(), "bell.json")
	trace := `{"game":"bell","names":"id","reset":{"obs":"Two bells. Your task is to: ring the chime.","adm":["ring chime","ring gong"]},
"steps":[{"a":"ring gong","obs":"The gong rings.","r":0,"done":false,"won":false,"adm":["ring chime","ring gong"]},
{"a":"ring","obs":"Nothing happens.","r":0,"done":false,"won":false,"adm":["ring chime","ring gong"]},
{"a":" ring chime ","obs":"The chime rings.","r":1,"done":true,"won":true,"adm":["ring chime","ring gong"]}]}`
	for text, code := range map[string]int{trace: 0, strings.Replace(trace, "gong rings", "gong sings", 1): 1} {
		if err := os.WriteFile(recording, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		must(t, code, "replay", "--env", "textworld", "--data", path, recording)
	}
	must(t, 2, "data", "verify", "--env", "textworld", "--data", path)
	must(t, 0, "bench", "env", "--env", "textworld", "--data", path, "--episodes", "3", "--rounds", "1")
}
