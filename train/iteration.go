package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"skillmaster/episode"
	"skillmaster/grpo"
	"skillmaster/probe"
	"skillmaster/rollout"
)

// iterate is one iteration: rollouts, verdicts, gate, update.
func (t *Trainer) iterate(ctx context.Context, s *state) error {
	r := Report{Phase: Learning, Round: s.Round, Metrics: map[string]float64{}}
	watch := t.timer(&r)
	seed := t.seed().Derive("iteration", uint64(s.Round))
	player, err := t.player(ctx, s)
	if err != nil {
		return err
	}
	t.progress(s, "rollout", s.Round, t.Config.Iterations)
	if r.Groups, err = t.rollouts(ctx, player, s, seed, r.Metrics); err != nil {
		return err
	}
	t.meet(s, r.Groups)
	watch.lap("rollout")

	t.progress(s, "probe", s.Round, t.Config.Iterations)
	verdicts, err := t.judge(ctx, player, s, &r, seed)
	if err != nil {
		return err
	}
	watch.lap("probe")
	t.progress(s, "gate", s.Round, t.Config.Iterations)
	bank := s.Bank
	if err := t.gate(ctx, player, s, &r, seed); err != nil {
		return err
	}
	t.retire(s, &r)
	if err := t.teach(ctx, s, &r, seed); err != nil {
		return err
	}
	watch.lap("gate")

	t.progress(s, "update", s.Round, t.Config.Iterations)
	if err := t.learn(ctx, s, &r, verdicts); err != nil {
		return err
	}
	watch.lap("update")
	rolloutMetrics(r.Metrics, r.Groups)
	reviewMetrics(r.Metrics, r.Groups)
	if advice := wrongForm(r.Metrics["review/tagged_unread_share"], t.Config.Rollout.ReviewForm); advice != "" {
		t.Log.WarnContext(ctx, "most reviews have the tags of a call that cannot be read", "round", r.Round, "share", r.Metrics["review/tagged_unread_share"], "take", advice)
	}
	if advice := fewAlive(r.Metrics["action/success"], r.Metrics["action/dead_share"], t.Config.Group); advice != "" {
		t.Log.WarnContext(ctx, "most groups have nothing to compare", "round", r.Round, "dead_share", r.Metrics["action/dead_share"], "take", advice)
	}
	useMetrics(r.Metrics, r.Groups, bank)
	bankMetrics(r.Metrics, bank.Len(), s.Bank, s.Effects, r.Commits)

	s.Round++
	last := s.Round >= t.Config.Iterations
	if last || (t.Config.Evaluate > 0 && s.Round%t.Config.Evaluate == 0) {
		t.progress(s, "evaluate", s.Round, t.Config.Iterations)
		if err := t.evaluate(ctx, s, &r); err != nil {
			return err
		}
		watch.lap("evaluate")
	}
	if last {
		s.Phase = Finished
	}
	return t.keep(ctx, s, r)
}

// rollouts plays the iteration's groups. An episode that breaks is begun again under another seed; the group of one that is
// lost is left out whole and counted, and the run stops if too many are.
func (t *Trainer) rollouts(ctx context.Context, p *rollout.Player, s *state, seed episode.Seed, m map[string]float64) ([]episode.Group, error) {
	play := p.Play
	if t.Config.Review {
		play = p.PlayAndReview
	}
	n, g := t.Config.Tasks, t.Config.Group
	groups := make([]episode.Group, n)
	for i := range groups {
		task, err := pick(t.Suite, t.Panels.Train.Tasks, t.Config.Vary, seed.Derive("group", uint64(i)))
		if err != nil {
			return nil, err
		}
		groups[i] = episode.Group{Task: task}
	}
	crowd := t.Config.Crowd.Complete()
	played, err := t.crowd(crowd).Play(ctx, n*g, func(ctx context.Context, i, try int) (episode.Trajectory, error) {
		es := seed.Derive("episode", uint64(i/g), uint64(i%g), uint64(try))
		return play(ctx, rollout.Start{Task: groups[i/g].Task, Bank: s.Bank, Seed: es, Withhold: t.withhold(es)})
	})
	if err != nil {
		return nil, err
	}
	var whole []episode.Group
	for i, group := range groups {
		if err := errors.Join(played.Lost[i*g : (i+1)*g]...); err != nil {
			t.Log.WarnContext(ctx, "group left out: an episode was lost", "task", group.Task.ID, "error", err)
			continue
		}
		group.Trajectories = played.Trajectories[i*g : (i+1)*g]
		whole = append(whole, group)
	}
	dropped := n - len(whole)
	m["rollout/groups_dropped"] = float64(dropped)
	m["rollout/retried"] = float64(played.Retried)
	m["rollout/cut"] = float64(played.Cut)
	if len(whole) == 0 || float64(dropped) > crowd.Lost*float64(n) {
		return nil, fmt.Errorf("%d of %d groups were left out, where crowd.lost (%g) allows that share and one has to be left: mend the world or the policy's server, then --resume: %w",
			dropped, n, crowd.Lost, played.Losses())
	}
	return whole, nil
}

// crowd plays as the settings say.
func (t *Trainer) crowd(c CrowdConfig) rollout.Crowd {
	return rollout.Crowd{Episodes: t.Workers, Tries: c.Tries, CutShare: c.CutShare, CutFactor: c.CutFactor, Now: t.Now}
}

// learn turns the groups into advantages and updates the policy.
func (t *Trainer) learn(ctx context.Context, s *state, r *Report, verdicts [][]probe.Verdict) error {
	cfg, groups := t.Config.Learn, r.Groups
	r.Credits = make([][]Credit, len(groups))
	guide := t.Suite.Guide()
	var streams streamTally
	var gradient gradientTally
	parts := make([][]grpo.Datum, cfg.Updates)
	for u := range parts {
		var ts []episode.Trajectory
		var adv []grpo.Advantage
		for g := u; g < len(groups); g += cfg.Updates {
			returns := t.Config.Prices.returns(groups[g], verdicts[g], guide.SuccessReward, guide.Horizon)
			a, stats, err := grpo.Advantages(returns, cfg.Variant, cfg.options(t.Config.Prices))
			if err != nil {
				return fmt.Errorf("advantages of %s: %w", groups[g].Task.ID, err)
			}
			streams.add(returns, stats)
			r.Credits[g] = credits(returns, a)
			if t.Config.Frozen {
				continue
			}
			ts, adv = append(ts, groups[g].Trajectories...), append(adv, a...)
		}
		if len(ts) == 0 {
			continue
		}
		data, err := policyData(ts, adv, cfg.Aggregation, cfg.Lambda)
		if err != nil {
			return err
		}
		gradient.add(data)
		if cfg.Entropy == 0 && cfg.KL == 0 {
			data = live(data)
		}
		if err := t.refer(ctx, data); err != nil {
			return err
		}
		parts[u] = data
	}
	streams.metrics(r.Metrics)
	gradient.metrics(r.Metrics)
	var tally updateTally
	for _, data := range parts {
		if len(data) == 0 {
			continue
		}
		o := cfg.optim(s.Round, t.Config.Iterations)
		o.Restart = s.Restart
		stats, err := t.Learner.Update(ctx, data, o)
		if err != nil {
			return fmt.Errorf("update: %w", err)
		}
		s.Restart = false
		s.PolicyVersion++
		s.Tokens += int64(stats.Tokens)
		tally.add(stats)
	}
	tally.metrics(r.Metrics)
	return nil
}

func credits(returns []grpo.Returns, adv []grpo.Advantage) []Credit {
	out := make([]Credit, len(returns))
	for i, r := range returns {
		out[i] = Credit{
			Action: r.Action, Review: r.Review, Measured: r.ReviewMeasured,
			ActionAdvantage: adv[i].Action, ReviewAdvantage: adv[i].Review,
		}
	}
	return out
}

// refer notes what the reference policy gives the rows' ids, if the loss has a KL term.
func (t *Trainer) refer(ctx context.Context, data []grpo.Datum) error {
	if t.Config.Learn.KL == 0 {
		return nil
	}
	if t.Reference == nil {
		return errors.New("learn.kl needs a reference policy, and there is none")
	}
	ids := make([][]int32, len(data))
	for i, d := range data {
		ids[i] = d.IDs
	}
	refs, err := t.Reference.Score(ctx, ids)
	if err != nil {
		return fmt.Errorf("reference policy: %w", err)
	}
	for i := range data {
		data[i].Ref = refs[i]
	}
	return nil
}

// live leaves out rows with nothing to learn but entropy and KL: every advantage is 0. Divisors have counted them already.
func live(data []grpo.Datum) []grpo.Datum {
	return slices.DeleteFunc(data, func(d grpo.Datum) bool {
		return !slices.ContainsFunc(d.Advantage, func(a float32) bool { return a != 0 })
	})
}
