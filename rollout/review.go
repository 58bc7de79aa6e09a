package rollout

import (
	"context"
	"fmt"
	"strings"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/skill"
)

// systemText is the first message: who the agent is and the rules, if wanted, and the retrieved skills. Empty: none.
func systemText(g env.Guide, shown []skill.Skill, guide bool) string {
	var parts []string
	if guide {
		parts = append(parts, g.Role, g.Rules, "Answer with short reasoning in <think>…</think>, then one action in <action>…</action>, and nothing else.")
	}
	if len(shown) > 0 {
		parts = append(parts, skill.Render(shown, nil))
	}
	return strings.Join(parts, "\n\n")
}

// reviewRules is what a policy that has not been trained to review is told.
const reviewRules = `Decide whether this episode teaches something the skills do not say yet, and answer with exactly one tool call:
<tool_call>{"name":"propose_skill","arguments":{"category":"…","title":"…","principle":"…","when_to_apply":"…","evidence":"…"}}</tool_call>
<tool_call>{"name":"update_skill","arguments":{"skill_id":"…","title":"…","principle":"…","when_to_apply":"…","reason":"…"}}</tool_call>
<tool_call>{"name":"keep_skill","arguments":{"reason":"…"}}</tool_call>
Propose only what is new, general and shown by this episode; update only a skill that was shown; keep when the skills
cover it. Write rules that hold in other rooms: no numbers, prices or ids of things. The category is the one above, or
general.`

// reviewText is what the review turn shows after the episode, whose steps stand above it in the same sequence.
func (e *playing) reviewText() string {
	outcome := "failure"
	if e.tr.Success {
		outcome = "success"
	}
	shown := "none"
	if len(e.tr.ShownSkills) > 0 {
		shown = strings.Join(e.tr.ShownSkills, ", ")
	}
	text := fmt.Sprintf("The episode is over: %s (%s), steps: %d. Category: %s. Skills shown: %s. Review.",
		outcome, e.tr.Stop, len(e.tr.Steps), e.tr.Task.Category, shown)
	if e.cfg.Guide {
		text += "\n" + reviewRules
	}
	return text
}

// review takes the review turn and applies its edit, for the outcome, to the bank the episode was played under.
func (e *playing) review(ctx context.Context, answer complete) error {
	e.messages = append(e.messages, chat.Message{Role: chat.User, Text: e.reviewText()})
	c, err := e.turn(ctx, episode.ReviewTurn, e.cfg.ReviewTokens, nil, answer)
	if err != nil {
		return err
	}
	if c.Stop == policy.NoContext {
		if n := len(e.tr.Turns); n > 0 && e.tr.Turns[n-1].Kind == episode.ReviewTurn {
			e.tr.Turns = e.tr.Turns[:n-1] // half a review says nothing
		}
		return nil
	}
	call := skill.ParseCall(c.Text, skill.Strict)
	r := episode.Review{Edit: call.Edit, Outcome: call.Outcome, Fault: call.Fault}
	if c.Stop == policy.Length && r.Outcome == skill.Unparsable {
		r.Fault = "truncated: " + r.Fault
	}
	if call.Parsed() {
		_, r.Outcome = e.bank.Apply(call.Edit, Permit(e.tr))
	}
	e.tr.Review = &r
	return nil
}

// Permit is what the review of a trajectory may edit: skills that were shown, in the task's category or in general.
func Permit(t episode.Trajectory) skill.Permission {
	return skill.Permission{Shown: t.ShownSkills, Category: t.Task.Category}
}
