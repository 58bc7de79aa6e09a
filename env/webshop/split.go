package webshop

import (
	"bytes"
	"fmt"
	"io"
)

// splitter cuts a list of JSON into its entries without reading what they are: whoever decodes an entry finds what is wrong
// with it.
type splitter struct {
	r       io.Reader
	buf     []byte
	from    int // in buf, the entry at hand
	at      int // in buf, what comes next to be looked at
	started bool
	eof     error // why no more comes
}

const (
	splitterChunk = 1 << 18
	longestEntry  = 1 << 26 // bytes
)

// next is the next entry, good until the call after; io.EOF behind the list's end, where nothing may follow.
func (s *splitter) next() ([]byte, error) {
	c, err := s.skip()
	if err != nil {
		return nil, cut(err)
	}
	switch {
	case !s.started && c != '[':
		return nil, fmt.Errorf("it begins with %c, not with [", c)
	case s.started && c == ']':
		return nil, s.end()
	case s.started && c != ',':
		return nil, fmt.Errorf("%c between two entries", c)
	}
	s.at++
	first := !s.started
	s.started = true
	if c, err = s.skip(); err != nil {
		return nil, cut(err)
	}
	if c == ']' && first {
		return nil, s.end()
	}
	return s.entry()
}

// end is io.EOF if nothing but white space follows the list.
func (s *splitter) end() error {
	s.at++
	c, err := s.skip()
	if err == nil {
		err = fmt.Errorf("after its end there is more: %c", c)
	}
	return err
}

// skip goes over white space and returns the byte behind it.
func (s *splitter) skip() (byte, error) {
	for {
		for ; s.at < len(s.buf); s.at++ {
			switch c := s.buf[s.at]; c {
			case ' ', '\t', '\r', '\n':
			default:
				return c, nil
			}
		}
		s.from = s.at
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads on. Of what was read, the entry at hand is kept.
func (s *splitter) fill() error {
	if s.eof != nil {
		return s.eof
	}
	n := copy(s.buf, s.buf[s.from:])
	s.at -= s.from
	s.from, s.buf = 0, s.buf[:n]
	if n > longestEntry {
		return fmt.Errorf("it has more than %d bytes", longestEntry)
	}
	s.buf = append(s.buf, make([]byte, splitterChunk)...)
	read, err := s.r.Read(s.buf[n:])
	s.buf, s.eof = s.buf[:n+read], err
	if read > 0 {
		return nil
	}
	return err
}

// entry is the value that begins here: it ends where its brackets are closed, or, if it has none, at the next comma.
func (s *splitter) entry() ([]byte, error) {
	s.from = s.at
	for depth := 0; ; {
		i := bytes.IndexAny(s.buf[s.at:], `"{}[],`)
		if i < 0 {
			s.at = len(s.buf)
			if err := s.fill(); err != nil {
				return nil, cut(err)
			}
			continue
		}
		s.at += i
		switch s.buf[s.at] {
		case '"':
			if err := s.text(); err != nil {
				return nil, cut(err)
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return s.buf[s.from:s.at], nil
			}
		case ',':
			if depth == 0 {
				return s.buf[s.from:s.at], nil
			}
		}
		s.at++
		if depth == 0 {
			return s.buf[s.from:s.at], nil
		}
	}
}

// text goes over a text in quotes.
func (s *splitter) text() error {
	for s.at++; ; {
		i := bytes.IndexByte(s.buf[s.at:], '"')
		if i < 0 {
			// A backslash at the end belongs to what comes: it is looked at again.
			escapes := trailing(s.buf[s.at:])
			s.at = len(s.buf) - escapes
			if err := s.fill(); err != nil {
				return err
			}
			continue
		}
		escapes := trailing(s.buf[s.at : s.at+i])
		s.at += i + 1
		if escapes%2 == 0 {
			return nil
		}
	}
}

// trailing counts the backslashes that a text ends with.
func trailing(b []byte) int {
	return len(b) - len(bytes.TrimRight(b, `\`))
}
