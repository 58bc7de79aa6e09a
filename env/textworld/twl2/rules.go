package twl2

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted is a text within the grammar.
type quoted struct {
	text string
	at   int  // where it starts
	json bool // written as a JSON string

	seen, seenAt int // a byte of the text and its place
}

// where is the place in the grammar of byte i of the text. It is quick if i grows from call to call.
func (q *quoted) where(grammar string, i int) int {
	if !q.json {
		return q.at + i
	}
	if i < q.seen || q.seenAt == 0 {
		q.seen, q.seenAt = 0, q.at
	}
	for q.seen < i {
		if grammar[q.seenAt] != '\\' {
			q.seen, q.seenAt = q.seen+1, q.seenAt+1
			continue
		}
		c, size, _ := escape(grammar[q.seenAt:])
		q.seen, q.seenAt = q.seen+utf8.RuneLen(c), q.seenAt+size
	}
	return q.seenAt
}

// maxDepth is how deep values that are passed over may be nested.
const maxDepth = 64

// ruleReader reads the JSON of a block.
type ruleReader struct {
	*reader
	end      int
	comments bool // lines that begin with # are skipped
}

// rules reads {"symbol": [alternatives]}. What it defines replaces what was there.
func (r *reader) rules(q *quoted, inAction bool) error {
	after := r.at
	defer func() { r.at = after }()
	r.at = q.at
	j := ruleReader{reader: r, end: q.at + len(q.text), comments: inAction}
	err := j.object("a block of rules", func(name *quoted) error {
		rule := &rule{}
		err := j.array("rule "+name.text, func() error {
			a, err := j.alternative(name.text)
			rule.alternatives = append(rule.alternatives, a)
			return err
		})
		r.grammar.rules[name.text] = rule
		if len(rule.alternatives) == 0 {
			delete(r.grammar.rules, name.text)
		}
		return err
	})
	if err != nil {
		return err
	}
	if j.peek() != 0 {
		return r.fault(r.at, "got %s behind the rules, want the end of the block", r.sight(r.at))
	}
	return nil
}

func (j *ruleReader) alternative(rule string) (alternative, error) {
	var a alternative
	found := false
	start := j.at
	err := j.object("an alternative of rule "+rule, func(field *quoted) error {
		var err error
		switch field.text {
		case "rhs":
			var q *quoted
			if q, err = j.string("rhs of rule " + rule); err != nil {
				return err
			}
			found = true
			a.text, err = j.sentence(q, "rule "+rule)
		case "condition":
			a.condition, err = j.condition(rule)
		default:
			if field.text != "weight" { // the first alternative that holds is taken, whatever its weight
				j.note(field.at, "field %.40q of rule %s means nothing", field.text, rule)
			}
			err = j.skip(0)
		}
		return err
	})
	if err == nil && !found {
		err = j.fault(start, "an alternative of rule %s has no rhs", rule)
	}
	return a, err
}

// condition is nil for null and the empty string.
func (j *ruleReader) condition(rule string) (*query, error) {
	if j.peek() == 'n' {
		return nil, j.skip(0)
	}
	q, err := j.string("condition of rule " + rule)
	if err != nil || q.text == "" {
		return nil, err
	}
	return j.query(q, 0, len(q.text), "rule "+rule)
}

// peek skips white space and returns the byte behind it, 0 at the end.
func (j *ruleReader) peek() byte {
	for j.at < j.end {
		switch c := j.text[j.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			j.at++
		case c == '#' && j.comments && j.firstOfLine():
			n := strings.IndexByte(j.text[j.at:j.end], '\n')
			if n < 0 {
				n = j.end - j.at
			}
			j.at += n
		default:
			return c
		}
	}
	return 0
}

func (j *ruleReader) firstOfLine() bool {
	before := strings.TrimRight(j.text[:j.at], " \t\r")
	return strings.HasSuffix(before, "\n") || strings.HasSuffix(before, `"""`)
}

func (j *ruleReader) got() string {
	if j.peek() == 0 {
		return "the end of the block"
	}
	return j.sight(j.at)
}

func (j *ruleReader) mark(construct string, c byte) error {
	if j.peek() != c {
		return j.fault(j.at, "got %s, want %q of %s", j.got(), c, construct)
	}
	j.at++
	return nil
}

// object calls field at the value of each field.
func (j *ruleReader) object(construct string, field func(name *quoted) error) error {
	if err := j.mark(construct, '{'); err != nil {
		return err
	}
	return j.sequence(construct, '}', func() error {
		name, err := j.string("a name in " + construct)
		if err != nil {
			return err
		}
		if err := j.mark(construct, ':'); err != nil {
			return err
		}
		return field(name)
	})
}

func (j *ruleReader) array(construct string, element func() error) error {
	if err := j.mark(construct, '['); err != nil {
		return err
	}
	return j.sequence(construct, ']', element)
}

func (j *ruleReader) sequence(construct string, closing byte, element func() error) error {
	if j.peek() == closing {
		j.at++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch j.peek() {
		case ',':
			j.at++
		case closing:
			j.at++
			return nil
		default:
			return j.fault(j.at, "got %s, want ',' or %q of %s", j.got(), closing, construct)
		}
	}
}

func (j *ruleReader) string(construct string) (*quoted, error) {
	if j.peek() != '"' {
		return nil, j.fault(j.at, "got %s, want a string as %s", j.got(), construct)
	}
	j.at++
	q := &quoted{at: j.at, json: true}
	var b []byte
	for run := j.at; j.at < j.end; {
		switch c := j.text[j.at]; {
		case c == '"':
			if q.text = j.text[run:j.at]; b != nil {
				q.text = string(append(b, q.text...))
			}
			j.at++
			return q, nil
		case c < ' ':
			return q, j.fault(j.at, "control character 0x%02x in %s (write \\n for a new line)", c, construct)
		case c == '\\':
			r, size, ok := escape(j.text[j.at:j.end])
			if !ok {
				return q, j.fault(j.at, "%s in %s is no escape of JSON", j.sight(j.at), construct)
			}
			b = utf8.AppendRune(append(b, j.text[run:j.at]...), r)
			j.at += size
			run = j.at
		default:
			j.at++
		}
	}
	return q, j.fault(q.at-1, "%s is not closed", construct)
}

// escape reads the escape at the start of s: its character and length. Half a surrogate pair is none.
func escape(s string) (c rune, size int, ok bool) {
	if len(s) < 2 {
		return 0, 0, false
	}
	if s[1] == 'u' {
		c, ok = hex4(s)
		if !utf16.IsSurrogate(c) {
			return c, 6, ok
		}
		low, ok := hex4(s[6:])
		c = utf16.DecodeRune(c, low)
		return c, 12, ok && c != utf8.RuneError
	}
	i := strings.IndexByte(`"\/bfnrt`, s[1])
	if i < 0 {
		return 0, 0, false
	}
	return rune("\"\\/\b\f\n\r\t"[i]), 2, true
}

// hex4 reads \uXXXX.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var c rune
	for _, d := range []byte(s[2:6]) {
		i := strings.IndexByte("0123456789abcdef", d|0x20)
		if i < 0 || d < '0' {
			return 0, false
		}
		c = c<<4 | rune(i)
	}
	return c, true
}

// skip reads any value.
func (j *ruleReader) skip(depth int) error {
	if depth == maxDepth {
		return j.fault(j.at, "values are nested more than %d deep", maxDepth)
	}
	nested := func() error { return j.skip(depth + 1) }
	switch c := j.peek(); {
	case c == '{':
		return j.object("an object", func(*quoted) error { return nested() })
	case c == '[':
		return j.array("an array", nested)
	case c == '"':
		_, err := j.string("a value")
		return err
	}
	start := j.at
	for j.at < j.end && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzE", j.text[j.at]) >= 0 {
		j.at++
	}
	if !json.Valid([]byte(j.text[start:j.at])) {
		return j.fault(start, "got %s, want a value", j.got())
	}
	return nil
}
