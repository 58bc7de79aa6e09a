// Package train is the loop: play, review, judge, learn, commit.
package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/rollout"
	"skillmaster/skill"
)

// Trainer trains one policy on one suite. Set the fields, then call Run once. Not safe for concurrent use.
type Trainer struct {
	Config  Config
	Suite   env.Suite
	Panels  Panels
	Learner policy.Learner // nil: Policy answers in its place
	// Policy answers where there is no Learner: a server of others, say, with weights that stay as they are. The bank is then
	// all that improves (Config.Frozen).
	Policy policy.Policy
	// Vectors rank skills where they are retrieved by embedding; nil where they are not.
	Vectors *skill.Vectors
	// Teacher proposes skills, if Config.Teacher says so.
	Teacher policy.Policy
	// Conversations are what a warm start clones, if there are any, in place of episodes of the world's expert.
	Conversations []chat.Conversation
	Context       int // most ids of a sequence the learner takes
	// Reference is the frozen policy of the KL term. nil: the policy as it is when learning begins; a run that goes on
	// later must be given that one again.
	Reference policy.Scorer
	Tokenizer *chat.Tokenizer
	Template  chat.Template
	Bank      skill.Bank // to start with
	Workers   int        // most episodes played at once; 0: as Config.Crowd says
	Keeper    Keeper
	Observers []Observer
	Progress  func(Progress) // told often, from one goroutine at a time; nil: nobody
	Log       *slog.Logger
	Now       func() time.Time
}

// Progress says where a run is.
type Progress struct {
	Phase Phase
	Round int
	Part  string // what is being done: rollout, probe, gate, update, evaluate
	Done  int    // of Total; updates in the warm start, iterations in learning
	Total int
}

// state is what changes from round to round.
type state struct {
	Checkpoint
	sampler policy.Sampler
}

// Run goes on from a checkpoint (the zero Checkpoint: from the start, with Trainer.Bank) to the end of the run. The
// Learner must be in the checkpoint's state. When ctx ends, Run returns its error; what was kept can be resumed.
func (t *Trainer) Run(ctx context.Context, from Checkpoint) error {
	if err := t.Config.Validate(); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if err := t.Panels.Validate(); err != nil {
		return err
	}
	switch {
	case t.Learner == nil && (t.Policy == nil || !t.Config.Frozen || t.Config.Warm.Updates > 0):
		return errors.New("config: without a learner there must be a policy, frozen must be true and warm.updates 0")
	case t.Config.Teacher.Every > 0 && t.Teacher == nil:
		return errors.New("config: teacher.every asks for a teacher, and there is none")
	}
	if t.Workers == 0 {
		t.Workers = t.Config.Crowd.Complete().Episodes
	}
	s := &state{Checkpoint: from}
	defer s.closeSampler()
	if from.Phase == WarmStart && from.Round == 0 {
		s.Bank = t.Bank
	}
	if s.Phase == WarmStart {
		if err := t.warmStart(ctx, s); err != nil {
			return fmt.Errorf("warm start: %w", err)
		}
	}
	for s.Phase == Learning {
		if err := t.iterate(ctx, s); err != nil {
			return fmt.Errorf("iteration %d: %w", s.Round, err)
		}
	}
	return nil
}

func (t *Trainer) seed() episode.Seed { return episode.Seed(t.Config.Seed) }

func (t *Trainer) progress(s *state, part string, done, total int) {
	if t.Progress != nil {
		t.Progress(Progress{Phase: s.Phase, Round: s.Round, Part: part, Done: done, Total: total})
	}
}

// player is the policy as it is now, with its learner's newest weights.
func (t *Trainer) player(ctx context.Context, s *state) (*rollout.Player, error) {
	if t.Learner == nil {
		return &rollout.Player{Suite: t.Suite, Policy: t.throttled(t.Policy), Config: t.Config.Rollout, Vectors: t.Vectors}, nil
	}
	sampler, err := t.Learner.Sampler(ctx)
	if err != nil {
		return nil, err
	}
	s.closeSampler()
	s.sampler = sampler
	return &rollout.Player{
		Suite: t.Suite, Policy: t.throttled(policy.NewChat(sampler, t.Tokenizer, t.Template)), Config: t.Config.Rollout, Vectors: t.Vectors, Count: Counter(t.Tokenizer),
	}, nil
}

// Counter tells how many tokens of a tokenizer a text has.
func Counter(tok *chat.Tokenizer) func(text string) int {
	return func(text string) int { return len(tok.Encode(text)) }
}

// throttled keeps to the limit of ids in flight, if there is one.
func (t *Trainer) throttled(p policy.Policy) policy.Policy {
	if most := t.Config.Crowd.Tokens; most > 0 {
		return policy.NewThrottle(p, most)
	}
	return p
}

// closeSampler frees the caches of the sampler in use, if it has any; nothing is asked of it any more.
func (s *state) closeSampler() {
	if c, ok := s.sampler.(interface{ Close() error }); ok {
		_ = c.Close() // nothing is lost by a sampler that does not close
	}
	s.sampler = nil
}

// keep stores a report with its checkpoint and tells the observers.
func (t *Trainer) keep(ctx context.Context, s *state, r Report) error {
	r.PolicyVersion, r.Bank = s.PolicyVersion, s.Bank.Hash()
	weights := func(w io.Writer) error {
		if t.Learner == nil {
			return nil // a file of nothing: there are no weights of ours
		}
		return t.Learner.Save(ctx, w)
	}
	if err := t.Keeper.Keep(ctx, r, &s.Checkpoint, weights); err != nil {
		return fmt.Errorf("keep the run: %w", err)
	}
	var errs []error
	for _, o := range t.Observers {
		errs = append(errs, o.Observe(ctx, r))
	}
	return errors.Join(errs...)
}

// timer adds the wall time of parts to a report.
type timer struct {
	now  func() time.Time
	last time.Time
	into map[string]float64
}

func (t *Trainer) timer(r *Report) *timer {
	r.Seconds = map[string]float64{}
	return &timer{now: t.Now, last: t.Now(), into: r.Seconds}
}

func (t *timer) lap(part string) {
	n := t.now()
	t.into["time/"+part+"_seconds"] += n.Sub(t.last).Seconds()
	t.last = n
}

// evaluate plays the held-out panel and remembers the best score.
func (t *Trainer) evaluate(ctx context.Context, s *state, r *Report) error {
	player, err := t.player(ctx, s)
	if err != nil {
		return err
	}
	player.Config.Temperature = t.Config.EvaluateTemperature
	e, err := Evaluate(ctx, player, t.Panels.Valid, s.Bank, t.seed().Derive("valid"), t.Workers)
	if err != nil {
		return err
	}
	r.Evaluations = append(r.Evaluations, e)
	s.Best = max(s.Best, e.Summaries()[0].Rate)
	return nil
}
