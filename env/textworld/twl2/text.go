package twl2

import (
	"strings"
	"unicode/utf8"
)

// piece is a part of a text: a literal, a symbol or an expression. The last two may stand once for each match of a
// query, and as a list.
type piece struct {
	literal    string
	symbol     string
	rule       *rule // of the symbol; nil if there is none
	expression *node
	query      *query
	list       bool
	cost       int // parts of the expression
	at         int // in the grammar
}

// textReader reads a text as TextWorld's reader does: it stops without an error where nothing fits.
type textReader struct {
	*reader
	whole *quoted
	text  string // that of whole
	at    int
	in    string // what the text belongs to
}

// sentence reads a text.
func (r *reader) sentence(q *quoted, in string) ([]piece, error) {
	t := &textReader{reader: r, whole: q, text: q.text, in: in}
	var pieces []piece
	for t.gap(); ; {
		start := t.at
		p, err := t.piece()
		if err != nil {
			return nil, err
		}
		if p.symbol != "" || p.expression != nil || p.literal != "" {
			pieces = append(pieces, p)
		}
		if t.at == start {
			break
		}
	}
	if rest := t.text[t.at:]; rest != "" {
		t.note(t.where(t.at), "%s ends before %.20q: TextWorld drops it and all behind it", in, rest)
	}
	return pieces, nil
}

func (t *textReader) where(i int) int { return t.whole.where(t.grammar.text, i) }

// gap skips tabs and, at the start of a line, white space and a line that begins with "//".
func (t *textReader) gap() {
	for {
		start := t.at
		for t.startsLine() && t.at < len(t.text) {
			line := t.at
			if strings.HasPrefix(t.text[t.at:], "//") {
				t.at += len(t.text[t.at:])
				if n := strings.IndexByte(t.text[line:], '\n'); n >= 0 {
					t.at = line + n + 1
				}
			} else {
				t.spaces()
			}
			if t.at == line {
				break
			}
		}
		for t.at < len(t.text) && t.text[t.at] == '\t' {
			t.at++
		}
		if t.at == start {
			return
		}
	}
}

func (t *textReader) startsLine() bool { return t.at == 0 || t.text[t.at-1] == '\n' }

func (t *textReader) spaces() {
	rest := t.text[t.at:]
	t.at += len(rest) - len(strings.TrimLeftFunc(rest, isSpace))
}

// mark reads a mark with a gap before it, or nothing.
func (t *textReader) mark(c byte) bool {
	start := t.at
	t.gap()
	if t.at < len(t.text) && t.text[t.at] == c {
		t.at++
		return true
	}
	t.at = start
	return false
}

// none reads characters outside a set.
func (t *textReader) none(of string) string {
	rest := t.text[t.at:]
	n := strings.IndexAny(rest, of)
	if n < 0 {
		n = len(rest)
	}
	t.at += n
	return rest[:n]
}

// piece is empty if nothing fits.
func (t *textReader) piece() (piece, error) {
	start := t.at
	if p, err := t.listed(); err != nil || p.at >= 0 {
		return p, err
	}
	t.at = start
	if p, err := t.braced(); err != nil || p.at >= 0 {
		return p, err
	}
	t.at = start
	if name, at := t.hashed(); name != "" {
		return piece{symbol: name, at: t.where(at)}, nil
	}
	t.at = start
	return piece{literal: t.literal()}, nil
}

// nothing is a piece that does not fit.
var nothing = piece{at: -1}

func (t *textReader) listed() (piece, error) {
	if !t.mark('[') {
		return nothing, nil
	}
	p, err := t.braced()
	if err != nil || p.at < 0 || !t.mark(']') {
		return nothing, err
	}
	p.list = true
	return p, nil
}

// braced reads {symbol or expression} or {symbol or expression | query}.
func (t *textReader) braced() (piece, error) {
	if !t.mark('{') {
		return nothing, nil
	}
	var p piece
	start := t.at
	var statement [2]int
	if p.symbol, p.at = t.hashed(); p.symbol == "" {
		t.at = start
		t.gap()
		p.at = t.at
		if t.none("|[]{}\n<>") == "" {
			return nothing, nil
		}
		statement = [2]int{p.at, t.at}
	}
	given := t.given()
	if !t.mark('}') {
		return nothing, nil
	}
	p.at = t.where(p.at)
	var err error
	if p.symbol == "" {
		if p.expression, p.cost, err = t.expression(t.whole, statement[0], statement[1], t.in); err != nil {
			return nothing, err
		}
	}
	if given[0] < given[1] {
		p.query, err = t.query(t.whole, given[0], given[1], t.in)
	}
	return p, err
}

// given reads "| query" and returns where the query is.
func (t *textReader) given() [2]int {
	start := t.at
	t.spaces()
	if !strings.HasPrefix(t.text[t.at:], "|") {
		t.at = start
		return [2]int{}
	}
	t.at++
	t.spaces()
	t.gap()
	from := t.at
	if t.none(";|{}\n[]#") == "" {
		t.at = start
	}
	return [2]int{from, max(from, t.at)}
}

// hashed reads #symbol#.
func (t *textReader) hashed() (name string, at int) {
	if !t.mark('#') {
		return "", 0
	}
	t.gap()
	at = t.at
	for t.at < len(t.text) {
		c, size := utf8.DecodeRuneInString(t.text[t.at:])
		if !isWord(c) && !isSpace(c) && !strings.ContainsRune("()/!<>-,.", c) {
			break
		}
		t.at += size
	}
	name = t.text[at:t.at]
	if !t.mark('#') {
		return "", 0
	}
	return name, at
}

const literalEnds = ";|\"<>[]#{}"

// literal reads plain text, or what stands between quotation marks if that is plain.
func (t *textReader) literal() string {
	t.gap()
	start := t.at
	if t.mark('"') {
		if text := t.none(literalEnds); t.mark('"') {
			return text
		}
		t.at = start
	}
	return t.none(literalEnds)
}
