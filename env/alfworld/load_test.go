package alfworld

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

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
		got, err := s.Scan(t.Context(), split, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		tasks := got.Tasks
		if len(got.Skipped) > 0 || len(got.Broken) > 0 || got.Annotated != len(tasks) {
			t.Errorf("%s: skipped %v, broken %v, %d with people's sentences", split, got.Skipped, got.Broken, got.Annotated)
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

func inWording(t testing.TB, g *Game, w Wording) *Game {
	t.Helper()
	s := g.Spec()
	s.Wording = w
	return mustGame(t, s)
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
	want[1] = inWording(t, want[1], Put)
	read, err := readPacked(t.Context(), bytes.NewReader(packed(t, want)), nil)
	got := read.games
	if err != nil || len(read.skipped)+len(read.broken) > 0 || len(got) != len(want) {
		t.Fatalf("got %d games, skipped %v, broken %v, %v; want %d games", len(got), read.skipped, read.broken, err, len(want))
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
		"another wording":   {gz(strings.Replace(good, `"task"`, `"wording":"say","task"`, 1)), "no such wording"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readPacked(t.Context(), bytes.NewReader(c.file), nil)
			if err != nil || len(got.broken) == 0 || !strings.Contains(errors.Join(got.broken...).Error(), c.want) {
				t.Errorf("got %d games, broken %v, %v, want one with %q", len(got.games), got.broken, err, c.want)
			}
		})
	}
}

func TestPackedCutOffAnywhere(t *testing.T) {
	whole := packed(t, kitchens(t, "valid_seen/"+kitchenTask+"/trial_1"))
	for i := range whole {
		if got, err := readPacked(t.Context(), bytes.NewReader(whole[:i]), nil); err != nil || len(got.broken) == 0 {
			t.Fatalf("the first %d of %d bytes read as %d games (%v)", i, len(whole), len(got.games), err)
		}
	}
}

// TestPackedGoesOn reads what is whole of a file with damaged lines, and names each of them.
func TestPackedGoesOn(t *testing.T) {
	problem, err := json.Marshal(mustGame(t, kitchen()).Problem())
	if err != nil {
		t.Fatal(err)
	}
	good := func(id string) string {
		return `{"id":"` + id + `","task":"t.","pddl_problem":` + string(problem) + `}`
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "train"+packedSuffix)
	if err := os.WriteFile(path, gz(good("train/a/1"), "hello", good("train/a/2"), "{", good("train/a/2"), good("valid/a/3")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	got, err := s.Scan(t.Context(), "train", func(done, _ int) { read = max(read, done) })
	if err != nil || len(got.Tasks) != 4 || read != 6 {
		t.Errorf("got %d tasks of %d lines, %v", len(got.Tasks), read, err)
	}
	for i, want := range []string{path + ": line 2", path + ": line 4", "train/a/2 is there twice", "valid/a/3 is of another split"} {
		if i >= len(got.Broken) || !strings.Contains(got.Broken[i].Error(), want) {
			t.Errorf("broken: got %v, want number %d to say %q", got.Broken, i, want)
		}
	}
	if _, err := s.Tasks("train"); err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), "3 more") {
		t.Errorf("a split with damaged lines is answered with %v", err)
	}
}

// TestScanStops reads a split again after a scan that was stopped.
func TestScanStops(t *testing.T) {
	dir := t.TempDir()
	if err := WriteOfficial(dir, kitchens(t, "train/"+kitchenTask+"/trial_1")[0], texts(t)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "valid"+packedSuffix), packed(t, kitchens(t, "valid/"+kitchenTask+"/trial_1")), 0o600); err != nil {
		t.Fatal(err)
	}
	official, err := OpenLayers([]Layer{{dir, os.DirFS(dir)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	both, err := Open(dir, Options{}) // sees the packed games alone
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for split, s := range map[string]*Suite{"train": official, "valid": both, "valid and train": both.With(official)} {
		split, _, _ = strings.Cut(split, " ")
		if _, err := s.Scan(stopped, split, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a stopped scan says %v", split, err)
		}
	}
	for split, s := range map[string]*Suite{"train": official, "valid": both} {
		if got, err := s.Scan(t.Context(), split, nil); err != nil || len(got.Tasks) != 1 {
			t.Errorf("%s: got %d tasks, %v", split, len(got.Tasks), err)
		}
	}
}

func TestPackedSkipsUnsupported(t *testing.T) {
	problem, err := json.Marshal(strings.Replace(mustGame(t, kitchen()).Problem(), "(isClean ?o)", "(isSliced ?o)", 1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readPacked(t.Context(), bytes.NewReader(gz(`{"id":"s/a/1","task":"t.","pddl_problem":`+string(problem)+`}`)), nil)
	if skipped := got.skipped; err != nil || len(got.games)+len(got.broken) > 0 || len(skipped) != 1 || skipped[0].ID != "s/a/1" || !strings.Contains(skipped[0].Reason, "unsupported task type") {
		t.Errorf("got %d games, skipped %v, broken %v, %v", len(got.games), skipped, got.broken, err)
	}
}

func FuzzPacked(f *testing.F) {
	f.Add(packed(f, kitchens(f, "valid_seen/"+kitchenTask+"/trial_1")))
	f.Add(gz(`{"id":"s/a/1","task":"t.","pddl_problem":""}`))
	f.Add([]byte{0x1f, 0x8b})
	for _, r := range seedGames(f) {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(gz(string(line)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := readPacked(t.Context(), bytes.NewReader(file), nil)
		if err != nil {
			t.Error(err)
		}
		for _, g := range got.games {
			g.NewState(FromFile).Admissible()
		}
	})
}

// TestOfficialRoundTrip writes folders of the official layout in both wordings, from texts of several ages, reads them
// again and packs them: nothing is lost on the way.
func TestOfficialRoundTrip(t *testing.T) {
	now := texts(t)
	dir := t.TempDir()
	games := kitchens(t, "valid_seen/"+kitchenTask+"/trial_1", "valid_seen/"+kitchenTask+"/trial_2", "train/"+kitchenTask+"/trial_3")
	games[1] = inWording(t, games[1], Put)
	lamp := kitchen()
	lamp.ID, lamp.Task, lamp.Wording = "valid_train/look_at_obj_in_light-Bowl-None-DeskLamp-301/trial_4", "look at bowl under the desklamp.", Put
	lamp.Goal = Goal{Family: LookInLight, Object: "Bowl", Target: "DeskLamp", NearLamp: true}
	lamp.Scene, lamp.Walkthrough = "FloorPlan301", []string{"go to countertop 1", "use desklamp 1", "take bowl 1 from countertop 1"}
	games = append(games, mustGame(t, lamp))
	for i, ts := range []Texts{now, now.old(), now.released(), now.released()} {
		if err := WriteOfficial(dir, games[i], ts); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Splits(), []string{"train", "valid_seen", "valid_train"}; !slices.Equal(got, want) {
		t.Errorf("splits: got %q, want %q", got, want)
	}
	for _, want := range games {
		got, err := s.Game(want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Spec(), want.Spec()) {
			t.Errorf("official: got %+v\nwant %+v", got.Spec(), want.Spec())
		}
		again, err := readPacked(t.Context(), bytes.NewReader(packed(t, []*Game{got})), nil)
		if err != nil || len(again.games) != 1 || !reflect.DeepEqual(again.games[0].Spec(), want.Spec()) {
			t.Errorf("packed: got %+v, %v\nwant %+v", again, err, want.Spec())
		}
	}
	ts, ok := s.Texts()
	if w, err := ts.Wording(); !ok || err != nil || w != Move {
		t.Errorf("texts of the game files: %v, %v, %v", ok, w, err)
	}
}

// TestOfficialOldTexts puts a game of today in the words of before, its walkthrough too.
func TestOfficialOldTexts(t *testing.T) {
	dir := t.TempDir()
	g := kitchens(t, "train/"+kitchenTask+"/trial_1")[0]
	if err := WriteOfficial(dir, g, texts(t).old()); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Game(g.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := g.Spec()
	want.Wording = Put
	want.Walkthrough = []string{
		"go to cabinet 1", "open cabinet 1", "take apple 2 from cabinet 1", "go to sinkbasin 1", "clean apple 2 with sinkbasin 1",
	}
	if !reflect.DeepEqual(got.Spec(), want) {
		t.Errorf("got %+v\nwant %+v", got.Spec(), want)
	}
}

// TestOfficialFolders finds the games from wherever somebody points, and says what it saw if there are none.
func TestOfficialFolders(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "alf")
	g := kitchens(t, "train/"+kitchenTask+"/trial_1")[0]
	if err := WriteOfficial(dir, g, texts(t)); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, officialFolder)
	for _, at := range []string{top, dir, root} {
		s, err := Open(at, Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if tasks, err := s.Tasks("train"); err != nil || len(tasks) != 1 || tasks[0].ID != g.ID {
			t.Errorf("%s: got %v, %v", at, tasks, err)
		}
	}
	if err := os.Rename(root, filepath.Join(dir, "json_2.1.3")); err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(dir, "json_2.1.3")
	if s, err := Open(dir, Options{}); err != nil {
		t.Error(err)
	} else if _, err := s.Game(g.ID); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "code", "train", "testdata"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "x.zip"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "train"), filepath.Join(root, "other")); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		filepath.Join(root, "other"):              "the folder of one split",
		filepath.Join(root, "other", kitchenTask): "there are trial_1/",
		root:                         "there are other/, x.zip (skillmaster data import " + root + "/x.zip",
		filepath.Join(root, "x.zip"): "is a file",
		filepath.Join(top, "code"):   "there are train/ (",
		filepath.Join(root, "none"):  "no such file",
	} {
		if _, err := Open(at, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", at, err, want)
		}
	}
}

// TestOfficialLayers reads the release's two archives over each other, and not what claims to be larger than a game.
func TestOfficialLayers(t *testing.T) {
	dir := t.TempDir()
	g := kitchens(t, "train/"+kitchenTask+"/trial_1")[0]
	if err := WriteOfficial(dir, g, texts(t)); err != nil {
		t.Fatal(err)
	}
	apart := func(names ...string) fstest.MapFS {
		m := fstest.MapFS{"__MACOSX/json_2.1.1/train/x": {}}
		for _, name := range names {
			b, err := os.ReadFile(filepath.Join(dir, officialFolder, g.ID, name))
			if err != nil {
				t.Fatal(err)
			}
			m[officialFolder+"/"+g.ID+"/"+name] = &fstest.MapFile{Data: b}
		}
		return m
	}
	game, data := Layer{"game.zip", apart(gameFileName)}, Layer{"data.zip", apart(trialFileName)}
	for name, c := range map[string]struct {
		trees     []Layer
		annotated int
		wrong     string
	}{
		"both":      {[]Layer{game, data}, 1, ""},
		"turned":    {[]Layer{data, game}, 1, ""},
		"game only": {[]Layer{game}, 0, ""},
		"data only": {[]Layer{data}, 0, "no game.tw-pddl"},
		"bomb": {[]Layer{{"bomb.zip", fstest.MapFS{
			officialFolder + "/" + g.ID + "/" + gameFileName: {Data: make([]byte, largestFile+1)},
		}}, data}, 0, "bomb.zip/json_2.1.1/" + g.ID + "/game.tw-pddl: it has more than 16 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := OpenLayers(c.trees, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Scan(t.Context(), "train", nil)
			if err != nil || got.Annotated != c.annotated {
				t.Errorf("got %+v, %v", got, err)
			}
			_, err = s.Tasks("train")
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got error %v, want %q", err, c.wrong)
			}
		})
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
		g := inWording(t, kitchens(t, "train/"+kitchenTask+"/trial_1")[0], w)
		if err := WriteOfficial(dir, g, ts); err != nil {
			t.Fatal(err)
		}
		again := t.TempDir()
		if err := os.WriteFile(filepath.Join(again, "train"+packedSuffix), packed(t, []*Game{g}), 0o600); err != nil {
			t.Fatal(err)
		}
		for forced, want := range map[Wording]Wording{FromFile: w, Move: Move, Put: Put} {
			for _, dir := range []string{dir, again} {
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
	if err != nil || len(tasks) != 3 || !strings.HasSuffix(tasks[2].ID, "/e") {
		t.Fatalf("got tasks %v, %v; want the one that is whole, and the two of other texts or goals", tasks, err)
	}
	got, err := s.Scan(t.Context(), "train", nil)
	if err != nil {
		t.Fatal(err)
	}
	checkReasons(t, "skipped", got.Skipped, map[string]string{
		"a": "not marked as solvable", "b": "not marked as solvable",
		"f": "unsupported task type", "g": "unsupported task type", "h": "no game.tw-pddl",
	})
	checkReasons(t, "general", got.General, map[string]string{"c": "grammar differs", "d": "unsupported task type"})
}

// checkReasons compares reasons by the last letter of the id.
func checkReasons(t *testing.T, what string, got []Skipped, want map[string]string) {
	t.Helper()
	for _, k := range got {
		name := k.ID[strings.LastIndexByte(k.ID, '/')+1:]
		if want[name] == "" || !strings.Contains(k.Reason, want[name]) {
			t.Errorf("%s: %s for %q, want %q", k.ID, what, k.Reason, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not %s: %v", what, want)
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

// TestOfficialGoesOn reads what is whole beside damaged files, and names each of them.
func TestOfficialGoesOn(t *testing.T) {
	dir := t.TempDir()
	for _, g := range kitchens(t, "train/"+kitchenTask+"/trial_1", "train/"+kitchenTask+"/trial_2", "train/"+kitchenTask+"/trial_3") {
		if err := WriteOfficial(dir, g, texts(t)); err != nil {
			t.Fatal(err)
		}
	}
	trial := func(n int, name string) string {
		return filepath.Join(dir, officialFolder, "train", kitchenTask, "trial_"+strconv.Itoa(n), name)
	}
	rewrite(t, trial(1, gameFileName), func(s string) string { return s[:len(s)/2] })
	rewrite(t, trial(2, trialFileName), func(s string) string { return "{\n\n]" })
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Scan(t.Context(), "train", nil)
	if err != nil || len(got.Tasks) != 1 || len(got.Broken) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i, want := range []string{trial(1, gameFileName), trial(2, trialFileName) + ": line 3"} {
		if !strings.Contains(got.Broken[i].Error(), want) {
			t.Errorf("got error %v, want one that names %s", got.Broken[i], want)
		}
	}
	if _, err := s.Tasks("train"); err == nil || !strings.Contains(err.Error(), trial(1, gameFileName)) || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("got error %v, want one that names %s", err, trial(1, gameFileName))
	}
}

// TestAnnotations reads people's sentences out of whatever is around them, as a decoder of all of it does.
func TestAnnotations(t *testing.T) {
	for text, want := range map[string]string{
		`{"turk_annotations":{"anns":[{"task_desc":"a","votes":[1]},{"task_desc":"b"}]}}`:                   "a b",
		"\n{\"plan\": {}, \"turk_annotations\" : {\"anns\": [{\"task_desc\": \"a\"}]}, \"zoo\": 1}\n":       "a",
		`{"plan":"turk_annotations","turk_annotations":{"anns":[{"task_desc":"a"}]}}`:                       "a",
		`{"plan":"\"turk_annotations\":{","turk_annotations":{"anns":[{"task_desc":"a"}]}}`:                 "a",
		`{"turk_annotations":{"anns":[{"task_desc":"a"}]},"turk_annotations":{"anns":[{"task_desc":"b"}]}}`: "b",
		`{"plan":{}}`: "",
		`{"turk_annotations":{"anns":[{"task_desc":"a"}]}`:  "error",
		`{"turk_annotations":{"anns":[{"task_desc":"a"}]`:   "error",
		`"turk_annotations":{"anns":[{"task_desc":"a"}]}}`:  "error",
		`{"turk_annotations":{"anns":[{"task_desc":1}]}}`:   "error",
		`{"turk_annotations":[{"anns":[{"task_desc":1}]}]}`: "error",
		``: "error",
	} {
		var d turkData
		var got []string
		err := d.decode([]byte(text))
		for _, a := range d.Annotations {
			got = append(got, a.Task)
		}
		if err != nil {
			got = []string{"error"}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %q (%v), want %q", text, got, err, want)
		}
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

// BenchmarkLoadOfficial reads 134 trials of the official layout, each with the 95 kB for the 3-D simulator that released
// trials have.
func BenchmarkLoadOfficial(b *testing.B) {
	dir, suite := b.TempDir(), openData(b, Options{})
	tasks, err := suite.Tasks("valid_unseen")
	if err != nil {
		b.Fatal(err)
	}
	ts := texts(b)
	for _, task := range tasks {
		g, err := suite.Game(task.ID)
		if err != nil {
			b.Fatal(err)
		}
		if err := WriteOfficial(dir, g, ts); err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(dir, officialFolder, g.ID, trialFileName)
		text, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		images := `{"images":[` + strings.Repeat(`{"high_idx":0,"image_name":"000000000.png","low_idx":0},`, 1700) + `{}],`
		if err := os.WriteFile(path, append([]byte(images), text[1:]...), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if c, err := s.Scan(b.Context(), "valid_unseen", nil); err != nil || c.Annotated != len(tasks) {
			b.Fatal(len(c.Broken), err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(len(tasks))*1e6, "µs/game")
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
