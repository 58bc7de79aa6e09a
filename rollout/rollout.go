// Package rollout plays episodes: it shows a world to a policy, reads what the policy writes, and keeps the record.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skillmaster/chat"
	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/policy"
	"skillmaster/skill"

	"golang.org/x/sync/errgroup"
)

// Config says how episodes are played.
type Config struct {
	Temperature  float64 `json:"temperature"`
	TopP         float64 `json:"top_p"`         // 0 or 1: off
	TopK         int     `json:"top_k"`         // 0: off
	ActionTokens int     `json:"action_tokens"` // most ids of an action reply
	ReviewTokens int     `json:"review_tokens"` // most ids of a review reply
	// Guide puts the world's role, rules and reply format into the prompt: what a pretrained model needs, and a policy
	// that learns the world from nothing does not.
	Guide       bool            `json:"guide"`
	Retrieval   bool            `json:"retrieval"` // skills stand in the prompt
	RetrieveBy  skill.Retrieval `json:"retrieve_by"`
	MaxSkills   int             `json:"max_skills"`   // most skills in a prompt, 0: no limit; by prefix: most general ones
	SkillTokens int             `json:"skill_tokens"` // most tokens of skills in a prompt, 0: no limit; not by prefix
	When        bool            `json:"when"`         // skills stand there with their conditions
	Mistakes    int             `json:"mistakes"`     // most mistakes in a prompt, the bank's first
	Layout      Layout          `json:"layout"`
	History     int             `json:"history"`     // in a window: most steps shown
	ReviewForm  skill.Mode      `json:"review_form"` // how reviews are written and read
	Malformed   int             `json:"malformed"`   // guard: so many malformed replies in a row end the episode
	// Recap is the most steps of an episode that a review in a prompt of its own sees again: in a window, and where the
	// context has no room for one after the episode; 0: such an episode has no review.
	Recap int `json:"recap"`
	// Constrained lets the policy say admissible actions only, where the world lists them. It is for evaluation, and no
	// setting of a run: what is learnt from must have been sampled freely.
	Constrained bool `json:"-"`
}

// DefaultConfig suits a small policy that was trained from nothing.
func DefaultConfig() Config {
	return Config{
		Temperature: 1, ActionTokens: 24, ReviewTokens: 96, Retrieval: true, RetrieveBy: skill.Matched, MaxSkills: 4, History: 12, Malformed: 3,
	}
}

// Validate reports the first setting that cannot be.
func (c Config) Validate() error {
	switch {
	case c.Temperature < 0:
		return fmt.Errorf("rollout.temperature is %v, it cannot be negative", c.Temperature)
	case c.ActionTokens < 1 || c.ReviewTokens < 1:
		return errors.New("rollout.action_tokens and rollout.review_tokens must be positive")
	case c.MaxSkills < 0 || c.TopK < 0 || c.TopP < 0 || c.TopP > 1:
		return errors.New("rollout.max_skills and rollout.top_k cannot be negative, rollout.top_p lies between 0 and 1")
	case c.SkillTokens < 0 || c.Mistakes < 0:
		return errors.New("rollout.skill_tokens and rollout.mistakes cannot be negative")
	case c.Layout >= layouts:
		return fmt.Errorf("rollout.layout: there is no %v", c.Layout)
	case c.Layout == Window && c.History < 1:
		return fmt.Errorf("rollout.history is %d: a window needs at least 1 step", c.History)
	case c.RetrieveBy == skill.Prefix && c.MaxSkills == 0:
		return errors.New("rollout.max_skills is 0: retrieval by prefix needs at least 1, the number of general skills to show")
	case c.Recap < 0:
		return fmt.Errorf("rollout.recap is %d, it cannot be negative", c.Recap)
	case c.Malformed < 1:
		return fmt.Errorf("rollout.malformed is %d, the guard needs at least 1", c.Malformed)
	}
	return nil
}

// ErrWorld marks an episode that ended because its world broke, which says nothing about the policy.
var ErrWorld = errors.New("the world broke")

// Broke says whether an episode ended because its world broke, or because what answers did without having said anything:
// it says nothing about the policy, and may be played again.
func Broke(err error) bool {
	return errors.Is(err, ErrWorld) || errors.Is(err, policy.ErrUnavailable) || errors.Is(err, policy.ErrVersion)
}

// Player plays episodes of one suite with one policy. Safe for concurrent use.
type Player struct {
	Suite  env.Suite
	Policy policy.Policy
	Config Config
	// Vectors rank skills where they are retrieved by embedding.
	Vectors *skill.Vectors
	// Count tells how many tokens a text has, for Config.SkillTokens; nil: a guess, one token for three bytes.
	Count func(text string) int
}

// Start is what an episode begins with.
type Start struct {
	Task episode.Task
	Bank skill.Bank
	Must string // id of a skill to be shown before others; empty: none
	Seed episode.Seed
	// Withhold is the chance at which each skill that was retrieved is not shown after all, by a coin of its own; its place
	// stays empty. 0: all are shown.
	Withhold float64
	// Horizon is the most steps to take, if fewer than the world allows; 0: as many as that.
	Horizon int
}

// Play plays the action turns of one episode. The same Start gives the same trajectory until the policy changes.
func (p *Player) Play(ctx context.Context, s Start) (episode.Trajectory, error) {
	e, err := p.begin(ctx, s)
	if err != nil {
		return episode.Trajectory{}, err
	}
	defer e.close()
	if err := e.act(ctx, p.Policy.Complete); err != nil {
		return episode.Trajectory{}, err
	}
	e.tr.UsedSkills = skill.Used(e.bank, e.shown, e.tr.Task.Goal, Wrote(e.tr))
	return e.tr, nil
}

// Wrote is what the policy wrote in the action turns of an episode.
func Wrote(t episode.Trajectory) string {
	var out strings.Builder
	for _, u := range t.Turns {
		if u.Kind == episode.ActionTurn {
			out.WriteString(u.Text + "\n")
		}
	}
	return out.String()
}

// PlayAndReview plays an episode and takes its review turn. Where the context has no room for one, Review is nil.
func (p *Player) PlayAndReview(ctx context.Context, s Start) (episode.Trajectory, error) {
	e, err := p.begin(ctx, s)
	if err != nil {
		return episode.Trajectory{}, err
	}
	defer e.close()
	if err := e.act(ctx, p.Policy.Complete); err != nil {
		return episode.Trajectory{}, err
	}
	e.tr.UsedSkills = skill.Used(e.bank, e.shown, e.tr.Task.Goal, Wrote(e.tr))
	if err := e.review(ctx, p.Policy.Complete); err != nil {
		return episode.Trajectory{}, err
	}
	return e.tr, nil
}

// All calls play for 0…n−1, at most workers at once, and returns the trajectories by index. The first error stops it.
func All(ctx context.Context, n, workers int, play func(ctx context.Context, i int) (episode.Trajectory, error)) ([]episode.Trajectory, error) {
	out := make([]episode.Trajectory, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, workers))
	for i := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			t, err := play(ctx, i)
			out[i] = t
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// complete answers a request: a policy, or an expert that speaks in its place.
type complete func(ctx context.Context, r policy.Request) (policy.Completion, error)

// playing is an episode under way.
type playing struct {
	cfg      Config
	guide    env.Guide
	world    env.Env
	first    string // observation
	now      episode.Observation
	bank     skill.Bank
	shown    []skill.Skill
	messages []chat.Message
	prior    []int32 // token sequence of messages[:seen]
	seen     int
	tr       episode.Trajectory
}

func (p *Player) begin(ctx context.Context, s Start) (*playing, error) {
	world, first, err := p.Suite.Open(ctx, s.Task, s.Seed.Derive("world"))
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // the world did not break
	}
	if err != nil {
		return nil, fmt.Errorf("open task %s: %w: %w", s.Task.ID, ErrWorld, err)
	}
	guide := p.Suite.Guide()
	if s.Horizon > 0 {
		guide.Horizon = min(guide.Horizon, s.Horizon)
	}
	e := &playing{
		cfg: p.Config, guide: guide, world: world, first: first.Text, now: first, bank: s.Bank,
		tr: episode.Trajectory{Task: s.Task, Seed: s.Seed, BankHash: s.Bank.Hash(), PolicyVersion: -1, ShownSkills: []string{}},
	}
	if p.Config.Retrieval {
		if e.shown, err = p.retrieve(ctx, s); err != nil {
			e.close()
			return nil, fmt.Errorf("retrieve skills for %s: %w", s.Task.ID, err)
		}
		e.withhold(s)
	}
	for _, k := range e.shown {
		e.tr.ShownSkills = append(e.tr.ShownSkills, k.ID)
	}
	e.messages = append(e.system(), chat.Message{Role: chat.User, Text: first.Text})
	return e, nil
}

// withhold leaves out skills that were retrieved.
func (e *playing) withhold(s Start) {
	if s.Withhold == 0 {
		return
	}
	e.tr.Withhold, e.tr.Withheld = s.Withhold, []string{}
	e.shown = slices.DeleteFunc(e.shown, func(k skill.Skill) bool {
		out := s.Seed.Derive("withhold "+k.ID).Rand().Float64() < s.Withhold
		if out {
			e.tr.Withheld = append(e.tr.Withheld, k.ID)
		}
		return out
	})
}

// retrieve chooses the skills of an episode.
func (p *Player) retrieve(ctx context.Context, s Start) ([]skill.Skill, error) {
	c := p.Config
	q := skill.Query{
		How: c.RetrieveBy, Category: s.Task.Category, Text: s.Task.Goal, MaxSkills: c.MaxSkills, TopK: c.MaxSkills,
		Budget: c.SkillTokens, Cost: p.Count,
	}
	if q.Cost == nil {
		q.Cost = func(text string) int { return (len(text) + 2) / 3 }
	}
	if c.When {
		q.Line = skill.FullLine
	}
	if s.Must != "" {
		q.Must = []string{s.Must}
	}
	if q.How == skill.Embedded {
		if p.Vectors == nil {
			return nil, errors.New("no server that embeds texts was given")
		}
		var err error
		if q.Scores, err = p.Vectors.Scores(ctx, s.Bank, q); err != nil {
			return nil, err
		}
	}
	return skill.Retrieve(s.Bank, q), nil
}

func (e *playing) close() { _ = e.world.Close() } // the record is complete; a world that fails to close loses nothing

// act plays action turns until the episode ends.
func (e *playing) act(ctx context.Context, answer complete) error {
	malformed := 0
	for e.tr.Stop == episode.Unfinished {
		if len(e.tr.Steps) >= e.guide.Horizon {
			e.tr.Stop = episode.Horizon
			break
		}
		c, err := e.actionTurn(ctx, e.allowed(), answer)
		if err != nil {
			return err
		}
		if c.Stop == policy.NoContext {
			e.tr.Stop = episode.ContextFull
			break
		}
		action, ok := ParseAction(c.Text)
		if ok {
			malformed = 0
		} else {
			malformed++
		}
		if _, err := e.step(ctx, episode.Action(action), !ok); err != nil {
			return err
		}
		if e.tr.Stop == episode.Unfinished && (c.Text == "" || malformed >= e.cfg.Malformed) {
			e.tr.Stop = episode.Degenerate
		}
	}
	return nil
}

// allowed are the replies that a constrained policy may give; none means all.
func (e *playing) allowed() []string {
	if !e.cfg.Constrained {
		return nil
	}
	replies := make([]string, len(e.now.Admissible))
	for i, a := range e.now.Admissible {
		replies[i] = FormatAction(string(a))
	}
	return replies
}

// step sends one action to the world and shows its answer to the policy.
func (e *playing) step(ctx context.Context, a episode.Action, malformed bool) (episode.StepResult, error) {
	r, err := e.world.Step(ctx, a)
	if err != nil && ctx.Err() != nil {
		return r, ctx.Err() // the world did not break
	}
	if err != nil {
		return r, fmt.Errorf("step %d of %s: %w: %w", len(e.tr.Steps)+1, e.tr.Task.ID, ErrWorld, err)
	}
	if r.Reward != r.Reward {
		return r, fmt.Errorf("step %d of %s: %w: the reward is not a number", len(e.tr.Steps)+1, e.tr.Task.ID, ErrWorld)
	}
	e.now = r.Observation
	e.tr.Steps = append(e.tr.Steps, episode.Step{
		Action: a, Observation: r.Observation.Text, Reward: r.Reward, Admissible: r.Admissible, Malformed: malformed,
	})
	e.tr.EnvReturn += r.Reward
	switch {
	case r.Success:
		e.tr.Success, e.tr.Stop = true, episode.Succeeded
	case r.Done && len(e.tr.Steps) >= e.guide.Horizon:
		e.tr.Stop = episode.Horizon
	case r.Done:
		e.tr.Stop = episode.Failed
	}
	e.messages = append(e.messages, chat.Message{Role: chat.User, Text: r.Observation.Text})
	return r, nil
}

// turn asks for one completion and appends it to the record and to the conversation.
func (e *playing) turn(ctx context.Context, kind episode.TurnKind, maxTokens int, allowed []string, answer complete) (policy.Completion, error) {
	c, err := answer(ctx, policy.Request{
		Messages: e.messages, Prior: e.prior[:len(e.prior):len(e.prior)], Seen: e.seen, Allowed: allowed,
		Sampling: policy.Sampling{
			Temperature: e.cfg.Temperature, TopP: e.cfg.TopP, TopK: e.cfg.TopK, MaxTokens: maxTokens,
			Seed: uint64(e.tr.Seed.Derive("turn", uint64(len(e.tr.Turns)))),
		},
	})
	if err != nil {
		return c, fmt.Errorf("%s turn %d of %s: %w", kind, len(e.tr.Turns)+1, e.tr.Task.ID, err)
	}
	if len(e.tr.Turns) > 0 && c.Version != e.tr.PolicyVersion {
		return c, fmt.Errorf("%s turn %d of %s: %w: policy version %d, the episode began with %d",
			kind, len(e.tr.Turns)+1, e.tr.Task.ID, policy.ErrVersion, c.Version, e.tr.PolicyVersion)
	}
	e.tr.PolicyVersion = c.Version
	if c.Stop == policy.NoContext {
		return c, nil // cut off by the end of the context: nobody heard it, and it is no sample of what would have been said
	}
	var shown strings.Builder
	for _, m := range e.messages[e.seen:] {
		shown.WriteString(string(m.Role) + ": " + m.Text + "\n")
	}
	e.tr.Turns = append(e.tr.Turns, episode.Turn{
		Kind: kind, Continues: e.prior != nil, Prompt: c.Prompt, Completion: c.IDs, LogProbs: c.LogProbs,
		Shown: shown.String(), Text: c.Text, Truncated: c.Stop != policy.Stopped,
	})
	e.messages = append(e.messages, chat.Message{Role: chat.Assistant, Text: c.Text})
	if c.IDs != nil && e.cfg.Layout == Transcript {
		e.prior = append(append(e.prior, c.Prompt...), c.IDs...) // what a request was given stays as it is
		e.seen = len(e.messages)
	}
	return c, nil
}
