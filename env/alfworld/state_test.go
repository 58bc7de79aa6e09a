package alfworld

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"skillmaster/episode"
)

const kitchenIntro = "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see " +
	"a cabinet 2, a cabinet 1, a countertop 1, a fridge 1, a microwave 1, and a sinkbasin 1.\n\nYour task is to: put a clean apple in fridge."

// TestAnswers plays by hand what the original engine does and says in the same place.
func TestAnswers(t *testing.T) {
	const nothing = "Nothing happens."
	for _, c := range []struct {
		name    string
		wording Wording
		spoil   func(*Spec)
		script  [][2]string // action, answer
	}{
		{name: "the usual way", script: [][2]string{
			{"look", "You are in the middle of a room. Looking quickly around you, you see nothing."},
			{"inventory", "You are not carrying anything."},
			{"go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1, a bowl 1, a desklamp 1, and a knife 1."},
			{"take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."},
			{"inventory", "You are carrying: a apple 1."},
			{"take knife 1 from countertop 1", nothing},
			{"go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."},
			{"clean apple 1 with sinkbasin 1", "You clean the apple 1 using the sinkbasin 1."},
			{"examine apple 1", "This is a clean apple 1."},
			{"go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed."},
			{"move apple 1 to fridge 1", nothing},
			{"open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a apple 2."},
			{"move apple 1 to fridge 1", "You move the apple 1 to the fridge 1."},
			{"close fridge 1", "You close the fridge 1."},
			{"examine fridge 1", "The fridge 1 is closed."},
		}},
		{name: "the wording before 0.4", wording: Put, script: [][2]string{
			{"help", nothing},
			{"go to countertop 1", "You arrive at loc 4. On the countertop 1, you see a apple 1, a bowl 1, a desklamp 1, and a knife 1."},
			{"take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."},
			{"move apple 1 to countertop 1", nothing},
			{"put apple 1 in/on countertop 1", "You put the apple 1 in/on the countertop 1."},
		}},
		{name: "receptacles at one place", script: [][2]string{
			{"go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed."},
			{"go to fridge 1", nothing},
			{"go to cabinet 1", nothing},
			{"open cabinet 1", "You open the cabinet 1. The cabinet 1 is open. In it, you see a apple 2."},
			{"look", "You are facing the cabinet 1, and fridge 1. Next to it, you see nothing."},
			{"take apple 2 from cabinet 1", "You pick up the apple 2 from the cabinet 1."},
			{"examine cabinet 1", "The cabinet 1 is open. In it, you see nothing."},
			{"open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a apple 2."}, // still in the other, while held
			{"look", "You are facing the cabinet 1, and fridge 1. Next to it, you see nothing."},
			{"move apple 2 to fridge 1", "You move the apple 2 to the fridge 1."},
			{"look", "You are facing the cabinet 1, and fridge 1. Next to it, you see a apple 2."}, // taken from one, put in another
			{"take apple 2 from fridge 1", "You pick up the apple 2 from the fridge 1."},
			{"move apple 2 to cabinet 1", nothing}, // a cabinet cannot hold apples
		}},
		{name: "not openable", script: [][2]string{
			{"go to cabinet 2", "You arrive at cabinet 2. On the cabinet 2, you see nothing."},
			{"open cabinet 2", nothing},
			{"close cabinet 2", nothing},
		}},
		{name: "hot and cold", script: [][2]string{
			{"go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed."},
			{"open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see a apple 2."},
			{"take apple 2 from fridge 1", "You pick up the apple 2 from the fridge 1."},
			{"examine apple 2", "This is a cold apple 2."},
			{"go to microwave 1", "You arrive at microwave 1. The microwave 1 is closed."},
			{"heat apple 2 with microwave 1", "You heat the apple 2 using the microwave 1."},
			{"examine apple 2", "This is a hot apple 2."},
			{"clean apple 2 with microwave 1", nothing},
			{"go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."},
			{"clean apple 2 with sinkbasin 1", "You clean the apple 2 using the sinkbasin 1."},
			{"examine apple 2", "This is a hot and clean apple 2."},
			{"go to fridge 1", "You arrive at fridge 1. The fridge 1 is open. In it, you see nothing."},
			{"cool apple 2 with fridge 1", "You cool the apple 2 using the fridge 1."},
			{"examine apple 2", "This is a cool and clean apple 2."},
		}},
		{name: "slicing", script: [][2]string{
			{"go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1, a bowl 1, a desklamp 1, and a knife 1."},
			{"slice apple 1 with knife 1", nothing},
			{"take knife 1 from countertop 1", "You pick up the knife 1 from the countertop 1."},
			{"slice apple 1 with knife 1", "You sliced the apple 1 with the knife 1."},
			{"slice bowl 1 with knife 1", nothing},
			{"slice apple 2 with knife 1", nothing},
			{"examine knife 1", "There's nothing special about knife 1."},
			{"examine apple 1", nothing},
			{"move knife 1 to countertop 1", "You move the knife 1 to the countertop 1."},
			{"take apple 1 from countertop 1", "You pick up the apple 1 from the countertop 1."},
			{"examine apple 1", "This is a sliced apple 1."},
			{"go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."},
			{"clean apple 1 with sinkbasin 1", "You clean the apple 1 using the sinkbasin 1."},
			{"examine apple 1", "This is a clean sliced apple 1."},
		}},
		{name: "vessels and lamps", script: [][2]string{
			{"go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a apple 1, a bowl 1, a desklamp 1, and a knife 1."},
			{"use desklamp 1", "You turn on the desklamp 1."},
			{"use desklamp 1", "You turn on the desklamp 1."},
			{"take desklamp 1 from countertop 1", nothing},
			{"take bowl 1 from countertop 1", "You pick up the bowl 1 from the countertop 1."},
			{"examine bowl 1", "This is a normal bowl 1. In it, you see a egg 1."}, // and not the bowl, which lies inside itself
			{"take egg 1 from countertop 1", nothing},
			{"use apple 1", nothing},
		}},
		{name: "white space and case", script: [][2]string{
			{" \tlook\x1d\n", "You are in the middle of a room. Looking quickly around you, you see nothing."},
			{"go to  fridge 1", nothing},
			{"Look", nothing},
			{"go to fridge 01", nothing},
			{"go to fridge 1.", nothing},
			{"go fridge 1", nothing},
			{"go to apple 1", nothing},
			{"take fridge 1 from apple 1", nothing},
			{"", nothing},
			{"help", helpText},
		}},
		{name: "a start where something stands", spoil: func(s *Spec) { s.Start = "loc|0|2|0|30" }, script: [][2]string{
			{"look", "You are facing the cabinet 1, and fridge 1. Next to it, you see nothing."},
			{"go to fridge 1", nothing},
			{"examine fridge 1", "The fridge 1 is closed."},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := kitchen()
			if c.spoil != nil {
				c.spoil(&spec)
			}
			s := mustGame(t, spec).NewState(c.wording)
			for i, line := range c.script {
				listed := slices.Contains(s.Admissible(), episode.Action(strip(line[0])))
				got, ok := s.Step(line[0])
				if got != line[1] {
					t.Fatalf("%d: %q: got %q, want %q", i+1, line[0], got, line[1])
				}
				if ok != (line[1] != nothing) || ok != listed {
					t.Errorf("%d: %q: accepted %v, listed %v", i+1, line[0], ok, listed)
				}
			}
		})
	}
}

func TestIntro(t *testing.T) {
	if got := mustGame(t, kitchen()).NewState(Move).Intro(); got != kitchenIntro {
		t.Errorf("got %q, want %q", got, kitchenIntro)
	}
	s := kitchen()
	s.Start = "loc|0|2|0|30"
	want := "-= Welcome to TextWorld, ALFRED! =-\n\nYou are facing the cabinet 1, and fridge 1. Next to it, you see nothing.\n\nYour task is to: put a clean apple in fridge."
	if got := mustGame(t, s).NewState(Move).Intro(); got != want {
		t.Errorf("start where something stands: got %q, want %q", got, want)
	}
}

func TestAdmissibleByHand(t *testing.T) {
	s := mustGame(t, kitchen()).NewState(Move)
	want := []episode.Action{
		"go to cabinet 1", "go to cabinet 2", "go to countertop 1", "go to fridge 1", "go to microwave 1", "go to sinkbasin 1",
		"help", "inventory", "look",
	}
	if got := s.Admissible(); !slices.Equal(got, want) {
		t.Errorf("at the start: got %q, want %q", got, want)
	}
	s.Step("go to countertop 1")
	s.Step("take knife 1 from countertop 1")
	want = []episode.Action{
		"examine countertop 1", "examine knife 1", "go to cabinet 1", "go to cabinet 2", "go to fridge 1", "go to microwave 1",
		"go to sinkbasin 1", "help", "inventory", "look", "move knife 1 to countertop 1", "slice apple 1 with knife 1", "use desklamp 1",
	}
	if got := s.Admissible(); !slices.Equal(got, want) {
		t.Errorf("with a knife: got %q, want %q", got, want)
	}
}

// everyCommand lists what Can allows, by trying all commands there could be.
func everyCommand(s *State) []episode.Action {
	g := s.game
	var as []episode.Action
	try := func(c Command) {
		if s.Can(c) {
			as = append(as, s.Text(c))
		}
	}
	for v := range verbs {
		switch v {
		case VerbLook, VerbInventory, VerbHelp:
			try(Command{v, -1, -1})
		case VerbGo, VerbOpen, VerbClose:
			for r := range g.Receptacles {
				try(Command{v, -1, r})
			}
		case VerbUse, VerbSlice:
			for o := range g.Objects {
				try(Command{v, o, -1})
			}
		case VerbExamine:
			for r := range g.Receptacles {
				try(Command{v, -1, r})
			}
			for o := range g.Objects {
				try(Command{v, o, -1})
			}
		default:
			for o := range g.Objects {
				for r := range g.Receptacles {
					try(Command{v, o, r})
				}
			}
		}
	}
	slices.Sort(as)
	return slices.Compact(as)
}

// walk takes random admissible actions, looking for open doors and full hands more than for walks.
func walk(s *State, r *rand.Rand, steps int, each func(a episode.Action)) {
	for range steps {
		as := s.Admissible()
		a := as[r.IntN(len(as))]
		for range 2 {
			if strings.HasPrefix(string(a), "go to ") || strings.HasPrefix(string(a), "close ") {
				a = as[r.IntN(len(as))]
			}
		}
		s.Step(string(a))
		each(a)
	}
}

func TestAdmissibleEqualsEveryCommand(t *testing.T) {
	for _, w := range []Wording{Move, Put} {
		s := mustGame(t, kitchen()).NewState(w)
		seen := map[string]bool{}
		walk(s, episode.Seed(3).Rand(), 2000, func(a episode.Action) {
			seen[strings.Fields(string(a))[0]] = true
			if got, want := s.Admissible(), everyCommand(s); !slices.Equal(got, want) {
				t.Fatalf("after %q: got %q, want %q", a, got, want)
			}
			for _, a := range s.Admissible() {
				if c, ok := s.Parse(string(a)); !ok || s.Text(c) != a {
					t.Fatalf("%q parses as %v, %v", a, c, ok)
				}
			}
		})
		for _, verb := range strings.Fields("go open close take clean heat cool use slice examine look inventory") {
			if !seen[verb] {
				t.Errorf("%v: %s was never tried", w, verb)
			}
		}
	}
}

func TestCloneIsIndependent(t *testing.T) {
	s := mustGame(t, kitchen()).NewState(Move)
	s.Step("go to countertop 1")
	c := s.Clone()
	before := fmt.Sprint(s.sets, s.location, s.held, s.Admissible())
	walk(c, episode.Seed(4).Rand(), 200, func(episode.Action) {})
	if after := fmt.Sprint(s.sets, s.location, s.held, s.Admissible()); after != before {
		t.Errorf("playing a clone changed the original: %s, %s", before, after)
	}
}

// TestGoals reaches each goal by hand, and stops one step short of it.
func TestGoals(t *testing.T) {
	withApples := func(s *Spec) { s.Objects[1].In, s.Objects[1].At = s.Objects[0].In, s.Objects[0].At }
	for _, c := range []struct {
		goal   Goal
		spoil  func(*Spec)
		script []string // the last wins
	}{
		{
			Goal{Family: PickAndPlace, Object: "Apple", Target: "SinkBasin"},
			nil,
			[]string{"go to countertop 1", "take apple 1 from countertop 1", "go to sinkbasin 1", "move apple 1 to sinkbasin 1"},
		},
		{
			Goal{Family: CleanAndPlace, Object: "Apple", Target: "CounterTop"},
			nil,
			[]string{"go to countertop 1", "take apple 1 from countertop 1", "go to sinkbasin 1", "clean apple 1 with sinkbasin 1", "go to countertop 1", "move apple 1 to countertop 1"},
		},
		{
			Goal{Family: HeatAndPlace, Object: "Apple", Target: "CounterTop"},
			nil,
			[]string{"go to countertop 1", "take apple 1 from countertop 1", "go to microwave 1", "heat apple 1 with microwave 1", "go to countertop 1", "move apple 1 to countertop 1"},
		},
		{
			Goal{Family: CoolAndPlace, Object: "Apple", Target: "CounterTop"},
			nil,
			[]string{"go to countertop 1", "take apple 1 from countertop 1", "go to fridge 1", "cool apple 1 with fridge 1", "go to countertop 1", "move apple 1 to countertop 1"},
		},
		{
			Goal{Family: PickTwo, Object: "Apple", Target: "SinkBasin"},
			withApples,
			[]string{
				"go to countertop 1", "take apple 1 from countertop 1", "go to sinkbasin 1", "move apple 1 to sinkbasin 1",
				"go to countertop 1", "take apple 2 from countertop 1", "go to sinkbasin 1", "move apple 2 to sinkbasin 1",
			},
		},
		{
			Goal{Family: LookInLight, Object: "Bowl", Target: "DeskLamp"},
			nil,
			[]string{"go to countertop 1", "take bowl 1 from countertop 1", "use desklamp 1"},
		},
		{Goal{Family: LookInLight, Object: "Bowl", Target: "DeskLamp"}, nil, // the lamp first, and back from elsewhere
			[]string{"go to countertop 1", "use desklamp 1", "take bowl 1 from countertop 1"}},
		{
			Goal{Family: LookInLight, Object: "Bowl", Target: "DeskLamp", NearLamp: true},
			nil,
			[]string{"go to countertop 1", "use desklamp 1", "take bowl 1 from countertop 1"},
		},
	} {
		spec := kitchen()
		spec.Goal = c.goal
		if c.spoil != nil {
			c.spoil(&spec)
		}
		s := mustGame(t, spec).NewState(Move)
		for i, a := range c.script {
			if s.Won() {
				t.Errorf("%v: won before step %d", c.goal, i+1)
			}
			if _, ok := s.Step(a); !ok {
				t.Errorf("%v: %q is not admissible", c.goal, a)
			}
		}
		if !s.Won() {
			t.Errorf("%v: %q does not win", c.goal, c.script)
		}
	}
}

// TestHeatAndCoolUndoEachOther sees that a cooled object is hot no more, and the reverse.
func TestHeatAndCoolUndoEachOther(t *testing.T) {
	for _, c := range []struct {
		family Family
		script []string
	}{
		{HeatAndPlace, []string{
			"go to countertop 1", "take apple 1 from countertop 1", "go to microwave 1", "heat apple 1 with microwave 1",
			"go to fridge 1", "cool apple 1 with fridge 1", "go to countertop 1", "move apple 1 to countertop 1",
		}},
		{CoolAndPlace, []string{
			"go to fridge 1", "open fridge 1", "take apple 2 from fridge 1", "go to microwave 1",
			"heat apple 2 with microwave 1", "go to countertop 1", "move apple 2 to countertop 1",
		}},
	} {
		spec := kitchen()
		spec.Goal = Goal{Family: c.family, Object: "Apple", Target: "CounterTop"}
		s := mustGame(t, spec).NewState(Move)
		for _, a := range c.script {
			if _, ok := s.Step(a); !ok {
				t.Fatalf("%q is not admissible", a)
			}
		}
		if s.Won() {
			t.Errorf("%v is won with an object that was treated the other way last", c.family)
		}
	}
}

func FuzzAction(f *testing.F) {
	g, err := NewGame(kitchen())
	if err != nil {
		f.Fatal(err)
	}
	games := []*Game{g}
	for _, a := range []string{"go to fridge 1", "take apple 1 from countertop 1", "move apple 1 to fridge 1", "put x in/on y", "slice a with b", " look ", "examine ", "heat apple 1 with microwave 1\x00"} {
		f.Add(a, uint64(1))
	}
	for i, r := range seedGames(f) {
		g, err := r.game()
		if err != nil {
			f.Fatal(err)
		}
		games = append(games, g)
		for _, a := range g.Walkthrough {
			f.Add(a, uint64(i+1))
		}
	}
	f.Fuzz(func(t *testing.T, action string, seed uint64) {
		for _, w := range []Wording{Move, Put} {
			s := games[seed%uint64(len(games))].NewState(w)
			walk(s, episode.Seed(seed).Rand(), 5, func(episode.Action) {})
			before := fmt.Sprint(s.sets, s.location, s.held)
			listed := slices.Contains(s.Admissible(), episode.Action(strip(action)))
			answer, ok := s.Step(action)
			if ok != listed {
				t.Fatalf("%q: accepted %v, listed %v", action, ok, listed)
			}
			if after := fmt.Sprint(s.sets, s.location, s.held); !ok && (answer != nothingHappens || after != before) {
				t.Fatalf("%q: not admissible, and the answer is %q and the state %s, was %s", action, answer, after, before)
			}
		}
	})
}
