package skill

import "slices"

// Search returns the skills that say most about a text, the best first, at most limit of them: by BM25 as Ranked has it,
// among those of a category and the general ones; "" is every category. Skills that share no word with the text are left
// out. Skills that say equally much come in the bank's order.
func Search(b Bank, category, text string, limit int) []Skill {
	var places []int
	for i, s := range b.skills() {
		if category == "" || s.Category == category || s.Category == General {
			places = append(places, i)
		}
	}
	score := b.rank(places, text)
	places = slices.DeleteFunc(places, func(i int) bool { return score[i] <= 0 })
	slices.SortStableFunc(places, func(i, j int) int {
		switch {
		case score[i] > score[j]:
			return -1
		case score[i] < score[j]:
			return 1
		}
		return 0
	})
	var out []Skill
	for _, i := range places[:min(limit, len(places))] {
		out = append(out, b.skills()[i])
	}
	return out
}
