package textworld_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"skillmaster/env/alfworld"
	"skillmaster/env/textworld"
	"skillmaster/episode"
)

func dataFolder() string {
	dir := os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		_, file, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared", "data")
	}
	return filepath.Join(dir, "alfworld")
}

// dataDir is the folder with the released games, packed, and with recordings of the original engine.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := dataFolder()
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the released games are needed in CI: %v (set SKILLMASTER_DATA)", err)
		}
		t.Skipf("SKIPPED, NOT TESTED: no released games: %v (set SKILLMASTER_DATA)", err)
	}
	return dir
}

// lines decodes the lines of a packed file.
func lines[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var one T
		if err := json.Unmarshal(s.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if s.Err() != nil || len(all) == 0 {
		t.Fatalf("%s: %d lines, %v", path, len(all), s.Err())
	}
	return all
}

// packed is a released game.
type packed struct {
	ID, Task    string
	Problem     string `json:"pddl_problem"`
	Walkthrough []string
}

// released makes the game files of a split: their problems with the domain and the grammar that they share.
type released struct {
	domain, grammar string
	games           []packed
}

func openReleased(t testing.TB, splits ...string) released {
	t.Helper()
	dir := dataDir(t)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	r := released{domain: read("alfred.pddl"), grammar: read("alfred.twl2")}
	for _, split := range splits {
		r.games = append(r.games, lines[packed](t, filepath.Join(dir, split+".jsonl.gz"))...)
	}
	return r
}

const unknownGoal = "UNKNOWN GOAL."

func (r *released) file(t testing.TB, g packed) textworld.File {
	t.Helper()
	if !strings.Contains(r.grammar, unknownGoal) {
		t.Fatal("the grammar has no place for the task")
	}
	return textworld.File{
		Domain: r.domain, Grammar: strings.Replace(r.grammar, unknownGoal, g.Task, 1), Problem: g.Problem, Walkthrough: g.Walkthrough,
	}
}

func (r *released) game(t testing.TB, g packed) *textworld.Game {
	t.Helper()
	game, err := textworld.NewGame(g.ID, r.file(t, g), textworld.ByAlfworld)
	if err != nil {
		t.Fatal(err)
	}
	return game
}

// sampled says that tests on released games play some of them only: they are short, or the race detector makes them
// slow.
func sampled() bool { return testing.Short() || raceDetector }

// TestGeneralPlayerEqualsCompiledGames plays released games both ways, with random actions and the walkthrough: every
// answer, every list of possible actions and the verdict are the same. Short, or under the race detector, it plays a
// sample, else all games of the evaluation splits.
func TestGeneralPlayerEqualsCompiledGames(t *testing.T) {
	splits, step := []string{"valid_seen", "valid_unseen"}, 1
	if sampled() {
		splits, step = splits[1:], 29
	}
	r := openReleased(t, splits...)
	suite, err := alfworld.Open(filepath.Dir(dataDir(t)), alfworld.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(r.games); i += step {
		compiled, err := suite.Game(r.games[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		game := r.game(t, r.games[i])
		random := episode.Seed(i).Rand()
		compare(t, game, compiled, 60, func(as []episode.Action) string { return string(as[random.IntN(len(as))]) })
		way := slices.Clone(game.Walkthrough)
		if len(way) == 0 {
			t.Fatalf("%s has no walkthrough", game.ID)
		}
		won := compare(t, game, compiled, len(way), func([]episode.Action) string {
			next := game.Named(way[0])
			way = way[1:]
			return next
		})
		if !won {
			t.Errorf("%s: the walkthrough does not win", game.ID)
		}
		if t.Failed() {
			return
		}
	}
}

func compare(t *testing.T, game *textworld.Game, compiled *alfworld.Game, steps int, choose func([]episode.Action) string) (won bool) {
	t.Helper()
	want := compiled.NewState(alfworld.FromFile)
	got, err := game.Start()
	if err != nil {
		t.Fatal(err)
	}
	if game.Intro() != want.Intro() {
		t.Fatalf("%s: intro:\ngot  %q\nwant %q", game.ID, game.Intro(), want.Intro())
	}
	if game.Task() != compiled.Task {
		t.Errorf("%s: task %q, want %q", game.ID, game.Task(), compiled.Task)
	}
	for n := range steps {
		if !slices.Equal(got.Admissible(), want.Admissible()) {
			t.Fatalf("%s, step %d: admissible:\ngot  %q\nwant %q", game.ID, n, got.Admissible(), want.Admissible())
		}
		if got.Won() != want.Won() {
			t.Fatalf("%s, step %d: won %v, want %v", game.ID, n, got.Won(), want.Won())
		}
		command := choose(want.Admissible())
		before := got
		got = got.Clone()
		answer, admissible, err := got.Step(command)
		if err != nil {
			t.Fatal(err)
		}
		wantAnswer, wantAdmissible := want.Step(command)
		if answer != wantAnswer || admissible != wantAdmissible {
			t.Fatalf("%s, step %d: %q:\ngot  %q, %v\nwant %q, %v", game.ID, n, command, answer, admissible, wantAnswer, wantAdmissible)
		}
		if again, _, _ := before.Step(command); again != answer {
			t.Fatalf("%s, step %d: %q: a clone answers %q, the original state %q", game.ID, n, command, answer, again)
		}
	}
	return got.Won()
}

// recorded is an episode of the original engine.
type recorded struct {
	Game  string
	Reset struct {
		Observation string           `json:"obs"`
		Admissible  []episode.Action `json:"adm"`
	}
	Steps []struct {
		Action      string           `json:"a"`
		Observation string           `json:"obs"`
		Won         bool             `json:"won"`
		Admissible  []episode.Action `json:"adm"`
	}
}

// TestReleasedRecordings replays recordings of the original engine on released games: all of them, or a sample where it
// is short.
func TestReleasedRecordings(t *testing.T) {
	splits, names := []string{"valid_seen", "valid_unseen", "valid_train"}, "*.jsonl.gz"
	if sampled() {
		splits, names = splits[1:2], "unseen*.jsonl.gz"
	}
	r := openReleased(t, splits...)
	byID := map[string]packed{}
	for _, g := range r.games {
		byID[g.ID] = g
	}
	paths, err := filepath.Glob(filepath.Join(dataDir(t), "golden", names))
	if err != nil || len(paths) == 0 {
		t.Fatal("no recordings", err)
	}
	step := 1
	if sampled() {
		step = 29
	}
	episodes := 0
	for _, path := range paths {
		all := lines[recorded](t, path)
		for i := 0; i < len(all); i += step {
			g, ok := byID[strings.TrimSuffix(all[i].Game, "/game.tw-pddl")]
			if !ok {
				t.Fatalf("%s: there is no game %s", path, all[i].Game)
			}
			episodes++
			replay(t, r.game(t, g), all[i])
			if t.Failed() {
				return
			}
		}
	}
	if episodes < 3 {
		t.Errorf("only %d episodes were replayed", episodes)
	}
	t.Logf("%d episodes", episodes)
}

func replay(t *testing.T, g *textworld.Game, want recorded) {
	t.Helper()
	s, err := g.Start()
	if err != nil {
		t.Fatal(err)
	}
	if g.Intro() != want.Reset.Observation {
		t.Errorf("%s: intro:\ngot  %q\nwant %q", g.ID, g.Intro(), want.Reset.Observation)
	}
	if !slices.Equal(s.Admissible(), want.Reset.Admissible) {
		t.Errorf("%s: admissible at the start:\ngot  %q\nwant %q", g.ID, s.Admissible(), want.Reset.Admissible)
	}
	for n, step := range want.Steps {
		answer, _, err := s.Step(step.Action)
		if err != nil {
			t.Fatalf("%s, step %d: %v", g.ID, n, err)
		}
		if answer != step.Observation {
			t.Fatalf("%s, step %d: %q:\ngot  %q\nwant %q", g.ID, n, step.Action, answer, step.Observation)
		}
		if !slices.Equal(s.Admissible(), step.Admissible) {
			t.Fatalf("%s, step %d: %q: admissible:\ngot  %q\nwant %q", g.ID, n, step.Action, s.Admissible(), step.Admissible)
		}
		if s.Won() != step.Won {
			t.Fatalf("%s, step %d: %q: won %v, want %v", g.ID, n, step.Action, s.Won(), step.Won)
		}
		if step.Won {
			return // recordings repeat the last result afterwards
		}
	}
}
