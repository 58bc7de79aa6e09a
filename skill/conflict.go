package skill

import "regexp"

// related is the share of words that two principles about the same thing have in common, their disagreement set aside.
const related = 0.6

// Conflicts returns the ids, in the bank's order, of the skills that contradict s: both can stand in one prompt (same
// category, or one of them general), they apply at the same time (conditions equal, similar or absent), their principles
// are about the same thing, and either one says never what the other says to do, or they name different places to go
// first. A word test finds only contradictions in similar words; nothing is refused because of it.
func Conflicts(b Bank, s Skill) []string {
	var ids []string
	for _, o := range b.skills() {
		if o.ID != s.ID && meet(o.Category, s.Category) && together(o.When, s.When) && contradict(o.Principle, s.Principle) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Supersede archives the skills that contradict the one with the id, but for pinned ones, and returns their ids: of two
// skills that say opposite things only one is active, and probes that play the bank before and after decide which.
func (b Bank) Supersede(id string) (Bank, []string) {
	s, ok := b.Skill(id)
	if !ok {
		return b, nil
	}
	var gone []string
	for _, other := range Conflicts(b, s) {
		if !b.Pinned(other) {
			b, gone = b.archive(b.index(other)), append(gone, other)
		}
	}
	return b, gone
}

// meet tells whether skills of two categories can stand in one prompt.
func meet(a, b string) bool { return a == b || a == General || b == General }

func together(a, b string) bool {
	x, y := content(a), content(b)
	return len(x) == 0 || len(y) == 0 || similarity(x, y) >= related
}

// contradict tells whether two principles about the same thing disagree.
func contradict(a, b string) bool {
	x, y := content(a), content(b)
	if negative(x) != negative(y) {
		return similarity(without(x, negatives, positives), without(y, negatives, positives)) >= related
	}
	p, q := firstPlace(a), firstPlace(b)
	if p == "" || q == "" || p == q {
		return false
	}
	places := set([]string{p, q})
	return similarity(without(x, places), without(y, places)) >= related
}

func negative(ws map[string]bool) bool {
	for w := range negatives {
		if ws[w] {
			return true
		}
	}
	return false
}

func without(ws map[string]bool, minus ...map[string]bool) map[string]bool {
	left := make(map[string]bool, len(ws))
	for w := range ws {
		keep := true
		for _, m := range minus {
			keep = keep && !m[w]
		}
		if keep {
			left[w] = true
		}
	}
	return left
}

var clauseEnd = regexp.MustCompile(`[.,;:!?]+`)

// firstPlace is the word that stands before "first" in a clause ("look in the drawer first"), or the clause's last
// where it begins with it ("first search the drawer"); empty if the text names none.
func firstPlace(s string) string {
	for _, clause := range clauseEnd.Split(s, -1) {
		ws := words(clause)
		for i, w := range ws {
			switch {
			case w != "first":
			case i > 0 && !fillers[ws[i-1]]:
				return ws[i-1]
			case len(ws) > 1:
				return ws[len(ws)-1]
			}
		}
	}
	return ""
}
