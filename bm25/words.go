package bm25

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// longest is how many UTF-16 units Lucene takes for one word; the rest is another.
const longest = 255

// eachWord calls do with the words of a text in order, as Lucene's StandardTokenizer cuts it.
func eachWord(text string, do func(string)) {
	for len(text) > 0 {
		n, ascii := piece(text)
		if ascii && n <= longest {
			eachASCIIWord(text[:n], do)
		} else {
			eachUnicodeWord(text[:n], func(word string) { shorten(word, do) })
		}
		text = text[n:]
	}
}

// shorten cuts a word that is too long.
func shorten(word string, do func(string)) {
	for word != "" {
		n, units := len(word), 0
		for i, r := range word {
			if units += utf16.RuneLen(r); units > longest {
				n = i
				break
			}
		}
		if n == len(word) {
			do(word)
		} else {
			eachWord(word[:n], do) // which may end with a sign that joins
		}
		word = strings.TrimLeftFunc(word[n:], func(r rune) bool { return !wordy(r) })
	}
}

// What an ASCII character is to the rules of UAX #29; all others part words.
const (
	letter = 1 << iota
	digit
	low       // joins letters and digits
	midLetter // joins two letters
	midDigit  // joins two digits
	keycap    // stands under a keycap
	wide      // of no ASCII
)

var kinds = func() (k [256]uint8) {
	for c := range k {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			k[c] = letter
		case c >= '0' && c <= '9':
			k[c] = digit
		case c >= utf8.RuneSelf:
			k[c] = wide
		}
	}
	k['_'] = low
	k['.'], k['\''] = midLetter|midDigit, midLetter|midDigit
	k[':'] = midLetter
	k[','], k[';'] = midDigit, midDigit
	k['"'] = midLetter // of Hebrew
	k['#'], k['*'] = keycap, keycap
	return k
}()

// piece is the length of a start of text behind which no rule joins anything, and whether it is all ASCII.
func piece(text string) (n int, ascii bool) {
	var all uint8
	for n < len(text) {
		k := kinds[text[n]]
		if k == 0 {
			n++
			break
		}
		all |= k
		n++
	}
	return n, all&wide == 0
}

// eachASCIIWord is eachUnicodeWord for ASCII, and faster.
func eachASCIIWord(text string, do func(string)) {
	for i := 0; i < len(text); {
		if kinds[text[i]]&(letter|digit|low) == 0 {
			i++
			continue
		}
		start, last, seen := i, uint8(0), uint8(0)
		for i < len(text) {
			k := kinds[text[i]]
			if k&(letter|digit|low) == 0 {
				// A join needs its like on both sides.
				joins := text[i] != '"' && i+1 < len(text) && (k&midLetter != 0 && last&kinds[text[i+1]]&letter != 0 || k&midDigit != 0 && last&kinds[text[i+1]]&digit != 0)
				if !joins {
					break
				}
			}
			last = k
			seen |= k
			i++
		}
		if seen&(letter|digit) != 0 {
			do(text[start:i])
		}
	}
}

// eachUnicodeWord cuts by UAX #29, and then as Lucene does: of what stands between two boundaries, words and pictographs
// are kept, and a run of a script that is written without blanks is one word. The Unicode versions differ (Lucene's 9,
// here 17): what has become a letter since is one.
func eachUnicodeWord(text string, do func(string)) {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(parting, r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	it := words.FromString(text)
	run := 0 // where the run of unspaced letters began that ends at the segment's start; there, if none does
	for it.Next() {
		first, _ := utf8.DecodeRuneInString(it.Value())
		if unspaced(first) {
			continue
		}
		if run < it.Start() {
			do(text[run:it.Start()])
		}
		run = it.End()
		switch w := it.Value(); {
		case unicode.Is(pictographs, first):
			w, _, _ = strings.Cut(w, "\ufe0e") // which asks for the sign as text
			do(w)
		case emoji(first, w) || strings.ContainsFunc(w, wordy):
			do(w)
		}
	}
	if run < len(text) {
		do(text[run:])
	}
}

// emoji tells those made of other signs: a flag of two letters, # or * on a key.
func emoji(first rune, w string) bool {
	regional := func(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
	return regional(first) && strings.ContainsFunc(w[utf8.RuneLen(first):], regional) ||
		(first == '#' || first == '*') && strings.ContainsRune(w, '\u20e3')
}

// wordy tells what makes a word of what it stands in: letters, digits, ideographs, but for those that are marks on others.
func wordy(r rune) bool {
	mark := unicode.Is(unicode.M, r) || r == '\uff9e' || r == '\uff9f'
	return !mark && unicode.In(r, unicode.L, unicode.Nd, unicode.Nl, unicode.Other_Alphabetic, unicode.Han, signs)
}

// unspaced tells the letters and marks of scripts that are written without blanks.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tai_Le, unicode.New_Tai_Lue, unicode.Tai_Tham, unicode.Tai_Viet, unicode.Ahom) &&
		unicode.In(r, unicode.L, unicode.M)
}

// signs holds signs of Katakana that are no letters, and two signs that join Hebrew letters and Arabic digits.
var signs = &unicode.RangeTable{R16: []unicode.Range16{{0x5f3, 0x5f3, 1}, {0x66b, 0x66b, 1}, {0x309b, 0x309c, 1}, {0x30a0, 0x30a0, 1}, {0x32d0, 0x32fe, 1}, {0x3300, 0x3357, 1}}}

// parting holds the signs that have come to join words since Unicode 9.
var parting = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xb8, 0xb8, 1},
		{0x2c2, 0x2c5, 1},
		{0x2d2, 0x2d7, 1},
		{0x2de, 0x2df, 1},
		{0x2e5, 0x2eb, 1},
		{0x2ed, 0x2ed, 1},
		{0x2ef, 0x2ff, 1},
		{0x55a, 0x55c, 1},
		{0x55e, 0x55f, 1},
		{0x58a, 0x58a, 1},
		{0x3006, 0x3006, 1},
		{0xa708, 0xa716, 1},
		{0xa720, 0xa721, 1},
		{0xa789, 0xa78a, 1},
		{0xab5b, 0xab5b, 1},
	},
	LatinOffset: 1,
}

// pictographs holds what Lucene takes for emoji: Extended_Pictographic of Emoji 11.
var pictographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xa9, 0xa9, 1},
		{0xae, 0xae, 1},
		{0x203c, 0x203c, 1},
		{0x2049, 0x2049, 1},
		{0x2122, 0x2122, 1},
		{0x2194, 0x2199, 1},
		{0x21a9, 0x21aa, 1},
		{0x231a, 0x231b, 1},
		{0x2328, 0x2328, 1},
		{0x2388, 0x2388, 1},
		{0x23cf, 0x23cf, 1},
		{0x23e9, 0x23f3, 1},
		{0x23f8, 0x23fa, 1},
		{0x25aa, 0x25ab, 1},
		{0x25b6, 0x25b6, 1},
		{0x25c0, 0x25c0, 1},
		{0x25fb, 0x25fe, 1},
		{0x2600, 0x2605, 1},
		{0x2607, 0x2612, 1},
		{0x2614, 0x2685, 1},
		{0x2690, 0x2705, 1},
		{0x2708, 0x2712, 1},
		{0x2714, 0x2714, 1},
		{0x2716, 0x2716, 1},
		{0x271d, 0x271d, 1},
		{0x2721, 0x2721, 1},
		{0x2728, 0x2728, 1},
		{0x2733, 0x2734, 1},
		{0x2744, 0x2744, 1},
		{0x2747, 0x2747, 1},
		{0x274c, 0x274c, 1},
		{0x274e, 0x274e, 1},
		{0x2753, 0x2755, 1},
		{0x2757, 0x2757, 1},
		{0x2763, 0x2767, 1},
		{0x2795, 0x2797, 1},
		{0x27a1, 0x27a1, 1},
		{0x27b0, 0x27b0, 1},
		{0x27bf, 0x27bf, 1},
		{0x2934, 0x2935, 1},
		{0x2b05, 0x2b07, 1},
		{0x2b1b, 0x2b1c, 1},
		{0x2b50, 0x2b50, 1},
		{0x2b55, 0x2b55, 1},
		{0x3030, 0x3030, 1},
		{0x303d, 0x303d, 1},
		{0x3297, 0x3297, 1},
		{0x3299, 0x3299, 1},
	},
	R32: []unicode.Range32{
		{0x1f000, 0x1f0ff, 1},
		{0x1f10d, 0x1f10f, 1},
		{0x1f12f, 0x1f12f, 1},
		{0x1f16c, 0x1f16f, 1},
		{0x1f18e, 0x1f18e, 1},
		{0x1f191, 0x1f19a, 1},
		{0x1f1ad, 0x1f1e5, 1},
		{0x1f200, 0x1f20f, 1},
		{0x1f21a, 0x1f21a, 1},
		{0x1f22f, 0x1f22f, 1},
		{0x1f232, 0x1f23a, 1},
		{0x1f23c, 0x1f23f, 1},
		{0x1f249, 0x1f53d, 1},
		{0x1f546, 0x1f64f, 1},
		{0x1f680, 0x1f6ff, 1},
		{0x1f774, 0x1f77f, 1},
		{0x1f7d5, 0x1f7ff, 1},
		{0x1f80c, 0x1f80f, 1},
		{0x1f848, 0x1f84f, 1},
		{0x1f85a, 0x1f85f, 1},
		{0x1f888, 0x1f88f, 1},
		{0x1f8ae, 0x1f8ff, 1},
		{0x1f90c, 0x1f93a, 1},
		{0x1f93c, 0x1f945, 1},
		{0x1f947, 0x1fffd, 1},
	},
	LatinOffset: 2,
}
