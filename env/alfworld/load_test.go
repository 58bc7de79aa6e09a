package alfworld

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"skillmaster/episode"
)

// releasedCounts are the games of each split that were released and are at hand.
var releasedCounts = map[string]int{"train": 3553, "valid_seen": 140, "valid_unseen": 134, "valid_train": 200}

// shared keeps what the tests read of the released games, which takes seconds.
var shared struct {
	once   sync.Once
	source Source
	err    error
}

// openData opens the released games. They are read once for all tests.
func openData(t testing.TB, o Options) *Suite {
	t.Helper()
	dir := dataDir(t)
	shared.once.Do(func() { shared.source, shared.err = openFolder(dir) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return NewSuite(shared.source, o)
}

// splitsAtHand leaves out the train games under the race detector, which takes half a minute to read them.
func splitsAtHand(t *testing.T) []string {
	t.Helper()
	if raceDetector {
		t.Log("NOT TESTED under the race detector: train")
		return []string{"valid_seen", "valid_train", "valid_unseen"}
	}
	return []string{"train", "valid_seen", "valid_train", "valid_unseen"}
}

func TestAllReleasedGamesLoad(t *testing.T) {
	s := openData(t, Options{})
	if got, want := s.Splits(), []string{"train", "valid_seen", "valid_train", "valid_unseen"}; !slices.Equal(got, want) {
		t.Errorf("splits: got %q, want %q", got, want)
	}
	for _, split := range splitsAtHand(t) {
		tasks, err := s.Tasks(split)
		if err != nil {
			t.Error(err)
			continue
		}
		skipped, err := s.Skipped(split)
		if err != nil || len(skipped) > 0 {
			t.Errorf("%s: skipped %v (%v)", split, skipped, err)
		}
		if want := releasedCounts[split]; len(tasks) != want {
			t.Errorf("%s: got %d games, want %d", split, len(tasks), want)
		}
		if !slices.IsSortedFunc(tasks, func(a, b episode.Task) int { return cmp.Compare(a.ID, b.ID) }) {
			t.Errorf("%s: tasks are not sorted by id", split)
		}
	}
}

// kitchens are games of the hand-made kitchen under different ids.
func kitchens(t testing.TB, ids ...string) []*Game {
	t.Helper()
	var games []*Game
	for _, id := range ids {
		s := kitchen()
		s.ID, s.Scene, s.Walkthrough, s.Annotations = id, "FloorPlan7", kitchenWalkthrough, []string{"Wash an apple & chill it."}
		games = append(games, mustGame(t, s))
	}
	return games
}

func packed(t testing.TB, games []*Game) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Pack(&b, games); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const kitchenTask = "pick_clean_then_place_in_recep-Apple-None-Fridge-7"

func TestPackedRoundTrip(t *testing.T) {
	want := kitchens(t, "valid_seen/"+kitchenTask+"/trial_1", "valid_seen/"+kitchenTask+"/trial_2")
	got, skipped, err := readPacked(bytes.NewReader(packed(t, want)))
	if err != nil || len(skipped) > 0 || len(got) != len(want) {
		t.Fatalf("got %d games, skipped %v, %v; want %d games", len(got), skipped, err, len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i].Spec(), want[i].Spec()) {
			t.Errorf("got %+v\nwant %+v", got[i].Spec(), want[i].Spec())
		}
	}
	if !bytes.Equal(packed(t, got), packed(t, want)) {
		t.Error("packed again: other bytes")
	}
}

// gz packs lines.
func gz(lines ...string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, l := range lines {
		z.Write([]byte(l + "\n"))
	}
	z.Close()
	return b.Bytes()
}

func TestPackedRefuses(t *testing.T) {
	problem, err := json.Marshal(mustGame(t, kitchen()).Problem())
	if err != nil {
		t.Fatal(err)
	}
	good := `{"id":"s/a/1","task":"t.","pddl_problem":` + string(problem) + `}`
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"not packed":        {[]byte(good), "unpack"},
		"empty":             {nil, "unpack"},
		"no JSON":           {gz(good, "hello"), "line 2"},
		"an unknown field":  {gz(strings.Replace(good, `"task"`, `"chore"`, 1)), "chore"},
		"two on a line":     {gz(good + good), "more than one"},
		"no id":             {gz(strings.Replace(good, "s/a/1", "", 1)), "without id"},
		"cut-off problem":   {gz(strings.Replace(good, "(:goal", "", 1)), "line 1: game s/a/1: problem line"},
		"cut off":           {gz(good, good)[:200], "complete"},
		"something between": {gz(good, "", good), "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			games, _, err := readPacked(bytes.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d games and error %v, want one with %q", len(games), err, c.want)
			}
		})
	}
}

func TestPackedCutOffAnywhere(t *testing.T) {
	whole := packed(t, kitchens(t, "valid_seen/"+kitchenTask+"/trial_1"))
	for i := range whole {
		if games, _, err := readPacked(bytes.NewReader(whole[:i])); err == nil {
			t.Fatalf("the first %d of %d bytes read as %d games", i, len(whole), len(games))
		}
	}
}

func TestPackedSkipsUnsupported(t *testing.T) {
	problem, err := json.Marshal(strings.Replace(mustGame(t, kitchen()).Problem(), "(isClean ?o)", "(isSliced ?o)", 1))
	if err != nil {
		t.Fatal(err)
	}
	games, skipped, err := readPacked(bytes.NewReader(gz(`{"id":"s/a/1","task":"t.","pddl_problem":` + string(problem) + `}`)))
	if err != nil || len(games) > 0 || len(skipped) != 1 || skipped[0].ID != "s/a/1" || !strings.Contains(skipped[0].Reason, "unsupported task type") {
		t.Errorf("got %d games, skipped %v, %v", len(games), skipped, err)
	}
}

func FuzzPacked(f *testing.F) {
	f.Add(packed(f, kitchens(f, "valid_seen/"+kitchenTask+"/trial_1")))
	f.Add(gz(`{"id":"s/a/1","task":"t.","pddl_problem":""}`))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, file []byte) {
		games, _, err := readPacked(bytes.NewReader(file))
		if err != nil && games != nil {
			t.Errorf("%d games with error %v", len(games), err)
		}
		for _, g := range games {
			g.NewState(FromFile).Admissible()
		}
	})
}

// TestOfficialRoundTrip writes folders of the official layout in both wordings and reads them again.
func TestOfficialRoundTrip(t *testing.T) {
	now := texts(t)
	dir := t.TempDir()
	games := kitchens(t, "valid_seen/"+kitchenTask+"/trial_1", "valid_seen/"+kitchenTask+"/trial_2", "train/"+kitchenTask+"/trial_3")
	for i, ts := range []Texts{now, now.old(), now.released()} {
		if err := WriteOfficial(dir, games[i], ts); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Splits(), []string{"train", "valid_seen"}; !slices.Equal(got, want) {
		t.Errorf("splits: got %q, want %q", got, want)
	}
	for i, w := range []Wording{Move, Put, Move} {
		got, err := s.Game(games[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		want := games[i].Spec()
		want.Wording, want.Annotations = w, nil // people's sentences are in a file that is not read
		if w == Put {                           // its own speaks as games do today
			want.Walkthrough = []string{
				"go to cabinet 1", "open cabinet 1", "take apple 2 from cabinet 1", "go to sinkbasin 1", "clean apple 2 with sinkbasin 1",
			}
		}
		if !reflect.DeepEqual(got.Spec(), want) {
			t.Errorf("got %+v\nwant %+v", got.Spec(), want)
		}
	}
}

// TestOfficialWalkthroughsWin writes generated games, which have none of their own.
func TestOfficialWalkthroughsWin(t *testing.T) {
	for w, ts := range map[Wording]Texts{Move: texts(t), Put: texts(t).old()} {
		dir := t.TempDir()
		for i, f := range Families() {
			g, err := Generate(f, episode.Seed(i), 0)
			if err != nil {
				t.Fatal(err)
			}
			spec := g.Spec()
			spec.ID = "train/" + f.String() + "/1"
			if err := WriteOfficial(dir, mustGame(t, spec), ts); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Families() {
			g, err := s.Game("train/" + f.String() + "/1")
			if err != nil {
				t.Fatal(err)
			}
			state := g.NewState(FromFile)
			for _, a := range g.Walkthrough {
				if _, admissible := state.Step(a); !admissible {
					t.Errorf("%v, %v: %q is not admissible", w, f, a)
				}
			}
			if !state.Won() {
				t.Errorf("%v, %v: %q does not win", w, f, g.Walkthrough)
			}
		}
	}
}

// TestGuideSpeaksAsTheGamesDo tells an agent how to put things down in the wording of the files.
func TestGuideSpeaksAsTheGamesDo(t *testing.T) {
	for w, ts := range map[Wording]Texts{Move: texts(t), Put: texts(t).old()} {
		dir := t.TempDir()
		if err := WriteOfficial(dir, kitchens(t, "train/"+kitchenTask+"/trial_1")[0], ts); err != nil {
			t.Fatal(err)
		}
		for forced, want := range map[Wording]Wording{FromFile: w, Move: Move, Put: Put} {
			s, err := Open(dir, Options{Wording: forced})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(s.Guide().Rules, "put OBJECT in/on RECEPTACLE"); got != (want == Put) {
				t.Errorf("files say %v, options %v: got rules %q", w, forced, s.Guide().Rules)
			}
		}
	}
}

func TestOfficialSkips(t *testing.T) {
	now := texts(t)
	dir := t.TempDir()
	spoil := map[string]func(string) string{
		"a": func(s string) string { return strings.Replace(s, `"solvable":true`, `"solvable":false`, 1) },
		"b": func(s string) string { return strings.Replace(s, `"solvable":true,`, ``, 1) },
		"c": func(s string) string { return strings.Replace(s, "You open the", "You unlock the", 1) },
		"d": func(s string) string { return strings.Replace(s, "(cleanable ?o) (isClean ?o)", "(isSliced ?o)", 1) },
		"e": func(s string) string { return s },
	}
	ids := []string{"train/x-movable-1/f", "train/x-AppleSliced-1/g"}
	for name := range spoil {
		ids = append(ids, "train/"+kitchenTask+"/"+name)
	}
	slices.Sort(ids)
	for _, g := range kitchens(t, ids...) {
		if err := WriteOfficial(dir, g, now); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, officialFolder, g.ID, gameFileName)
		if f := spoil[g.ID[strings.LastIndexByte(g.ID, '/')+1:]]; f != nil {
			rewrite(t, path, f)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, officialFolder, "train", kitchenTask, "h"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := s.Tasks("train")
	if err != nil || len(tasks) != 1 || !strings.HasSuffix(tasks[0].ID, "/e") {
		t.Fatalf("got tasks %v, %v; want the one that is whole", tasks, err)
	}
	skipped, err := s.Skipped("train")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a": "not marked as solvable", "b": "not marked as solvable", "c": "grammar differs", "d": "unsupported task type",
		"f": "unsupported task type", "g": "unsupported task type", "h": "no game.tw-pddl",
	}
	for _, k := range skipped {
		name := k.ID[strings.LastIndexByte(k.ID, '/')+1:]
		if want[name] == "" || !strings.Contains(k.Reason, want[name]) {
			t.Errorf("%s: skipped for %q, want %q", k.ID, k.Reason, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not skipped: %v", want)
	}
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(b))), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOfficialCutOffFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	g := kitchens(t, "train/"+kitchenTask+"/trial_1")[0]
	if err := WriteOfficial(dir, g, texts(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, officialFolder, g.ID, gameFileName)
	rewrite(t, path, func(s string) string { return s[:len(s)/2] })
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tasks("train"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got error %v, want one that names %s", err, path)
	}
}

func TestPackedIDsMustFit(t *testing.T) {
	for name, ids := range map[string][]string{
		"is there twice":   {"train/" + kitchenTask + "/a", "train/" + kitchenTask + "/a"},
		"of another split": {"valid_seen/" + kitchenTask + "/a"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "train"+packedSuffix), packed(t, kitchens(t, ids...)), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tasks("train"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want one with %q", err, name)
		}
	}
}

func TestOpenNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), officialFolder) {
		t.Errorf("got error %v, want one that names the folder and what belongs in it", err)
	}
}

func TestWriteOfficialRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Spec){
		"an id that leaves the folder": func(s *Spec) { s.ID = "../../x" },
		"an id without a trial":        func(s *Spec) { s.ID = "train/x" },
		"a task that breaks a grammar": func(s *Spec) { s.Task = `put a "clean" apple in fridge.` },
	} {
		t.Run(name, func(t *testing.T) {
			s := kitchen()
			spoil(&s)
			dir := t.TempDir()
			ts := Texts{Grammar: taskRule + `UNKNOWN GOAL."`}
			if err := WriteOfficial(dir, mustGame(t, s), ts); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, split := range []string{"valid_unseen", "train"} {
		b.Run(split, func(b *testing.B) {
			var before, after runtime.MemStats
			var s *Suite
			games := 0
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				s = openAnew(b)
				tasks, err := s.Tasks(split)
				if err != nil {
					b.Fatal(err)
				}
				games = len(tasks)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(games), "B/game")
			b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N)/float64(games)*1e6, "µs/game")
			runtime.KeepAlive(s)
		})
	}
}

// openAnew opens the released games without what was read before.
func openAnew(b *testing.B) *Suite {
	b.Helper()
	s, err := Open(dataDir(b), Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}
