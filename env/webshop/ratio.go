package webshop

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// setRatio says how alike two texts are as sets of words, 0 to 100, as thefuzz's token_set_ratio does on Python's
// difflib: what both have is compared with what each has, and those with each other.
func setRatio(a, b string) int {
	wordsA, wordsB := wordSet(a), wordSet(b)
	if len(wordsA) == 0 || len(wordsB) == 0 {
		return 0
	}
	var both, onlyA, onlyB []string
	for _, w := range wordsA {
		if slices.Contains(wordsB, w) {
			both = append(both, w)
		} else {
			onlyA = append(onlyA, w)
		}
	}
	for _, w := range wordsB {
		if !slices.Contains(wordsA, w) {
			onlyB = append(onlyB, w)
		}
	}
	s := strings.Join(both, " ")
	x := strings.TrimSpace(s + " " + strings.Join(onlyA, " "))
	y := strings.TrimSpace(s + " " + strings.Join(onlyB, " "))
	return max(ratio(s, x), ratio(s, y), ratio(x, y))
}

// wordSet is the sorted set of words of a text, without letters of Latin-1 beyond ASCII, punctuation and case.
func wordSet(s string) []string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 128 && r <= 255:
			return -1
		case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_':
			return r
		default:
			return ' '
		}
	}, s)
	words := strings.FieldsFunc(lower(s), isSpace)
	slices.Sort(words)
	return slices.Compact(words)
}

// ratio is the share of characters in matching blocks, in whole hundredths, half to even; 0 if either text is empty.
func ratio(a, b string) int {
	if a == b {
		return 100
	}
	if a == "" || b == "" {
		return 0
	}
	x, y := []rune(a), []rune(b)
	return int(math.RoundToEven(100 * (2 * float64(newMatcher(y).matched(x, 0, len(x), 0, len(y))) / float64(len(x)+len(y)))))
}

// matcher finds matching blocks in one text as Python's difflib.SequenceMatcher does: the longest one, leftmost in the
// other text and then in this one, and so on at both sides of it.
type matcher struct {
	y  []rune
	at map[rune][]int // where a character stands in y, but for those so frequent that difflib skips them
}

func newMatcher(y []rune) *matcher {
	m := &matcher{y, map[rune][]int{}}
	for i, r := range y {
		m.at[r] = append(m.at[r], i)
	}
	const long = 200
	if n := len(y); n >= long {
		for r, at := range m.at {
			if len(at) > n/100+1 {
				delete(m.at, r)
			}
		}
	}
	return m
}

// matched counts the characters of matching blocks of x[a:b] and y[c:d].
func (m *matcher) matched(x []rune, a, b, c, d int) int {
	i, j, n := m.longest(x, a, b, c, d)
	if n == 0 {
		return 0
	}
	return n + m.matched(x, a, i, c, j) + m.matched(x, i+n, b, j+n, d)
}

// longest is the longest block of x[a:b] that is in y[c:d]: its start in x and y, and its length.
func (m *matcher) longest(x []rune, a, b, c, d int) (start, in, length int) {
	start, in = a, c
	ending := map[int]int{} // lengths of blocks that end before the current character of x, by their end in y
	for i := a; i < b; i++ {
		next := map[int]int{}
		for _, j := range m.at[x[i]] {
			if j < c {
				continue
			}
			if j >= d {
				break
			}
			n := ending[j-1] + 1
			next[j] = n
			if n > length {
				start, in, length = i-n+1, j-n+1, n
			}
		}
		ending = next
	}
	// Frequent characters lengthen a block that was found without them.
	for start > a && in > c && x[start-1] == m.y[in-1] {
		start, in, length = start-1, in-1, length+1
	}
	for start+length < b && in+length < d && x[start+length] == m.y[in+length] {
		length++
	}
	return start, in, length
}
