package train

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

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

	Call        float64 `json:"call"`         // exactly one valid call that came to something: kept, added, updated, retired
	Unparsable  float64 `json:"unparsable"`   // no call, several, or not to be read
	Invalid     float64 `json:"invalid"`      // wrong arguments
	UnknownTool float64 `json:"unknown_tool"` // a call of a tool that there is not
	NotFound    float64 `json:"not_found"`    // a skill that there is not, that was not shown, or whose title several bear
	Duplicate   float64 `json:"duplicate"`    // an edit that says what another skill says
	Unchanged   float64 `json:"unchanged"`    // an update that changes nothing
	Utility     float64 `json:"utility"`      // weight of the verdict's utility

	// What the public release takes besides for the form of a review. Here: nothing.
	NoReasoning float64 `json:"no_reasoning"` // no <think>…</think>
	NoTags      float64 `json:"no_tags"`      // no <tool_call>…</tool_call>
	ActionTool  float64 `json:"action_tool"`  // a tool called like an action of the world
	Placeholder float64 `json:"placeholder"`  // broken tags, or "..." in place of an argument
}

// DefaultPrices are those of this project.
func DefaultPrices() Prices {
	return Prices{
		Success: 10, Malformed: 0.1, Inadmissible: 0.1, Abandoned: 0.1,
		Call: 0.1, Unparsable: -1, Invalid: -0.5, UnknownTool: -0.5, NotFound: -0.5, Duplicate: -0.25, Unchanged: -0.25, Utility: 1,
	}
}

// ReleasePrices are those of the public release's scripts, but for what it takes from single turns: fines for the form of an
// action are one price here, and part of the episode's return.
func ReleasePrices() Prices {
	return Prices{
		Success: 10, Malformed: 0.5,
		Call: 0.1, Unparsable: -2, Invalid: -1, UnknownTool: -1.5, NotFound: 0.1, Duplicate: 0.1 - 0.5, Unchanged: 0.1, Utility: 1,
		NoReasoning: 0.5, NoTags: 0.5, ActionTool: 3, Placeholder: 1.5,
	}
}

// Validate reports the first price that cannot be.
func (p Prices) Validate() error {
	if p.Success <= 0 {
		return fmt.Errorf("prices.success is %v, it must be positive", p.Success)
	}
	if p.Malformed < 0 || p.Inadmissible < 0 || p.Abandoned < 0 || p.Utility < 0 || p.NoReasoning < 0 || p.NoTags < 0 || p.ActionTool < 0 || p.Placeholder < 0 {
		return errors.New("prices.malformed, inadmissible, abandoned, utility, no_reasoning, no_tags, action_tool and placeholder are taken or weighed: they cannot be negative")
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
	value, measured = p.outcome(t.Review.Outcome, v)
	switch o := t.Review.Outcome; {
	case len(t.Review.Repaired) == 0:
	case o == skill.Kept, o == skill.Added, o == skill.Updated, o == skill.Retired:
		value -= p.Call // the form was not right: it earns nothing
	}
	if n := len(t.Turns); n > 0 && t.Turns[n-1].Kind == episode.ReviewTurn {
		value -= p.form(t.Turns[n-1].Text)
	}
	return value, measured
}

func (p Prices) outcome(o skill.Outcome, v probe.Verdict) (value float64, measured bool) {
	switch o {
	case skill.Kept, skill.Retired:
		return p.Call, true
	case skill.Added, skill.Updated:
		if p.Utility == 0 {
			return p.Call, true // what the verdict says is not asked
		}
		return p.Call + p.Utility*v.Utility, v.Measured
	case skill.Unchanged:
		return p.Unchanged, true
	case skill.Duplicate:
		return p.Duplicate, true
	case skill.NotFound, skill.Ambiguous:
		return p.NotFound, true
	case skill.InvalidArguments:
		return p.Invalid, true
	case skill.UnknownTool:
		return p.UnknownTool, true
	case skill.MultipleCalls, skill.Unparsable:
		return p.Unparsable, true
	default:
		panic(fmt.Sprintf("train: no price for the outcome %v", o))
	}
}

// form is what is taken for the form of a review.
func (p Prices) form(reply string) (fine float64) {
	pair := func(open, end string) bool { return strings.Contains(reply, open) && strings.Contains(reply, end) }
	if !pair("<think>", "</think>") {
		fine += p.NoReasoning
	}
	if !pair("<tool_call>", "</tool_call>") {
		fine += p.NoTags
	}
	if p.ActionTool == 0 && p.Placeholder == 0 {
		return fine
	}
	call := skill.ParseCall(reply, skill.Strict)
	if likeAction.MatchString(call.Tool) {
		fine += p.ActionTool
	}
	hollow := strings.Contains(reply, "<th>") || strings.Contains(reply, "<think><think>")
	for _, text := range []string{call.Edit.ID, call.Edit.Category, call.Edit.Title, call.Edit.Principle, call.Edit.When, call.Edit.Reason} {
		hollow = hollow || slices.Contains([]string{"...", "…", "<th>", "<think>", "</think>", "<tool_call>", "</tool_call>"}, strings.TrimSpace(text))
	}
	if hollow {
		fine += p.Placeholder
	}
	return fine
}

// likeAction is a tool's name that looks like an action of the world.
var likeAction = regexp.MustCompile(`^(?i:done$|go to|go_to_|take|move|open|close|examine|clean|heat|cool|look|inventory|put|use|toggle|drop)`)

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
