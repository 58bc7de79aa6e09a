// Package pddl reads planning problems in PDDL, grounds them and plays them: a state, the operators that are possible in
// it, and whether the goal holds.
//
// It reads typed domains with and, or, not, imply, exists, forall, when, equality, constants and action costs (which it
// ignores), as the translator of Fast Downward understands them, whose choices show in a text game: an operator that
// changes nothing is left out, operators are ordered by their preconditions, and what an operator says of a fact counts
// whether its condition held or not (see State.Holds and State.Told). Derived predicates, either, numbers in
// conditions and everything of later levels of PDDL are refused by name.
package pddl

import (
	"slices"
	"strings"
)

// domainOfAll is the type that all others are kinds of.
const domainOfAll = "object"

// typeID is an index into lifted.types.
type typeID int32

// kind is a type.
type kind struct {
	name     string
	declared bool     // :types names it; one that is only mentioned has no place in the hierarchy
	twice    bool     // declared twice, as object is where :types names it: texts know no types above it
	supers   []typeID // all types above it, not itself unless the domain says so
	members  []int32  // objects, in the order of their declaration
}

// object of a problem; the number of an object is its index.
type object struct {
	name string
	kind typeID // -1: a name that only conditions mention; it is nothing
}

// predicate of a domain; its number is its index.
type predicate struct {
	name   string
	arity  int
	fluent bool // some action changes it
}

// term is an object's number, or ^slot for a variable.
type term int32

func (t term) variable() (slot int, ok bool) { return int(^t), t < 0 }

// variable is a parameter: of an action, of a quantifier.
type variable struct {
	slot int // unique within its action or goal
	kind typeID
}

// action is an action as its domain defines it.
type action struct {
	name    string
	at      int
	params  []variable
	names   []string // of the parameters, without "?"
	slots   int      // variables in all, those of quantifiers too
	when    formula
	effects []effect
}

// fact is a ground atom of :init.
type fact struct {
	name string
	args []int32
}

// lifted is a domain and a problem before grounding.
type lifted struct {
	name            string // of the domain
	domain, problem *source
	types           []kind
	typeOf          map[string]typeID
	objects         []object
	objectOf        map[string]int32
	strangers       int // objects from this number on are names that only conditions mention
	predicates      []predicate
	predicateOf     map[string]int32
	actions         []action
	init            []fact
	goal            formula
	goalSlots       int
	goalAt          int
	foralls         int // in all conditions
}

// parse reads both texts.
func parse(domain, problem string) (*lifted, error) {
	l := &lifted{typeOf: map[string]typeID{}, objectOf: map[string]int32{}, predicateOf: map[string]int32{}}
	var err error
	if l.domain, err = newSource("domain", domain); err != nil {
		return nil, err
	}
	if l.problem, err = newSource("problem", problem); err != nil {
		return nil, err
	}
	d, err := l.domain.read()
	if err != nil {
		return nil, err
	}
	p, err := l.problem.read()
	if err != nil {
		return nil, err
	}
	sections, name, err := l.domain.sections(d, "domain")
	l.name = name
	if err != nil {
		return nil, err
	}
	if err := l.declarations(sections); err != nil {
		return nil, err
	}
	rest, of, err := l.problemHead(p)
	if err != nil {
		return nil, err
	}
	if of != name {
		return nil, l.problem.errorf(p.at, "the problem is of domain %q, the domain is called %q", of, name)
	}
	if err := l.actionsOf(sections); err != nil {
		return nil, err
	}
	if err := l.problemBody(rest); err != nil {
		return nil, err
	}
	return l, nil
}

// sections checks "(define (domain NAME) …" and returns what follows.
func (s *source) sections(n node, what string) (rest []node, name string, err error) {
	if n.head() != "define" {
		return nil, "", s.errorf(n.at, "want (define (%s NAME) …)", what)
	}
	if len(n.list) < 2 || n.list[1].head() != what || len(n.list[1].list) != 2 || n.list[1].list[1].isList() {
		return nil, "", s.errorf(n.at, "want (%s NAME) after \"define\"", what)
	}
	for _, section := range n.list[2:] {
		if !strings.HasPrefix(section.head(), ":") {
			return nil, "", s.errorf(section.at, "want a section that starts with \":\"")
		}
	}
	return n.list[2:], n.list[1].list[1].word, nil
}

// declarations reads all sections of a domain but the actions.
func (l *lifted) declarations(sections []node) error {
	s := l.domain
	seen := map[string]*node{}
	for i, n := range sections {
		switch h := n.head(); h {
		case ":types", ":constants", ":predicates":
			if seen[h] != nil {
				return s.errorf(n.at, "a second %s", h)
			}
			seen[h] = &sections[i]
		case ":requirements", ":functions", ":action":
		default:
			return s.errorf(n.at, "%s cannot be played", h)
		}
	}
	if err := l.readTypes(seen[":types"]); err != nil {
		return err
	}
	if n := seen[":constants"]; n != nil {
		if err := l.readObjects(s, n.list[1:]); err != nil {
			return err
		}
	}
	if n := seen[":predicates"]; n != nil {
		return l.readPredicates(n.list[1:])
	}
	return nil
}

// typed is a name of a typed list.
type typed struct {
	name, kind string
	at         int
}

// typedList reads "a b - t c - u d".
func (s *source) typedList(ns []node) ([]typed, error) {
	var list []typed
	untyped := 0
	for i := 0; i < len(ns); i++ {
		n := ns[i]
		if n.isList() {
			return nil, s.errorf(n.at, "want a name, found a list")
		}
		if n.word != "-" {
			list = append(list, typed{n.word, domainOfAll, n.at})
			continue
		}
		i++
		if i == len(ns) {
			return nil, s.errorf(n.at, "no type after \"-\"")
		}
		if ns[i].isList() {
			return nil, s.errorf(ns[i].at, "want the name of one type: a list of types (%q) cannot be played", ns[i].head())
		}
		for ; untyped < len(list); untyped++ {
			list[untyped].kind = ns[i].word
		}
	}
	return list, nil
}

// kindOf gives a type its number; one that nobody declared has no members.
func (l *lifted) kindOf(name string) typeID {
	t, ok := l.typeOf[name]
	if !ok {
		t = typeID(len(l.types))
		l.types = append(l.types, kind{name: name})
		l.typeOf[name] = t
	}
	return t
}

// readTypes reads the hierarchy. A type stands below the one it is declared with, and below all above that.
func (l *lifted) readTypes(n *node) error {
	l.types[l.kindOf(domainOfAll)].declared = true
	if n == nil {
		return nil
	}
	list, err := l.domain.typedList(n.list[1:])
	if err != nil {
		return err
	}
	above := map[typeID][]typeID{}
	for _, t := range list {
		k := l.kindOf(t.name)
		l.types[k].twice = l.types[k].declared
		l.types[k].declared = true
		above[k] = append(above[k], l.kindOf(t.kind))
	}
	for k := range l.types {
		l.types[k].supers = reachable(typeID(k), above)
	}
	return nil
}

// reachable lists what can be reached from a type by one step or more, ascending.
func reachable(from typeID, above map[typeID][]typeID) []typeID {
	var found []typeID
	for next := above[from]; len(next) > 0; {
		t := next[0]
		next = next[1:]
		if !slices.Contains(found, t) {
			found = append(found, t)
			next = append(slices.Clone(next), above[t]...)
		}
	}
	slices.Sort(found)
	return found
}

// readObjects reads :constants or :objects.
func (l *lifted) readObjects(s *source, ns []node) error {
	list, err := s.typedList(ns)
	if err != nil {
		return err
	}
	for _, o := range list {
		if _, ok := l.objectOf[o.name]; ok {
			return s.errorf(o.at, "object %s is declared twice", o.name)
		}
		k, ok := l.typeOf[o.kind]
		if !ok || !l.types[k].declared {
			return s.errorf(o.at, "object %s is of type %s, which the domain does not declare", o.name, o.kind)
		}
		number := int32(len(l.objects))
		l.objectOf[o.name] = number
		l.objects = append(l.objects, object{o.name, k})
		l.types[k].members = append(l.types[k].members, number)
		for _, super := range l.types[k].supers {
			if super != k {
				l.types[super].members = append(l.types[super].members, number)
			}
		}
	}
	l.strangers = len(l.objects)
	return nil
}

func (l *lifted) readPredicates(ns []node) error {
	for _, n := range ns {
		name := n.head()
		if name == "" {
			return l.domain.errorf(n.at, "want (predicate ?parameter …)")
		}
		if name == "=" {
			return l.domain.errorf(n.at, "\"=\" cannot be declared")
		}
		params, err := l.domain.typedList(n.list[1:])
		if err != nil {
			return err
		}
		if _, ok := l.predicateOf[name]; ok {
			return l.domain.errorf(n.at, "predicate %s is declared twice", name)
		}
		l.predicateOf[name] = int32(len(l.predicates))
		l.predicates = append(l.predicates, predicate{name: name, arity: len(params)})
	}
	return nil
}

// problemHead reads a problem up to its objects and returns the sections after them.
func (l *lifted) problemHead(n node) (rest []node, domain string, err error) {
	s := l.problem
	sections, _, err := s.sections(n, "problem")
	if err != nil {
		return nil, "", err
	}
	for _, n := range sections {
		switch n.head() {
		case ":domain":
			if len(n.list) != 2 || n.list[1].isList() || domain != "" {
				return nil, "", s.errorf(n.at, "want one (:domain NAME)")
			}
			domain = n.list[1].word
		case ":objects":
			if err := l.readObjects(s, n.list[1:]); err != nil {
				return nil, "", err
			}
		case ":requirements", ":metric":
		case ":init", ":goal":
			rest = append(rest, n)
		default:
			return nil, "", s.errorf(n.at, "%s cannot be played", n.head())
		}
	}
	if len(rest) != 2 || rest[0].head() == rest[1].head() {
		return nil, "", s.errorf(n.at, "want one :init and one :goal")
	}
	return rest, domain, nil
}

func (l *lifted) problemBody(sections []node) error {
	for _, n := range sections {
		if n.head() == ":init" {
			if err := l.readInit(n); err != nil {
				return err
			}
			continue
		}
		if len(n.list) != 2 {
			return l.problem.errorf(n.at, "want (:goal CONDITION)")
		}
		l.goalAt = n.at
		r := reader{l: l, s: l.problem}
		goal, err := r.condition(n.list[1], false)
		if err != nil {
			return err
		}
		l.goal, l.goalSlots = goal, r.slots
	}
	return nil
}

// readInit reads the facts that hold at the start. What is said to be false is false anyway; values of functions do
// not matter.
func (l *lifted) readInit(n node) error {
	s := l.problem
	seen := map[string]bool{}
	var untrue []fact
	key := func(f fact) string {
		var b strings.Builder
		b.WriteString(f.name)
		for _, a := range f.args {
			b.WriteByte(' ')
			b.WriteString(l.objects[a].name)
		}
		return b.String()
	}
	for _, n := range n.list[1:] {
		switch n.head() {
		case "":
			return s.errorf(n.at, "want a fact: (predicate object …)")
		case "=":
			if len(n.list) != 3 {
				return s.errorf(n.at, "want (= (function object …) number)")
			}
			continue
		case "not":
			if len(n.list) != 2 {
				return s.errorf(n.at, "want (not FACT)")
			}
			f, err := l.readFact(n.list[1])
			if err != nil {
				return err
			}
			untrue = append(untrue, f)
			continue
		}
		f, err := l.readFact(n)
		if err != nil {
			return err
		}
		if k := key(f); !seen[k] {
			seen[k] = true
			l.init = append(l.init, f)
		}
	}
	for _, f := range untrue {
		if seen[key(f)] {
			return s.errorf(n.at, "(%s) is true and false", key(f))
		}
	}
	return nil
}

func (l *lifted) readFact(n node) (fact, error) {
	s := l.problem
	f := fact{name: n.head()}
	if f.name == "" {
		return fact{}, s.errorf(n.at, "want a fact: (predicate object …)")
	}
	for _, a := range n.list[1:] {
		if a.isList() {
			return fact{}, s.errorf(a.at, "want an object, found a list")
		}
		o, ok := l.objectOf[a.word]
		if !ok || int(o) >= l.strangers {
			return fact{}, s.errorf(a.at, "there is no object %s", a.word)
		}
		f.args = append(f.args, o)
	}
	if p, ok := l.predicateOf[f.name]; ok && l.predicates[p].arity != len(f.args) {
		return fact{}, s.errorf(n.at, "%s has %d arguments: the domain declares %d", f.name, len(f.args), l.predicates[p].arity)
	}
	return f, nil
}
