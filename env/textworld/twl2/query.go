package twl2

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// query is a conjunction of atoms over variables.
type query struct {
	variables []variable
	atoms     []atom
}

// variable is what a query asks for. Two of one name and different types are different variables.
type variable struct{ name, typ string }

// atom is a predicate over variables of its query.
type atom struct {
	predicate string
	arguments []int // into variables
	types     []string
	at        int // in the grammar
}

// Query is one predicate that some text asks for.
type Query struct {
	Predicate    string
	Types        []string
	Line, Column int
}

// Queries lists what can be asked for from the rule "intro" and the texts of actions on.
func (g *Grammar) Queries() []Query {
	w := walk{grammar: g, seen: map[*rule]bool{}}
	w.rule(g.rules["intro"])
	for _, a := range g.order {
		w.text(a.template)
		w.text(a.feedback)
	}
	for len(w.waiting) > 0 {
		r := w.waiting[len(w.waiting)-1]
		w.waiting = w.waiting[:len(w.waiting)-1]
		for _, a := range r.alternatives {
			w.query(a.condition)
			w.text(a.text)
		}
	}
	slices.SortFunc(w.found, func(a, b *atom) int { return cmp.Compare(a.at, b.at) })
	queries := make([]Query, len(w.found))
	p := newPlaces(g.text)
	for i, a := range w.found {
		line, column := p.next(a.at)
		queries[i] = Query{Predicate: a.predicate, Types: a.types, Line: line, Column: column}
	}
	return queries
}

// walk follows rules to those they name.
type walk struct {
	grammar *Grammar
	seen    map[*rule]bool
	waiting []*rule
	found   []*atom
}

func (w *walk) rule(r *rule) {
	if r != nil && !w.seen[r] {
		w.seen[r] = true
		w.waiting = append(w.waiting, r)
	}
}

func (w *walk) text(text []piece) {
	for _, p := range text {
		w.query(p.query)
		w.rule(p.rule)
		if p.list {
			w.rule(w.grammar.empty.rule)
			w.rule(w.grammar.separator.rule)
			w.rule(w.grammar.last.rule)
		}
	}
}

func (w *walk) query(q *query) {
	if q == nil {
		return
	}
	for i := range q.atoms {
		w.found = append(w.found, &q.atoms[i])
	}
}

// queryReader reads a query, with white space and comments wherever TextWorld's reader has them.
type queryReader struct {
	*reader
	whole   *quoted
	text    string // that of whole
	at, end int
	in      string
	query   *query
}

// query reads bytes from to end of a text.
func (r *reader) query(q *quoted, from, end int, in string) (*query, error) {
	s := &queryReader{reader: r, whole: q, text: q.text, at: from, end: end, in: in, query: &query{}}
	for {
		if err := s.atom(); err != nil {
			return nil, err
		}
		if s.space(); s.at == s.end {
			return s.query, nil
		}
		if !s.mark('&') {
			return nil, s.fault("want & or the end")
		}
	}
}

func (s *queryReader) fault(want string) error {
	return s.reader.fault(s.whole.where(s.grammar.text, s.at), "query of %s at %.24q: %s", s.in, s.text[s.at:s.end], want)
}

func (s *queryReader) space() {
	for s.at < s.end {
		c, size := utf8.DecodeRuneInString(s.text[s.at:s.end])
		switch {
		case isSpace(c):
			s.at += size
		case c == '#':
			if n := strings.IndexByte(s.text[s.at:s.end], '\n'); n >= 0 {
				s.at += n
			} else {
				s.at = s.end
			}
		default:
			return
		}
	}
}

func (s *queryReader) mark(c byte) bool {
	if s.space(); s.at < s.end && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// name reads word characters and those of also.
func (s *queryReader) name(also string) string {
	start := s.at
	for s.at < s.end {
		c, size := utf8.DecodeRuneInString(s.text[s.at:s.end])
		if !isWord(c) && !strings.ContainsRune(also, c) {
			break
		}
		s.at += size
	}
	return s.text[start:s.at]
}

// atom reads predicate(variable, …); "!" before it negates.
func (s *queryReader) atom() error {
	s.space()
	a := atom{at: s.whole.where(s.grammar.text, s.at)}
	negated := s.mark('!')
	if a.predicate = s.name("/"); a.predicate == "" {
		return s.fault("want a predicate")
	}
	if negated {
		a.predicate = negation(a.predicate)
	}
	if !s.mark('(') {
		return s.fault("want (")
	}
	for !s.mark(')') {
		if len(a.arguments) > 0 && !s.mark(',') {
			return s.fault("want , or )")
		}
		v, err := s.variable()
		if err != nil {
			return err
		}
		a.arguments = append(a.arguments, v)
		a.types = append(a.types, s.query.variables[v].typ)
	}
	if len(s.query.atoms) == maxDepth {
		return s.fault("more than " + strconv.Itoa(maxDepth) + " predicates are not read")
	}
	s.query.atoms = append(s.query.atoms, a)
	return nil
}

func negation(predicate string) string {
	if p, ok := strings.CutPrefix(predicate, "not_"); ok {
		return p
	}
	return "not_" + predicate
}

// variable reads "name" or "name: type". Without a type its name, less the marks behind it, is the type.
func (s *queryReader) variable() (int, error) {
	s.space()
	start := s.at
	v := variable{name: s.name("'")}
	if v.name == "" {
		return 0, s.fault("want a variable")
	}
	v.typ = strings.TrimRight(v.name, "'")
	if s.mark(':') {
		s.space()
		if v.typ = s.name("/-"); v.typ == "" {
			return 0, s.fault("want a type")
		}
	}
	for i, old := range s.query.variables {
		switch {
		case old == v:
			return i, nil
		case old.name == v.name:
			s.at = start
			return 0, s.fault("variable " + v.name + " has the types " + old.typ + " and " + v.typ + " in one query")
		}
	}
	if len(s.query.variables) == maxDepth {
		return 0, s.fault("more than " + strconv.Itoa(maxDepth) + " variables are not read")
	}
	s.query.variables = append(s.query.variables, v)
	return len(s.query.variables) - 1, nil
}
