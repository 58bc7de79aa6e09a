package train

import (
	"maps"
	"slices"

	"skillmaster/episode"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// Use counts the skills that stood in the prompts of a family's episodes, and those of them that left a mark on what the
// policy wrote (skill.Used).
type Use struct {
	Family string `json:"family"` // "all": every one
	Shown  int    `json:"shown"`
	Used   int    `json:"used"`
}

// uses counts by family, all of them first, then by name. None: no skill was shown.
func uses(ts []episode.Trajectory) []Use {
	all, by := Use{Family: "all"}, map[string]Use{}
	for _, t := range ts {
		u := by[t.Task.Family]
		u.Family = t.Task.Family
		for _, x := range []*Use{&all, &u} {
			x.Shown, x.Used = x.Shown+len(t.ShownSkills), x.Used+len(t.UsedSkills)
		}
		by[u.Family] = u
	}
	if all.Shown == 0 {
		return nil
	}
	out := []Use{all}
	for _, f := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[f])
	}
	return out
}

// useMetrics says how many of the skills that stood in prompts were used, over all and by family, and how many that could
// have stood there and did not bear the mark of use all the same: what chance gives.
func useMetrics(m map[string]float64, groups []episode.Group, bank skill.Bank) {
	var ts []episode.Trajectory
	var hidden, marked float64
	for _, g := range groups {
		for _, t := range g.Trajectories {
			ts = append(ts, t)
			rest := slices.DeleteFunc(skill.Retrieve(bank, skill.Query{Category: t.Task.Category}), func(s skill.Skill) bool {
				return slices.Contains(t.ShownSkills, s.ID)
			})
			if len(rest) > 0 {
				hidden += float64(len(rest))
				marked += float64(len(skill.Used(bank, rest, t.Task.Goal, rollout.Wrote(t))))
			}
		}
	}
	for i, u := range uses(ts) {
		switch {
		case u.Shown == 0:
		case i == 0:
			m["rollout/skills_used_share"] = float64(u.Used) / float64(u.Shown)
		default:
			m["rollout/skills_used_"+u.Family] = float64(u.Used) / float64(u.Shown)
		}
	}
	if hidden > 0 {
		m["rollout/unshown_used_share"] = marked / hidden
	}
}
