package webshop

import (
	_ "embed" // the families' words
	"slices"
	"strings"
)

// otherFamily is that of goals without any of the families' words.
const otherFamily = "other"

//go:embed tables/families.txt
var familiesText string

// families are the families with words, in the order in which they are asked for.
var families = func() (fs []family) {
	for line := range strings.Lines(familiesText) {
		if name, words, ok := strings.Cut(line, ":"); ok {
			fs = append(fs, family{name, strings.Fields(words)})
		}
	}
	return fs
}()

type family struct {
	name  string
	words []string
}

// FamilyOf is the family of an instruction: the first that has a word in it, be it a part of another word, as the
// training wrapper sorts them ("string" is among accessories for the "ring" in it).
func FamilyOf(instruction string) string {
	text := lower(instruction)
	for _, f := range families {
		if slices.ContainsFunc(f.words, func(w string) bool { return strings.Contains(text, w) }) {
			return f.name
		}
	}
	return otherFamily
}

// Families names the families, in order.
func Families() []string {
	names := make([]string, 0, len(families)+1)
	for _, f := range families {
		names = append(names, f.name)
	}
	return append(names, otherFamily)
}
