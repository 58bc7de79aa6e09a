package twl2

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// node is an expression of the part of Python that is read: variables and their attributes, strings, +, or, and, not,
// ==, !=, "a if b else c", and the methods of strings in methods.
type node struct {
	op    op
	text  string // variable, literal, or method
	field string // of the variable
	args  []*node
	at    int // in the grammar
}

type op uint8

const (
	opLiteral op = iota
	opNone
	opEntity
	opField
	opPlus
	opOr
	opAnd
	opNot
	opEqual
	opUnequal
	opIf
	opMethod
)

// fields of an entity. TextWorld fills only the first five in a PDDL game.
var fields = []string{"id", "type", "name", "definite", "indefinite", "noun", "adj", "desc", "room_type", "synonyms"}

// methods of strings. They work on ASCII letters, and refuse others.
var methods = map[string]func(string) string{
	"upper": strings.ToUpper,
	"lower": strings.ToLower,
	"strip": func(s string) string { return strings.TrimFunc(s, isSpace) },
	"capitalize": func(s string) string {
		return strings.ToUpper(s[:min(1, len(s))]) + strings.ToLower(s[min(1, len(s)):])
	},
	"title": func(s string) string {
		b := []byte(strings.ToLower(s))
		inside := false
		for i, c := range b {
			letter := c >= 'a' && c <= 'z'
			if letter && !inside {
				b[i] -= 'a' - 'A'
			}
			inside = letter
		}
		return string(b)
	},
}

// reserved names cannot be variables of an expression: Python's, and those of the function in which TextWorld looks
// them up.
var reserved = strings.Fields(`False None True and as assert async await break class continue def del elif else except
	finally for from global if import in is lambda nonlocal not or pass raise return try while with yield
	self context value`)

type expressionReader struct {
	*reader
	whole   *quoted
	text    string // that of whole
	at, end int
	depth   int
	nodes   int
	in      string
}

// expression reads bytes from to end of a text, and counts the parts.
func (r *reader) expression(q *quoted, from, end int, in string) (n *node, nodes int, err error) {
	e := &expressionReader{reader: r, whole: q, text: q.text, at: from, end: end, in: in}
	if n, err = e.choice(); err != nil {
		return nil, 0, err
	}
	if e.space(); e.at < e.end {
		return nil, 0, e.fault(e.at, "not read here")
	}
	return n, e.nodes, nil
}

func (e *expressionReader) fault(at int, what string, args ...any) error {
	got := "its end"
	if at < e.end {
		got = fmt.Sprintf("%.24q", e.text[at:e.end])
	}
	return e.reader.fault(e.place(at), "expression of %s at %s: %s (of Python, only variables and their fields, strings,"+
		" + or and not == != if-else, and simple methods are)", e.in, got, fmt.Sprintf(what, args...))
}

func (e *expressionReader) place(at int) int { return e.whole.where(e.grammar.text, at) }

func (e *expressionReader) space() {
	for e.at < e.end && (e.text[e.at] == ' ' || e.text[e.at] == '\t' || e.text[e.at] == '\f') {
		e.at++
	}
}

// peekWord returns the word that comes next.
func (e *expressionReader) peekWord() string {
	e.space()
	end := e.at
	for end < e.end {
		c, size := utf8.DecodeRuneInString(e.text[end:e.end])
		if !isWord(c) {
			break
		}
		end += size
	}
	return e.text[e.at:end]
}

func (e *expressionReader) word(want string) bool {
	if e.peekWord() != want {
		return false
	}
	e.at += len(want)
	return true
}

func (e *expressionReader) mark(want string) bool {
	e.space()
	if !strings.HasPrefix(e.text[e.at:e.end], want) {
		return false
	}
	e.at += len(want)
	return true
}

// choice reads "a if b else c".
func (e *expressionReader) choice() (*node, error) {
	if e.depth++; e.depth > maxDepth {
		return nil, e.fault(e.at, "nested more than %d deep", maxDepth)
	}
	defer func() { e.depth-- }()
	yes, err := e.either()
	if err != nil || !e.word("if") {
		return yes, err
	}
	condition, err := e.either()
	if err != nil {
		return nil, err
	}
	if !e.word("else") {
		return nil, e.fault(e.at, "want else")
	}
	no, err := e.choice()
	return &node{op: opIf, args: []*node{condition, yes, no}}, err
}

func (e *expressionReader) either() (*node, error) {
	return e.chain(opOr, e.both, func() bool { return e.word("or") })
}

func (e *expressionReader) both() (*node, error) {
	return e.chain(opAnd, e.not, func() bool { return e.word("and") })
}

func (e *expressionReader) sum() (*node, error) {
	return e.chain(opPlus, e.postfix, func() bool { return e.mark("+") })
}

// chain reads operands with an operator between.
func (e *expressionReader) chain(op op, operand func() (*node, error), next func() bool) (*node, error) {
	n, err := operand()
	if err != nil || !next() {
		return n, err
	}
	n = &node{op: op, args: []*node{n}}
	for more := true; more; more = next() {
		right, err := operand()
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, right)
	}
	return n, nil
}

func (e *expressionReader) not() (*node, error) {
	times := 0
	for e.word("not") {
		times++
	}
	n, err := e.comparison()
	if times > 0 && times%2 == 0 {
		n = &node{op: opNot, args: []*node{n}}
	}
	if times > 0 {
		n = &node{op: opNot, args: []*node{n}}
	}
	return n, err
}

func (e *expressionReader) comparison() (*node, error) {
	left, err := e.sum()
	if err != nil {
		return nil, err
	}
	op := opEqual
	if !e.mark("==") {
		if !e.mark("!=") {
			return left, nil
		}
		op = opUnequal
	}
	right, err := e.sum()
	return &node{op: op, args: []*node{left, right}}, err
}

func (e *expressionReader) postfix() (*node, error) {
	n, err := e.primary()
	for calls := 0; err == nil && e.mark("."); calls++ {
		at := e.at
		name := e.peekWord()
		e.at += len(name)
		switch {
		case n.op == opEntity:
			if !slices.Contains(fields, name) {
				return nil, e.fault(at, "an entity has no field %q (want one of %s)", name, strings.Join(fields, ", "))
			}
			n.op, n.field = opField, name
		case calls > maxDepth:
			return nil, e.fault(at, "more than %d calls in a row", maxDepth)
		case methods[name] != nil:
			if !e.mark("(") || !e.mark(")") {
				return nil, e.fault(e.at, "want () behind %s", name)
			}
			n = &node{op: opMethod, text: name, args: []*node{n}, at: e.place(at)}
		default:
			return nil, e.fault(at, "no method %q", name)
		}
	}
	return n, err
}

func (e *expressionReader) primary() (*node, error) {
	e.nodes++
	if e.mark("(") {
		n, err := e.choice()
		if err == nil && !e.mark(")") {
			err = e.fault(e.at, "want )")
		}
		return n, err
	}
	e.space()
	at := e.at
	if at < e.end && (e.text[at] == '\'' || e.text[at] == '"') {
		return e.literals()
	}
	name := e.peekWord()
	switch {
	case name == "None":
		e.at += len(name)
		return &node{op: opNone, at: e.place(at)}, nil
	case name == "" || name[0] <= '9':
		return nil, e.fault(at, "want a variable or a string")
	case slices.Contains(reserved, name):
		return nil, e.fault(at, "%s is no name for a variable", name)
	}
	e.at += len(name)
	if e.at < e.end && (e.text[e.at] == '\'' || e.text[e.at] == '"') {
		return nil, e.fault(at, "strings with a prefix are")
	}
	return &node{op: opEntity, text: name, at: e.place(at)}, nil
}

// literals reads strings side by side, which are one.
func (e *expressionReader) literals() (*node, error) {
	at := e.place(e.at)
	var b strings.Builder
	for {
		if e.space(); e.at == e.end || e.text[e.at] != '\'' && e.text[e.at] != '"' {
			return &node{op: opLiteral, text: b.String(), at: at}, nil
		}
		if err := e.literal(&b); err != nil {
			return nil, err
		}
	}
}

func (e *expressionReader) literal(b *strings.Builder) error {
	start := e.at
	quote := e.text[start]
	if strings.HasPrefix(e.text[start:e.end], strings.Repeat(string(quote), 3)) {
		return e.fault(start, "three quotation marks are")
	}
	for e.at++; e.at < e.end; {
		switch c := e.text[e.at]; c {
		case quote:
			e.at++
			return nil
		case '\\':
			if err := e.escape(b); err != nil {
				return err
			}
		default:
			b.WriteByte(c)
			e.at++
		}
	}
	return e.fault(start, "the string is not closed")
}

// escape reads an escape of Python. One it does not know stands for itself.
func (e *expressionReader) escape(b *strings.Builder) error {
	rest := e.text[e.at:e.end]
	if len(rest) < 2 {
		return e.fault(e.at, "the string is not closed")
	}
	if i := strings.IndexByte(`\'"abfnrtv`, rest[1]); i >= 0 {
		b.WriteByte("\\'\"\a\b\f\n\r\t\v"[i])
		e.at += 2
		return nil
	}
	if strings.IndexByte("01234567xuUN", rest[1]) >= 0 {
		return e.fault(e.at, "a character by its number is (write the character)")
	}
	b.WriteByte('\\')
	e.at++
	return nil
}
