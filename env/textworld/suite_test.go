package textworld_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/env/textworld"
	"skillmaster/episode"
)

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, f textworld.File) []byte {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// foreignFolder holds our own games at several depths.
func foreignFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, path := range map[string]string{"attic": "attic/game.tw-pddl", "ferry": "ferry.tw-pddl", "kitchen": "a/b/kitchen.tw-pddl", "lighthouse": "a/lighthouse.tw-pddl"} {
		writeFile(t, filepath.Join(dir, path), encode(t, foreignFile(t, name)))
	}
	return dir
}

func openForeign(t testing.TB, path string, o textworld.Options) *textworld.Suite {
	t.Helper()
	s, err := textworld.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuiteKeepsTheContract(t *testing.T) {
	dir := foreignFolder(t)
	t.Run("folder", func(t *testing.T) {
		envtest.Run(t, openForeign(t, dir, textworld.Options{}), envtest.Config{Splits: []string{textworld.Split}, Seed: 3})
	})
	t.Run("file", func(t *testing.T) {
		s := openForeign(t, filepath.Join(dir, "ferry.tw-pddl"), textworld.Options{StepLimit: 7})
		envtest.Run(t, s, envtest.Config{Splits: []string{textworld.Split}, Seed: 4})
	})
}

func TestTasks(t *testing.T) {
	dir := foreignFolder(t)
	writeFile(t, filepath.Join(dir, "bad.tw-pddl"), encode(t, textworld.File{Domain: "(define", Grammar: "x", Problem: "y"}))
	writeFile(t, filepath.Join(dir, "note.txt"), []byte("not a game"))
	s := openForeign(t, dir, textworld.Options{})
	got, err := s.Tasks(textworld.Split)
	if err != nil {
		t.Fatal(err)
	}
	want := []episode.Task{
		{ID: "a/b/kitchen.tw-pddl", Family: "kitchen", Goal: "put two eggs on one open shelf."},
		{ID: "a/lighthouse.tw-pddl", Family: "lighthouse", Goal: "light the lamp."},
		{ID: "attic/game.tw-pddl", Family: "attic", Goal: "find the key and light the basin."},
		{ID: "ferry.tw-pddl", Family: "ferry", Goal: "Red must go right. The boat is at left, cars: blue alone at right, and red alone at left."},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d tasks %+v", len(got), got)
	}
	for i, w := range want {
		w.Split, w.Category = textworld.Split, w.Family
		if got[i] != w {
			t.Errorf("task %d: got %+v, want %+v", i, got[i], w)
		}
	}
	skipped, err := s.Skipped(textworld.Split)
	if err != nil || len(skipped) != 1 || skipped[0].ID != "bad.tw-pddl" || !strings.Contains(skipped[0].Reason, "domain, line 1, column 1") {
		t.Errorf("skipped %+v, %v", skipped, err)
	}
	if _, err := s.Game("bad.tw-pddl"); err == nil {
		t.Error("the bad game opens")
	}
	if _, err := textworld.Open(t.TempDir(), textworld.Options{}); err == nil || !strings.Contains(err.Error(), "*.tw-pddl") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := textworld.Open(filepath.Join(dir, "nowhere"), textworld.Options{}); err == nil {
		t.Error("a folder that is not there opens")
	}
}

func TestRefusedGames(t *testing.T) {
	cases := []struct {
		name   string
		change func(*textworld.File)
		want   string
	}{
		{"grammar", func(f *textworld.File) { f.Grammar += "nonsense" }, "line "},
		{"action missing", func(f *textworld.File) { f.Grammar = strings.Replace(f.Grammar, "action board", "action embark", 1) }, "action board of the domain is not in the grammar"},
		{"no intro", func(f *textworld.File) { f.Grammar = strings.Replace(f.Grammar, `"intro"`, `"outro"`, 1) }, `rule "intro"`},
		{"type", func(f *textworld.File) {
			f.Grammar = strings.Replace(f.Grammar, "boat_at(b:object)", "boat_at(b:shore)", 1)
		}, "there is no type shore"},
		{"no type", func(f *textworld.File) { f.Grammar = strings.Replace(f.Grammar, "boat_at(b:object)", "boat_at(b)", 1) }, "there is no type b"},
		{"nameless", func(f *textworld.File) {
			f.Problem = strings.ReplaceAll(strings.Replace(f.Problem, "island", "island isle", 1), "(bank island)", "(bank island) (bank reef)")
		}, "there is no object reef"},
		{"unheard of", func(f *textworld.File) {
			f.Domain = strings.Replace(f.Domain, "(:predicates", "(:constants buoy) (:predicates", 1)
			f.Domain = strings.Replace(f.Domain, "(boat_at ?to)", "(boat_at ?to) (boat_at buoy)", 2)
		}, "entity buoy has no name"},
		{"no problem", func(f *textworld.File) { f.Problem = "" }, "no pddl_problem"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := foreignFile(t, "ferry")
			before := f
			if c.change(&f); f.Domain == before.Domain && f.Grammar == before.Grammar && f.Problem == before.Problem {
				t.Fatal("the case changes nothing")
			}
			path := filepath.Join(t.TempDir(), "x.tw-pddl")
			writeFile(t, path, encode(t, f))
			_, err := textworld.LoadFile("x", path, textworld.ByID)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestAlfworldNames checks what ALFWorld cannot name.
func TestAlfworldNames(t *testing.T) {
	f := foreignFile(t, "attic")
	f.Problem = strings.ReplaceAll(f.Problem, "box_bar_b", "big_minus_box_bar_b")
	if _, err := textworld.NewGame("x", f, textworld.ByAlfworld); err == nil || !strings.Contains(err.Error(), "big_minus_box_bar_b") {
		t.Errorf("error %v, want one that names the entity", err)
	}
	if _, err := textworld.NewGame("x", f, textworld.ByID); err != nil {
		t.Error(err)
	}
}

// FuzzGame plays games of any texts for a few steps.
func FuzzGame(f *testing.F) {
	for _, name := range []string{"attic", "ferry", "kitchen", "lighthouse"} {
		file := foreignFile(f, name)
		f.Add(file.Domain, file.Problem, file.Grammar)
	}
	if _, err := os.Stat(dataFolder()); err == nil {
		r := openReleased(f, "valid_seen")
		file := r.file(f, r.games[0])
		f.Add(file.Domain, file.Problem, file.Grammar)
	}
	f.Fuzz(func(t *testing.T, domain, problem, grammar string) {
		g, err := textworld.NewGame("fuzz", textworld.File{Domain: domain, Problem: problem, Grammar: grammar}, textworld.ByAlfworld)
		if err != nil {
			return
		}
		s, err := g.Start()
		for n := 0; err == nil && n < 5 && len(s.Admissible()) > 0; n++ {
			as := s.Admissible()
			_, _, err = s.Step(string(as[n*7%len(as)]))
			s.Won()
		}
	})
}

// TestCutFiles reads game files that are cut short, and such that are made of parentheses.
func TestCutFiles(t *testing.T) {
	whole := encode(t, foreignFile(t, "ferry"))
	step, megabytes := 1, 15
	if sampled() {
		step, megabytes = 37, 5
	}
	for i := 0; i < len(whole); i += step {
		f, err := textworld.ReadFile(whole[:i])
		if err == nil {
			t.Fatalf("a file cut at byte %d is read: %+v", i, f)
		}
	}
	f := foreignFile(t, "ferry")
	for _, cut := range []struct {
		text *string
		step int
	}{{&f.Domain, 7 * step}, {&f.Problem, 5 * step}, {&f.Grammar, 7 * step}} {
		all := *cut.text
		for i := 0; i < len(all); i += cut.step {
			*cut.text = all[:i]
			if _, err := textworld.NewGame("cut", f, textworld.ByID); err != nil && !strings.HasPrefix(err.Error(), "game cut: ") {
				t.Errorf("error %v does not name the game", err)
			}
		}
		*cut.text = all
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parentheses := bytes.Repeat([]byte("("), megabytes<<20)
	path := filepath.Join(t.TempDir(), "x.tw-pddl")
	writeFile(t, path, slices.Concat([]byte(`{"grammar":"x","pddl_problem":"y","pddl_domain":"`), parentheses, []byte(`"}`)))
	if _, err := textworld.LoadFile("x", path, textworld.ByID); err == nil || !strings.Contains(err.Error(), "nested more than") {
		t.Errorf("%d MB of parentheses: %v", megabytes, err)
	}
	writeFile(t, path, bytes.Repeat([]byte("("), 33<<20))
	if _, err := textworld.LoadFile("x", path, textworld.ByID); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a file of 33 MB: %v", err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc-before.TotalAlloc) >> 20; grown > int64(33+5*megabytes) {
		t.Errorf("%d MB of parentheses took %d MB", megabytes, grown)
	}
}
