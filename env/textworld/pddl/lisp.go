package pddl

import (
	"fmt"
	"strings"
)

// Error is a text that cannot be read, or a construct that this package cannot play, with its place.
type Error struct {
	Text         string // "domain" or "problem"
	Line, Column int    // from 1; the column counts bytes
	Reason       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s, line %d, column %d: %s", e.Text, e.Line, e.Column, e.Reason)
}

// Bounds of what is read, far above any game, so that no text takes much memory or stack.
const (
	largestText = 16 << 20 // bytes
	mostNodes   = 1 << 18  // words and lists of a text
	deepest     = 500      // lists in lists
)

// node is a word or a list of a text.
type node struct {
	word string // "" for a list
	list []node
	at   int // byte of the text where it starts
}

func (n *node) isList() bool { return n.word == "" }

// head is the first word of a list, "" if it has none.
func (n *node) head() string {
	if len(n.list) == 0 {
		return ""
	}
	return n.list[0].word
}

// source is a text being read.
type source struct {
	name string
	text string // in lower case
}

func newSource(name, text string) (*source, error) {
	if len(text) > largestText {
		return nil, &Error{name, 1, 1, fmt.Sprintf("the text has %d bytes: at most %d are read", len(text), largestText)}
	}
	return &source{name, lower(text)}, nil
}

// lower puts the ASCII letters in lower case and leaves all other bytes where they are.
func lower(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return 'A' <= r && r <= 'Z' }) < 0 {
		return text
	}
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func (s *source) errorf(at int, format string, args ...any) error {
	before := s.text[:min(at, len(s.text))]
	line := strings.Count(before, "\n") + 1
	return &Error{s.name, line, len(before) - strings.LastIndexByte(before, '\n'), fmt.Sprintf(format, args...)}
}

// space tells white space as the original takes it.
func space(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' || 0x1c <= c && c <= 0x1f
}

// next finds the next parenthesis or word from a byte on; "" at the end of the text.
func (s *source) next(i int) (word string, at int, err error) {
	for ; i < len(s.text); i++ {
		if s.text[i] == ';' {
			end := strings.IndexByte(s.text[i:], '\n')
			if end < 0 {
				return "", len(s.text), nil
			}
			i += end
			continue
		}
		if !space(s.text[i]) {
			break
		}
	}
	if i >= len(s.text) {
		return "", len(s.text), nil
	}
	if c := s.text[i]; c == '(' || c == ')' {
		return s.text[i : i+1], i, nil
	}
	end := i
	for ; end < len(s.text); end++ {
		c := s.text[end]
		if c >= 0x80 {
			return "", end, s.errorf(end, "a character that is not ASCII, outside a comment")
		}
		if space(c) || c == '(' || c == ')' || c == ';' || c == '?' && end > i {
			break
		}
	}
	return s.text[i:end], i, nil
}

// read reads the one list that a text is.
func (s *source) read() (node, error) {
	word, at, err := s.next(0)
	if err != nil {
		return node{}, err
	}
	if word != "(" {
		return node{}, s.errorf(at, "want a \"(\" that opens the text")
	}
	open := []node{{at: at}}
	for nodes, i := 0, at+1; ; {
		word, at, err := s.next(i)
		if err != nil {
			return node{}, err
		}
		i = at + len(word)
		last := len(open) - 1
		switch word {
		case "":
			return node{}, s.errorf(open[last].at, "this \"(\" is never closed (is the text complete?)")
		case "(":
			if len(open) == deepest {
				return node{}, s.errorf(at, "lists are nested more than %d deep", deepest)
			}
			open = append(open, node{at: at})
		case ")":
			closed := open[last]
			open = open[:last]
			if last == 0 {
				return closed, s.nothingMore(i)
			}
			open[last-1].list = append(open[last-1].list, closed)
		default:
			open[last].list = append(open[last].list, node{word: word, at: at})
		}
		if nodes++; nodes > mostNodes {
			return node{}, s.errorf(at, "the text has more than %d words and lists", mostNodes)
		}
	}
}

func (s *source) nothingMore(i int) error {
	word, at, err := s.next(i)
	if err == nil && word != "" {
		err = s.errorf(at, "%q after the end of the text", word)
	}
	return err
}
