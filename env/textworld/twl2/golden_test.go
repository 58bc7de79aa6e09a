package twl2

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// world is a fixed state: a slow double of the facts that a game gives.
type world struct {
	Types    map[string]string `json:"types"`    // parents
	Entities map[string]string `json:"entities"` // types
	Names    map[string]string `json:"names"`
	Facts    []string          `json:"facts"` // predicate and ids
}

func (w *world) Name(id string) string {
	if name, ok := w.Names[id]; ok {
		return name
	}
	return id
}

func (w *world) Type(id string) string { return w.Entities[id] }

// below lists the types under one, sorted.
func (w *world) below(typ string) []string {
	var found []string
	for t := range w.Types {
		for up := t; up != "object"; {
			if up = w.Types[up]; up == typ {
				found = append(found, t)
			}
		}
	}
	slices.Sort(found)
	return found
}

// Matching walks the tuples of types breadth first, as TextWorld does: those one step from the start are not marked as
// seen, and may come again.
func (w *world) Matching(predicate string, types []string) ([][]Arg, error) {
	for _, t := range types {
		if _, ok := w.Types[t]; !ok && t != "object" {
			return nil, fmt.Errorf("no type %q", t)
		}
	}
	var found [][]Arg
	seen := map[string]bool{}
	queue := w.step(types)
	found = append(found, w.exactly(predicate, types)...)
	for len(queue) > 0 {
		found = append(found, w.exactly(predicate, queue[0])...)
		for _, next := range w.step(queue[0]) {
			if key := strings.Join(next, " "); !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
		}
		queue = queue[1:]
	}
	return found, nil
}

func (w *world) step(types []string) (next [][]string) {
	for i := range types {
		for _, t := range w.below(types[i]) {
			tuple := slices.Clone(types)
			tuple[i] = t
			next = append(next, tuple)
		}
	}
	return next
}

func (w *world) exactly(predicate string, types []string) (found [][]Arg) {
	for _, f := range w.Facts {
		words := strings.Fields(f)
		args := make([]Arg, len(words)-1)
		same := words[0] == predicate && len(args) == len(types)
		for i, id := range words[1:] {
			args[i] = Arg{ID: id, Type: w.Entities[id]}
			same = same && args[i].Type == types[i]
		}
		if same {
			found = append(found, args)
		}
	}
	slices.SortFunc(found, func(a, b []Arg) int {
		return slices.CompareFunc(a, b, func(x, y Arg) int { return cmp.Compare(x.ID, y.ID) })
	})
	return found
}

type goldenCase struct {
	World   string         `json:"world"`
	Grammar string         `json:"grammar"`
	Say     string         `json:"say"`
	Bound   map[string]Arg `json:"bound"`
	Want    *string        `json:"want"`
	Error   string         `json:"error"`
	Refused bool           `json:"refused"`
}

func (c goldenCase) run(w *world) (string, error) {
	g, err := Parse(c.Grammar)
	if err != nil {
		return "", err
	}
	kind, name, _ := strings.Cut(c.Say, " ")
	switch kind {
	case "symbol":
		return g.Expand(name, c.Bound, w, w)
	case "command":
		return g.Command(name, c.Bound, w, w)
	case "feedback":
		return g.Feedback(name, c.Bound, w, w)
	default:
		return "", fmt.Errorf("no such case: %q", c.Say)
	}
}

// TestGolden compares with what the real TextWorld said (testdata/golden.py). What it cannot read or use must be an
// error here, at either time.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Worlds map[string]*world `json:"worlds"`
		Cases  []goldenCase      `json:"cases"`
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if n := len(golden.Cases); n < 800 {
		t.Fatalf("%d cases, want all of golden.py", n)
	}
	for i, c := range golden.Cases {
		got, err := c.run(golden.Worlds[c.World])
		switch {
		case c.Refused && err == nil:
			t.Errorf("case %d is not refused: %q\n%s", i, got, c.Grammar)
		case c.Refused:
		case c.Want == nil && err == nil:
			t.Errorf("case %d: got %q, want an error (%s)\n%s%s", i, got, c.Error, c.Say, c.Grammar)
		case c.Want != nil && err != nil:
			t.Errorf("case %d: got error %v, want %q\n%s\n%s", i, err, *c.Want, c.Say, c.Grammar)
		case c.Want != nil && got != *c.Want:
			t.Errorf("case %d: got %q, want %q\n%s\n%s", i, got, *c.Want, c.Say, c.Grammar)
		}
	}
}
