package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/skill"
)

// Renderer turns messages into the ids a policy sees and writes, exactly as a policy.Policy of ids does.
type Renderer interface {
	Prompt(r policy.Request) ([]int32, error) // ids that are shown after r.Prior, ready for the assistant to go on
	Encode(reply string) []int32              // ids of a reply, its stop id included
}

// Demonstrator plays episodes the way an expert would, in the words and ids a policy would use.
type Demonstrator struct {
	Suite     env.Suite
	Coach     env.Coach
	Renderer  Renderer
	Config    Config
	Knowledge env.Knowledge
	Count     func(text string) int // as in Player
	Noise     float64               // share of actions that are deliberate mistakes, shown but not imitated
	// Reviewer writes the edit of the review turn: what the episode taught that the bank does not say. nil: no review turn.
	Reviewer func(t episode.Trajectory, bank skill.Bank, shown []skill.Skill) skill.Edit
	// Aside, if not nil, is shown every request for an action before the expert answers, and what he will do.
	Aside func(ctx context.Context, r policy.Request, a episode.Action) error
}

// Play demonstrates one episode. The bank's skills that are shown are the expert's advice: it follows them, true or not.
// An expert that finds nothing left to do ends the episode with GaveUp.
func (d *Demonstrator) Play(ctx context.Context, s Start) (episode.Trajectory, error) {
	p := Player{Suite: d.Suite, Config: d.Config, Count: d.Count}
	if p.Config.RetrieveBy == skill.Embedded {
		p.Config.RetrieveBy = skill.Ranked // among a few made-up skills, no server is asked
	}
	e, err := p.begin(ctx, s)
	if err != nil {
		return episode.Trajectory{}, err
	}
	defer e.close()
	r := s.Seed.Derive("demonstration").Rand()
	expert, err := d.Coach.Expert(e.world, d.Knowledge, e.shown, r)
	if err != nil {
		return episode.Trajectory{}, fmt.Errorf("expert for %s: %w", s.Task.ID, err)
	}
	for e.tr.Stop == episode.Unfinished {
		if err := d.step(ctx, e, expert, r); err != nil {
			return episode.Trajectory{}, err
		}
	}
	if d.Reviewer != nil {
		edit := d.Reviewer(e.tr, e.bank, e.shown)
		if err := e.review(ctx, d.says(e.cfg.ReviewForm.Format(edit))); err != nil {
			return episode.Trajectory{}, err
		}
	}
	return e.tr, nil
}

// step takes one demonstrated step, now and then a mistaken one.
func (d *Demonstrator) step(ctx context.Context, e *playing, expert env.Expert, r *rand.Rand) error {
	action, ok := expert.Next()
	if !ok {
		e.tr.Stop = episode.GaveUp
		return nil
	}
	noise := false
	if list := e.now.Admissible; r.Float64() < d.Noise && len(list) > 0 {
		action, noise = list[r.IntN(len(list))], true
	}
	answer := d.says(FormatAction(string(action)))
	if _, err := e.actionTurn(ctx, nil, func(ctx context.Context, r policy.Request) (policy.Completion, error) {
		if d.Aside != nil {
			if err := d.Aside(ctx, r, action); err != nil {
				return policy.Completion{}, err
			}
		}
		return answer(ctx, r)
	}); err != nil {
		return err
	}
	e.tr.Turns[len(e.tr.Turns)-1].Noise = noise
	result, err := e.step(ctx, action, false)
	if err != nil {
		return err
	}
	expert.Observe(action, result)
	if e.tr.Stop == episode.Unfinished && len(e.tr.Steps) >= e.guide.Horizon {
		e.tr.Stop = episode.Horizon
	}
	return nil
}

// says is a policy that writes the given text.
func (d *Demonstrator) says(text string) complete {
	return func(_ context.Context, r policy.Request) (policy.Completion, error) {
		prompt, err := d.Renderer.Prompt(r)
		return policy.Completion{Text: text, Prompt: prompt, IDs: d.Renderer.Encode(text), Stop: policy.Stopped}, err
	}
}
