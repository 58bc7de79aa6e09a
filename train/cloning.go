package train

import (
	"context"
	"errors"
	"fmt"

	"skillmaster/episode"
	"skillmaster/policy"

	"golang.org/x/sync/errgroup"
)

// warmStart clones demonstrations, in rounds.
func (t *Trainer) warmStart(ctx context.Context, s *state) error {
	cfg := t.Config.Warm
	if cfg.Updates > 0 {
		d, err := t.demonstrator()
		if err != nil {
			return err
		}
		for s.Round*cfg.Round < cfg.Updates {
			if err := t.warmRound(ctx, s, d); err != nil {
				return err
			}
		}
	}
	if err := t.freeze(ctx); err != nil {
		return err
	}
	r := Report{Phase: WarmStart, Round: s.Round}
	watch := t.timer(&r)
	s.Phase, s.Round, s.Restart = Learning, 0, true
	if t.Config.Iterations == 0 {
		s.Phase = Finished
	}
	if err := t.evaluate(ctx, s, &r); err != nil {
		return err
	}
	watch.lap("evaluate")
	return t.keep(ctx, s, r)
}

// demonstrator is who shows how to play: the conversations that were given, else the world's expert.
func (t *Trainer) demonstrator() (demonstrator, error) {
	render := policy.NewChat(nil, t.Tokenizer, t.Template)
	if len(t.Conversations) > 0 {
		return told{t.Conversations, render}, nil
	}
	w, err := newWarm(t.Config, t.Suite, t.Panels.Warm.Tasks, render)
	if err != nil {
		return nil, err
	}
	w.demo.Count = Counter(t.Tokenizer)
	return w, nil
}

// freeze makes the policy as it is now the reference, if there is to be one and none was given.
func (t *Trainer) freeze(ctx context.Context) error {
	if t.Config.Learn.KL == 0 || t.Reference != nil {
		return nil
	}
	sampler, err := t.Learner.Sampler(ctx)
	if err != nil {
		return err
	}
	scorer, ok := sampler.(policy.Scorer)
	if !ok {
		return errors.New("learn.kl needs a policy that can score ids; this one cannot")
	}
	t.Reference = scorer
	return nil
}

// warmRound makes some updates and keeps them.
func (t *Trainer) warmRound(ctx context.Context, s *state, by demonstrator) error {
	cfg := t.Config.Warm
	r := Report{Phase: WarmStart, Round: s.Round, Metrics: map[string]float64{}}
	watch := t.timer(&r)
	from := s.Round * cfg.Round
	to := min(cfg.Updates, from+cfg.Round)
	var tally warmTally
	demos, err := t.demonstrations(ctx, by, from)
	if err != nil {
		return err
	}
	for u := from; u < to; u++ {
		t.progress(s, "update", u, cfg.Updates)
		data, cut := cloneData(demos, cfg.Observation, t.Context)
		var stats policy.Stats
		var next []episode.Trajectory
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() (err error) {
			if stats, err = t.Learner.Update(ctx, data, cfg.optim(u)); err != nil {
				return fmt.Errorf("update %d: %w", u, err)
			}
			return nil
		})
		if u+1 < to { // the next update's, meanwhile
			g.Go(func() (err error) {
				next, err = t.demonstrations(ctx, by, u+1)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		s.PolicyVersion++
		s.Tokens += int64(stats.Tokens)
		tally.add(demos, cut, stats)
		demos = next
	}
	watch.lap("update")
	tally.metrics(r.Metrics)
	if err := t.agree(ctx, s, r.Metrics); err != nil {
		return err
	}
	watch.lap("compare")
	s.Round++
	return t.keep(ctx, s, r)
}

// demonstrations are those of update u: as many as make up its tokens.
func (t *Trainer) demonstrations(ctx context.Context, by demonstrator, u int) ([]episode.Trajectory, error) {
	var out []episode.Trajectory
	for tokens := 0; tokens < t.Config.Warm.Tokens; {
		d, err := by.demonstration(ctx, t.seed().Derive("demonstration", uint64(u), uint64(len(out))))
		if err != nil {
			return nil, err
		}
		if d.Tokens() == 0 {
			return nil, fmt.Errorf("the expert had nothing to show on %s", d.Task.ID)
		}
		tokens += d.Tokens()
		out = append(out, d)
	}
	return out, nil
}
