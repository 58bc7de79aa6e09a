package train

import (
	"errors"
	"fmt"

	"skillmaster/episode"
	"skillmaster/grpo"
	"skillmaster/probe"
	"skillmaster/skill"
)

// Prices turn facts into the two numbers of a trajectory. Nothing else prices.
type Prices struct {
	Success      float64 `json:"success"`      // an episode that succeeded, in place of the world's own reward for it
	Malformed    float64 `json:"malformed"`    // taken for every reply without a well-formed action
	Inadmissible float64 `json:"inadmissible"` // taken for every well-formed action that was not possible
	Abandoned    float64 `json:"abandoned"`    // taken for every step that an episode the guard ended had left: giving up is no way to save fines

	Call       float64 `json:"call"`       // exactly one valid call that came to something: kept, added, updated, retired
	Unparsable float64 `json:"unparsable"` // no call, several, or not to be read
	Invalid    float64 `json:"invalid"`    // a wrong tool, wrong arguments, or a skill that is not there
	Idle       float64 `json:"idle"`       // a duplicate, or an update that changes nothing
	Utility    float64 `json:"utility"`    // weight of the verdict's utility
}

// DefaultPrices are those of this project.
func DefaultPrices() Prices {
	return Prices{
		Success: 10, Malformed: 0.1, Inadmissible: 0.1, Abandoned: 0.1,
		Call: 0.1, Unparsable: -1, Invalid: -0.5, Idle: -0.25, Utility: 1,
	}
}

// Validate reports the first price that cannot be.
func (p Prices) Validate() error {
	if p.Success <= 0 {
		return fmt.Errorf("prices.success is %v, it must be positive", p.Success)
	}
	if p.Malformed < 0 || p.Inadmissible < 0 || p.Abandoned < 0 || p.Utility < 0 {
		return errors.New("prices.malformed, prices.inadmissible, prices.abandoned and prices.utility are taken or weighed: they cannot be negative")
	}
	return nil
}

// Action is the action return: the world's return scaled so that bare success (worldSuccess) is Success, less what
// malformed and inadmissible actions cost, and what giving up costs of a horizon of so many steps.
func (p Prices) Action(t episode.Trajectory, worldSuccess float64, horizon int) float64 {
	abandoned := 0
	if t.Stop == episode.Degenerate {
		abandoned = max(0, horizon-len(t.Steps))
	}
	return t.EnvReturn/worldSuccess*p.Success - p.Malformed*float64(t.Malformed()) - p.Inadmissible*float64(t.Inadmissible()) -
		p.Abandoned*float64(abandoned)
}

// Review is the review return: format plus utility, and whether it was measured. An edit without a measured verdict has
// none; so has an episode without a review turn. What a keep or a faulty call is worth is known without probes.
func (p Prices) Review(t episode.Trajectory, v probe.Verdict) (value float64, measured bool) {
	if t.Review == nil {
		return 0, false
	}
	switch o := t.Review.Outcome; o {
	case skill.Kept, skill.Retired:
		return p.Call, true
	case skill.Added, skill.Updated:
		if p.Utility == 0 {
			return p.Call, true // what the verdict says is not asked
		}
		return p.Call + p.Utility*v.Utility, v.Measured
	case skill.Unchanged, skill.Duplicate:
		return p.Idle, true
	case skill.NotFound, skill.Ambiguous, skill.InvalidArguments, skill.UnknownTool:
		return p.Invalid, true
	case skill.MultipleCalls, skill.Unparsable:
		return p.Unparsable, true
	default:
		panic(fmt.Sprintf("train: no price for the outcome %v", o))
	}
}

// returns prices a group; verdicts by member.
func (p Prices) returns(g episode.Group, verdicts []probe.Verdict, worldSuccess float64, horizon int) []grpo.Returns {
	out := make([]grpo.Returns, len(g.Trajectories))
	for i, t := range g.Trajectories {
		out[i].Action = p.Action(t, worldSuccess, horizon)
		out[i].Review, out[i].ReviewMeasured = p.Review(t, verdicts[i])
		out[i].Turns = max(1, len(t.Steps))
	}
	return out
}
