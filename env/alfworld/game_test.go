package alfworld

import (
	"reflect"
	"strings"
	"testing"
)

// kitchen is a small game by hand: a countertop, a fridge at the same place as a cabinet, a sink basin and a
// microwave, and in them what exercises the rules.
func kitchen() Spec {
	return Spec{
		ID:    "valid_seen/pick_clean_then_place_in_recep-Apple-None-Fridge-0/trial_0",
		Task:  "put a clean apple in fridge.",
		Goal:  Goal{Family: CleanAndPlace, Object: "Apple", Target: "Fridge"},
		Start: "loc|0|0|0|0",
		Receptacles: []ReceptacleSpec{
			{ID: "CounterTop|+01.00|+00.90|-01.00", Class: "CounterTop", Location: "loc|1|-1|2|30"},
			{ID: "Fridge|+00.00|+00.00|+02.00", Class: "Fridge", Location: "loc|0|2|0|30", Openable: true},
			{ID: "Cabinet|+00.00|+02.00|+02.00", Class: "Cabinet", Location: "loc|0|2|0|30", Openable: true},
			{ID: "Cabinet|-01.00|+02.00|+02.00", Class: "Cabinet", Location: "loc|-1|2|0|0"},
			{ID: "Sink|+02.00|+00.90|-01.00|SinkBasin", Class: "SinkBasin", Location: "loc|2|-1|2|30"},
			{ID: "Microwave|+03.00|+01.00|-01.00", Class: "Microwave", Location: "loc|3|-1|2|30", Openable: true},
		},
		Objects: []ObjectSpec{
			{
				ID: "Apple|+01.10|+00.95|-01.00", Class: "Apple", Traits: Pickupable | Cleanable | Heatable | Coolable | Sliceable,
				In: []string{"CounterTop|+01.00|+00.90|-01.00"}, At: []string{"loc|1|-1|2|30"},
			},
			{
				ID: "Apple|+00.10|+00.50|+02.00", Class: "Apple", Traits: Pickupable | Cleanable | Heatable | Coolable | Sliceable, Condition: Cool,
				In: []string{"Fridge|+00.00|+00.00|+02.00", "Cabinet|+00.00|+02.00|+02.00"}, At: []string{"loc|0|2|0|30"},
			},
			{
				ID: "Knife|+01.20|+00.95|-01.00", Class: "Knife", Traits: Pickupable | Cleanable,
				In: []string{"CounterTop|+01.00|+00.90|-01.00"}, At: []string{"loc|1|-1|2|30"},
			},
			{
				ID: "Bowl|+01.30|+00.95|-01.00", Class: "Bowl", Traits: Pickupable | Cleanable | Vessel,
				In: []string{"CounterTop|+01.00|+00.90|-01.00"}, At: []string{"loc|1|-1|2|30"}, Inside: []string{"Bowl|+01.30|+00.95|-01.00"},
			},
			{
				ID: "Egg|+01.30|+00.97|-01.00", Class: "Egg", Traits: Pickupable | Cleanable | Heatable | Coolable,
				Inside: []string{"Bowl|+01.30|+00.95|-01.00"}, At: []string{"loc|1|-1|2|30"},
			},
			{
				ID: "DeskLamp|+01.40|+00.95|-01.00", Class: "DeskLamp", Traits: Toggleable,
				In: []string{"CounterTop|+01.00|+00.90|-01.00"}, At: []string{"loc|1|-1|2|30"},
			},
		},
		CanContain: []Pair{
			{"CounterTop", "Apple"},
			{"CounterTop", "Knife"},
			{"CounterTop", "Bowl"},
			{"CounterTop", "Egg"},
			{"Fridge", "Apple"},
			{"Fridge", "Apple"},
			{"Cabinet", "Bowl"},
			{"SinkBasin", "Apple"},
			{"Microwave", "Apple"},
			{"Sofa", "Pillow"},
		},
	}
}

func mustGame(t testing.TB, s Spec) *Game {
	t.Helper()
	g, err := NewGame(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestNumbersFollowIDs(t *testing.T) {
	g := mustGame(t, kitchen())
	names := map[string]string{}
	for _, r := range g.Receptacles {
		names[r.ID] = r.Name
	}
	for _, o := range g.Objects {
		names[o.ID] = o.Name
	}
	for id, want := range map[string]string{
		"Cabinet_bar__minus_01_dot_00_bar__plus_02_dot_00_bar__plus_02_dot_00":            "cabinet 2", // minus before plus
		"Cabinet_bar__plus_00_dot_00_bar__plus_02_dot_00_bar__plus_02_dot_00":             "cabinet 1",
		"Apple_bar__plus_00_dot_10_bar__plus_00_dot_50_bar__plus_02_dot_00":               "apple 2",
		"Apple_bar__plus_01_dot_10_bar__plus_00_dot_95_bar__minus_01_dot_00":              "apple 1",
		"Sink_bar__plus_02_dot_00_bar__plus_00_dot_90_bar__minus_01_dot_00_bar_SinkBasin": "sinkbasin 1",
	} {
		if got := names[id]; got != want {
			t.Errorf("name of %s: got %q, want %q", id, got, want)
		}
	}
}

func TestSpecRoundTrip(t *testing.T) {
	g := mustGame(t, kitchen())
	again := mustGame(t, g.Spec())
	if !reflect.DeepEqual(g.Spec(), again.Spec()) || !reflect.DeepEqual(g.first, again.first) || !reflect.DeepEqual(g.Classes, again.Classes) {
		t.Errorf("got %+v\nwant %+v", again.Spec(), g.Spec())
	}
}

func TestOrderOfFactsDoesNotMatter(t *testing.T) {
	s := kitchen()
	for i, j := 0, len(s.Objects)-1; i < j; i, j = i+1, j-1 {
		s.Objects[i], s.Objects[j] = s.Objects[j], s.Objects[i]
	}
	s.Receptacles = append(s.Receptacles[3:], s.Receptacles[:3]...)
	if got, want := mustGame(t, s).Spec(), mustGame(t, kitchen()).Spec(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestNewGameRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Spec)
		want  string
	}{
		"no family":        {func(s *Spec) { s.Goal.Family = 0 }, "no family"},
		"no start":         {func(s *Spec) { s.Start = "" }, "start"},
		"same id twice":    {func(s *Spec) { s.Objects[1].ID = s.Objects[0].ID }, "given twice"},
		"id in two kinds":  {func(s *Spec) { s.Objects[1].ID = s.Receptacles[0].ID }, "two things"},
		"no such place":    {func(s *Spec) { s.Objects[0].In = []string{"Shelf|1|2|3"} }, "Shelf"},
		"no such vessel":   {func(s *Spec) { s.Objects[0].Inside = []string{"Cup|1|2|3"} }, "Cup"},
		"blank in id":      {func(s *Spec) { s.Objects[0].ID = "Apple 1" }, "cannot stand"},
		"lost walkthrough": {func(s *Spec) { s.Walkthrough = []string{"go to desk_bar_1"} }, "walkthrough"},
	} {
		t.Run(name, func(t *testing.T) {
			s := kitchen()
			c.spoil(&s)
			if _, err := NewGame(s); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one about %q", err, c.want)
			}
		})
	}
}
