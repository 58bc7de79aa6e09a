package textworld

import (
	"context"
	"fmt"

	"skillmaster/env"
	"skillmaster/episode"
)

// DefaultLimit is the most actions of an episode, admissible or not, where nobody says otherwise.
const DefaultLimit = 50

// Env is one episode of a game: a State with a step limit. It is not safe for concurrent use.
type Env struct {
	state  *State
	left   int // steps
	last   episode.StepResult
	closed bool
}

// Open starts an episode of at most limit steps, DefaultLimit for 0.
func (g *Game) Open(limit int) (*Env, episode.Observation, error) {
	s, err := g.Start()
	if err != nil {
		return nil, episode.Observation{}, fmt.Errorf("open game %s: %w", g.ID, err)
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Env{state: s, left: limit}, episode.Observation{Text: g.Intro(), Admissible: s.Admissible()}, nil
}

// Step takes an action. Reward is 1 on the step that wins, else 0. An action that is not admissible changes nothing
// and counts as a step. The admissible actions of the result are shared: the caller must not change them.
func (e *Env) Step(ctx context.Context, a episode.Action) (episode.StepResult, error) {
	if err := ctx.Err(); err != nil {
		return episode.StepResult{}, err
	}
	if e.closed {
		return episode.StepResult{}, fmt.Errorf("step of game %s: the episode is closed", e.state.game.ID)
	}
	if e.last.Done {
		return e.last, nil
	}
	text, admissible, err := e.state.Step(string(a))
	if err != nil {
		e.closed = true
		return episode.StepResult{}, fmt.Errorf("step of game %s: %w", e.state.game.ID, err)
	}
	e.left--
	won := e.state.Won()
	e.last = episode.StepResult{
		Observation: episode.Observation{Text: text, Admissible: e.state.Admissible()},
		Done:        won || e.left == 0, Success: won, Admissible: admissible,
	}
	if won {
		e.last.Reward = 1
	}
	return e.last, nil
}

// Close ends the episode.
func (e *Env) Close() error {
	e.closed = true
	return nil
}

// Fork returns an independent episode in the same state.
func (e *Env) Fork() (env.Env, error) {
	if e.closed {
		return nil, fmt.Errorf("fork of game %s: the episode is closed", e.state.game.ID)
	}
	f := *e
	f.state = e.state.Clone()
	return &f, nil
}
