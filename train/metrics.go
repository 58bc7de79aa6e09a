package train

import (
	"fmt"
	"math"

	"skillmaster/episode"
	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/probe"
	"skillmaster/skill"
)

// mean adds numbers up; those that are not numbers are not measured and left out.
type mean struct{ n, sum, squares float64 }

func (m *mean) add(v float64) {
	if !math.IsNaN(v) {
		m.n++
		m.sum += v
		m.squares += v * v
	}
}

// put writes the mean under a key; nothing if nothing was measured.
func (m mean) put(to map[string]float64, key string) {
	if m.n > 0 {
		to[key] = m.sum / m.n
	}
}

// sd writes the standard deviation (divisor n−1) under a key; nothing for fewer than two numbers.
func (m mean) sd(to map[string]float64, key string) {
	if m.n > 1 {
		to[key] = math.Sqrt(max(0, m.squares-m.sum*m.sum/m.n) / (m.n - 1))
	}
}

// correlation is that of pairs of numbers (Pearson's r).
type correlation struct{ n, x, y, xx, yy, xy float64 }

func (c *correlation) add(x, y float64) {
	c.n, c.x, c.y = c.n+1, c.x+x, c.y+y
	c.xx, c.yy, c.xy = c.xx+x*x, c.yy+y*y, c.xy+x*y
}

// put writes it; nothing for fewer than two pairs, or where one of the numbers is always the same.
func (c correlation) put(to map[string]float64, key string) {
	x, y := c.n*c.xx-c.x*c.x, c.n*c.yy-c.y*c.y
	if c.n > 1 && x > 1e-9 && y > 1e-9 {
		to[key] = (c.n*c.xy - c.x*c.y) / math.Sqrt(x*y)
	}
}

// warmTally gathers what the updates of a warm-start round did.
type warmTally struct {
	demos, cut, tokens, trained int
	won, steps, loss, norm      mean
}

func (w *warmTally) add(demos []episode.Trajectory, cut int, s policy.Stats) {
	w.demos += len(demos)
	w.cut += cut
	w.tokens += s.Tokens
	w.trained += s.Trained
	for _, d := range demos {
		if d.Stop == episode.Unfinished { // of a conversation, nobody knows how it ended
			continue
		}
		w.steps.add(float64(len(d.Steps)))
		w.won.add(indicator(d.Success))
	}
	w.loss.add(s.Loss)
	w.norm.add(s.GradNorm)
}

func (w *warmTally) metrics(m map[string]float64) {
	m["warm/demonstrations"] = float64(w.demos)
	m["warm/cut"] = float64(w.cut)
	m["learn/tokens"] = float64(w.tokens)
	m["learn/trained_tokens"] = float64(w.trained)
	w.won.put(m, "warm/expert_success")
	w.steps.put(m, "warm/steps_mean")
	w.loss.put(m, "learn/loss")
	w.norm.put(m, "learn/grad_norm")
}

// updateTally gathers what the updates of an iteration did.
type updateTally struct {
	tokens, trained                         int
	loss, norm, entropy, kl, clipped, drift mean
}

func (u *updateTally) add(s policy.Stats) {
	u.tokens += s.Tokens
	u.trained += s.Trained
	u.loss.add(s.Loss)
	u.norm.add(s.GradNorm)
	u.entropy.add(s.Entropy)
	u.kl.add(s.KL)
	u.clipped.add(s.ClipShare)
	u.drift.add(s.Drift)
}

func (u *updateTally) metrics(m map[string]float64) {
	m["learn/tokens"] = float64(u.tokens)
	m["learn/trained_tokens"] = float64(u.trained)
	m["learn/updates"] = u.loss.n
	u.loss.put(m, "learn/loss")
	u.norm.put(m, "learn/grad_norm")
	u.entropy.put(m, "learn/entropy")
	u.kl.put(m, "learn/kl_k3")
	u.clipped.put(m, "learn/clip_share")
	u.drift.put(m, "learn/drift")
}

// streamTally gathers the returns of an iteration's groups, by stream.
type streamTally struct {
	action, review                  mean
	groups, dead, deadReview, alone int
	measured, unmeasured            int
}

func (s *streamTally) add(returns []grpo.Returns, g grpo.GroupStats) {
	s.groups++
	for _, r := range returns {
		s.action.add(r.Action)
		if r.ReviewMeasured {
			s.review.add(r.Review)
			s.measured++
		} else {
			s.unmeasured++
		}
	}
	if g.Action.Dead {
		s.dead++
	}
	if g.Review.Dead {
		s.deadReview++
	}
	if g.Review.Rows < 2 {
		s.alone++
	}
}

func (s *streamTally) metrics(m map[string]float64) {
	n := float64(s.groups)
	s.action.put(m, "action/return_mean")
	s.action.sd(m, "action/return_sd")
	m["action/dead_share"] = float64(s.dead) / n
	s.review.put(m, "review/return_mean")
	s.review.sd(m, "review/return_sd")
	m["review/dead_share"] = float64(s.deadReview) / n
	m["review/lone_share"] = float64(s.alone) / n
	m["review/measured"] = float64(s.measured)
	m["review/unmeasured"] = float64(s.unmeasured)
}

// gradientTally gathers the mass of what pulls at the policy, Σ |weight · advantage| over ids, by stream. With ratios of 1 a
// token's gradient with respect to its logits has that size, but for a factor that depends on its probability; what tokens
// have in common adds up and what they have not partly cancels, so the shares are not those of the whole gradient's norm.
type gradientTally struct{ action, review float64 }

func (g *gradientTally) add(data []grpo.Datum) {
	for _, d := range data {
		for t, s := range d.Stream {
			switch mass := math.Abs(float64(d.Weight[t]) * float64(d.Advantage[t])); s {
			case grpo.Action:
				g.action += mass
			case grpo.Review:
				g.review += mass
			case grpo.Context:
			}
		}
	}
}

// metrics writes the shares; nothing if nothing pulls.
func (g *gradientTally) metrics(m map[string]float64) {
	if sum := g.action + g.review; sum > 0 {
		m["learn/action_gradient_share"] = g.action / sum
		m["learn/review_gradient_share"] = g.review / sum
	}
}

// bankMetrics describes what became of the bank in an iteration that began with so many skills.
func bankMetrics(m map[string]float64, before int, b skill.Bank, es probe.Effects, commits []skill.Commit) {
	m["bank/skills"] = float64(b.Len())
	m["bank/archived"] = float64(len(b.Archived()))
	for _, c := range commits {
		m["bank/change_"+c.Outcome.String()]++
	}
	if before > 0 {
		m["bank/churn"] = float64(len(commits)) / float64(before)
	}
	for _, e := range es {
		all := e.All()
		m["skill/met_"+e.Skill] = float64(all.Met())
		m["skill/effect_"+e.Skill] = all.Mean()
		if all.Met() > 1 {
			m["skill/effect_error_"+e.Skill] = all.Error()
		}
		m["skill/harm_"+e.Skill] = e.HarmEValue()
	}
}

// tool is what a review asked for; "none" where that cannot be told.
func tool(r episode.Review) string {
	switch r.Outcome {
	case skill.Kept, skill.Added, skill.Updated, skill.Retired, skill.Unchanged, skill.Duplicate, skill.NotFound, skill.Ambiguous:
		return r.Edit.Op.String()
	case skill.InvalidArguments, skill.UnknownTool, skill.MultipleCalls, skill.Unparsable:
		return "none"
	default:
		panic(fmt.Sprintf("train: no tool for the outcome %v", r.Outcome))
	}
}

// reviewMetrics describes the review turns of an iteration.
func reviewMetrics(m map[string]float64, groups []episode.Group) {
	var reviews, unread, cut, repaired, conflicts, tagged, lost float64
	for _, g := range groups {
		for _, t := range g.Trajectories {
			if t.Review == nil {
				continue
			}
			reviews++
			m["review/outcome_"+t.Review.Outcome.String()]++
			m["review/tool_"+tool(*t.Review)]++
			unread += indicator(t.Review.Outcome == skill.Unparsable || t.Review.Outcome == skill.MultipleCalls)
			turn := t.Turns[len(t.Turns)-1]
			cut += indicator(turn.Truncated)
			repaired += indicator(len(t.Review.Repaired) > 0)
			conflicts += indicator(len(t.Review.Conflicts) > 0)
			if skill.Tagged(turn.Text) {
				tagged++
				lost += indicator(t.Review.Outcome == skill.Unparsable)
			}
		}
	}
	if reviews > 0 {
		m["review/unread_share"] = unread / reviews
		m["review/truncated_share"] = cut / reviews
		m["review/repaired_share"] = repaired / reviews
		m["review/conflicts"] = conflicts
	}
	if tagged > 0 {
		m["review/tagged_unread_share"] = lost / tagged
	}
}

// wrongForm says what to do if most reviews have the tags of a call, and no call could be read: the policy writes another
// form than is read.
func wrongForm(tagged float64, form skill.Mode) string {
	if tagged <= 0.5 {
		return ""
	}
	return fmt.Sprintf("another train.rollout.review_form (it is %s), if the policy writes calls in another form; else a larger train.rollout.review_tokens", form)
}

// fewAlive says what to do if more than half of the groups of g episodes were dead; success is the policy's chance.
func fewAlive(success, dead float64, g int) string {
	if dead <= 0.5 {
		return ""
	}
	if n, ok := grpo.GroupFor(success, 0.5, 64); ok && n > g {
		return fmt.Sprintf("a larger train.group: with %d, half of them would be alive", n)
	}
	return "tasks that the policy neither always wins nor always loses, or a higher train.rollout.temperature"
}

// rolloutMetrics describes the episodes of an iteration.
func rolloutMetrics(m map[string]float64, groups []episode.Group) {
	var episodes, success, steps, inadmissible, malformed, tokens, skills, withheld, cut mean
	stops := map[string]float64{}
	for _, g := range groups {
		for _, t := range g.Trajectories {
			episodes.add(1)
			success.add(indicator(t.Success))
			steps.add(float64(len(t.Steps)))
			inadmissible.add(float64(t.Inadmissible()))
			malformed.add(float64(t.Malformed()))
			tokens.add(float64(t.Tokens()))
			skills.add(float64(len(t.ShownSkills)))
			withheld.add(indicator(t.Withhold > 0))
			stops["rollout/stop_"+t.Stop.String()]++
			for _, u := range t.Turns {
				if u.Kind == episode.ActionTurn {
					cut.add(indicator(u.Truncated))
				}
			}
		}
	}
	m["rollout/episodes"] = episodes.sum
	m["rollout/tokens"] = tokens.sum
	success.put(m, "action/success")
	steps.put(m, "action/steps_mean")
	tokens.put(m, "rollout/tokens_mean")
	skills.put(m, "rollout/skills_shown_mean")
	withheld.put(m, "rollout/dropout_share")
	cut.put(m, "rollout/truncated_share")
	if steps.sum > 0 {
		m["action/inadmissible_share"] = inadmissible.sum / steps.sum
		m["action/malformed_share"] = malformed.sum / steps.sum
	}
	for k, v := range stops {
		m[k] = v
	}
}

// probeMetrics describes the verdicts of an iteration.
func probeMetrics(m map[string]float64, vs []probe.Verdict, j *probe.Judge) {
	var utility, delta mean
	var wins, losses, measured, hidden, won, lost, unplayed int
	var pairs correlation
	for _, v := range vs {
		hidden += v.Hidden
		unplayed += v.Unplayed
		if !v.Measured {
			continue
		}
		for _, p := range v.Pairs {
			pairs.add(j.Value(p.Before), j.Value(p.After))
			switch {
			case p.After.Success && !p.Before.Success:
				won++
			case p.Before.Success && !p.After.Success:
				lost++
			}
		}
		measured++
		utility.add(v.Utility)
		delta.add(v.Mean)
		wins += v.Wins
		losses += v.Losses
	}
	m["probe/edits"] = float64(len(vs))
	m["probe/measured"] = float64(measured)
	m["probe/played"] = float64(j.Played)
	m["probe/reused"] = float64(j.Reused)
	m["probe/unplayed"] = float64(unplayed)
	m["probe/hidden"] = float64(hidden)
	pairs.put(m, "probe/pair_correlation")
	if len(vs) > 0 {
		m["probe/measured_share"] = float64(measured) / float64(len(vs))
	}
	m["probe/flips_won"] = float64(won)
	m["probe/flips_lost"] = float64(lost)
	m["probe/wins"] = float64(wins)
	m["probe/losses"] = float64(losses)
	utility.put(m, "probe/utility_mean")
	utility.sd(m, "probe/utility_sd")
	delta.put(m, "probe/delta_mean")
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
