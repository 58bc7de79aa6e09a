// Package twl2 reads the grammar text of a TextWorld game file (TWL2) and says what its rules say.
//
// A grammar has two parts: rules, JSON objects of alternatives for a symbol, each a text with an optional condition; and
// actions, each a command template and a feedback text. Texts hold #symbols#, {expressions} over the entities bound so
// far, {either | query} copied once for each match of a query in the facts, and [{either | query}] as a list in words.
//
// The package follows TextWorld 1.7.0, where it surprises too:
//   - a text ends before the first character that cannot go on with it, whatever stands behind; Notes says where;
//   - white space at the start of a text is dropped, and so are lines there that begin with "//";
//   - a query binds an entity together with a type: an action's argument has the type its parameter is declared with,
//     an entity in a fact has its own. A parameter of a supertype therefore matches no fact about its entity;
//   - facts come in the order of their types first, and some come twice: see Facts.
package twl2

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Arg is an entity and the type it is bound with: in a fact its own, as an action's argument that which the domain
// declares for the parameter. Entities are the same only if both are.
type Arg struct{ ID, Type string }

// Facts are what is true in a state.
type Facts interface {
	// Matching lists the arguments of each true fact of a predicate whose entities are of these types or below, in the
	// order in which TextWorld goes over them: by types first, then by ids; a fact may come twice. "not_p" are the
	// facts of p that an applied operator made false. A type that the domain does not have is an error.
	Matching(predicate string, types []string) ([][]Arg, error)
}

// Names are the entities of a game.
type Names interface {
	Name(id string) string // what a player reads
	Type(id string) string // as declared
}

// Action is how a player gives an action of the domain, and how its outcome is told.
type Action struct {
	Name               string // lower case
	Template, Feedback string // as written
}

// Note is something that is read but has no effect or cannot have the one meant.
type Note struct {
	Line, Column int // of the grammar text, from 1; columns count characters
	Text         string
}

func (n Note) String() string { return fmt.Sprintf("line %d, column %d: %s", n.Line, n.Column, n.Text) }

// Grammar is a grammar ready for use. It does not change and is safe for concurrent use.
type Grammar struct {
	text    string
	rules   map[string]*rule
	actions map[string]*action
	order   []*action
	notes   []Note

	empty, separator, last piece // of lists
}

// rule is a symbol and what it may stand for.
type rule struct {
	alternatives []alternative
}

// alternative holds if its condition, which may be nil, has a match.
type alternative struct {
	condition *query
	text      []piece
}

type action struct {
	Action
	template, feedback []piece
}

// MaxText is the longest grammar that Parse reads, in bytes.
const MaxText = 16 << 20

// Parse reads a grammar. Errors name what cannot be read and its line and column.
func Parse(text string) (*Grammar, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("grammar of %d bytes: at most %d are read", len(text), MaxText)
	}
	r := &reader{text: text, grammar: &Grammar{text: text, rules: map[string]*rule{}, actions: map[string]*action{}}}
	if at := invalidUTF8(text); at >= 0 {
		return nil, r.fault(at, "byte 0x%02x is not UTF-8 (save the file as UTF-8)", text[at])
	}
	if err := r.document(); err != nil {
		return nil, err
	}
	r.link()
	return r.grammar, nil
}

func invalidUTF8(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, c := range text {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

// Actions lists the actions in the order of their first definition.
func (g *Grammar) Actions() []Action {
	actions := make([]Action, len(g.order))
	for i, a := range g.order {
		actions[i] = a.Action
	}
	return actions
}

// Has says whether there is a rule for a symbol.
func (g *Grammar) Has(symbol string) bool { return g.rules[symbol] != nil }

// Notes lists what TextWorld passes over in silence: text behind a character that ends it, fields of an alternative
// without meaning, symbols without a rule (an error once they are expanded).
func (g *Grammar) Notes() []Note { return g.notes }

// ErrUnknown marks a symbol without a rule or an action that the grammar lacks.
var ErrUnknown = errors.New("not in the grammar")

// Command is the command for an action of the domain with its arguments, by the names of its parameters without "?".
func (g *Grammar) Command(name string, args map[string]Arg, f Facts, n Names) (string, error) {
	a, err := g.action(name)
	if err != nil {
		return "", err
	}
	return g.expand(a.template, args, f, n)
}

// Feedback is the answer to an action, over the facts after it.
func (g *Grammar) Feedback(name string, args map[string]Arg, f Facts, n Names) (string, error) {
	a, err := g.action(name)
	if err != nil {
		return "", err
	}
	return g.expand(a.feedback, args, f, n)
}

// Expand is what a symbol says, such as "intro".
func (g *Grammar) Expand(symbol string, bound map[string]Arg, f Facts, n Names) (string, error) {
	r := g.rules[symbol]
	if r == nil {
		return "", fmt.Errorf("rule %q: %w", symbol, ErrUnknown)
	}
	return g.expand([]piece{{symbol: symbol, rule: r}}, bound, f, n)
}

func (g *Grammar) action(name string) (*action, error) {
	if a := g.actions[strings.ToLower(name)]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("action %q: %w", name, ErrUnknown)
}

// place is the line and column of a byte of the text.
func (g *Grammar) place(at int) (line, column int) {
	p := newPlaces(g.text)
	return p.next(at)
}

// places counts lines and columns in one pass.
type places struct {
	text             string
	at, line, column int
}

func newPlaces(text string) places { return places{text: text, line: 1, column: 1} }

// next is the line and column of a byte not before the last.
func (p *places) next(at int) (line, column int) {
	passed := p.text[p.at:at]
	if n := strings.LastIndexByte(passed, '\n'); n >= 0 {
		p.line += strings.Count(passed, "\n")
		p.column = 1
		passed = passed[n+1:]
	}
	p.column += utf8.RuneCountInString(passed)
	p.at = at
	return p.line, p.column
}
