package bm25

import (
	"strings"
	"unicode"
	"unicode/utf16"

	porterstemmer "github.com/blevesearch/go-porterstemmer"
)

// Terms gives the terms of a text in order, repeated as often as they stand there: what Lucene 8.7 makes of it with
// StandardTokenizer, EnglishPossessiveFilter, LowerCaseFilter, StopFilter and PorterStemFilter, which is Anserini's
// analysis of English. Invalid UTF-8 reads as U+FFFD, which parts words.
func Terms(text string) []string {
	var out []string
	eachWord(text, func(word string) {
		if t := term(word); t != "" {
			out = append(out, t)
		}
	})
	return out
}

// term is what is indexed for a word, "" for a stop word.
func term(word string) string {
	word = strings.Map(unicode.ToLower, possessor(word))
	if stop[word] {
		return ""
	}
	return stem(word)
}

// possessor is a word without a final 's.
func possessor(word string) string {
	if n := len(word) - 1; n > 0 && (word[n] == 's' || word[n] == 'S') {
		for _, apostrophe := range []string{"'", "\u2019", "\uff07"} {
			if owner, cut := strings.CutSuffix(word[:n], apostrophe); cut {
				return owner
			}
		}
	}
	return word
}

// stop holds Lucene's stop words for English.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a an and are as at be but by for if in into is it no not of on or such that the their
		then there these they this to was will with`) {
		m[w] = true
	}
	return m
}()

// stem is Porter's stem of a lower-case word. Lucene counts UTF-16 units, which matters for the shortest words.
func stem(word string) string {
	letters := make([]rune, 0, 32)
	for _, r := range word {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			letters = append(letters, high, low)
		} else {
			letters = append(letters, r)
		}
	}
	stemmed := porterstemmer.StemWithoutLowerCasing(letters)
	units := make([]uint16, 0, 32)
	for _, r := range stemmed {
		units = append(units, uint16(r))
	}
	return string(utf16.Decode(units))
}
