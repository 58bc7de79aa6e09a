package pddl

import (
	"math/bits"
	"sync"
)

// Problem is a planning problem, grounded. It is immutable and safe for concurrent use.
type Problem struct {
	l          *lifted
	atoms      []atom // what actions change; ordered by predicate and arguments
	universals []universal
	operators  []operator // ordered by action and arguments
	goals      [][]code   // the goal holds where all of one do
	first      bitset     // atoms at the start

	buckets [][]int32 // [atom]: operators that need it, each in the bucket of one atom alone
	loose   []int32   // operators that need no atom to be true

	texts texts

	order sync.Once
	rank  []int32 // of operators, in the order of the original
}

// bitset is a set of small numbers.
type bitset []uint64

func newBits(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int32) bool { return b[i>>6]&(1<<(i&63)) != 0 }

func (b bitset) set(i int32, to bool) {
	if to {
		b[i>>6] |= 1 << (i & 63)
	} else {
		b[i>>6] &^= 1 << (i & 63)
	}
}

// each calls do for the members from lo to hi−1, ascending.
func (b bitset) each(lo, hi int32, do func(i int32)) {
	for w := lo >> 6; w<<6 < hi; w++ {
		word := b[w]
		if w == lo>>6 {
			word &= ^uint64(0) << (lo & 63)
		}
		for ; word != 0; word &= word - 1 {
			i := w<<6 + int32(bits.TrailingZeros64(word))
			if i >= hi {
				return
			}
			do(i)
		}
	}
}

// indexOperators puts each operator in the bucket of the atom it needs that the fewest others need.
func (p *Problem) indexOperators() {
	count := make([]int32, len(p.atoms))
	for i := range p.operators {
		for _, c := range p.operators[i].needs {
			if p.isAtom(c) && !c.denied() {
				count[c.atom()]++
			}
		}
	}
	p.buckets = make([][]int32, len(p.atoms))
	for i := range p.operators {
		best := int32(-1)
		for _, c := range p.operators[i].needs {
			if a := c.atom(); p.isAtom(c) && !c.denied() && (best < 0 || count[a] < count[best]) {
				best = a
			}
		}
		if best < 0 {
			p.loose = append(p.loose, int32(i))
		} else {
			p.buckets[best] = append(p.buckets[best], int32(i))
		}
	}
}

func (p *Problem) isAtom(c code) bool { return int(c.atom()) < len(p.atoms) }

// Domain is the name of the problem's domain.
func (p *Problem) Domain() string { return p.l.name }

// Operators is the number of operators: actions with arguments that may become possible. One that is possible in
// several ways counts several times.
func (p *Problem) Operators() int { return len(p.operators) }

// Action names the action of an operator.
func (p *Problem) Action(operator int) string {
	return p.l.actions[p.operators[operator].action].name
}

// Argument is an object in the place of a parameter.
type Argument struct {
	Parameter string // without "?"
	Object    string
	Type      string // of the parameter; the object's own may be below it
}

// Arguments lists what an operator is done with.
func (p *Problem) Arguments(operator int) []Argument {
	o := &p.operators[operator]
	a := &p.l.actions[o.action]
	args := make([]Argument, len(o.args))
	for i, object := range o.args {
		args[i] = Argument{a.names[i], p.l.objects[object].name, p.l.types[a.params[i].kind].name}
	}
	return args
}

// State is a problem being played. It is not safe for concurrent use; its problem is shared.
type State struct {
	p     *Problem
	atoms bitset
	facts bitset // those that texts take to be true
}

// Start is the state a problem begins with.
func (p *Problem) Start() *State {
	return (&State{p, p.first, p.texts.first}).Clone()
}

// Clone copies a state: about 1 kB in a household.
func (s *State) Clone() *State {
	both := make(bitset, len(s.atoms)+len(s.facts))
	n := copy(both, s.atoms)
	copy(both[n:], s.facts)
	return &State{s.p, both[:n:n], both[n:]}
}

// Possible appends the operators that can be applied now, in no order that matters.
func (s *State) Possible(to []int) []int {
	check := func(operators []int32) {
		for _, o := range operators {
			if s.all(s.p.operators[o].needs) {
				to = append(to, int(o))
			}
		}
	}
	check(s.p.loose)
	s.atoms.each(0, int32(len(s.p.atoms)), func(a int32) { check(s.p.buckets[a]) })
	return to
}

func (s *State) all(cs []code) bool {
	for _, c := range cs {
		if !s.holds(c) {
			return false
		}
	}
	return true
}

func (s *State) holds(c code) bool {
	if s.p.isAtom(c) {
		return s.atoms.has(c.atom()) != c.denied()
	}
	return s.satisfies(&s.p.universals[int(c.atom())-len(s.p.atoms)].condition) != c.denied()
}

func (s *State) satisfies(c *condition) bool {
	switch c.is {
	case always:
		return true
	case never:
		return false
	case literalOf:
		return s.holds(c.lit)
	case allOf, anyOf:
		for i := range c.parts {
			if s.satisfies(&c.parts[i]) == (c.is == anyOf) {
				return c.is == anyOf
			}
		}
		return c.is == allOf
	default:
		panic("pddl: a ground condition of no kind")
	}
}

// Apply applies an operator that is possible now.
func (s *State) Apply(operator int) {
	o := &s.p.operators[operator]
	var room [16]code
	now := room[:0]
	for _, c := range o.changes {
		if s.all(c.when) {
			now = append(now, c.to)
		}
	}
	for _, c := range now { // of one atom, what makes it false comes last; the conditions see to it that both never apply
		s.atoms.set(c.atom(), !c.denied())
	}
	s.tell(o)
}

// Won says whether the goal holds.
func (s *State) Won() bool {
	for _, g := range s.p.goals {
		if s.all(g) {
			return true
		}
	}
	return false
}
