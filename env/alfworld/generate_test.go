package alfworld

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"skillmaster/env/envtest"
	"skillmaster/episode"
)

// generated makes n games of the families in turn.
func generated(t testing.TB, n int, difficulty float64) []*Game {
	t.Helper()
	games := make([]*Game, n)
	for i := range games {
		g, err := Generate(Families()[i%6], episode.Seed(i), difficulty)
		if err != nil {
			t.Fatal(err)
		}
		games[i] = g
	}
	return games
}

func TestGenerateIsDeterministic(t *testing.T) {
	a, b := generated(t, 60, 0.5), generated(t, 60, 0.5)
	for i := range a {
		if !reflect.DeepEqual(a[i].Spec(), b[i].Spec()) {
			t.Fatalf("game %d differs when made again", i)
		}
	}
	if reflect.DeepEqual(a[0].Spec(), a[6].Spec()) {
		t.Error("two seeds gave the same game")
	}
}

// TestGeneratedGamesStay pins what ids of generated games stand for. Another hash means that tasks recorded in old runs
// are other games now: a decision, not a repair.
func TestGeneratedGamesStay(t *testing.T) {
	h := sha256.New()
	for _, difficulty := range []float64{0, 0.5} {
		for i, g := range generated(t, 60, difficulty) {
			v, err := g.Vary("v", episode.Seed(i))
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(h, g.Task+g.Problem()+v.Problem())
		}
	}
	const want = "2f3e8a2bf95aa313"
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != want {
		t.Errorf("hash of generated games %s, want %s", got, want)
	}
}

func TestGenerateRefuses(t *testing.T) {
	for _, c := range []struct {
		f          Family
		difficulty float64
	}{{0, 0}, {families, 0}, {PickAndPlace, -0.1}, {PickAndPlace, 1.1}, {PickAndPlace, math.NaN()}} {
		if _, err := Generate(c.f, 1, c.difficulty); err == nil {
			t.Errorf("Generate(%v, difficulty %v) gave no error", c.f, c.difficulty)
		}
	}
}

// TestGeneratedGamesAreSound checks what every released game has.
func TestGeneratedGamesAreSound(t *testing.T) {
	for _, difficulty := range []float64{0, 1} {
		for i, g := range generated(t, fewer(1500), difficulty) {
			if n := len(g.Receptacles); n < fewest || n > most {
				t.Errorf("game %d has %d receptacles", i, n)
			}
			if n := len(g.Locations[g.Start].Receptacles); n != 0 {
				t.Errorf("game %d starts where %d receptacles stand", i, n)
			}
			if m, ok := parseSentence(g.Task); !ok || m != g.sentence() {
				t.Errorf("game %d: its sentence %q does not say its goal %+v", i, g.Task, g.Goal)
			}
			checkStart(t, i, g)
		}
	}
}

// checkStart checks that the goal does not hold at the start, and that enough objects of the goal are where they may be
// then and nowhere else.
func checkStart(t *testing.T, i int, g *Game) {
	t.Helper()
	if g.NewState(FromFile).Won() {
		t.Errorf("game %d (%s): its goal holds at the start", i, g.Task)
	}
	task := g.sentence()
	found := 0
	for o, object := range g.Objects {
		if object.Class != g.GoalObject() {
			continue
		}
		places := g.Places(o)
		if len(places) > 0 {
			found++
		}
		for _, r := range places {
			if class := g.Classes[g.Receptacles[r].Class]; !task.mayStartIn(class) {
				t.Errorf("game %d (%s): %s starts in a %s", i, g.Task, object.Name, class)
			}
		}
		if need := treatments[g.Goal.Family].trait; object.Traits&need != need {
			t.Errorf("game %d (%s): %s cannot be treated", i, g.Task, object.Name)
		}
	}
	if found == 0 || g.Goal.Family == PickTwo && found < 2 {
		t.Errorf("game %d (%s): %d objects to find", i, g.Task, found)
	}
	if g.Goal.Family != LookInLight && !g.CanContain(g.GoalTarget(), g.GoalObject()) {
		t.Errorf("game %d (%s): its target cannot hold its object", i, g.Task)
	}
}

// TestDifficultySpreadsObjects checks that objects asked for lie in less usual receptacles in harder games.
func TestDifficultySpreadsObjects(t *testing.T) {
	var usual [3]float64
	for i, difficulty := range []float64{0, 0.5, 1} {
		n := 0.0
		for _, g := range generated(t, 300, difficulty) {
			for o, object := range g.Objects {
				if object.Class != g.GoalObject() {
					continue
				}
				for _, r := range g.Places(o) {
					n++
					usual[i] += household().where(g.Goal.Object, g.Classes[g.Receptacles[r].Class]).held
				}
			}
		}
		usual[i] /= n
	}
	if !slices.IsSortedFunc(usual[:], func(a, b float64) int { return cmp.Compare(b, a) }) || usual[2] > 0.7*usual[0] {
		t.Errorf("mean chance of the receptacles that hold the objects, by difficulty 0, 0.5, 1: %.3f", usual)
	}
	t.Logf("mean chance by difficulty 0, 0.5, 1: %.3f", usual)
}

func BenchmarkGenerate(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		if _, err := Generate(Families()[i%6], episode.Seed(i), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// TestGeneratedGamesAreProblems writes games as problem texts, as the original engine reads them, and reads them again.
func TestGeneratedGamesAreProblems(t *testing.T) {
	for i, g := range generated(t, 30, 0) {
		read, err := ReadProblem(g.Problem())
		if err != nil {
			t.Fatalf("game %d: %v", i, err)
		}
		read.ID, read.Task = g.ID, g.Task
		if got := mustGame(t, read); !reflect.DeepEqual(got.Spec(), g.Spec()) {
			t.Errorf("game %d: read as %+v\nwritten %+v", i, got.Spec(), g.Spec())
		}
	}
}

func TestGeneratedSuite(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var panels []episode.Panel
	for _, split := range s.Splits() {
		tasks, err := s.Tasks(split)
		if err != nil {
			t.Fatal(err)
		}
		if want := defaultSplits[split]; len(tasks) != want {
			t.Errorf("split %s has %d tasks, want %d", split, len(tasks), want)
		}
		panels = append(panels, episode.Panel{Name: split, Tasks: tasks})
		for i := 0; i < len(tasks); i += 37 {
			checkTask(t, s, tasks[i], split, i)
		}
	}
	if err := episode.Disjoint(panels...); err != nil {
		t.Error(err)
	}
	alike := 0
	for i, task := range panels[0].Tasks {
		if task.Goal == panels[1].Tasks[i].Goal {
			alike++
		}
	}
	if alike > 40 {
		t.Errorf("%d of 256 tasks of two splits have the same goal as their counterpart", alike)
	}
	if _, err := s.Tasks("test"); err == nil || !strings.Contains(err.Error(), "gate, probe, report, train, valid") {
		t.Errorf("an unknown split gives error %v, want one that names those there are", err)
	}
}

// TestGeneratorKeepsTheLastGames asks for more games than are kept, from two goroutines.
func TestGeneratorKeepsTheLastGames(t *testing.T) {
	n := mostRecent + 20
	s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{"train": n}})
	if err != nil {
		t.Fatal(err)
	}
	tasks := everyTask(t, s, "train", 1)
	games := [2][]*Game{make([]*Game, n), make([]*Game, n)}
	var group sync.WaitGroup
	for k := range games {
		group.Go(func() {
			for i, task := range tasks {
				games[k][i], _ = s.Game(task.ID) // nil is found below
			}
		})
	}
	group.Wait()
	for i, task := range tasks {
		a, b := games[0][i], games[1][i]
		if a == nil || b == nil || a.ID != task.ID || !reflect.DeepEqual(a.Spec(), b.Spec()) {
			t.Fatalf("task %s is two games", task.ID)
		}
		again, err := s.Game(task.ID)
		if err != nil || !reflect.DeepEqual(again.Spec(), a.Spec()) {
			t.Fatalf("task %s, asked for again: another game, %v", task.ID, err)
		}
	}
	last := tasks[n-1].ID
	if a, _ := s.Game(last); a != must(s.Game(last)) {
		t.Error("a game just made is made again")
	}
	if g := s.source.(*generator); len(g.recent) != mostRecent || len(g.oldest) != mostRecent {
		t.Errorf("%d games are kept, %d in order, want %d", len(g.recent), len(g.oldest), mostRecent)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestGeneratedSuiteKeepsTheContract(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{Difficulty: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	envtest.Run(t, s, envtest.Config{Splits: []string{"valid", "report"}, Tasks: 12, Seed: 1})
}

func checkTask(t *testing.T, s *Suite, task episode.Task, split string, i int) {
	t.Helper()
	g, err := s.Game(task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if want := g.task(split); task != want {
		t.Errorf("task %+v opens as %+v", task, want)
	}
	if !strings.HasPrefix(task.ID, "gen/"+split+"/"+task.Family+"-") || task.Family != Families()[i%6].String() {
		t.Errorf("task %s of family %s has number %d", task.ID, task.Family, i)
	}
}

func TestGeneratedSuitesDiffer(t *testing.T) {
	ids := map[string]int{}
	for i, o := range []GeneratedOptions{{}, {Seed: 1}, {Difficulty: 0.5}, {Families: []Family{PickTwo, LookInLight}}} {
		s, err := NewGenerated(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range everyTask(t, s, "valid", 1) {
			if other, ok := ids[task.ID]; ok {
				t.Fatalf("suites %d and %d both have task %s", other, i, task.ID)
			}
			ids[task.ID] = i
			if len(o.Families) > 0 && !slices.ContainsFunc(o.Families, func(f Family) bool { return f.String() == task.Family }) {
				t.Fatalf("task %s is of none of the families %v", task.ID, o.Families)
			}
		}
	}
}

func TestNewGeneratedRefuses(t *testing.T) {
	for _, o := range []GeneratedOptions{
		{Difficulty: 2},
		{Families: []Family{}},
		{Families: []Family{families}},
		{Splits: map[string]int{}},
		{Splits: map[string]int{"train": 0}},
		{Splits: map[string]int{"a/b": 1}},
		{Splits: map[string]int{"a~b": 1}},
		{Splits: map[string]int{"": 1}},
	} {
		if _, err := NewGenerated(o); err == nil {
			t.Errorf("NewGenerated(%+v) gave no error", o)
		}
	}
	s, err := NewGenerated(GeneratedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id := everyTask(t, s, "valid", 256)[0].ID
	for _, bad := range []string{
		"", "gen", id + "0", strings.Replace(id, "/valid/", "/other/", 1), strings.TrimSuffix(id, "0") + "6",
		strings.TrimSuffix(id, "0") + "-1", strings.TrimSuffix(id, "0") + "00", strings.Replace(id, "gen/", "gen-1/", 1),
	} {
		if _, err := s.Game(bad); !errors.Is(err, ErrNoGame) {
			t.Errorf("game %q: %v, want ErrNoGame", bad, err)
		}
	}
}
