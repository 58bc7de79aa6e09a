package twl2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reader reads the outer form of a grammar: blocks of rules and actions.
type reader struct {
	text    string
	at      int
	grammar *Grammar
	noted   []noted
}

// noted is a note at a byte of the text.
type noted struct {
	at   int
	text string
}

// fault is an error at a byte of the text.
func (r *reader) fault(at int, format string, args ...any) error {
	line, column := r.grammar.place(at)
	return fmt.Errorf("grammar line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
}

func (r *reader) note(at int, format string, args ...any) {
	r.noted = append(r.noted, noted{at, fmt.Sprintf(format, args...)})
}

func (r *reader) document() error {
	for {
		r.space()
		start := r.at
		if start == len(r.text) {
			return nil
		}
		var err error
		switch word := r.word(); word {
		case "grammar":
			err = r.block(false)
		case "action":
			err = r.action()
		default:
			return r.fault(start, "got %s, want grammar or action", r.sight(start))
		}
		if err != nil {
			return err
		}
	}
}

// space skips white space and comments, from "#" to the end of the line.
func (r *reader) space() {
	for r.at < len(r.text) {
		c, size := utf8.DecodeRuneInString(r.text[r.at:])
		switch {
		case c == '#':
			if n := strings.IndexByte(r.text[r.at:], '\n'); n >= 0 {
				r.at += n
			} else {
				r.at = len(r.text)
			}
		case isSpace(c):
			r.at += size
		default:
			return
		}
	}
}

// isSpace is Python's \s: Unicode's white space and the four separators below the blank.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

// isWord is Python's \w.
func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c) }

// run reads characters of a kind; what it returns may be empty.
func (r *reader) run(of func(rune) bool) string {
	start := r.at
	for r.at < len(r.text) {
		c, size := utf8.DecodeRuneInString(r.text[r.at:])
		if !of(c) {
			break
		}
		r.at += size
	}
	return r.text[start:r.at]
}

func (r *reader) word() string { return r.run(isWord) }

// sight quotes what stands at a place, up to white space or a quotation mark.
func (r *reader) sight(at int) string {
	rest := r.text[at:]
	switch {
	case rest == "":
		return "the end of the text (is the file cut off?)"
	case rest[0] == '"':
		return "a quotation mark"
	}
	_, first := utf8.DecodeRuneInString(rest)
	end := strings.IndexFunc(rest[first:], func(c rune) bool { return c == '"' || isSpace(c) })
	if end < 0 {
		return fmt.Sprintf("%.24q", rest)
	}
	return fmt.Sprintf("%.24q", rest[:first+end])
}

// expect reads marks that have to come next, with white space before each.
func (r *reader) expect(construct string, marks ...string) error {
	for _, mark := range marks {
		r.space()
		if !strings.HasPrefix(r.text[r.at:], mark) {
			return r.fault(r.at, "got %s, want %q of %s", r.sight(r.at), mark, construct)
		}
		r.at += len(mark)
	}
	return nil
}

// enclosed reads text up to a closing mark, which stands at its start too.
func (r *reader) enclosed(construct, mark string) (*quoted, error) {
	if err := r.expect(construct, mark); err != nil {
		return nil, err
	}
	n := strings.Index(r.text[r.at:], mark)
	if n < 0 {
		return nil, r.fault(r.at-len(mark), "%s is not closed: its %s has no other", construct, mark)
	}
	q := &quoted{text: r.text[r.at : r.at+n], at: r.at}
	r.at += n + len(mark)
	return q, nil
}

// block reads :: """{…}"""; behind the word grammar.
func (r *reader) block(inAction bool) error {
	if err := r.expect("a grammar block", "::"); err != nil {
		return err
	}
	q, err := r.enclosed("a grammar block", `"""`)
	if err != nil {
		return err
	}
	if err := r.expect("a grammar block", ";"); err != nil {
		return err
	}
	return r.rules(q, inAction)
}

// action reads NAME { clauses } behind the word action.
func (r *reader) action() error {
	r.space()
	start := r.at
	name := r.run(func(c rune) bool { return isWord(c) || c == '/' || c == '-' })
	if name == "" {
		return r.fault(start, "got %s, want the name of an action", r.sight(start))
	}
	construct := "action " + name
	if err := r.expect(construct, "{"); err != nil {
		return err
	}
	clauses := map[string]*quoted{}
	for {
		r.space()
		if strings.HasPrefix(r.text[r.at:], "}") {
			r.at++
			return r.define(start, name, clauses)
		}
		if err := r.clause(construct, clauses); err != nil {
			return err
		}
	}
}

func (r *reader) clause(construct string, clauses map[string]*quoted) error {
	at := r.at
	kind := r.word()
	if _, twice := clauses[kind]; twice {
		return r.fault(at, "%s has two %s clauses", construct, kind)
	}
	clauses[kind] = nil
	mark := `"`
	switch kind {
	case "grammar":
		return r.block(true)
	case "pddl": // TextWorld takes the domain from elsewhere
		mark = `"""`
	case "template", "feedback":
	default:
		return r.fault(at, "got %s in %s, want template, feedback, pddl, grammar or }", r.sight(at), construct)
	}
	if err := r.expect(construct, "::"); err != nil {
		return err
	}
	q, err := r.enclosed(kind+" of "+construct, mark)
	if err != nil {
		return err
	}
	clauses[kind] = q
	return r.expect(construct, ";")
}

func (r *reader) define(at int, name string, clauses map[string]*quoted) error {
	for _, needed := range []string{"template", "feedback"} {
		if _, ok := clauses[needed]; !ok {
			return r.fault(at, "action %s has no %s", name, needed)
		}
	}
	a := &action{Action: Action{
		Name: strings.ToLower(name), Template: clauses["template"].text, Feedback: clauses["feedback"].text,
	}}
	var err error
	if a.template, err = r.sentence(clauses["template"], "template of action "+name); err != nil {
		return err
	}
	if a.feedback, err = r.sentence(clauses["feedback"], "feedback of action "+name); err != nil {
		return err
	}
	if old := r.grammar.actions[a.Name]; old != nil {
		*old = *a
		return nil
	}
	r.grammar.actions[a.Name] = a
	r.grammar.order = append(r.grammar.order, a)
	return nil
}

// link finds the rules that texts name.
func (r *reader) link() {
	g := r.grammar
	undefined := map[string]int{}
	link := func(text []piece) {
		for i := range text {
			p := &text[i]
			if p.symbol == "" {
				continue
			}
			p.rule = g.rules[p.symbol]
			if at, seen := undefined[p.symbol]; p.rule == nil && (!seen || p.at < at) {
				undefined[p.symbol] = p.at
			}
		}
	}
	for _, rule := range g.rules {
		for _, a := range rule.alternatives {
			link(a.text)
		}
	}
	for _, a := range g.order {
		link(a.template)
		link(a.feedback)
	}
	for name, p := range map[string]*piece{"list_empty": &g.empty, "list_separator": &g.separator, "list_last_separator": &g.last} {
		*p = piece{symbol: name, rule: g.rules[name]}
	}
	for symbol, at := range undefined {
		r.note(at, "no rule for #%s#", symbol)
	}
	slices.SortFunc(r.noted, func(a, b noted) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text)) })
	p := newPlaces(g.text)
	for _, n := range r.noted {
		line, column := p.next(n.at)
		g.notes = append(g.notes, Note{Line: line, Column: column, Text: n.text})
	}
}
