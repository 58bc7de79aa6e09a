package webshop

import (
	_ "embed" // the tagger's words
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Nouns tells the nouns of a product's title, lower case, in their order and with repeats. The reward asks it whether
// another product than the one that was asked for is of the same kind, and nothing else does.
//
// The original asks a statistical tagger (spaCy), whose models differ among themselves. A catalogue may bring the nouns
// of its titles, made once with that tagger (title_nouns.jsonl) or known to whoever made the catalogue; for the titles
// it does not bring, Tagger is an approximation. Whoever buys the product that was asked for is judged alike by all
// three. Implementations are safe for concurrent use.
type Nouns interface {
	NounsOf(asin, title string) []string
}

// Tagger guesses nouns: every word of a title that is capitalised or none of a list of function words, adjectives,
// verbs and adverbs; not numbers and units. It is an approximation: where spaCy is recorded, titles have two nouns of
// eighteen more or less, and the reward of buying another product may differ where the share of common nouns lies
// near 0.1 or 0.2.
type Tagger struct{}

// NounsOf implements Nouns.
func (Tagger) NounsOf(_, title string) []string {
	var nouns []string
	for _, w := range titleWords(title) {
		if isNoun(w) {
			nouns = append(nouns, lower(w))
		}
	}
	return nouns
}

//go:embed tables/words.txt
var wordsText string

// taggerWords are words by whether they are none even when capitalised.
var taggerWords = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	always := false
	for line := range strings.Lines(wordsText) {
		if rest, heading := strings.CutPrefix(line, "#"); heading {
			always = strings.HasPrefix(strings.TrimSpace(rest), "never")
			continue
		}
		for _, w := range strings.Fields(line) {
			m[w] = always
		}
	}
	return m
})

func isNoun(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	if !strings.ContainsFunc(word, unicode.IsLetter) || unicode.IsDigit(first) {
		return false // a number, with its unit perhaps
	}
	w := lower(word)
	always, known := taggerWords()[w]
	switch {
	case always:
		return false
	case unicode.IsUpper(first):
		return true
	default:
		return !known && !strings.HasSuffix(w, "ly")
	}
}

// titleWords cuts a title into words about as spaCy does: punctuation, a possessive 's, and hyphens and slashes between
// letters part words.
func titleWords(title string) []string {
	var words []string
	for _, field := range strings.FieldsFunc(title, isSpace) {
		for _, w := range strings.FieldsFunc(field, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) && r != '.' && r != '\'' && r != '’'
		}) {
			w = strings.Trim(w, ".'’")
			for _, s := range []string{"'s", "’s", "'S", "’S"} {
				w = strings.TrimSuffix(w, s)
			}
			if w != "" {
				words = append(words, w)
			}
		}
	}
	return words
}

// nounsJSON is a line of title_nouns.jsonl.
type nounsJSON struct {
	ASIN  string   `json:"asin"`
	Nouns []string `json:"nouns"`
}

// readNouns reads the nouns of titles, by ASIN.
func readNouns(r io.Reader) (map[string][]string, error) {
	nouns := map[string][]string{}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	for n := 1; ; n++ {
		var j nounsJSON
		err := d.Decode(&j)
		if errors.Is(err, io.EOF) {
			return nouns, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list := make([]string, len(j.Nouns))
		for i, w := range j.Nouns {
			list[i] = lower(w)
		}
		nouns[j.ASIN] = list
	}
}
