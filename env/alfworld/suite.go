package alfworld

import (
	"context"
	"errors"
	"fmt"

	"skillmaster/env"
	"skillmaster/episode"
)

// Options say how games are played. The zero Options are those of the original.
type Options struct {
	Wording   Wording // FromFile: as each game's file says, Move where it does not say
	StepLimit int     // most actions of an episode, admissible or not; 0 stands for 50
}

const defaultLimit = 50

// Source supplies games. Its methods are safe for concurrent use.
type Source interface {
	// Splits names the splits there are, sorted.
	Splits() []string
	// Tasks lists a split, in the same order every time; the caller owns the list. An unknown split is an error.
	Tasks(split string) ([]episode.Task, error)
	// Game finds a game by the id of its task; of one that is not listed the error is ErrNoGame.
	Game(id string) (*Game, error)
}

// ErrNoGame says that a source has no game of an id.
var ErrNoGame = errors.New("no such game")

// Suite plays the games of a source. It is safe for concurrent use.
type Suite struct {
	source Source
	o      Options
}

// NewSuite makes a suite of a source's games.
func NewSuite(source Source, o Options) *Suite {
	if o.StepLimit <= 0 {
		o.StepLimit = defaultLimit
	}
	return &Suite{source: source, o: o}
}

// Open reads the games under a folder: packed ones (<split>.jsonl.gz there or under alfworld/), or those of the
// official layout (json_2.1.1/<split>/<task>/<trial>/game.tw-pddl, as in $ALFWORLD_DATA; the folder may also be
// json_2.1.1 itself or the parent of $ALFWORLD_DATA). A split is read when it is first asked for, and stays in memory,
// about 15 kB a game. Game files of the official layout whose texts are not the released ones, or whose goal is of no
// family, are played by package textworld; their tasks may be of no family.
func Open(dir string, o Options) (*Suite, error) {
	source, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	return NewSuite(source, o), nil
}

// OpenLayers reads the games of trees in the official layout that lie over each other. The trees must stay open as long
// as splits are read or games of other texts are opened.
func OpenLayers(trees []Layer, o Options) (*Suite, error) {
	source, err := openOfficial(trees)
	if err != nil {
		return nil, err
	}
	return NewSuite(source, o), nil
}

// Splits names the splits there are, sorted.
func (s *Suite) Splits() []string { return s.source.Splits() }

// Tasks lists a split, sorted by id.
func (s *Suite) Tasks(split string) ([]episode.Task, error) { return s.source.Tasks(split) }

// Game finds a game by the id of its task, or makes the variation that the id names. Of a task that is played as any
// TextWorld game the error is ErrGeneral.
func (s *Suite) Game(id string) (*Game, error) { return s.game(id) }

// Contents is what reading a split found.
type Contents struct {
	Tasks     []episode.Task // sorted by id
	Annotated int            // tasks that people gave their own sentences for
	General   []Skipped      // tasks that are played as any TextWorld game, and why; sorted by id
	Skipped   []Skipped      // sorted by id
	Broken    []error        // damaged files and ids that clash; each names a file and, where it can, a line
}

// Scan reads a split, if that was not done before, and tells all that it found, whereas Tasks refuses a split that has
// something broken. A source that cannot tell has nothing skipped and nothing broken. While it reads, watch is told how
// many games of how many (0: not known) are done, if it is not nil; one call at a time.
func (s *Suite) Scan(ctx context.Context, split string, watch func(done, total int)) (Contents, error) {
	return scan(ctx, s.source, split, watch)
}

func scan(ctx context.Context, source Source, split string, watch func(done, total int)) (Contents, error) {
	if k, ok := source.(interface {
		Scan(ctx context.Context, split string, watch func(done, total int)) (Contents, error)
	}); ok {
		return k.Scan(ctx, split, watch)
	}
	tasks, err := source.Tasks(split)
	return Contents{Tasks: tasks}, errors.Join(err, ctx.Err())
}

// Texts are the rule texts that the source's game files carry; false if it has none, as packed games.
func (s *Suite) Texts() (Texts, bool) {
	if k, ok := s.source.(interface{ Texts() (Texts, bool) }); ok {
		return k.Texts()
	}
	return Texts{}, false
}

// Guide describes the household.
func (s *Suite) Guide() env.Guide {
	put := "move OBJECT to RECEPTACLE"
	if s.wording() == Put {
		put = "put OBJECT in/on RECEPTACLE"
	}
	g := env.Guide{
		Role: "You are in a household and carry out a task with its objects.",
		Rules: "go to RECEPTACLE\n" +
			"open RECEPTACLE, close RECEPTACLE: what is in a closed one cannot be seen or taken\n" +
			"take OBJECT from RECEPTACLE: you can carry one object at a time\n" +
			put + "\n" +
			"clean OBJECT with RECEPTACLE: an object you carry, at a sinkbasin\n" +
			"heat OBJECT with RECEPTACLE: an object you carry, at a microwave\n" +
			"cool OBJECT with RECEPTACLE: an object you carry, at a fridge\n" +
			"use OBJECT: switches on a lamp\n" +
			"slice OBJECT with OBJECT: with a knife you carry\n" +
			"examine THING, look, inventory",
		Horizon: s.o.StepLimit, SuccessReward: 1, Categories: map[string][]string{},
	}
	for _, f := range Families() {
		g.Categories[f.Category()] = append(g.Categories[f.Category()], f.String())
	}
	return g
}

// wording is what the guide speaks: one that is forced, or that of the source's games.
func (s *Suite) wording() Wording {
	if w, ok := s.source.(interface{ Wording() Wording }); ok && s.o.Wording == FromFile {
		return w.Wording()
	}
	return s.o.Wording
}

// Open starts an episode of a task. The games have no chance in them: the seed changes nothing.
func (s *Suite) Open(ctx context.Context, t episode.Task, _ episode.Seed) (env.Env, episode.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, episode.Observation{}, err
	}
	g, err := s.game(t.ID)
	var other *general
	if errors.As(err, &other) && other.task.ID == t.ID {
		return other.open(s.o.StepLimit)
	}
	if err != nil {
		return nil, episode.Observation{}, fmt.Errorf("open task %s: %w", t.ID, err)
	}
	e := newEnv(g.NewState(s.o.Wording), s.o.StepLimit)
	return e, episode.Observation{Text: e.state.Intro(), Admissible: e.state.Admissible()}, nil
}

// task is the game as a task of a split.
func (g *Game) task(split string) episode.Task {
	return episode.Task{ID: g.ID, Split: split, Family: g.Family().String(), Category: g.Family().Category(), Goal: g.Task}
}

// Env is one episode of a game: a State with a step limit. It is not safe for concurrent use.
type Env struct {
	state  *State
	left   int // steps
	last   episode.StepResult
	closed bool
}

func newEnv(s *State, limit int) *Env { return &Env{state: s, left: limit} }

// State is the game as it stands. It is the episode's own: look at it, do not play it.
func (e *Env) State() *State { return e.state }

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
	e.left--
	text, admissible := e.state.Step(string(a))
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
