package rollout

import (
	"context"
	"fmt"
	"slices"
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

// recapChars is the most bytes of an observation or action in a recap.
const recapChars = 240

// recap tells an episode again in few words: the first observation, then the steps from number from (counted from 0) on,
// and of those before it the faulty ones, at most as many. It says what it leaves out.
func (e *playing) recap(first string, from int) string {
	var faulty []int
	for i := from - 1; i >= 0 && len(faulty) < len(e.tr.Steps)-from; i-- {
		if s := e.tr.Steps[i]; s.Malformed || !s.Admissible {
			faulty = append(faulty, i)
		}
	}
	slices.Reverse(faulty)
	var b strings.Builder
	b.WriteString(shortened(first, 4*recapChars) + "\n")
	if from > 0 {
		fmt.Fprintf(&b, "[Of steps 1 to %d only what went wrong is told.]\n", from)
	}
	for i, s := range e.tr.Steps {
		if i >= from || slices.Contains(faulty, i) {
			fmt.Fprintf(&b, "%d. %s\n%s\n", i+1, shortened(string(s.Action), recapChars), shortened(s.Observation, recapChars))
		}
	}
	return b.String()
}

// shortened cuts a text to n bytes and says so.
func shortened(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return clip(s, n) + " [cut]"
}

// review takes the review turn and applies its edit, for the outcome, to the bank the episode was played under. Where the
// context has no room for it after the episode, it is asked for in a prompt of its own, with as many of the last
// Config.Recap steps as fit.
func (e *playing) review(ctx context.Context, answer complete) error {
	head := e.messages[:slices.IndexFunc(e.messages, func(m chat.Message) bool { return m.Role == chat.User })]
	first := e.messages[len(head)].Text
	e.messages = append(e.messages, chat.Message{Role: chat.User, Text: e.reviewText()})
	c, err := e.turn(ctx, episode.ReviewTurn, e.cfg.ReviewTokens, nil, answer)
	for steps := e.cfg.Recap; err == nil && c.Stop == policy.NoContext && steps > 0; steps /= 2 {
		text := e.recap(first, max(0, len(e.tr.Steps)-steps)) + e.reviewText()
		e.messages = append(slices.Clone(head), chat.Message{Role: chat.User, Text: text})
		e.prior, e.seen = nil, 0
		c, err = e.turn(ctx, episode.ReviewTurn, e.cfg.ReviewTokens, nil, answer)
	}
	if err != nil {
		return err
	}
	if c.Stop == policy.NoContext {
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
