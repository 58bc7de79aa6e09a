package train

import (
	"strings"
	"unicode"

	"skillmaster/episode"
	"skillmaster/skill"
)

// words are the words of a text in lower case, letters alone.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		out[w] = true
	}
	return out
}

// used tells whether an episode did what only the skill speaks of: some action names a word of its principle, of four
// letters at least, that neither the goal nor the world's rules say. It is a trace of use, no proof: a policy may have come upon
// the word by itself, or have heeded a skill by what it did not do.
func used(k skill.Skill, t episode.Trajectory, rules map[string]bool) bool {
	goal := words(t.Task.Goal)
	for w := range words(k.Principle) {
		if len(w) < 4 || goal[w] || rules[w] {
			continue
		}
		for _, s := range t.Steps {
			if !s.Malformed && words(string(s.Action))[w] {
				return true
			}
		}
	}
	return false
}

// useMetrics says how many of the skills that stood in prompts left a trace, over all and by family.
func useMetrics(m map[string]float64, groups []episode.Group, bank skill.Bank, rules string) {
	shown, traced := map[string]float64{}, map[string]float64{}
	var all, allTraced float64
	says := words(rules)
	for _, g := range groups {
		for _, t := range g.Trajectories {
			for _, id := range t.ShownSkills {
				k, ok := bank.Skill(id)
				if !ok {
					continue
				}
				v := indicator(used(k, t, says))
				shown[t.Task.Family]++
				traced[t.Task.Family] += v
				all, allTraced = all+1, allTraced+v
			}
		}
	}
	if all > 0 {
		m["rollout/skills_used_share"] = allTraced / all
	}
	for family, n := range shown {
		m["rollout/skills_used_"+family] = traced[family] / n
	}
}
