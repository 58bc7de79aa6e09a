package pddl

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// translated is a problem as the original's translator grounds it; testdata/translate.py makes it.
type translated struct {
	Domain, Problem string
	Variables       []string // atoms, in the order of the translator
	Derived         []bool   // of each variable
	Start           []int    // values: 0 true, 1 false
	Operators       []struct {
		Name    string
		Prevail [][2]int
		Effects []struct {
			Variable, Before, After int
			When                    [][2]int
		}
	}
	Walk []struct {
		Possible []string // in the order of the original
		Done     int
		Won      bool
	}
}

func readTranslated(t *testing.T, path string) []translated {
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
	var all []translated
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<26)
	for s.Scan() {
		var one translated
		if err := json.Unmarshal(s.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if len(all) == 0 || s.Err() != nil {
		t.Fatalf("%s: %d problems, %v", path, len(all), s.Err())
	}
	return all
}

// TestTranslator compares grounding with the original's translator: variables in their order, operators in theirs,
// with all that they need and do.
func TestTranslator(t *testing.T) {
	for i, want := range slices.Concat(readTranslated(t, "testdata/translated.jsonl.gz"), readTranslated(t, "testdata/random.jsonl.gz")) {
		t.Run(strconv.Itoa(i), func(t *testing.T) { compareTranslated(t, want) })
	}
}

func compareTranslated(t *testing.T, want translated) {
	t.Helper()
	p, err := Read(want.Domain, want.Problem)
	if err != nil {
		t.Fatal(err)
	}
	ids := p.operatorIDs()
	place := p.variableOrder(ids)
	byPlace := make([]int32, len(p.atoms))
	for a := range byPlace {
		byPlace[a] = int32(a)
	}
	slices.SortFunc(byPlace, func(a, b int32) int { return int(place[a] - place[b]) })
	var names []string
	for _, a := range byPlace {
		names = append(names, p.atomName(a))
	}
	var wanted []string
	derived := map[int]bool{}
	for v, name := range want.Variables {
		if want.Derived[v] || strings.HasPrefix(name, "Atom new-axiom@") { // one that nothing asks for is not marked
			derived[v] = true
			continue
		}
		wanted = append(wanted, name)
	}
	if len(p.universals) > 0 && want.drawn() {
		slices.Sort(names) // see rankOperators
		slices.Sort(wanted)
	}
	compareLists(t, "variables", names, wanted)
	var got, expected []string
	for _, i := range ids {
		got = append(got, p.describe(&p.operators[i], i))
	}
	for _, o := range want.Operators {
		expected = append(expected, want.describe(o.Name, o.Prevail, func(yield func(v, before, after int, when [][2]int)) {
			for _, e := range o.Effects {
				yield(e.Variable, e.Before, e.After, e.When)
			}
		}))
	}
	compareLists(t, "operators", got, expected)
	for v, name := range want.Variables {
		if derived[v] {
			continue
		}
		if i := slices.IndexFunc(byPlace, func(a int32) bool { return p.atomName(a) == name }); i >= 0 && p.first.has(byPlace[i]) != (want.Start[v] == 0) {
			t.Errorf("%s at the start: %v", name, want.Start[v] != 0)
		}
	}
}

// TestWalk replays what the original's library did: what was possible, in its order, and whether the goal held.
func TestWalk(t *testing.T) {
	steps := 0
	for i, want := range slices.Concat(readTranslated(t, "testdata/translated.jsonl.gz"), readTranslated(t, "testdata/random.jsonl.gz")) {
		t.Run(strconv.Itoa(i), func(t *testing.T) { compareWalk(t, want) })
		steps += len(want.Walk)
	}
	if steps < 1000 {
		t.Errorf("the walks have %d steps in all", steps)
	}
}

func compareWalk(t *testing.T, want translated) {
	t.Helper()
	p, err := Read(want.Domain, want.Problem)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Start()
	for n, step := range want.Walk {
		var possible []int
		for rest := s.Possible(nil); len(rest) > 0; {
			first := p.First(rest)
			possible = append(possible, first)
			rest = slices.DeleteFunc(rest, func(o int) bool { return o == first })
		}
		var names []string
		for _, o := range possible {
			names = append(names, strings.Trim(p.operatorName(o), "() "))
		}
		done := step.Possible[step.Done]
		if len(p.universals) > 0 && want.drawn() {
			slices.SortFunc(possible, func(a, b int) int { return strings.Compare(p.operatorName(a), p.operatorName(b)) })
			slices.Sort(names)
			slices.Sort(step.Possible)
		}
		compareLists(t, fmt.Sprintf("step %d: possible", n), names, step.Possible)
		if t.Failed() {
			return
		}
		s = s.Clone()
		if s.Apply(possible[slices.Index(names, done)]); s.Won() != step.Won {
			t.Fatalf("step %d: won %v, want %v", n, s.Won(), step.Won)
		}
	}
}

// drawn says that the problem was drawn at random.
func (w *translated) drawn() bool { return strings.Contains(w.Domain, "(domain drawn)") }

func compareLists(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: %d, want %d", what, len(got), len(want))
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			g, w := "(none)", "(none)"
			if i < len(got) {
				g = got[i]
			}
			if i < len(want) {
				w = want[i]
			}
			t.Errorf("%s: number %d:\ngot  %s\nwant %s", what, i, g, w)
			break
		}
	}
	a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	for _, x := range a {
		if _, found := slices.BinarySearch(b, x); !found {
			t.Errorf("%s: too much: %s", what, x)
			break
		}
	}
	for _, x := range b {
		if _, found := slices.BinarySearch(a, x); !found {
			t.Errorf("%s: missing: %s", what, x)
			break
		}
	}
}

func (p *Problem) atomName(a int32) string {
	var args []string
	if int(a) >= len(p.atoms) {
		return "universal"
	}
	for _, o := range p.atoms[a].args {
		args = append(args, p.l.objects[o].name)
	}
	return fmt.Sprintf("Atom %s(%s)", p.l.predicates[p.atoms[a].predicate].name, strings.Join(args, ", "))
}

func (p *Problem) codeName(c code) string {
	if !p.isAtom(c) {
		return "universal"
	}
	return fmt.Sprintf("%s=%d", p.atomName(c.atom()), c&1)
}

func (p *Problem) describe(o *operator, i int32) string {
	var needs, effects []string
	for _, c := range o.needs {
		needs = append(needs, p.codeName(c))
	}
	for _, c := range o.changes {
		var when []string
		for _, w := range c.when {
			when = append(when, p.codeName(w))
		}
		sort.Strings(when)
		effects = append(effects, fmt.Sprint(p.codeName(c.to), when))
	}
	sort.Strings(needs)
	sort.Strings(effects)
	name := strings.Trim(p.operatorName(int(i)), "() ")
	return fmt.Sprint(name, needs, effects)
}

func (w *translated) describe(name string, prevail [][2]int, each func(func(v, before, after int, when [][2]int))) string {
	value := func(pair [2]int) string {
		if w.Derived[pair[0]] || strings.HasPrefix(w.Variables[pair[0]], "Atom new-axiom@") {
			return "universal"
		}
		return fmt.Sprintf("%s=%d", w.Variables[pair[0]], pair[1])
	}
	needs := map[string]bool{}
	for _, p := range prevail {
		needs[value(p)] = true
	}
	var effects []string
	each(func(v, before, after int, when [][2]int) {
		if before >= 0 {
			needs[value([2]int{v, before})] = true
		}
		var ws []string
		for _, p := range when {
			ws = append(ws, value(p))
		}
		sort.Strings(ws)
		effects = append(effects, fmt.Sprint(value([2]int{v, after}), ws))
	})
	var list []string
	for n := range needs {
		list = append(list, n)
	}
	sort.Strings(list)
	sort.Strings(effects)
	return fmt.Sprint(name, list, effects)
}
