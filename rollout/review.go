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
func systemText(g env.Guide, shown []skill.Skill, mistakes []skill.Mistake, c Config) string {
	var parts []string
	if c.Guide {
		parts = append(parts, g.Role, g.Rules, "Answer with short reasoning in <think>…</think>, then one action in <action>…</action>, and nothing else.")
	}
	if text := c.lines(shown, mistakes); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n")
}

// reviewRules is what a policy that has not been trained to review is told, around the three tools.
const (
	reviewRules = `Decide whether this episode teaches something the skills do not say yet, or say wrongly, and answer with short reasoning in <think>…</think>, then exactly one tool call, one of these, and nothing else:
`
	reviewRulesEnd = `
Propose only what is new and shown by this episode; update a skill that was shown, by its id, where the episode contradicts or sharpens it; keep when the skills cover it. That the episode succeeded is no reason to keep, and that it failed is none to edit.
Write short general rules that hold for other tasks: when something applies and what to do, no numbers of things, prices, ids or names of this task alone, nothing about this conversation, no placeholders. The category is the one above, or general.`
)

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
	text := fmt.Sprintf("The episode is over: %s (%s), steps: %d, return: %.4g. Category: %s. Skills shown: %s. Review.",
		outcome, e.tr.Stop, len(e.tr.Steps), e.tr.EnvReturn, e.tr.Task.Category, shown)
	if e.cfg.Guide {
		text += "\n" + reviewRules + e.cfg.ReviewForm.Tools() + reviewRulesEnd
	}
	return text
}

// recapChars is the most bytes of an observation or action in a recap.
const recapChars = 240

// recap tells an episode again in few words: the first observation, then the steps from number from (counted from 0) on,
// and of those before it the faulty ones, at most as many. It says what it leaves out.
func (e *playing) recap(from int) string {
	var faulty []int
	for i := from - 1; i >= 0 && len(faulty) < len(e.tr.Steps)-from; i-- {
		if s := e.tr.Steps[i]; s.Malformed || !s.Admissible {
			faulty = append(faulty, i)
		}
	}
	slices.Reverse(faulty)
	var b strings.Builder
	b.WriteString(shortened(e.first, 4*recapChars) + "\n")
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

// review takes the review turn and applies its edit, for the outcome, to the bank the episode was played under. In a window,
// or where the context has no room for it after the episode, it is asked for in a prompt of its own, with as many of the
// last Config.Recap steps as fit.
func (e *playing) review(ctx context.Context, answer complete) error {
	c, err := policy.Completion{Stop: policy.NoContext}, error(nil)
	if e.cfg.Layout == Transcript {
		e.messages = append(e.messages, chat.Message{Role: chat.User, Text: e.reviewText()})
		c, err = e.turn(ctx, episode.ReviewTurn, e.cfg.ReviewTokens, nil, answer)
	}
	for steps := e.cfg.Recap; err == nil && c.Stop == policy.NoContext && steps > 0; steps /= 2 {
		text := e.recap(max(0, len(e.tr.Steps)-steps)) + e.reviewText()
		e.messages = append(e.system(), chat.Message{Role: chat.User, Text: text})
		e.prior, e.seen = nil, 0
		c, err = e.turn(ctx, episode.ReviewTurn, e.cfg.ReviewTokens, nil, answer)
	}
	if err != nil {
		return err
	}
	if c.Stop == policy.NoContext {
		return nil
	}
	call := skill.ParseCall(c.Text, e.cfg.ReviewForm)
	r := episode.Review{Edit: call.Edit, Outcome: call.Outcome, Fault: call.Fault, Offset: call.Offset, Repaired: call.Repaired}
	if c.Stop == policy.Length && r.Outcome == skill.Unparsable {
		r.Fault = "truncated: " + r.Fault
	}
	if call.Parsed() {
		var after skill.Bank
		after, r.Outcome = e.bank.Apply(call.Edit, Permit(e.tr))
		if s, changed := after.Skill(after.Changed(e.bank)); changed {
			r.Conflicts = skill.Conflicts(after, s)
		}
	}
	e.tr.Review = &r
	return nil
}

// Permit is what the review of a trajectory may edit: skills that were shown, in the task's category or in general.
func Permit(t episode.Trajectory) skill.Permission {
	return skill.Permission{Shown: t.ShownSkills, Category: t.Task.Category}
}
