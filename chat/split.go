package chat

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pre-tokenizer patterns of well-known models, exactly as their tokenizer.json holds them. Go's regular expressions
// lack the lookahead in them, so they are recognised as strings and matched by hand.
const (
	GPT2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	QwenPattern   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	Llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// digitPattern is what Digits isolates.
const digitPattern = `\p{N}`

// cutter returns where the piece of s that starts at byte at ends; more than at, which is less than len(s).
type cutter func(s string, at int) int

// cutterFor returns the cutter that splits as Hugging Face's Split does with the pattern and behavior Isolated: matches
// are pieces, and so is what lies between them.
func cutterFor(pattern string) (cutter, error) {
	switch pattern {
	case GPT2Pattern:
		return cutGPT2, nil
	case QwenPattern:
		return modern{digits: 1}.cut, nil
	case Llama3Pattern:
		return modern{digits: 3}.cut, nil
	case digitPattern:
		return cutDigits, nil
	}
	if e, ok := parseEntities(pattern); ok {
		return e.cut, nil
	}
	re, err := compileCommon(pattern)
	if err != nil {
		return nil, err
	}
	return func(s string, at int) int {
		switch loc := re.FindStringIndex(s[at:]); {
		case loc == nil:
			return len(s)
		case loc[0] > 0:
			return at + loc[0]
		default:
			return at + loc[1]
		}
	}, nil
}

// unicodeEscapes are the escapes that mean Unicode in Hugging Face's expressions and ASCII in Go's, in Go's words:
// outside and inside a character class. An empty one cannot be said.
var unicodeEscapes = map[byte][2]string{
	's': {`[\t-\r\x{85}\p{Z}]`, `\t-\r\x{85}\p{Z}`},
	'S': {`[^\t-\r\x{85}\p{Z}]`, ``},
	'd': {`\p{Nd}`, `\p{Nd}`},
	'D': {`\P{Nd}`, `\P{Nd}`},
}

// compileCommon compiles a pattern that means the same to Oniguruma (Hugging Face) and to Go, and names the construct
// that does not.
func compileCommon(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		rest := pattern[i:]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			e, special := unicodeEscapes[pattern[i]]
			part := e[0]
			if class {
				part = e[1]
			}
			if !special {
				part = pattern[i-1 : i+1]
			}
			if part == "" || strings.IndexByte("bBwWhHRXGkKAzZQE", pattern[i]) >= 0 {
				return nil, fmt.Errorf("pattern %q: \\%c is not supported here", pattern, pattern[i])
			}
			b.WriteString(part)
			continue
		case class && (c == '[' || strings.HasPrefix(rest, "&&")):
			return nil, fmt.Errorf("pattern %q: classes within classes are not supported", pattern)
		case !class && (c == '^' || c == '$'):
			return nil, fmt.Errorf("pattern %q: the anchor %c is not supported", pattern, c)
		case !class && strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:") && !strings.HasPrefix(rest, "(?i:"):
			return nil, fmt.Errorf("pattern %q: the group %.4s is not supported", pattern, rest)
		case !class && c == '[':
			class = true
			if strings.HasPrefix(rest, "[^") {
				b.WriteByte(c)
				i, c = i+1, '^'
			}
			if strings.HasPrefix(pattern[i+1:], "]") {
				return nil, fmt.Errorf("pattern %q: a class that starts with ] is not supported", pattern)
			}
		case c == ']':
			class = false
		}
		b.WriteByte(c)
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	if re.MatchString("") {
		return nil, fmt.Errorf("pattern %q: it matches the empty text", pattern)
	}
	return re, nil
}

type class uint8

// The classes of characters the well-known patterns tell apart. end is past the text.
const (
	end class = iota
	letter
	number
	newline // \r and \n
	blank   // other white space
	other
)

// classOf returns the class of the character at s[i:] and its width. A byte that is not UTF-8 is of class other.
func classOf(s string, i int) (class, int) {
	if i >= len(s) {
		return end, 0
	}
	r, w := utf8.DecodeRuneInString(s[i:])
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		return letter, w
	case r == '\r' || r == '\n':
		return newline, w
	case unicode.IsSpace(r):
		return blank, w
	case '0' <= r && r <= '9':
		return number, w
	case r < utf8.RuneSelf:
		return other, w
	case unicode.IsLetter(r):
		return letter, w
	case unicode.IsNumber(r):
		return number, w
	}
	return other, w
}

// run returns where the run of characters of class c that starts at i ends.
func run(s string, i int, c class) int {
	for {
		d, w := classOf(s, i)
		if d != c {
			return i
		}
		i += w
	}
}

// cutDigits matches digitPattern.
func cutDigits(s string, at int) int {
	c, w := classOf(s, at)
	i := at + w
	for c != number && i < len(s) {
		d, w := classOf(s, i)
		if d == number {
			break
		}
		i += w
	}
	return i
}

// cutGPT2 matches GPT2Pattern.
func cutGPT2(s string, at int) int {
	if n := contraction(s[at:], false); n > 0 {
		return at + n
	}
	start := at
	if s[at] == ' ' {
		start++
	}
	switch c, _ := classOf(s, start); c {
	case letter, number, other:
		return run(s, start, c)
	}
	stop, last := spaces(s, at)
	return beforeText(s, at, stop, last)
}

// modern matches QwenPattern (digits 1) and Llama3Pattern (digits 3).
type modern struct {
	digits int // most numerals of one piece
}

func (m modern) cut(s string, at int) int {
	if n := contraction(s[at:], true); n > 0 {
		return at + n
	}
	c, w := classOf(s, at)
	switch c {
	case letter:
		return run(s, at, letter)
	case number:
		for range m.digits - 1 {
			d, dw := classOf(s, at+w)
			if d != number {
				break
			}
			w += dw
		}
		return at + w
	case blank, other: // one of either may lead a word
		if d, _ := classOf(s, at+w); d == letter {
			return run(s, at+w, letter)
		}
	}
	start := at
	if s[at] == ' ' {
		start++
	}
	if d, _ := classOf(s, start); d == other {
		return run(s, run(s, start, other), newline)
	}
	stop, last := spaces(s, at)
	if i := strings.LastIndexAny(s[at:stop], "\r\n"); i >= 0 {
		return at + i + 1
	}
	return beforeText(s, at, stop, last)
}

// spaces returns where the white space that starts at i ends, and where its last character starts.
func spaces(s string, i int) (stop, last int) {
	last = i
	for {
		c, w := classOf(s, i)
		if c != blank && c != newline {
			return i, last
		}
		last = i
		i += w
	}
}

// beforeText leaves the last character of white space to the text that follows it, if there are both.
func beforeText(s string, at, stop, last int) int {
	if stop < len(s) && last > at {
		return last
	}
	return stop
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of s, else 0. Folding follows Unicode:
// U+017F is an s.
func contraction(s string, fold bool) int {
	if s[0] != '\'' {
		return 0
	}
	for _, c := range [...]string{"s", "ſ", "t", "re", "ve", "m", "ll", "d"} {
		if len(s) <= len(c) {
			continue
		}
		if t := s[1 : 1+len(c)]; t == c && (fold || c != "ſ") || fold && strings.EqualFold(t, c) {
			return 1 + len(c)
		}
	}
	return 0
}

// A pattern that EntityPattern makes: nouns that a number may follow, words that stand alone, numbers, line ends.
var entityForm = regexp.MustCompile(`^(?: \?\\b\(\?:([A-Za-z|]+)\)\(\?: \[0-9\]\{1,2\}\)\?\\b\|)?` +
	`(?: \?\\b\(\?:([A-Za-z|]+)\)\\b\|)?` + regexp.QuoteMeta(entityTail) + `$`)

const entityTail = ` ?[0-9]{1,2}|\n+`

// entities matches a pattern that EntityPattern made, as Oniguruma does: \b is a Unicode word boundary.
type entities struct {
	nouns, words map[string]bool
}

// parseEntities reads a pattern that EntityPattern made; false for any other.
func parseEntities(pattern string) (entities, bool) {
	m := entityForm.FindStringSubmatch(pattern)
	if m == nil {
		return entities{}, false
	}
	e := entities{nouns: map[string]bool{}, words: map[string]bool{}}
	for i, set := range []map[string]bool{e.nouns, e.words} {
		if m[i+1] == "" {
			continue
		}
		for _, w := range strings.Split(m[i+1], "|") {
			if w == "" {
				return entities{}, false
			}
			set[w] = true
		}
	}
	return e, true
}

func (e entities) cut(s string, at int) int {
	if stop := e.match(s, at); stop > 0 {
		return stop
	}
	for i := at + 1; i < len(s); i++ {
		if e.match(s, i) > 0 {
			return i
		}
	}
	return len(s)
}

// match returns where the match that starts at byte i ends, 0 if none does.
func (e entities) match(s string, i int) int {
	j := i
	if s[j] == ' ' {
		j++
	}
	switch {
	case j == len(s):
		return 0
	case isDigit(s[j]):
		if j+1 < len(s) && isDigit(s[j+1]) {
			return j + 2
		}
		return j + 1
	case s[i] == '\n':
		return i + len(s[i:]) - len(strings.TrimLeft(s[i:], "\n"))
	case !isLetter(s[j]) || wordBefore(s, j):
		return 0
	}
	stop, ok := wordEnd(s, j)
	switch {
	case !ok:
		return 0
	case e.nouns[s[j:stop]]:
		if n := numberAfter(s, stop); n > 0 {
			return n
		}
		return stop
	case e.words[s[j:stop]]:
		return stop
	}
	return 0
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// wordEnd returns where the ASCII letters that start at i end, and whether the word ends with them.
func wordEnd(s string, i int) (int, bool) {
	for i < len(s) && isLetter(s[i]) {
		i++
	}
	return i, !wordAt(s, i)
}

// numberAfter returns where " 7" or " 42" at i ends, 0 if none stands there as a word of its own.
func numberAfter(s string, i int) int {
	if i >= len(s) || s[i] != ' ' {
		return 0
	}
	j := i + 1
	for j < len(s) && j < i+3 && isDigit(s[j]) {
		j++
	}
	if j == i+1 || wordAt(s, j) {
		return 0
	}
	return j
}

func wordAt(s string, i int) bool {
	r, w := utf8.DecodeRuneInString(s[i:])
	return w > 0 && isWord(r)
}

func wordBefore(s string, i int) bool {
	r, w := utf8.DecodeLastRuneInString(s[:i])
	return w > 0 && isWord(r)
}

// isWord reports whether Oniguruma counts r as part of a word: letters, marks, decimal digits, connectors, what else
// Unicode calls alphabetic, and the superscripts and fractions of Latin-1. Characters newer than Go's tables differ.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isLetter(byte(r)) || isDigit(byte(r)) || r == '_'
	}
	if r <= unicode.MaxLatin1 && unicode.Is(unicode.No, r) {
		return true
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)
}
