package chat

import "strings"

// The byte alphabet of byte-level BPE (GPT-2): every byte is written as one printable character, so that a vocabulary
// is a list of ordinary strings. Printable Latin-1 bytes stand for themselves, the other 68 for U+0100 and up, in order.
var (
	byteRune [256]rune
	runeByte = map[rune]byte{}
)

func init() {
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			r = next
			next++
		}
		byteRune[b] = r
		runeByte[r] = byte(b)
	}
}

// spell writes the bytes of s in the byte alphabet.
func spell(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(byteRune[s[i]])
	}
	return b.String()
}

// unspell reads what spell writes; false if s holds a character that stands for no byte.
func unspell(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		c, ok := runeByte[r]
		if !ok {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), true
}

// byteOrder lists the 256 bytes by their character in the byte alphabet: the order of their ids in a trained vocabulary.
func byteOrder() [256]byte {
	var order [256]byte
	n := 0
	for r := rune('!'); n < 256; r++ {
		if b, ok := runeByte[r]; ok {
			order[n] = b
			n++
		}
	}
	return order
}
