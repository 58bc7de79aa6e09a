package pddl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// code is a ground literal: the number of an atom times two, plus one if it is denied. Numbers past the atoms stand for
// ground universal conditions.
type code int32

func (c code) atom() int32  { return int32(c) >> 1 }
func (c code) denied() bool { return c&1 != 0 }
func (c code) opposite() code {
	return c ^ 1
}

// operator is an action with its arguments, and one way in which it is possible.
type operator struct {
	action  int32
	args    []int32
	needs   []code // ascending
	changes []change
	told    []code // what texts take to be true afterwards
}

// change makes a literal true if its condition held before.
type change struct {
	to   code
	when []code // ascending
}

// condition is a ground formula over codes.
type condition struct {
	is    connective // always, never, literalOf, allOf, anyOf
	parts []condition
	lit   code
}

const mostNodesOfUniversals = 1 << 22

// grounder makes operators of what reach found.
type grounder struct {
	*reach
	p          *Problem
	numbers    [][]int32 // of each predicate's tuples: numbers of atoms
	universals map[string]code
	nodes      int
	rank       []int32 // of objects by name
	effort     int
}

// Read reads a domain and a problem and grounds them. An error is an *Error.
func Read(domain, problem string) (*Problem, error) {
	l, err := parse(domain, problem)
	if err != nil {
		return nil, err
	}
	r, err := newReach(l)
	if err != nil {
		return nil, err
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	g := &grounder{reach: r, p: &Problem{l: l}, universals: map[string]code{}}
	g.rankObjects()
	g.numberAtoms()
	if err := g.operators(); err != nil {
		return nil, err
	}
	if err := g.goal(); err != nil {
		return nil, err
	}
	g.p.indexOperators()
	g.facts()
	return g.p, nil
}

func (g *grounder) tooLarge(what string) error {
	return g.l.problem.errorf(0, "the problem is too large to be played: %s", what)
}

func (g *grounder) rankObjects() {
	order := make([]int32, len(g.l.objects))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(g.l.objects[a].name, g.l.objects[b].name) })
	g.rank = make([]int32, len(order))
	for i, o := range order {
		g.rank[o] = int32(i)
	}
}

// compare orders tuples by the names of their objects.
func (g *grounder) compare(a, b []int32) int {
	return slices.CompareFunc(a, b, func(x, y int32) int { return cmp.Compare(g.rank[x], g.rank[y]) })
}

// atom is a fact that some action changes.
type atom struct {
	predicate int32
	args      []int32
}

// numberAtoms numbers what can be true, by predicate and arguments.
func (g *grounder) numberAtoms() {
	var predicates []int32
	for p := range g.l.predicates {
		if g.l.predicates[p].fluent {
			predicates = append(predicates, int32(p))
		}
	}
	slices.SortFunc(predicates, func(a, b int32) int { return strings.Compare(g.l.predicates[a].name, g.l.predicates[b].name) })
	g.numbers = make([][]int32, len(g.l.predicates))
	for _, p := range predicates {
		t := &g.tables[p]
		order := make([]int32, t.count)
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortFunc(order, func(a, b int32) int { return g.compare(t.tuple(a), t.tuple(b)) })
		g.numbers[p] = make([]int32, t.count)
		for _, i := range order {
			g.numbers[p][i] = int32(len(g.p.atoms))
			g.p.atoms = append(g.p.atoms, atom{p, t.tuple(i)})
		}
	}
	g.p.first = newBits(len(g.p.atoms))
	for _, f := range g.l.init {
		if p, ok := g.l.predicateOf[f.name]; ok && g.l.predicates[p].fluent {
			g.p.first.set(g.numbers[p][g.tables[p].find(f.args)], true)
		}
	}
}

// truth of a literal: fixed, or as an atom is.
func (g *grounder) literal(lit *literal, bound []int32) condition {
	if lit.predicate < 0 {
		return constant(g.l.test(lit, bound))
	}
	var room [8]int32
	i := g.tables[lit.predicate].find(ground(room[:0], lit.args, bound))
	switch {
	case i < 0:
		return constant(lit.negated)
	case !g.l.predicates[lit.predicate].fluent:
		return constant(!lit.negated)
	}
	c := code(g.numbers[lit.predicate][i] << 1)
	if lit.negated {
		c = c.opposite()
	}
	return condition{is: literalOf, lit: c}
}

func constant(holds bool) condition {
	if holds {
		return condition{is: always}
	}
	return condition{is: never}
}

// conjunction grounds a clause whose variables are bound; false if it cannot hold. The result is ascending, without
// repeats.
func (g *grounder) conjunction(c *clause, to []code) ([]code, bool, error) {
	for i := range c.literals {
		switch f := g.literal(&c.literals[i], g.bound); f.is {
		case never:
			return nil, false, nil
		case literalOf:
			to = append(to, f.lit)
		}
	}
	for i := range c.universals {
		u, asks, err := g.universal(&c.universals[i])
		if err != nil {
			return nil, false, err
		}
		if asks {
			to = append(to, u)
		}
	}
	to, ok := tidy(to)
	return to, ok, nil
}

// tidy sorts a conjunction; false if it contradicts itself.
func tidy(cs []code) ([]code, bool) {
	slices.Sort(cs)
	cs = slices.Compact(cs)
	for i := 1; i < len(cs); i++ {
		if cs[i-1].opposite() == cs[i] {
			return nil, false
		}
	}
	return cs, true
}

// universal is a ground universal condition: the instance of a formula for some values of its free variables.
type universal struct {
	condition
	number int
	args   []int32
}

// universal grounds a universal condition, as a literal of its own that nothing looks into, so that an operator which
// needs one that never holds still tells its effects. One that relaxation cannot make fail asks for nothing.
func (g *grounder) universal(f *formula) (c code, asks bool, err error) {
	if fails, err := g.canFail(f); err != nil || !fails {
		return 0, false, err
	}
	args := make([]int32, len(f.free))
	for i, slot := range f.free {
		args[i] = g.bound[slot]
	}
	key := fmt.Sprint(f.number, args)
	c, ok := g.universals[key]
	if !ok {
		holds, err := g.ground(f)
		if err != nil {
			return 0, false, err
		}
		c = code((len(g.p.atoms) + len(g.p.universals)) << 1)
		g.p.universals = append(g.p.universals, universal{holds, f.number, args})
		g.universals[key] = c
	}
	return c, true, nil
}

// canFail says whether a formula whose free variables are bound could fail if nothing ever became false and all that is
// denied held.
func (g *grounder) canFail(f *formula) (bool, error) {
	if g.nodes++; g.nodes > mostNodesOfUniversals {
		return false, g.tooLarge("its universal conditions are about too many objects")
	}
	switch f.is {
	case always, never:
		return f.is == never, nil
	case literalOf:
		if !f.lit.negated {
			return true, nil
		}
		return g.literal(&f.lit, g.bound).is != always, nil
	case exists:
		return true, nil // it fails where something holds of all, and that is denied
	case forall:
		fails := false
		err := g.each(f.vars, func() (err error) {
			if !fails {
				fails, err = g.canFail(&f.parts[0])
			}
			return err
		})
		return fails, err
	default: // allOf, where one part fails; anyOf, where all do
		for i := range f.parts {
			fails, err := g.canFail(&f.parts[i])
			if err != nil || fails == (f.is == allOf) {
				return fails, err
			}
		}
		return f.is == anyOf, nil
	}
}

// ground grounds a formula whose free variables are bound.
func (g *grounder) ground(f *formula) (condition, error) {
	if g.nodes++; g.nodes > mostNodesOfUniversals {
		return condition{}, g.tooLarge("its universal conditions are about too many objects")
	}
	switch f.is {
	case always, never:
		return condition{is: f.is}, nil
	case literalOf:
		return g.literal(&f.lit, g.bound), nil
	case allOf, anyOf:
		n := newJunction(f.is)
		for i := range f.parts {
			part, err := g.ground(&f.parts[i])
			if err != nil {
				return condition{}, err
			}
			if n.add(part) {
				break
			}
		}
		return n.condition(), nil
	case exists, forall:
		n := newJunction(anyOf)
		if f.is == forall {
			n = newJunction(allOf)
		}
		err := g.each(f.vars, func() error {
			part, err := g.ground(&f.parts[0])
			n.add(part)
			return err
		})
		return n.condition(), err
	default:
		panic("pddl: a formula of no kind")
	}
}

// junction is a ground formula of parts in the making.
type junction struct{ made condition }

func newJunction(is connective) *junction { return &junction{condition{is: is}} }

// add adds a part; true if that decides it.
func (j *junction) add(part condition) bool {
	neutral, decisive := always, never
	if j.made.is == anyOf {
		neutral, decisive = never, always
	}
	switch {
	case j.made.is == always || j.made.is == never:
		return true
	case part.is == neutral:
	case part.is == decisive:
		j.made = condition{is: decisive}
		return true
	default:
		j.made.parts = append(j.made.parts, part)
	}
	return false
}

func (j *junction) condition() condition {
	switch {
	case j.made.is == always || j.made.is == never:
		return j.made
	case len(j.made.parts) == 1:
		return j.made.parts[0]
	case len(j.made.parts) == 0:
		return constant(j.made.is == allOf)
	}
	return j.made
}

// each calls do for every way to bind variables.
func (g *grounder) each(vars []variable, do func() error) error {
	if len(vars) == 0 {
		return do()
	}
	slot := vars[0].slot
	for _, o := range g.l.members(vars[0].kind) {
		g.bound[slot] = o
		if err := g.each(vars[1:], do); err != nil {
			return err
		}
	}
	g.bound[slot] = -1
	return nil
}

// operators grounds all instances of actions, in the order of their names and arguments.
func (g *grounder) operators() error {
	type instance struct {
		rule   *rule
		values []int32
	}
	var all []instance
	for _, r := range g.rules {
		if r.action < 0 {
			continue
		}
		for i := range int32(r.found.count) {
			all = append(all, instance{r, r.found.tuple(i)})
		}
	}
	slices.SortStableFunc(all, func(a, b instance) int {
		if c := cmp.Compare(a.rule.action, b.rule.action); c != 0 {
			return c
		}
		return g.compare(a.values, b.values)
	})
	for _, n := range all {
		for i, v := range n.rule.vars {
			g.bound[v.slot] = n.values[i]
		}
		a := &g.l.actions[n.rule.action]
		o := operator{action: int32(n.rule.action), args: n.values[:len(a.params)]}
		needs, ok, err := g.conjunction(n.rule.clause, nil)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		o.needs = needs
		if err := g.changes(a, &o); err != nil {
			return err
		}
		if len(o.changes) > 0 {
			g.p.operators = append(g.p.operators, o)
		}
	}
	for i := range g.bound {
		g.bound[i] = -1
	}
	return nil
}

const mostEffects = 1 << 24

// changes grounds the effects of an action whose parameters are bound.
func (g *grounder) changes(a *action, o *operator) error {
	var adds, deletes []change
	for i := range a.effects {
		e := &a.effects[i]
		for w := range e.ways {
			way := &e.ways[w]
			vars := e.vars
			if len(way.vars) > 0 {
				vars = slices.Concat(e.vars, way.vars)
			}
			err := g.each(vars, func() error {
				if g.effort++; g.effort > mostEffects {
					return g.tooLarge("its effects are about too many objects")
				}
				when, ok, err := g.conjunction(way, nil)
				if err != nil || !ok {
					return err
				}
				lit := e.lit
				lit.negated = false
				to := g.literal(&lit, g.bound)
				if to.is != literalOf {
					return nil // never true: there is nothing to make false
				}
				if e.lit.negated {
					deletes = append(deletes, change{to.lit.opposite(), when})
				} else {
					adds = append(adds, change{to.lit, when})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return g.combine(o, adds, deletes)
}

// combine makes changes of what an operator adds and deletes, as the original's translator does: adding wins over
// deleting, and what the operator's needs rule out or imply is no change.
func (g *grounder) combine(o *operator, adds, deletes []change) error {
	byLiteral := func(a, b change) int { return cmp.Compare(a.to, b.to) }
	slices.SortStableFunc(adds, byLiteral)
	slices.SortStableFunc(deletes, byLiteral)
	var deleted []code // ascending
	for len(deletes) > 0 {
		to := deletes[0].to
		ways, err := g.deletion(conditionsOf(to, deletes), conditionsOf(to.opposite(), adds), to)
		if err != nil {
			return err
		}
		if len(ways) > 0 {
			deleted = append(deleted, to)
			o.record(to, ways)
		}
		deletes = rest(deletes)
	}
	for len(adds) > 0 {
		to := adds[0].to
		ways := conditionsOf(to, adds)
		if _, found := slices.BinarySearch(deleted, to.opposite()); !found {
			ways = without(ways, to.opposite())
		}
		o.record(to, ways)
		adds = rest(adds)
	}
	slices.SortFunc(o.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.to, b.to), slices.Compare(a.when, b.when))
	})
	o.changes = slices.CompactFunc(o.changes, func(a, b change) bool { return a.to == b.to && slices.Equal(a.when, b.when) })
	for _, c := range o.changes {
		if n := len(o.told); n > 0 && o.told[n-1].atom() == c.to.atom() {
			o.told[n-1] = c.to // what is said last, that it became false, counts
			continue
		}
		o.told = append(o.told, c.to)
	}
	return nil
}

// conditionsOf lists under which conditions some changes, ordered by literal, make a literal true.
func conditionsOf(to code, among []change) [][]code {
	var ways [][]code
	i, _ := slices.BinarySearchFunc(among, to, func(c change, to code) int { return cmp.Compare(c.to, to) })
	for ; i < len(among) && among[i].to == to; i++ {
		ways = append(ways, among[i].when)
	}
	return ways
}

// rest leaves out the changes of the first one's literal.
func rest(ordered []change) []change {
	i := 1
	for i < len(ordered) && ordered[i].to == ordered[0].to {
		i++
	}
	return ordered[i:]
}

// deletion lists under which conditions an atom becomes false: where a delete applies, the atom is true and no add
// applies.
func (g *grounder) deletion(deletes, adds [][]code, to code) ([][]code, error) {
	deletes = slices.DeleteFunc(deletes, func(d []code) bool {
		return slices.ContainsFunc(adds, func(a []code) bool { return slices.Equal(a, d) })
	})
	if len(deletes) == 0 {
		return nil, nil
	}
	none := [][]code{nil} // the ways in which no add applies
	for _, add := range adds {
		var more [][]code
		for _, n := range none {
			for _, c := range add {
				if way, ok := tidy(append(slices.Clone(n), c.opposite())); ok {
					more = append(more, way)
				}
			}
		}
		if none = more; len(none) > mostClauses {
			return nil, g.tooLarge("too many conditional effects of one action change the same fact")
		}
	}
	var ways [][]code
	for _, d := range deletes {
		for _, n := range none {
			if way, ok := tidy(slices.Concat(d, n, []code{to.opposite()})); ok {
				ways = append(ways, way)
			}
		}
	}
	if len(adds) == 0 {
		ways = without(ways, to.opposite())
	}
	return ways, nil
}

// without leaves a literal out of conditions; if one then asks for nothing, it is the only one.
func without(ways [][]code, c code) [][]code {
	for i, way := range ways {
		if j, found := slices.BinarySearch(way, c); found {
			ways[i] = slices.Concat(way[:j], way[j+1:])
		}
		if len(ways[i]) == 0 {
			return [][]code{nil}
		}
	}
	return ways
}

// record notes changes, less what the operator's needs imply or rule out.
func (o *operator) record(to code, ways [][]code) {
	if o.need(to) {
		return
	}
	for _, way := range ways {
		var rest []code
		possible := true
		for _, c := range way {
			if o.need(c.opposite()) {
				possible = false
				break
			}
			if !o.need(c) {
				rest = append(rest, c)
			}
		}
		if possible {
			o.changes = append(o.changes, change{to, rest})
		}
	}
}

func (o *operator) need(c code) bool {
	_, found := slices.BinarySearch(o.needs, c)
	return found
}

// goal grounds the goal. The original gives up on one that can never be reached, and on one that holds whatever
// happens; such games are refused.
func (g *grounder) goal() error {
	plain := isPlain(&g.l.goal)
	reached := false
	for _, r := range g.rules {
		if r.action >= 0 || r.derives != nil {
			continue
		}
		for i := range int32(r.found.count) {
			reached = true
			for j, v := range r.vars {
				g.bound[v.slot] = r.found.tuple(i)[j]
			}
			needs, ok, err := g.goalWay(r.clause, plain)
			if err != nil {
				return err
			}
			if ok {
				g.p.goals = append(g.p.goals, needs)
			}
		}
	}
	if !reached || plain && len(g.p.goals) == 0 {
		return g.l.problem.errorf(g.l.goalAt, "the goal can never be reached, whatever is done (the original refuses such a game, too)")
	}
	if plain && len(g.p.goals[0]) == 0 {
		return g.l.problem.errorf(g.l.goalAt, "nothing that is done changes whether the goal holds (the original refuses such a game, too)")
	}
	return nil
}

// goalWay grounds one way to reach the goal. In a plain goal the original passes over the denial of what never changes.
func (g *grounder) goalWay(c *clause, plain bool) ([]code, bool, error) {
	if plain {
		d := *c
		d.literals = slices.DeleteFunc(slices.Clone(c.literals), func(lit literal) bool {
			return lit.negated && g.literal(&lit, g.bound).is != literalOf
		})
		c = &d
	}
	return g.conjunction(c, nil)
}

// isPlain says that a formula is a conjunction of literals, for the original: universal conditions count as such.
func isPlain(f *formula) bool {
	switch f.is {
	case literalOf, forall:
		return true
	case allOf:
		return !slices.ContainsFunc(f.parts, func(p formula) bool { return p.is != literalOf && p.is != forall })
	default:
		return false
	}
}
