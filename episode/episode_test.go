package episode

import (
	"encoding/json"
	"strings"
	"testing"
)

// Draws are named by label and coordinates: the same name gives the same draw, another name another, and moving a digit
// from one part of the name to the next is another name.
func TestDerive(t *testing.T) {
	s := Seed(7)
	seeds := map[Seed]string{}
	for name, d := range map[string]Seed{
		"root": s, "a": s.Derive("a"), "b": s.Derive("b"), "a 0": s.Derive("a", 0), "a 1": s.Derive("a", 1),
		"a 0 1": s.Derive("a", 0, 1), "a 1 0": s.Derive("a", 1, 0), "a then 1": s.Derive("a").Derive("", 1), "other root": Seed(8).Derive("a"),
	} {
		if twin, taken := seeds[d]; taken {
			t.Errorf("%s and %s have the same seed", name, twin)
		}
		seeds[d] = name
	}
	// What a seed gives is part of what a run's records mean: a change makes every run another.
	if got, want := s.Derive("iteration", 3), Seed(16446840871714694275); got != want {
		t.Errorf("Derive gives %d, want %d", got, want)
	}
	if a, b := s.Rand().Uint64(), s.Rand().Uint64(); a != b {
		t.Error("two generators of one seed differ")
	}
}

func TestStopReasonsByName(t *testing.T) {
	for r := range stopReasons {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back StopReason
		if err := json.Unmarshal(b, &back); err != nil || back != r || strings.Trim(string(b), `"`) != r.String() {
			t.Errorf("%v is written %s and read %v, %v", r, b, back, err)
		}
	}
	if _, err := json.Marshal(stopReasons); err == nil {
		t.Error("a reason that there is not was written")
	}
	var r StopReason
	if err := json.Unmarshal([]byte(`"bored"`), &r); err == nil {
		t.Error("a reason that there is not was read")
	}
}

func TestCounts(t *testing.T) {
	tr := Trajectory{
		Steps: []Step{{Admissible: true}, {}, {Malformed: true}, {Malformed: true, Admissible: true}},
		Turns: []Turn{{Prompt: []int32{1, 2}, Completion: []int32{3}}, {Completion: []int32{4, 5}}},
	}
	if tr.Inadmissible() != 1 || tr.Malformed() != 2 || tr.Tokens() != 5 {
		t.Errorf("%d inadmissible, %d malformed, %d tokens, want 1, 2, 5", tr.Inadmissible(), tr.Malformed(), tr.Tokens())
	}
}

func TestPanels(t *testing.T) {
	p := func(name string, ids ...string) Panel {
		out := Panel{Name: name}
		for _, id := range ids {
			out.Tasks = append(out.Tasks, Task{ID: id})
		}
		return out
	}
	if p("a", "x", "y").Hash() != p("b", "x", "y").Hash() {
		t.Error("the name of a panel is in its hash")
	}
	for _, other := range []Panel{p("a", "y", "x"), p("a", "x"), p("a", "x", "y", "z"), p("a", "xy"), p("a", "x\ny")} {
		if other.Hash() == p("a", "x", "y").Hash() {
			t.Errorf("%v has the hash of another panel", other.Tasks)
		}
	}
	if err := Disjoint(p("a", "x"), p("b", "y"), p("c")); err != nil {
		t.Error(err)
	}
	for _, shared := range [][]Panel{{p("first", "x"), p("second", "y", "x")}, {p("first", "x", "x")}} {
		if err := Disjoint(shared...); err == nil || !strings.Contains(err.Error(), "x") || !strings.Contains(err.Error(), "first") {
			t.Errorf("shared task: %v", err)
		}
	}
}
