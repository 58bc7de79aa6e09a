package skill

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits bound what a skill may say and how alike two may be. A zero field stands for its default.
type Limits struct {
	Title      int     // characters; default 80
	Principle  int     // characters; default 400
	When       int     // characters; default 200
	Similarity float64 // share of words in common from which two principles are duplicates; default 0.9
}

func (l Limits) orDefault() Limits {
	pick := func(v, d int) int {
		if v == 0 {
			return d
		}
		return v
	}
	l.Title, l.Principle, l.When = pick(l.Title, 80), pick(l.Principle, 400), pick(l.When, 200)
	if l.Similarity == 0 {
		l.Similarity = 0.9
	}
	return l
}

// stored bounds what is read back from a bank of ours, whatever limits it was made under.
var stored = Limits{Title: 1 << 12, Principle: 1 << 14, When: 1 << 13}

// markup is what a chat template, a reply parser or a chat model might take for structure: a tag, a marker in angle
// bars (half or full width), the doubled or shouted brackets of older templates, the beginning of a JSON object (a call
// without its tags).
var markup = regexp.MustCompile(`\{\s*"|</?[\pL_!?]|<\s*[|\x{FF5C}]|[|\x{FF5C}]\s*>|<<|\[/?[A-Z_]{3,}\]`)

// clean makes text safe to stand in a prompt, or says why it is not. Runs of white space, line breaks among them, become
// one space; spaces at the ends go. Refused are: invalid UTF-8 and U+FFFD (what a decoder leaves of it); control, private,
// invisible formatting and no characters (the two joiners of U+200C and U+200D excepted, which scripts and emoji need); and
// markup. limit counts characters; 0 means that the text must be empty.
func clean(s string, limit int) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
		return "", errors.New("is not valid UTF-8")
	}
	s = strings.Join(strings.Fields(s), " ")
	for _, r := range s {
		if hidden(r) {
			return "", fmt.Errorf("has the character %U", r)
		}
	}
	if m := markup.FindString(s); m != "" {
		return "", fmt.Errorf("has the markup %q", m)
	}
	if n := utf8.RuneCountInString(s); n > limit {
		return "", fmt.Errorf("has %d characters, at most %d are allowed", n, limit)
	}
	return s, nil
}

func hidden(r rune) bool {
	return r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Noncharacter_Code_Point)
}

// name is what an id or a category looks like.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// words cuts text into lower-case words of letters, marks, digits and inner apostrophes.
func words(s string) []string {
	all := strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(s), "’", "'"), func(r rune) bool {
		return r != '\'' && !unicode.In(r, unicode.L, unicode.M, unicode.N)
	})
	kept := all[:0]
	for _, w := range all {
		if w = strings.Trim(w, "'"); w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

// normal is text as it is compared: its words.
func normal(s string) string { return strings.Join(words(s), " ") }

// fillers say nothing about what a principle advises.
var fillers = set(words("a an the to of in on at for and or is are be been it its this that these those with by from as then than any each"))

var (
	negatives = set([]string{"never", "not", "don't", "dont", "avoid", "no", "without", "cannot", "can't"})
	positives = set([]string{"always", "do", "must", "should"})
)

// set is words as a set.
func set(ws []string) map[string]bool {
	m := make(map[string]bool, len(ws))
	for _, w := range ws {
		m[w] = true
	}
	return m
}

// content is the set of words that carry a principle's meaning.
func content(s string) map[string]bool {
	m := set(words(s))
	for w := range fillers {
		delete(m, w)
	}
	return m
}

// similarity is the share of words two sets have in common (Jaccard); 0 if both are empty.
func similarity(a, b map[string]bool) float64 {
	common := 0
	for w := range a {
		if b[w] {
			common++
		}
	}
	all := len(a) + len(b) - common
	if all == 0 {
		return 0
	}
	return float64(common) / float64(all)
}
