package train

import (
	"context"
	"errors"

	"skillmaster/episode"
	"skillmaster/probe"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// Outside tests an edit that no review of the run wrote as the gate tests its own, round after round of gate tasks, until
// the gate decides. It returns the rounds, and the commit that the edit has earned, nil for none; nothing is stored. The
// edit has an α of its own, which the budget of the run does not count. Set Config, Suite, Panels and Workers.
func (t *Trainer) Outside(ctx context.Context, p *rollout.Player, bank skill.Bank, e skill.Edit, seed episode.Seed) ([]Test, *skill.Commit, error) {
	if t.Config.Gate.Rule == probe.Never {
		return nil, nil, errors.New("the run's gate commits nothing (train.gate.rule=never)")
	}
	s := &state{Checkpoint: Checkpoint{Bank: bank}}
	s.Gate.Pending = []probe.Pending{{Edit: e, Provenance: skill.Provenance{Iteration: -1}}}
	var tests []Test
	for round := uint64(0); ; round++ {
		r := Report{Metrics: map[string]float64{}}
		if err := t.gate(ctx, p, s, &r, seed.Derive("outside", round)); err != nil {
			return nil, nil, err
		}
		tests = append(tests, r.Tests...)
		switch {
		case len(r.Commits) > 0:
			return tests, &r.Commits[0], nil
		case len(s.Gate.Pending) == 0:
			return tests, nil, nil
		}
	}
}
