package webshop

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The original is written in Python. What follows are the few places where its strings and numbers differ from Go's.

// isSpace tells Python's white space: Go's, and the four information separators.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// trim is str.strip().
func trim(s string) string {
	if n := len(s); n > 0 && solid(s[0]) && solid(s[n-1]) {
		return s // as nearly all texts are
	}
	return strings.TrimFunc(s, isSpace)
}

// solid tells ASCII that is no white space.
func solid(c byte) bool { return c > ' ' && c < 0x7f }

// lower is str.lower(): like Go's, but İ keeps its dot and Σ is ς at the end of a word.
func lower(s string) string {
	if !strings.Contains(s, "İ") && !strings.Contains(s, "Σ") {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == 'Σ' && endsWord(s[:i], s[i+len("Σ"):]):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// endsWord tells whether what stands between before and after is the last letter of a word of several.
func endsWord(before, after string) bool {
	for len(before) > 0 {
		r, n := utf8.DecodeLastRuneInString(before)
		before = before[:len(before)-n]
		if ignorable(r) {
			continue
		}
		if !cased(r) {
			return false
		}
		for _, r := range after {
			if !ignorable(r) {
				return !cased(r)
			}
		}
		return true
	}
	return false
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Upper, unicode.Lower, unicode.Title, unicode.Other_Uppercase, unicode.Other_Lowercase)
}

func ignorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || slices.Contains([]rune("'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a"), r)
}

// float prints a number as Python does: the shortest that reads back, always with a fraction or an exponent.
func float(f float64) string { return string(appendFloat(make([]byte, 0, 24), f)) }

func appendFloat(b []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	from := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if !bytes.ContainsRune(b[from:], '.') && !math.IsInf(f, 0) && !math.IsNaN(f) {
		b = append(b, ".0"...)
	}
	return b
}
