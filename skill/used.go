package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"skillmaster/bm25"
)

// Used returns the ids of those of the given skills of a bank whose mark is on what a policy wrote in an episode: the
// skill's id, or a telling word of its principle. Words are compared by their stems, stop words left out; telling are those
// that stand neither in the goal nor in the principles of most (more than half) of the bank's other skills.
//
// It is a sign, not a proof: the policy may have written the word without the skill. How often that happens can be seen by
// asking the same of skills that were not shown.
func Used(b Bank, given []Skill, goal, wrote string) []string {
	if len(given) == 0 {
		return nil // reading what was written is not cheap
	}
	said, asked := set(bm25.Terms(wrote)), set(bm25.Terms(goal))
	in := map[string]int{} // skills that have the stem
	for _, o := range b.skills() {
		for w := range set(bm25.Terms(o.Principle)) {
			in[w]++
		}
	}
	var used []string
	for _, s := range given {
		if names(wrote, s.ID) || told(s, said, asked, in, b.Len()-1) {
			used = append(used, s.ID)
		}
	}
	return used
}

// told tells whether a telling word of a skill of the bank, which has so many others, was said.
func told(s Skill, said, asked map[string]bool, in map[string]int, others int) bool {
	for _, w := range bm25.Terms(s.Principle) {
		if said[w] && !asked[w] && 2*(in[w]-1) <= others {
			return true
		}
	}
	return false
}

// names tells whether an id stands in a text as a word of its own.
func names(text, id string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], id)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(id):])
		if !inName(before) && !inName(after) {
			return true
		}
		from = i + 1
	}
}

func inName(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }
