package twl2

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits of one expansion. A grammar that passes one never ends, or nearly.
const (
	maxRules  = 1000    // rules within rules
	maxOutput = 1 << 20 // bytes
	maxWork   = 1 << 21 // pieces written and facts looked at, roughly
	maxKept   = 1 << 16 // of a buffer that is used again
)

// ErrEndless marks an expansion that passes a limit.
var ErrEndless = errors.New("the grammar does not come to an end")

// binding is a variable and what it stands for.
type binding struct {
	variable
	Arg
}

// expander makes one text.
type expander struct {
	grammar *Grammar
	facts   Facts
	names   Names
	out     []byte
	bound   []binding // the last of a name counts
	depth   int
	work    int

	// Of the queries under way, one upon the other.
	slots   []slot
	fetched []fetched
	matches []binding
}

var expanders = sync.Pool{New: func() any { return new(expander) }}

func (g *Grammar) expand(text []piece, bound map[string]Arg, f Facts, n Names) (string, error) {
	if len(text) == 1 && text[0].symbol == "" && text[0].expression == nil {
		return text[0].literal, nil
	}
	e := expanders.Get().(*expander)
	e.grammar, e.facts, e.names = g, f, n
	e.bound = e.bound[:0]
	for name, arg := range bound {
		e.bound = append(e.bound, binding{variable{name, arg.Type}, arg})
	}
	e.out, e.matches, e.slots, e.fetched, e.depth, e.work = e.out[:0], e.matches[:0], e.slots[:0], e.fetched[:0], 0, 0
	err := e.text(text)
	s := ""
	if err == nil {
		s = string(e.out)
	}
	if cap(e.out) <= maxKept && cap(e.matches) <= maxKept {
		e.grammar, e.facts, e.names = nil, nil, nil
		clear(e.fetched[:cap(e.fetched)])
		expanders.Put(e)
	}
	return s, err
}

// fault is an error at a place of the grammar.
func (e *expander) fault(at int, format string, args ...any) error {
	line, column := e.grammar.place(at)
	return fmt.Errorf("grammar line %d, column %d: %w", line, column, fmt.Errorf(format, args...))
}

func (e *expander) spend(n, at int) error {
	e.work += n
	if e.work > maxWork || len(e.out) > maxOutput {
		return e.fault(at, "%w (at most %d bytes and %d parts are made)", ErrEndless, maxOutput, maxWork)
	}
	return nil
}

func (e *expander) text(text []piece) error {
	for i := range text {
		p := &text[i]
		var err error
		switch {
		case p.symbol == "" && p.expression == nil:
			e.out = append(e.out, p.literal...)
		case p.query != nil:
			err = e.copies(p)
		default:
			err = e.one(p)
		}
		if err == nil {
			err = e.spend(1+p.cost, p.at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// one writes a symbol or an expression.
func (e *expander) one(p *piece) error {
	if p.expression != nil {
		return e.write(p.expression)
	}
	return e.symbol(p)
}

func (e *expander) symbol(p *piece) error {
	if p.rule == nil {
		return e.fault(p.at, "#%s#: %w", p.symbol, ErrUnknown)
	}
	if e.depth++; e.depth > maxRules {
		return e.fault(p.at, "#%s#: %w (at most %d rules within rules)", p.symbol, ErrEndless, maxRules)
	}
	text, err := e.choose(p)
	if err == nil {
		err = e.text(text)
	}
	e.depth--
	return err
}

// choose returns the first alternative that holds.
func (e *expander) choose(p *piece) ([]piece, error) {
	for i := range p.rule.alternatives {
		a := &p.rule.alternatives[i]
		if a.condition == nil {
			return a.text, nil
		}
		from := len(e.matches)
		n, err := e.match(a.condition, 1)
		e.matches = e.matches[:from]
		if err != nil || n > 0 {
			return a.text, err
		}
	}
	return nil, e.fault(p.at, "#%s#: no alternative of the rule holds", p.symbol)
}

// copies writes a piece for each match of its query, and as a list if it is one.
func (e *expander) copies(p *piece) error {
	before, from := len(e.bound), len(e.matches)
	n, err := e.match(p.query, -1)
	if err != nil {
		return err
	}
	width := 0
	if n > 0 {
		width = (len(e.matches) - from) / n
	}
	for i := range n {
		if p.list && i > 0 {
			if err := e.separate(p, i == n-1); err != nil {
				return err
			}
		}
		e.bound = append(e.bound, e.matches[from+i*width:from+(i+1)*width]...)
		err := e.one(p)
		e.bound = e.bound[:before]
		if err != nil {
			return err
		}
		if err := e.spend(1+p.cost, p.at); err != nil {
			return err
		}
	}
	e.matches = e.matches[:from]
	if p.list && n == 0 {
		return e.list(&e.grammar.empty, p)
	}
	return nil
}

func (e *expander) separate(p *piece, last bool) error {
	if last {
		return e.list(&e.grammar.last, p)
	}
	return e.list(&e.grammar.separator, p)
}

// list writes a rule for lists.
func (e *expander) list(rule, p *piece) error {
	if rule.rule == nil {
		return e.fault(p.at, "list: #%s#: %w", rule.symbol, ErrUnknown)
	}
	return e.symbol(rule)
}

// slot is a variable of a query that is being matched.
type slot struct {
	Arg
	level int // free, outer, or 1 + the number of the atom that binds it
}

const (
	free  = 0
	outer = -1
)

// fetched are the facts for an atom, known once it is reached.
type fetched struct {
	facts [][]Arg
	known bool
}

// match appends the new variables of each match to matches, at most most of them unless that is negative, and counts
// them.
func (e *expander) match(q *query, most int) (int, error) {
	from, start := len(e.slots), len(e.fetched)
	fresh := 0
	for _, v := range q.variables {
		s := slot{level: free}
		for i := range e.bound {
			if e.bound[i].variable == v {
				s = slot{Arg: e.bound[i].Arg, level: outer}
			}
		}
		if s.level == free {
			fresh++
		}
		e.slots = append(e.slots, s)
	}
	for range q.atoms {
		e.fetched = append(e.fetched, fetched{})
	}
	m := matcher{
		expander: e, query: q, slots: e.slots[from:], fetched: e.fetched[start:], most: most,
		matchCost: 32 * (1 + fresh), factCost: 1 + (len(e.bound)+fresh)/16,
	}
	err := m.atoms(0)
	e.slots, e.fetched = e.slots[:from], e.fetched[:start]
	return m.found, err
}

// matcher goes over the facts of one query.
type matcher struct {
	*expander
	query               *query
	slots               []slot
	fetched             []fetched // of each atom
	found, most         int
	matchCost, factCost int
}

// atoms matches the atoms from number i on.
func (m *matcher) atoms(i int) error {
	if i == len(m.query.atoms) {
		m.found++
		for j, v := range m.query.variables {
			if s := &m.slots[j]; s.level != outer {
				m.matches = append(m.matches, binding{v, s.Arg})
			}
		}
		return m.spend(m.matchCost, m.query.atoms[0].at)
	}
	a := &m.query.atoms[i]
	if !m.fetched[i].known {
		facts, err := m.facts.Matching(a.predicate, a.types)
		if err != nil {
			return m.fault(a.at, "%s: %w", a.predicate, err)
		}
		m.fetched[i] = fetched{facts, true}
	}
	facts := m.fetched[i].facts
	if err := m.spend(1+m.factCost*len(facts), a.at); err != nil {
		return err
	}
	for _, fact := range facts {
		var err error
		if m.fits(a, i+1, fact) {
			err = m.atoms(i + 1)
		}
		m.release(a, i+1)
		if err != nil || m.found == m.most {
			return err
		}
	}
	return nil
}

// fits binds the free variables of an atom to the arguments of a fact. Different variables stand for different
// entities.
func (m *matcher) fits(a *atom, level int, fact []Arg) bool {
	if len(fact) != len(a.arguments) {
		return false
	}
	for i, v := range a.arguments {
		if s := &m.slots[v]; s.level != free && s.Arg != fact[i] {
			return false
		}
	}
	for i, v := range a.arguments {
		s := &m.slots[v]
		switch {
		case s.level == free:
			if m.taken(fact[i]) {
				return false
			}
			s.Arg, s.level = fact[i], level
		case s.Arg != fact[i]:
			return false
		}
	}
	return true
}

func (m *matcher) release(a *atom, level int) {
	for _, v := range a.arguments {
		if s := &m.slots[v]; s.level == level {
			s.level = free
		}
	}
}

// taken says whether some variable stands for an entity.
func (m *matcher) taken(x Arg) bool {
	for i := range m.bound {
		if m.bound[i].Arg == x {
			return true
		}
	}
	for i := range m.slots {
		if m.slots[i].level != free && m.slots[i].Arg == x {
			return true
		}
	}
	return false
}

// value is what an expression comes to.
type value struct {
	kind kind
	text string // of a string; the id of an entity; of the others as written
}

type kind uint8

const (
	isNone kind = iota
	isBool
	isText
	isEntity
)

func (k kind) String() string {
	return [...]string{"None", "a truth value", "a string", "an entity"}[k]
}

func truth(b bool) value {
	if b {
		return value{isBool, "True"}
	}
	return value{isBool, "False"}
}

// holds is Python's truth.
func (v value) holds() bool {
	switch v.kind {
	case isNone:
		return false
	case isBool:
		return v.text == "True"
	case isText:
		return v.text != ""
	default:
		return true
	}
}

// write writes what an expression comes to. A sum is written part by part.
func (e *expander) write(n *node) error {
	if n.op == opPlus {
		return e.writeStrings(n)
	}
	v, err := e.eval(n)
	if err != nil {
		return err
	}
	if v.kind == isEntity {
		v.text = e.names.Name(v.text)
	}
	e.out = append(e.out, v.text...)
	return nil
}

func (e *expander) writeStrings(n *node) error {
	if n.op == opPlus {
		for _, part := range n.args {
			if err := e.writeStrings(part); err != nil {
				return err
			}
		}
		return nil
	}
	s, err := e.string(n)
	e.out = append(e.out, s...)
	return err
}

// string is the value of an expression that has to be a string.
func (e *expander) string(n *node) (string, error) {
	v, err := e.eval(n)
	if err == nil && v.kind != isText {
		err = e.fault(n.at, "%s where a string is needed", v.kind)
	}
	return v.text, err
}

func (e *expander) eval(n *node) (value, error) {
	switch n.op {
	case opLiteral:
		return value{isText, n.text}, nil
	case opNone:
		return value{isNone, "None"}, nil
	case opEntity:
		id, err := e.entity(n)
		return value{isEntity, id}, err
	case opField:
		id, err := e.entity(n)
		return e.field(id, n.field), err
	case opPlus:
		from := len(e.out)
		err := e.writeStrings(n)
		v := value{isText, string(e.out[from:])}
		e.out = e.out[:from]
		return v, err
	case opOr, opAnd, opIf:
		return e.branch(n)
	case opNot:
		v, err := e.eval(n.args[0])
		return truth(!v.holds()), err
	case opEqual, opUnequal:
		left, err := e.eval(n.args[0])
		if err != nil {
			return left, err
		}
		right, err := e.eval(n.args[1])
		return truth((left == right) == (n.op == opEqual)), err
	case opMethod:
		return e.method(n)
	default:
		panic(fmt.Sprintf("twl2: no value of operation %d", n.op))
	}
}

// branch evaluates what leaves some operands out.
func (e *expander) branch(n *node) (value, error) {
	if n.op == opIf {
		v, err := e.eval(n.args[0])
		switch {
		case err != nil:
			return v, err
		case v.holds():
			return e.eval(n.args[1])
		default:
			return e.eval(n.args[2])
		}
	}
	for _, operand := range n.args[:len(n.args)-1] {
		if v, err := e.eval(operand); err != nil || v.holds() == (n.op == opOr) {
			return v, err
		}
	}
	return e.eval(n.args[len(n.args)-1])
}

func (e *expander) entity(n *node) (string, error) {
	for i := len(e.bound) - 1; i >= 0; i-- {
		if e.bound[i].name == n.text {
			return e.bound[i].ID, nil
		}
	}
	return "", e.fault(n.at, "nothing is bound to %s here", n.text)
}

func (e *expander) field(id, field string) value {
	switch field {
	case "id":
		return value{isText, id}
	case "name":
		return value{isText, e.names.Name(id)}
	case "type":
		return value{isText, e.names.Type(id)}
	case "definite":
		return value{isText, "the"}
	case "indefinite":
		return value{isText, "a"}
	default:
		return value{isNone, "None"}
	}
}

func (e *expander) method(n *node) (value, error) {
	s, err := e.string(n.args[0])
	if err != nil {
		return value{}, err
	}
	if n.text != "strip" && strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) >= 0 {
		return value{}, e.fault(n.at, "%s of %.40q: only ASCII is changed", n.text, s)
	}
	return value{isText, methods[n.text](s)}, nil
}
