package pddl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// texts are the facts as the texts of a game see them. They are what :init says, and what operators that were applied
// say; an operator says all its effects, those too whose condition does not hold. That a fact is false is a fact of its
// own, "not_" and its predicate, once an operator said so. Between them and the atoms of a state there is no other tie.
type texts struct {
	facts  []textFact
	groups map[string][]group // of each predicate
	first  bitset
	of     [][3]int32 // [atom]: the facts that it is true, that it is false, and the one that its truth takes back
	known  []bool     // [object]: some fact of the start is about it
	below  map[string][]string

	visits  sync.Map     // by predicate and types: []group
	visited atomic.Int64 // tuples of types, of all queries together
}

type textFact struct {
	predicate string
	args      []int32
}

// group is a run of facts of one predicate whose arguments have the same types, ascending by the arguments' names.
type group struct {
	types  string // joined by blanks
	lo, hi int32
}

const negation = "not_"

func negate(predicate string) string {
	if p, ok := strings.CutPrefix(predicate, negation); ok {
		return p
	}
	return negation + predicate
}

// facts makes the facts of the texts.
func (g *grounder) facts() {
	t := &g.p.texts
	t.groups = map[string][]group{}
	spoken := g.spoken()
	b := factBook{tables: map[string]*table{}}
	var first [][2]int32 // table, tuple
	for _, f := range g.l.init {
		first = append(first, b.add(f.name, f.args))
	}
	of := make([][3][2]int32, len(g.p.atoms))
	for i, a := range g.p.atoms {
		name := g.l.predicates[a.predicate].name
		args := make([]int32, len(a.args))
		for j, o := range a.args {
			args[j] = spoken[o]
		}
		of[i] = [3][2]int32{b.add(name, args), b.add(negation+name, args), b.add(negate(name), args)}
		if g.p.first.has(int32(i)) && !strings.HasPrefix(name, negation) {
			first = append(first, of[i][0])
		}
	}
	g.rankObjects()
	numbers := g.numberFacts(&b)
	number := func(at [2]int32) int32 { return numbers[at[0]][at[1]] }
	t.first = newBits(len(t.facts))
	t.known = make([]bool, len(g.l.objects))
	for _, at := range first {
		n := number(at)
		t.first.set(n, true)
		for _, o := range t.facts[n].args {
			t.known[o] = true
		}
	}
	t.of = make([][3]int32, len(of))
	for i, at := range of {
		t.of[i] = [3]int32{number(at[0]), number(at[1]), number(at[2])}
	}
	g.typesBelow()
}

// spoken says how objects are called in facts that come from the state: as they are, but i and p in upper case, which
// makes them other objects for the texts.
func (g *grounder) spoken() []int32 {
	spoken := make([]int32, len(g.l.objects))
	for i := range spoken {
		spoken[i] = int32(i)
	}
	for i, o := range g.l.objects[:g.l.strangers] {
		if o.name == "i" || o.name == "p" {
			spoken[i] = int32(len(g.l.objects))
			g.l.objects = append(g.l.objects, object{strings.ToUpper(o.name), o.kind})
		}
	}
	return spoken
}

// factBook numbers facts by predicate and arguments.
type factBook struct {
	tables map[string]*table
	names  []string
	list   []*table
	places map[*table]int32
}

func (b *factBook) add(predicate string, args []int32) [2]int32 {
	key := predicate
	if len(args) != 1 {
		key = fmt.Sprintf("%s %d", predicate, len(args)) // predicates that nobody declared may come with several
	}
	t := b.tables[key]
	if t == nil {
		t = &table{arity: len(args)}
		b.tables[key] = t
		b.list = append(b.list, t)
		b.names = append(b.names, predicate)
		if b.places == nil {
			b.places = map[*table]int32{}
		}
		b.places[t] = int32(len(b.list) - 1)
	}
	i, _ := t.add(args)
	return [2]int32{b.places[t], i}
}

// numberFacts orders facts by predicate, types and arguments, and says which number each got.
func (g *grounder) numberFacts(b *factBook) [][]int32 {
	t := &g.p.texts
	numbers := make([][]int32, len(b.list))
	for i, table := range b.list {
		order := make([]int32, table.count)
		keys := make([]string, table.count)
		for j := range order {
			order[j] = int32(j)
			keys[j] = g.typesOf(table.tuple(int32(j)))
		}
		slices.SortFunc(order, func(x, y int32) int {
			return cmp.Or(strings.Compare(keys[x], keys[y]), g.compare(table.tuple(x), table.tuple(y)))
		})
		numbers[i] = make([]int32, table.count)
		var in []group
		for _, j := range order {
			n := int32(len(t.facts))
			numbers[i][j] = n
			t.facts = append(t.facts, textFact{b.names[i], table.tuple(j)})
			if len(in) == 0 || in[len(in)-1].types != keys[j] {
				in = append(in, group{keys[j], n, n})
			}
			in[len(in)-1].hi = n + 1
		}
		t.groups[b.names[i]] = append(t.groups[b.names[i]], in...)
	}
	return numbers
}

func (g *grounder) typesOf(args []int32) string {
	if len(args) == 1 {
		return g.l.types[g.l.objects[args[0]].kind].name
	}
	var b strings.Builder
	for i, o := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(g.l.types[g.l.objects[o].kind].name)
	}
	return b.String()
}

// typesBelow lists, for each type, all below it, by name.
func (g *grounder) typesBelow() {
	below := map[string][]string{}
	for i := range g.l.types {
		t := &g.l.types[i]
		if !t.declared {
			continue
		}
		if _, ok := below[t.name]; !ok {
			below[t.name] = nil
		}
		if t.twice {
			continue
		}
		for _, s := range t.supers {
			super := g.l.types[s].name
			below[super] = append(below[super], t.name)
		}
	}
	for i := range g.l.types {
		if t := &g.l.types[i]; !t.declared {
			delete(below, t.name)
		}
	}
	for _, names := range below {
		slices.Sort(names)
	}
	g.p.texts.below = below
}

// tell makes the texts take an operator's word.
func (s *State) tell(o *operator) {
	for _, c := range o.told {
		of := &s.p.texts.of[c.atom()]
		if c.denied() {
			s.facts.set(of[0], false)
			s.facts.set(of[1], true)
		} else {
			s.facts.set(of[2], false)
			s.facts.set(of[0], true)
		}
	}
}

// Known lists the objects that facts of the start are about, in the order of their declaration.
func (p *Problem) Known() []string {
	var names []string
	for o, known := range p.texts.known {
		if known {
			names = append(names, p.l.objects[o].name)
		}
	}
	return names
}

// TypeOf is the type of an object, "" if there is no such object.
func (p *Problem) TypeOf(name string) string {
	for _, o := range []string{name, strings.ToLower(name)} {
		if i, ok := p.l.objectOf[o]; ok && int(i) < p.l.strangers {
			return p.l.types[p.l.objects[i].kind].name
		}
	}
	return ""
}

// mostVisits bounds the tuples of types that the queries of a game may go over.
const mostVisits = 1 << 18

// Facts is the number of facts that texts may see.
func (p *Problem) Facts() int { return len(p.texts.facts) }

// Fact is the predicate and the arguments of a fact.
func (p *Problem) Fact(number int) (predicate string, args []string) {
	f := p.texts.facts[number]
	for _, o := range f.args {
		args = append(args, p.l.objects[o].name)
	}
	return f.predicate, args
}

// Told appends the facts of a predicate, as texts see them, whose arguments are of some types or of types below, in the
// order of the original: from the types themselves down, and by the names of the arguments within the same types.
// Types two levels below or more come more than once, as there. A type that the domain does not declare is an error.
func (s *State) Told(predicate string, types []string, to []int) ([]int, error) {
	groups, err := s.p.visits(predicate, types)
	for _, g := range groups {
		s.facts.each(g.lo, g.hi, func(i int32) { to = append(to, int(i)) })
	}
	return to, err
}

// visits lists the groups of facts that a query goes over.
func (p *Problem) visits(predicate string, types []string) ([]group, error) {
	t := &p.texts
	key := predicate + " " + strings.Join(types, " ")
	if found, ok := t.visits.Load(key); ok {
		return found.([]group), nil
	}
	for _, name := range types {
		if _, ok := t.below[name]; !ok {
			return nil, fmt.Errorf("there is no type %s (a variable without a type is of the type of its name)", name)
		}
	}
	var found []group
	err := t.tuples(types, func(joined string) {
		for _, g := range t.groups[predicate] {
			if g.types == joined && len(types) == len(t.facts[g.lo].args) {
				found = append(found, g)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	t.visits.Store(key, found)
	return found, nil
}

// tuples visits a tuple of types and then those below it, breadth first, with the repeats of the original: it takes
// note of tuples only where they are reached from another than the first.
func (t *texts) tuples(types []string, visit func(joined string)) error {
	visit(strings.Join(types, " "))
	seen := map[string]bool{}
	expand := func(of []string, add func(tuple []string)) {
		of = slices.Clone(of)
		for i, name := range of {
			for _, lower := range t.below[name] {
				of[i] = lower
				add(slices.Clone(of))
			}
			of[i] = name
		}
	}
	var queue [][]string
	expand(types, func(tuple []string) { queue = append(queue, tuple) })
	for i := 0; i < len(queue); i++ {
		if t.visited.Add(1) > mostVisits {
			return fmt.Errorf("queries over more than %d combinations of types", mostVisits)
		}
		visit(strings.Join(queue[i], " "))
		expand(queue[i], func(tuple []string) {
			if key := strings.Join(tuple, " "); !seen[key] {
				seen[key] = true
				queue = append(queue, tuple)
			}
		})
	}
	return nil
}

// Varying lists the predicates of facts that operators change, as texts see them; unordered.
func (p *Problem) Varying() []string {
	var names []string
	for _, predicate := range p.l.predicates {
		if predicate.fluent {
			names = append(names, predicate.name, negation+predicate.name, negate(predicate.name))
		}
	}
	return names
}
