package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plain makes text that somebody else wrote safe for a terminal: what could move the cursor, change colours, ring or hide
// and turn round other text (control, formatting and private characters, bytes that are not UTF-8) is written as \uXXXX,
// which is also what JSON has for it. Line ends and tabs stay, and the two joiners that scripts and emoji need.
func plain(text string) string {
	var out strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			out.WriteString(`\ufffd`)
		case r == '\n' || r == '\t' || !unsafeRune(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

func unsafeRune(r rune) bool {
	return r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// plainWriter passes on what is written to it, made plain. A character may come in pieces.
type plainWriter struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

func (p *plainWriter) Write(b []byte) (int, error) {
	all := append(p.rest, b...)
	end := len(all)
	for back := 1; back < utf8.UTFMax && back <= len(all); back++ {
		if tail := all[len(all)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				end -= back
			}
			break
		}
	}
	if _, err := io.WriteString(p.w, plain(string(all[:end]))); err != nil {
		return 0, err
	}
	p.rest = append([]byte(nil), all[end:]...)
	return len(b), nil
}
