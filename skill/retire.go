package skill

import (
	"cmp"
	"math"
	"slices"
)

// Worth is what is known of a skill's effect on the episodes that are shown it.
type Worth struct {
	Uses   int     // episodes in whose prompt it stood
	Effect float64 // measured, on the chance of success; NaN: not measured
}

// Surplus returns the ids of the skills to retire so that at most limit (0: any number) stay active, those of the least
// effect first and, of equal effect, the oldest. Pinned skills, those used fewer than minUses times and those whose effect
// was not measured are never among them: retiring what has not had its chance does harm. So fewer may be returned than
// the limit asks for.
func Surplus(b Bank, limit, minUses int, worth map[string]Worth) []string {
	if limit <= 0 || b.Len() <= limit {
		return nil
	}
	var known []string
	for _, id := range b.IDs() {
		if w, ok := worth[id]; ok && w.Uses >= minUses && !math.IsNaN(w.Effect) && !b.Pinned(id) {
			known = append(known, id)
		}
	}
	slices.SortStableFunc(known, func(x, y string) int { return cmp.Compare(worth[x].Effect, worth[y].Effect) })
	return known[:min(len(known), b.Len()-limit)]
}
