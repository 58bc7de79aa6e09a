package chat

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
)

// EntityPattern returns the pre-tokenizer pattern of a world whose things are a noun and a number of up to two digits,
// such as "cabinet 3". The nouns are the words (ASCII letters) that stand before such a number at least most-common
// often: min times in the corpus. Under the pattern
//
//   - an entity is one piece together with the blank before it: " cabinet 3";
//   - a noun without a number, a word of keep, and a number are pieces of their own: " cabinet", " clean", " 7";
//   - line ends are pieces;
//   - what lies between is one piece, so that phrases such as ", and a" can become one token.
//
// It is a regular expression that means the same to Hugging Face's tokenizers. The same corpus gives the same pattern.
func EntityPattern(corpus iter.Seq[string], min int, keep ...string) string {
	counts := map[string]int{}
	for text := range corpus {
		countNouns(text, counts)
	}
	var nouns []string
	for w, n := range counts {
		if n >= min {
			nouns = append(nouns, w)
		}
	}
	words := map[string]bool{}
	for _, w := range keep {
		if stop, _ := wordEnd(w, 0); w != "" && stop == len(w) && !slices.Contains(nouns, w) {
			words[w] = true
		}
	}
	var b strings.Builder
	if len(nouns) > 0 {
		b.WriteString(` ?\b(?:` + alternatives(nouns) + `)(?: [0-9]{1,2})?\b|`)
	}
	if len(words) > 0 {
		b.WriteString(` ?\b(?:` + alternatives(slices.Collect(maps.Keys(words))) + `)\b|`)
	}
	b.WriteString(entityTail)
	return b.String()
}

// countNouns counts the words of text that a number follows.
func countNouns(text string, counts map[string]int) {
	for i := 0; i < len(text); i++ {
		if !isLetter(text[i]) || wordBefore(text, i) {
			continue
		}
		stop, ok := wordEnd(text, i)
		if ok && numberAfter(text, stop) > 0 {
			counts[text[i:stop]]++
		}
		i = stop - 1
	}
}

// alternatives joins words, longest first.
func alternatives(words []string) string {
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return strings.Join(words, "|")
}
