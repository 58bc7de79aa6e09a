package pddl

import (
	"fmt"
	"slices"
)

// Bounds of grounding, far above any game: a released household has some thousand instances.
const (
	mostObjects   = 1 << 14
	mostIndex     = 4 << 20 // places of the index of facts
	mostInstances = 1 << 18 // of actions and goals
	mostFacts     = 1 << 18
	mostJoins     = 1 << 27 // steps of all joins together
)

// rule derives: where the body holds the action can be done, the goal is reached or a fact can be true. What a body
// denies, and what it says of all objects, does not count: this is the relaxation the original makes.
type rule struct {
	action  int // -1 for the goal and for facts
	clause  *clause
	derives *derived // a fact
	as      int32    // table that takes the instances, too; 0 for none
	vars    []variable
	body    []literal
	equal   []literal // equalities and types of the body
	found   table     // instances: the values of vars
}

// anyKind is the type of variables that may be anything.
const anyKind typeID = -1

// reach finds what can be true at some time, if nothing ever became false.
type reach struct {
	l       *lifted
	tables  []table // of each predicate, and others
	grows   []bool  // which of them
	ofType  map[typeID]int32
	equal   int32
	most    int // slots of variables that splitting made
	rules   []*rule
	trigger [][]trigger // of each table
	queue   []int32     // predicates of facts that are not shown yet
	facts   int
	found   int
	steps   int
	bound   []int32 // of each slot, -1 if free
	rest    []int32 // literals of the body, those matched first
	full    string  // what went over a bound
}

// trigger is a literal of a rule that a new fact can match.
type trigger struct {
	rule    *rule
	literal int
}

func newReach(l *lifted) (*reach, error) {
	n := len(l.predicates)
	r := &reach{l: l, tables: make([]table, n), grows: make([]bool, n), trigger: make([][]trigger, n), ofType: map[typeID]int32{}}
	if len(l.objects) > mostObjects {
		return nil, l.problem.errorf(0, "%d objects: at most %d are played", len(l.objects), mostObjects)
	}
	for p := range r.tables {
		r.tables[p].arity, r.grows[p] = l.predicates[p].arity, l.predicates[p].fluent
	}
	if err := r.makeRules(); err != nil {
		return nil, err
	}
	places := 0
	for p := range r.tables {
		if r.tables[p].wanted {
			places += r.tables[p].arity * len(l.objects)
		}
	}
	if places > mostIndex {
		return nil, l.problem.errorf(0, "the problem is too large: %d objects under so many predicates", len(l.objects))
	}
	return r, nil
}

func (r *reach) makeRules() error {
	slots := r.l.goalSlots
	for i := range r.l.actions {
		a := &r.l.actions[i]
		slots = max(slots, a.slots)
		if err := r.actionRules(i, a); err != nil {
			return err
		}
	}
	cs, ok := r.l.goal.clauses()
	if !ok {
		return r.l.problem.errorf(r.l.goalAt, "the goal can hold in more than %d ways", mostClauses)
	}
	for i := range cs {
		r.addRule(&rule{action: -1, clause: &cs[i], vars: cs[i].vars}, cs[i].literals)
	}
	r.bound = make([]int32, max(slots, r.most))
	for i := range r.bound {
		r.bound[i] = -1
	}
	return nil
}

// actionRules makes a rule for each way in which an action can be possible, and for each in which an effect of it can
// come true that asks for more than the action.
func (r *reach) actionRules(i int, a *action) error {
	cs, ok := a.when.clauses()
	if !ok {
		return r.l.domain.errorf(a.at, "action %s can be possible in more than %d ways", a.name, mostClauses)
	}
	for e := range a.effects {
		e := &a.effects[e]
		if e.ways, ok = e.when.clauses(); !ok {
			return r.l.domain.errorf(a.at, "an effect of action %s can come about in more than %d ways", a.name, mostClauses)
		}
		e.plain = slices.ContainsFunc(e.ways, func(w clause) bool { return plain(e, &w) })
	}
	for c := range cs {
		n := &rule{action: i, clause: &cs[c], vars: slices.Concat(a.params, cs[c].vars)}
		r.addRule(n, cs[c].literals)
		for e := range a.effects {
			e := &a.effects[e]
			if e.lit.negated || e.plain {
				continue
			}
			if n.as == 0 {
				n.as = r.newTable(len(n.vars), true)
			}
			done := part{derived{table: n.as}, "<Action"}
			for _, v := range n.vars {
				done.args = append(done.args, ^term(v.slot))
			}
			for w := range e.ways {
				r.splitEffect(done, e, &e.ways[w], a.slots)
			}
		}
	}
	return nil
}

// plain says that an effect comes true wherever its action is done, as far as relaxation goes.
func plain(e *effect, way *clause) bool {
	return len(e.vars)+len(way.vars) == 0 && !slices.ContainsFunc(way.literals, func(l literal) bool { return !l.negated })
}

func (r *reach) addRule(n *rule, body []literal) {
	for _, lit := range body {
		switch {
		case lit.negated:
		case lit.predicate < 0:
			n.equal = append(n.equal, lit)
		default:
			r.tables[lit.predicate].wanted = true
			n.body = append(n.body, withoutRepeats(lit))
		}
	}
	n.found.arity = len(n.vars)
	r.rules = append(r.rules, n)
	for i, lit := range n.body {
		if r.grows[lit.predicate] {
			r.trigger[lit.predicate] = append(r.trigger[lit.predicate], trigger{n, i})
		}
	}
}

// wild is the slot of an argument that may be anything.
const wild = 1 << 30

// withoutRepeats frees a literal of arguments that repeat an earlier variable of it: exploration in the original does not
// see that they are the same.
func withoutRepeats(lit literal) literal {
	args := slices.Clone(lit.args)
	for i, a := range args {
		if _, isVariable := a.variable(); isVariable && slices.Contains(args[:i], a) {
			args[i] = ^term(wild)
		}
	}
	lit.args = args
	return lit
}

// run finds all facts and instances.
func (r *reach) run() error {
	for _, f := range r.l.init {
		p, declared := r.l.predicateOf[f.name]
		if !declared {
			continue // nothing but texts can ask for it
		}
		r.learn(p, f.args)
		if !r.l.predicates[p].fluent {
			for r.tables[p].shown < r.tables[p].count {
				r.tables[p].show(len(r.l.objects))
			}
		}
	}
	for t := len(r.l.predicates); t < len(r.tables); t++ {
		for !r.grows[t] && r.tables[t].shown < r.tables[t].count {
			r.tables[t].show(len(r.l.objects))
		}
	}
	for _, n := range r.rules {
		if !slices.ContainsFunc(n.body, func(l literal) bool { return r.grows[l.predicate] }) {
			r.match(n, -1, nil)
		}
	}
	for i := 0; i < len(r.queue) && r.full == ""; i++ {
		p := r.queue[i]
		t := &r.tables[p]
		fact := int32(t.shown)
		t.show(len(r.l.objects))
		for _, tr := range r.trigger[p] {
			r.match(tr.rule, tr.literal, t.tuple(fact))
		}
	}
	if r.full != "" {
		return r.l.problem.errorf(0, "the problem is too large to be played: %s", r.full)
	}
	return nil
}

// learn takes note that a fact can be true.
func (r *reach) learn(p int32, args []int32) {
	if _, added := r.tables[p].add(args); !added {
		return
	}
	if r.facts++; r.facts > mostFacts {
		r.full = fmt.Sprintf("more than %d facts", mostFacts)
	}
	if r.grows[p] {
		r.queue = append(r.queue, p)
	}
}

// match finds the instances of a rule among the facts shown; where from is a literal of its body, those in which it
// matches the fact.
func (r *reach) match(n *rule, from int, fact []int32) {
	r.rest = r.rest[:0]
	for i := range n.body {
		r.rest = append(r.rest, int32(i))
	}
	if from < 0 {
		r.join(n, 0)
		return
	}
	r.rest[0], r.rest[from] = r.rest[from], r.rest[0]
	r.with(n, &n.body[from], fact, 1)
}

// with matches a literal with a fact and goes on with the literals from rest[k] on.
func (r *reach) with(n *rule, lit *literal, fact []int32, k int) {
	var room [8]int32
	set := room[:0]
	ok := true
	for i, a := range lit.args {
		slot, isVariable := a.variable()
		value := int32(a)
		if slot == wild && isVariable {
			continue
		}
		if isVariable {
			value = r.bound[slot]
		}
		if value < 0 {
			if ok = n.takes(r.l, slot, fact[i]); !ok {
				break
			}
			r.bound[slot] = fact[i]
			set = append(set, int32(slot))
			continue
		}
		if ok = value == fact[i]; !ok {
			break
		}
	}
	if ok {
		r.join(n, k)
	}
	for _, slot := range set {
		r.bound[slot] = -1
	}
}

// takes says whether a variable of the rule can be the object.
func (n *rule) takes(l *lifted, slot int, object int32) bool {
	for _, v := range n.vars {
		if v.slot == slot {
			return v.kind == anyKind || l.isA(object, v.kind)
		}
	}
	return false // not reached: a body has the variables of its rule alone
}

func (l *lifted) isA(object int32, t typeID) bool {
	k := l.objects[object].kind
	return k == t || k >= 0 && slices.Contains(l.types[k].supers, t)
}

// join matches the literals from rest[k] on, the one with the fewest candidates first.
func (r *reach) join(n *rule, k int) {
	if r.steps++; r.steps > mostJoins {
		r.full = "its actions have too many parameters for so many objects"
	}
	if r.full != "" {
		return
	}
	if k == len(r.rest) {
		r.free(n, 0)
		return
	}
	best, fewest := k, []int32(nil)
	for i := k; i < len(r.rest); i++ {
		found, bound := r.candidates(&n.body[r.rest[i]])
		if bound || i == k || len(found) < len(fewest) {
			best, fewest = i, found
		}
		if bound {
			break
		}
	}
	r.rest[k], r.rest[best] = r.rest[best], r.rest[k]
	lit := &n.body[r.rest[k]]
	t := &r.tables[lit.predicate]
	for _, i := range fewest {
		r.with(n, lit, t.tuple(i), k+1)
	}
	r.rest[k], r.rest[best] = r.rest[best], r.rest[k]
}

// candidates lists facts that a literal may match, as one bound argument tells; bound says that all its arguments are,
// so that the list is the match itself, or empty.
func (r *reach) candidates(lit *literal) (found []int32, bound bool) {
	t := &r.tables[lit.predicate]
	if t.index == nil {
		return nil, false
	}
	var room [8]int32
	values := room[:0]
	found, bound = t.all, true
	for p, a := range lit.args {
		value := int32(a)
		if slot, isVariable := a.variable(); isVariable {
			if value = -1; slot != wild {
				value = r.bound[slot]
			}
		}
		if value < 0 {
			bound = false
			continue
		}
		values = append(values, value)
		if here := t.index[p*len(r.l.objects)+int(value)]; len(here) < len(found) {
			found = here
		}
	}
	if bound {
		if i := t.find(values); i >= 0 && int(i) < t.shown {
			return t.all[i : i+1], true
		}
		return nil, true
	}
	return found, false
}

// free gives the variables that no literal binds every object they can be.
func (r *reach) free(n *rule, from int) {
	for i := from; i < len(n.vars); i++ {
		v := n.vars[i]
		if r.bound[v.slot] >= 0 {
			continue
		}
		for _, o := range r.l.members(v.kind) {
			if r.steps++; r.steps > mostJoins {
				r.full = "its actions have too many parameters for so many objects"
			}
			if r.full != "" {
				break
			}
			r.bound[v.slot] = o
			r.free(n, i+1)
		}
		r.bound[v.slot] = -1
		return
	}
	r.emit(n)
}

func (l *lifted) members(t typeID) []int32 {
	if t != anyKind {
		return l.types[t].members
	}
	all := make([]int32, l.strangers)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// emit takes note of an instance whose variables are all bound.
func (r *reach) emit(n *rule) {
	for i := range n.equal {
		if !r.l.test(&n.equal[i], r.bound) {
			return
		}
	}
	var room [16]int32
	if n.derives != nil {
		r.learn(n.derives.table, ground(room[:0], n.derives.args, r.bound))
		return
	}
	values := room[:0]
	for _, v := range n.vars {
		values = append(values, r.bound[v.slot])
	}
	if _, added := n.found.add(values); !added {
		return
	}
	if r.found++; r.found > mostInstances {
		r.full = fmt.Sprintf("more than %d ways to act", mostInstances)
	}
	if n.action < 0 {
		return
	}
	if n.as > 0 {
		r.learn(n.as, values)
	}
	for _, e := range r.l.actions[n.action].effects {
		if e.plain && !e.lit.negated {
			var room [8]int32
			r.learn(e.lit.predicate, ground(room[:0], e.lit.args, r.bound))
		}
	}
}

// ground fills in the arguments of an atom.
func ground(to []int32, args []term, bound []int32) []int32 {
	for _, a := range args {
		if slot, isVariable := a.variable(); isVariable {
			to = append(to, bound[slot])
		} else {
			to = append(to, int32(a))
		}
	}
	return to
}

// test says whether a built-in literal holds.
func (l *lifted) test(lit *literal, bound []int32) bool {
	var room [2]int32
	args := ground(room[:0], lit.args, bound)
	if lit.predicate == equality {
		// An object that nobody declared is not even equal to itself.
		return (args[0] == args[1] && int(args[0]) < l.strangers) != lit.negated
	}
	return l.isA(args[0], lit.kind) != lit.negated
}
