package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/rollout"
	"skillmaster/skill"

	"golang.org/x/sync/errgroup"
)

// Agreement is how often a policy says what an expert does, to the letter, where both saw the same: by kind of action.
type Agreement map[string]Agreed

// Agreed counts actions of one kind.
type Agreed struct {
	Same int `json:"same"` // that the policy would have taken, too
	Of   int `json:"of"`   // that the expert took
}

// Share is Same of Of, which must not be 0.
func (a Agreed) Share() float64 { return float64(a.Same) / float64(a.Of) }

// All is all kinds together.
func (a Agreement) All() (all Agreed) {
	for _, k := range a {
		all.Same += k.Same
		all.Of += k.Of
	}
	return all
}

// Kinds names the kinds, sorted.
func (a Agreement) Kinds() []string { return slices.Sorted(maps.Keys(a)) }

// Agree has the expert that Sees play each task once, without advice and without mistakes, and a policy say before every
// step what it would do. The policy is taken at its likeliest, and goes on from what the expert did, whatever it said itself. At
// most workers episodes are played at once; the result depends on tasks, policy and seed alone.
func Agree(ctx context.Context, p *rollout.Player, r rollout.Renderer, tasks []episode.Task, s episode.Seed, workers int) (Agreement, error) {
	coach, ok := p.Suite.(env.Coach)
	if !ok {
		return nil, fmt.Errorf("agreement with an expert: %w", errNoExpert)
	}
	var mu sync.Mutex
	total := Agreement{}
	d := rollout.Demonstrator{Suite: p.Suite, Coach: coach, Renderer: r, Config: p.Config, Knowledge: env.Sees, Count: p.Count}
	d.Aside = func(ctx context.Context, r policy.Request, a episode.Action) error {
		r.Sampling.Temperature, r.Sampling.TopP, r.Sampling.TopK = 0, 0, 0
		c, err := p.Policy.Complete(ctx, r)
		if err != nil {
			return err
		}
		said, ok := rollout.ParseAction(c.Text)
		mu.Lock()
		defer mu.Unlock()
		kind := env.SortOf(p.Suite, a)
		k := total[kind]
		k.Of++
		if ok && said == string(a) {
			k.Same++
		}
		total[kind] = k
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, t := range tasks {
		g.Go(func() error {
			_, err := d.Play(ctx, rollout.Start{Task: t, Bank: skill.Bank{}, Seed: s.Derive("agreement " + t.ID)})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("agreement with an expert: %w", err)
	}
	return total, nil
}

// metrics are the shares, by kind and over all.
func (a Agreement) metrics(m map[string]float64) {
	for kind, k := range a {
		m["warm/agreement_"+kind] = k.Share()
	}
	if all := a.All(); all.Of > 0 {
		m["warm/agreement"] = all.Share()
	}
}

// agree compares the policy as it is now with the expert, on the first tasks of the held-out panel, if there is an expert.
func (t *Trainer) agree(ctx context.Context, s *state, m map[string]float64) error {
	tasks := t.Panels.Valid.Tasks
	tasks = tasks[:min(len(tasks), t.Config.Warm.Compare)]
	if _, known := t.Suite.(env.Coach); !known || len(tasks) == 0 {
		return nil
	}
	player, err := t.player(ctx, s)
	if err != nil {
		return err
	}
	a, err := Agree(ctx, player, policy.NewChat(nil, t.Tokenizer, t.Template), tasks, t.seed(), t.Workers)
	if err != nil {
		return err
	}
	a.metrics(m)
	return nil
}
