package pddl

import (
	"slices"
	"strings"
)

// connective says how a formula is built.
type connective uint8

const (
	always connective = iota
	never
	literalOf
	allOf
	anyOf
	exists
	forall
)

// formula is a condition in negation normal form.
type formula struct {
	is    connective
	parts []formula  // of allOf and anyOf; the one part of exists and forall
	vars  []variable // of exists and forall
	lit   literal

	number int   // of forall, in the order of the texts
	free   []int // slots of its free variables, of forall, in the order of their names
}

// Predicates that are built in.
const (
	equality int32 = -1
	ofType   int32 = -2
)

// literal is an atom or its negation.
type literal struct {
	predicate int32 // equality, ofType or a number
	kind      typeID
	args      []term
	negated   bool
}

// reader reads the conditions and effects of one action or goal.
type reader struct {
	l     *lifted
	s     *source
	scope []named
	slots int
}

// named is a variable in scope.
type named struct {
	name string
	variable
}

// variables reads a parameter list and puts it in scope.
func (r *reader) variables(n node) ([]variable, error) {
	if !n.isList() {
		return nil, r.s.errorf(n.at, "want a list of parameters, found %q", n.word)
	}
	list, err := r.s.typedList(n.list)
	if err != nil {
		return nil, err
	}
	vars := make([]variable, len(list))
	for i, v := range list {
		if !strings.HasPrefix(v.name, "?") {
			return nil, r.s.errorf(v.at, "want a parameter that starts with \"?\", found %q", v.name)
		}
		for j := range i {
			if list[j].name == v.name {
				return nil, r.s.errorf(v.at, "parameter %s is there twice", v.name)
			}
		}
		vars[i] = variable{r.slots, r.l.kindOf(v.kind)}
		r.slots++
		r.scope = append(r.scope, named{v.name, vars[i]})
	}
	return vars, nil
}

// term finds what a word of an atom means.
func (r *reader) term(n node, mayBeStranger bool) (term, error) {
	if n.isList() {
		return 0, r.s.errorf(n.at, "want a variable or an object, found a list (functions in atoms cannot be played)")
	}
	if strings.HasPrefix(n.word, "?") {
		for i := len(r.scope) - 1; i >= 0; i-- {
			if r.scope[i].name == n.word {
				return ^term(r.scope[i].slot), nil
			}
		}
		return 0, r.s.errorf(n.at, "variable %s is not bound here", n.word)
	}
	o, ok := r.l.objectOf[n.word]
	if !ok {
		o = int32(len(r.l.objects))
		r.l.objectOf[n.word] = o
		r.l.objects = append(r.l.objects, object{n.word, -1})
	}
	if int(o) >= r.l.strangers && !mayBeStranger {
		return 0, r.s.errorf(n.at, "there is no object %s", n.word)
	}
	return term(o), nil
}

// condition reads a condition, or the negation of it. An object that nobody declared is like no other: conditions that
// ask for it do not hold.
func (r *reader) condition(n node, negated bool) (formula, error) {
	if !n.isList() {
		return formula{}, r.s.errorf(n.at, "want a condition, found %q", n.word)
	}
	if len(n.list) == 0 {
		return formula{}, r.s.errorf(n.at, "want a condition, found an empty list")
	}
	args := n.list[1:]
	switch h := n.head(); h {
	case "not":
		if len(args) != 1 {
			return formula{}, r.s.errorf(n.at, "want (not CONDITION)")
		}
		return r.condition(args[0], !negated)
	case "and", "or":
		return r.junction(args, negated, (h == "and") != negated)
	case "imply":
		if len(args) != 2 {
			return formula{}, r.s.errorf(n.at, "want (imply CONDITION CONDITION)")
		}
		return r.implication(args, negated)
	case "exists", "forall":
		return r.quantified(n, negated)
	case "":
		return formula{}, r.s.errorf(n.at, "want a condition that starts with a word")
	case ">", "<", ">=", "<=":
		return formula{}, r.s.errorf(n.at, "%q: numbers in conditions cannot be played", h)
	default:
		lit, err := r.literal(n, negated, true)
		return formula{is: literalOf, lit: lit}, err
	}
}

func (r *reader) junction(ns []node, negated, all bool) (formula, error) {
	parts := make([]formula, 0, len(ns))
	for _, n := range ns {
		part, err := r.condition(n, negated)
		if err != nil {
			return formula{}, err
		}
		parts = append(parts, part)
	}
	if all {
		return both(parts), nil
	}
	return either(parts), nil
}

func (r *reader) implication(ns []node, negated bool) (formula, error) {
	from, err := r.condition(ns[0], !negated)
	if err != nil {
		return formula{}, err
	}
	to, err := r.condition(ns[1], negated)
	if err != nil {
		return formula{}, err
	}
	if negated {
		return both([]formula{from, to}), nil
	}
	return either([]formula{from, to}), nil
}

func (r *reader) quantified(n node, negated bool) (formula, error) {
	h := n.head()
	if len(n.list) != 3 {
		return formula{}, r.s.errorf(n.at, "want (%s (?variable - type …) CONDITION)", h)
	}
	outer := len(r.scope)
	vars, err := r.variables(n.list[1])
	if err != nil {
		return formula{}, err
	}
	part, err := r.condition(n.list[2], negated)
	if err != nil {
		return formula{}, err
	}
	r.scope = r.scope[:outer]
	if part.is == always || part.is == never {
		return part, nil // as the original has it, also where there is nothing of the type
	}
	is := exists
	if (h == "forall") != negated {
		is = forall
	}
	f := formula{is: is, vars: vars, parts: []formula{part}}
	if is == forall {
		f.number = r.l.foralls
		r.l.foralls++
		f.free = f.freeSlots(nil, nil)
		slices.SortFunc(f.free, func(a, b int) int { return strings.Compare(r.nameOf(a), r.nameOf(b)) })
		f.free = slices.Compact(f.free)
	}
	return f, nil
}

// nameOf is the name of a variable in scope.
func (r *reader) nameOf(slot int) string {
	for _, v := range r.scope {
		if v.slot == slot {
			return v.name
		}
	}
	return ""
}

// freeSlots appends the slots of a formula's free variables, with repeats.
func (f *formula) freeSlots(bound []variable, to []int) []int {
	for _, a := range f.lit.args {
		slot, isVariable := a.variable()
		if isVariable && !slices.ContainsFunc(bound, func(v variable) bool { return v.slot == slot }) {
			to = append(to, slot)
		}
	}
	if len(f.vars) > 0 {
		bound = slices.Concat(bound, f.vars)
	}
	for i := range f.parts {
		to = f.parts[i].freeSlots(bound, to)
	}
	return to
}

func (r *reader) literal(n node, negated, mayBeStranger bool) (literal, error) {
	l, h := r.l, n.head()
	lit := literal{negated: negated, kind: -1, args: make([]term, 0, len(n.list)-1)}
	arity := 1
	if p, ok := l.predicateOf[h]; ok {
		lit.predicate, arity = p, l.predicates[p].arity
	} else if h == "=" {
		lit.predicate, arity = equality, 2
	} else if t, ok := l.typeOf[h]; ok && l.types[t].declared {
		lit.predicate, lit.kind = ofType, t
	} else {
		return literal{}, r.s.errorf(n.at, "there is no predicate %s", h)
	}
	if len(n.list)-1 != arity {
		return literal{}, r.s.errorf(n.at, "%s has %d arguments: the domain declares %d", h, len(n.list)-1, arity)
	}
	for _, a := range n.list[1:] {
		t, err := r.term(a, mayBeStranger)
		if err != nil {
			return literal{}, err
		}
		lit.args = append(lit.args, t)
	}
	return lit, nil
}

// both is the conjunction, either the disjunction of some formulas, without parts that say nothing.
func both(parts []formula) formula   { return join(parts, allOf, always, never) }
func either(parts []formula) formula { return join(parts, anyOf, never, always) }

func join(parts []formula, is, neutral, decisive connective) formula {
	var kept []formula
	for _, p := range parts {
		switch p.is {
		case decisive:
			return p
		case neutral:
		case is:
			kept = append(kept, p.parts...)
		default:
			kept = append(kept, p)
		}
	}
	switch len(kept) {
	case 0:
		return formula{is: neutral}
	case 1:
		return kept[0]
	}
	return formula{is: is, parts: kept}
}

// clause is a conjunction of literals and of universal conditions, with variables for which some objects must do.
type clause struct {
	vars       []variable
	literals   []literal
	universals []formula // of forall
}

// mostClauses bounds how many ways one condition may have to hold.
const mostClauses = 1 << 12

// clauses lists the ways in which a formula can hold; false if they are too many.
func (f formula) clauses() ([]clause, bool) {
	switch f.is {
	case always:
		return []clause{{}}, true
	case never:
		return nil, true
	case literalOf:
		return []clause{{literals: []literal{f.lit}}}, true
	case forall:
		return []clause{{universals: []formula{f}}}, true
	case exists:
		cs, ok := f.parts[0].clauses()
		for i := range cs {
			cs[i].vars = slices.Concat(f.vars, cs[i].vars)
		}
		return cs, ok
	case anyOf:
		var all []clause
		for _, p := range f.parts {
			cs, ok := p.clauses()
			if !ok || len(all)+len(cs) > mostClauses {
				return nil, false
			}
			all = append(all, cs...)
		}
		return all, true
	case allOf:
		all := []clause{{}}
		for _, p := range f.parts {
			cs, ok := p.clauses()
			if !ok || len(all)*len(cs) > mostClauses {
				return nil, false
			}
			all = product(all, cs)
		}
		return all, true
	default:
		panic("pddl: a formula of no kind")
	}
}

func product(as, bs []clause) []clause {
	all := make([]clause, 0, len(as)*len(bs))
	for _, a := range as {
		for _, b := range bs {
			all = append(all, clause{
				slices.Concat(a.vars, b.vars), slices.Concat(a.literals, b.literals), slices.Concat(a.universals, b.universals),
			})
		}
	}
	return all
}
