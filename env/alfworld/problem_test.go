package alfworld

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"skillmaster/episode"
)

func TestProblemRoundTrip(t *testing.T) {
	for _, goal := range []Goal{
		{Family: PickAndPlace, Object: "Apple", Target: "Fridge"},
		{Family: CleanAndPlace, Object: "Apple", Target: "Fridge"},
		{Family: HeatAndPlace, Object: "Apple", Target: "Cabinet"},
		{Family: CoolAndPlace, Object: "Apple", Target: "Sofa"},
		{Family: PickTwo, Object: "Apple", Target: "Fridge"},
		{Family: LookInLight, Object: "Bowl", Target: "DeskLamp"},
		{Family: LookInLight, Object: "Bowl", Target: "DeskLamp", NearLamp: true},
	} {
		s := kitchen()
		s.Goal = goal
		want := mustGame(t, s)
		read, err := ReadProblem(want.Problem())
		if err != nil {
			t.Fatalf("%v: %v\n%s", goal, err, want.Problem())
		}
		read.ID, read.Task = s.ID, s.Task
		got := mustGame(t, read)
		if !reflect.DeepEqual(got.Spec(), want.Spec()) || got.Problem() != want.Problem() {
			t.Errorf("%v: got %+v\nwant %+v", goal, got.Spec(), want.Spec())
		}
	}
}

func TestReadProblemIgnoresCaseAndComments(t *testing.T) {
	text := mustGame(t, kitchen()).Problem()
	want, err := ReadProblem(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadProblem("; a problem (\n" + strings.ToUpper(strings.ReplaceAll(text, "\n", " ;)\n\t")))
	if err != nil {
		t.Fatal(err)
	}
	a, b := mustGame(t, got), mustGame(t, want)
	if !reflect.DeepEqual(a.Objects[0].Name, b.Objects[0].Name) || !reflect.DeepEqual(a.first, b.first) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReadProblemRefuses(t *testing.T) {
	text := mustGame(t, kitchen()).Problem()
	for name, c := range map[string]struct{ old, new, want string }{
		"another domain":     {"(:domain alfred)", "(:domain blocks)", "line 2"},
		"undeclared id":      {"(openable Fridge", "(openable Freezer", "not declared"},
		"unknown fact":       {"(openable Fridge", "(lockable Fridge", "lockable"},
		"wrong type":         {"(pickupable Apple_bar__plus_01", "(openable Apple_bar__plus_01", "wrong type"},
		"two places":         {"(openable Fridge", "(receptacleAtLocation Fridge_bar__plus_00_dot_00_bar__plus_00_dot_00_bar__plus_02_dot_00 loc_bar_0_bar_0_bar_0_bar_0)\n(openable Fridge", "both"},
		"no agent":           {"(atLocation agent1", "(near agent1", "near"},
		"sliced":             {"(isClean ?o)", "(isSliced ?o)", "unsupported task type"},
		"another goal":       {"(isClean ?o)", "(toggleable ?o)", "unsupported task type"},
		"disjunction":        {"(exists (?o - object) (and", "(exists (?o - object) (or", `"or"`},
		"free variable":      {"(isClean ?o)", "(isClean ?x)", "?x"},
		"two parentheses":    {"(:goal", ")(:goal", "want"},
		"something behind":   {"(define", "(define", ""},
		"a class of nothing": {"AppleType - otype", "Type - otype", "not declared"},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := strings.Replace(text, c.old, c.new, 1)
			if name == "something behind" {
				spoiled, c.want = text+")", "behind"
			}
			s, err := ReadProblem(spoiled)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got error %v, want one with %q", err, c.want)
			}
			if !reflect.DeepEqual(s, Spec{}) {
				t.Errorf("got a spec with the error: %+v", s)
			}
			if got := errors.Is(err, ErrUnsupported); got != strings.Contains(c.want, "unsupported") {
				t.Errorf("unsupported: got %v for %v", got, err)
			}
		})
	}
}

// TestGoalIsReadByMeaning changes names and order in a goal, which means nothing, and bindings, which means much.
func TestGoalIsReadByMeaning(t *testing.T) {
	head, _, _ := strings.Cut(mustGame(t, kitchen()).Problem(), "(:goal")
	two := Goal{Family: PickTwo, Object: "Apple", Target: "Fridge"}
	look := Goal{Family: LookInLight, Object: "Bowl", Target: "DeskLamp"}
	near := Goal{Family: LookInLight, Object: "Bowl", Target: "DeskLamp", NearLamp: true}
	for text, want := range map[string]Goal{
		"(exists (?x - receptacle ?a ?b - object) (and (inReceptacle ?b ?x) (not (= ?b ?a)) (inReceptacle ?a ?x) (objectType ?a AppleType) (objectType ?b AppleType) (receptacleType ?x FridgeType)))":                                                                                                two,
		"(exists (?x ?y - receptacle ?a ?b - object) (and (inReceptacle ?b ?y) (not (= ?b ?a)) (inReceptacle ?a ?x) (objectType ?a AppleType) (objectType ?b AppleType) (receptacleType ?x FridgeType)))":                                                                                             {},
		"(exists (?x - receptacle ?a ?b - object) (and (inReceptacle ?b ?x) (not (= ?b ?a)) (inReceptacle ?a ?x) (objectType ?a AppleType) (objectType ?b BowlType) (receptacleType ?x FridgeType)))":                                                                                                 {},
		"(exists (?x - receptacle ?a ?b - object) (and (inReceptacle ?b ?x) (inReceptacle ?a ?x) (objectType ?a AppleType) (objectType ?b AppleType) (receptacleType ?x FridgeType)))":                                                                                                                {},
		"(and (exists (?o - object ?a - agent) (and (holds ?a ?o) (objectType ?o BowlType))) (exists (?o - object ?r - receptacle ?l - location ?a - agent) (and (inReceptacle ?o ?r) (isToggled ?o) (toggleable ?o) (objectType ?o DeskLampType) (atLocation ?a ?l) (receptacleAtLocation ?r ?l))))": look,
		"(and (exists (?o - object ?a - agent) (and (holds ?a ?o) (objectType ?o BowlType))) (exists (?t - object ?l - location ?a - agent) (and (objectAtLocation ?t ?l) (isToggled ?t) (objectType ?t DeskLampType) (atLocation ?a ?l))))":                                                          near,
		"(and (exists (?o - object ?a - agent) (and (holds ?a ?o) (objectType ?o BowlType))) (exists (?t - object ?l ?k - location ?a - agent) (and (objectAtLocation ?t ?l) (isToggled ?t) (objectType ?t DeskLampType) (atLocation ?a ?k))))":                                                       {},
		"(and)": {},
	} {
		s, err := ReadProblem(head + "(:goal " + text + "))")
		if s.Goal != want || (err == nil) != (want.Family != 0) {
			t.Errorf("%s: got %+v, %v; want %+v", text, s.Goal, err, want)
		}
	}
}

func TestReadProblemCutOffAnywhere(t *testing.T) {
	text := strings.TrimSpace(mustGame(t, kitchen()).Problem())
	step := 1
	if raceDetector {
		step = 7
	}
	for i := 0; i < len(text); i += step {
		if _, err := ReadProblem(text[:i]); err == nil {
			t.Fatalf("the first %d of %d bytes read as a whole problem", i, len(text))
		}
	}
}

func FuzzReadProblem(f *testing.F) {
	g, err := NewGame(kitchen())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(g.Problem())
	f.Add("(define (problem p) (:domain alfred) (:objects a - agent l - location) (:init (atLocation a l)) (:goal (and)))")
	f.Add(strings.Repeat("(", 1000))
	for _, r := range seedGames(f) {
		f.Add(r.Problem)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadProblem(text)
		if err != nil {
			return
		}
		g, err := NewGame(s)
		if err != nil {
			return
		}
		again, err := ReadProblem(g.Problem())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, g.Problem())
		}
		h, err := NewGame(again)
		if err != nil || h.Problem() != g.Problem() {
			t.Fatalf("what was written reads as another game (%v)\n%s\n%s", err, g.Problem(), h.Problem())
		}
		if len(g.Objects) == 0 || len(g.Receptacles) == 0 {
			return
		}
		d := duel{state: g.NewState(Move), ref: newReference(g.Problem(), g.Task, g.Goal, Move), seen: map[string]int{}}
		if err := d.play(episode.Seed(len(text)).Rand(), 5); err != nil {
			t.Fatal(err)
		}
	})
}
