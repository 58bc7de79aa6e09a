package train

import (
	"fmt"
	"slices"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/skill"
)

// withhold is the chance at which an episode's skills are withheld: that of the settings in a share of episodes, else 0.
func (t *Trainer) withhold(s episode.Seed) float64 {
	c := t.Config.Retire
	if c.Dropout > 0 && s.Derive("dropout").Rand().Float64() < c.Dropout {
		return c.Withhold
	}
	return 0
}

// meet takes down what the iteration's episodes under dropout say of each skill that they retrieved.
func (t *Trainer) meet(s *state, groups []episode.Group) {
	cfg := t.Config.Probe
	cfg.Horizon = t.Suite.Guide().Horizon
	largest := cfg.Value(probe.Score{Success: true})
	for _, g := range groups {
		scores := make([]float64, len(g.Trajectories))
		sum := 0.0
		for i, tr := range g.Trajectories {
			scores[i] = cfg.Value(probe.Score{Success: tr.Success, Steps: len(tr.Steps)})
			sum += scores[i]
		}
		for i, tr := range g.Trajectories {
			if tr.Withhold == 0 {
				continue
			}
			m := probe.Met{
				Family: tr.Task.Family, Chance: tr.Withhold, Largest: largest, Score: scores[i],
				Others: (sum - scores[i]) / float64(max(1, len(scores)-1)),
			}
			for _, ids := range [][]string{tr.ShownSkills, tr.Withheld} {
				for _, id := range ids {
					m.Skill, m.Shown = id, slices.Contains(tr.ShownSkills, id)
					s.Effects = s.Effects.Add(m)
				}
			}
		}
	}
}

// retire takes skills out of the bank that do harm, and the least useful ones beyond the cap. They stay in the archive.
func (t *Trainer) retire(s *state, r *Report) {
	c := t.Config.Retire
	for _, e := range c.Harmful(s.Effects, s.Bank) {
		t.archive(s, r, e, "retired: it does harm")
	}
	for _, e := range c.Surplus(s.Effects, s.Bank, c.Cap) {
		t.archive(s, r, e, fmt.Sprintf("retired: the least useful of more than %d", c.Cap))
	}
}

// archive retires a skill by its measured effect.
func (t *Trainer) archive(s *state, r *Report, e probe.Effect, why string) {
	edit := skill.Edit{Op: skill.Retire, ID: e.Skill}
	after, outcome := s.Bank.Apply(edit, skill.Permission{Shown: s.Bank.IDs()})
	if outcome != skill.Retired {
		panic(fmt.Sprintf("train: retiring %s came to %v", e.Skill, outcome))
	}
	all := e.All()
	r.Commits = append(r.Commits, skill.Commit{
		Parent: s.Bank.Hash(), Hash: after.Hash(), Edit: edit, Outcome: outcome, Reason: why, Bank: after,
		Provenance: skill.Provenance{Iteration: s.Round, PolicyVersion: s.PolicyVersion, Evidence: skill.Evidence{
			Pairs: all.Met(), MeanDelta: all.Mean(), EValue: e.HarmEValue(),
		}},
	})
	s.Bank, s.Effects = after, s.Effects.Forget(e.Skill)
}

// full tells whether there is no room for another skill, and none can make room.
func (t *Trainer) full(s *state) bool {
	c := t.Config.Retire
	return c.Cap > 0 && s.Bank.Len() >= c.Cap && len(c.Surplus(s.Effects, s.Bank, s.Bank.Len()-1)) == 0
}
