package textworld

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"skillmaster/env/textworld/pddl"
	"skillmaster/env/textworld/twl2"
	"skillmaster/episode"
)

// nothingHappens is what the engine itself says to a command that is not possible, whatever the grammar.
const nothingHappens = "Nothing happens."

// State is one game being played: the rules and the texts, without step limit or end. It is not safe for concurrent
// use; its Game is shared.
type State struct {
	game  *Game
	facts *pddl.State

	options    []option // possible now, by command; nil when they have to be found
	admissible []episode.Action
	varied     bool // Matching was asked for what varies
	scratch    []int
}

// option is an operator that is possible now, and the command for it.
type option struct {
	command  string
	operator int
}

func (g *Game) start() *State { return &State{game: g, facts: g.problem.Start()} }

// Start starts the game.
func (g *Game) Start() (*State, error) {
	s := g.start()
	return s, s.look()
}

// Clone copies the state.
func (s *State) Clone() *State {
	return &State{game: s.game, facts: s.facts.Clone(), options: s.options, admissible: s.admissible}
}

// Game that is played.
func (s *State) Game() *Game { return s.game }

// Won says whether the goal holds.
func (s *State) Won() bool { return s.facts.Won() }

// Matching answers the queries of texts.
func (s *State) Matching(predicate string, types []string) ([][]twl2.Arg, error) {
	s.varied = s.varied || s.game.varying[predicate]
	numbers, err := s.facts.Told(predicate, types, s.scratch[:0])
	s.scratch = numbers
	if err != nil {
		return nil, err
	}
	found := make([][]twl2.Arg, len(numbers))
	for i, n := range numbers {
		found[i] = s.game.facts[n]
	}
	return found, nil
}

// look finds what is possible now.
func (s *State) look() error {
	operators := s.facts.Possible(s.scratch[:0])
	s.options = make([]option, len(operators))
	for i, o := range operators {
		s.options[i].operator = o
	}
	s.scratch = operators
	for i := range s.options {
		var err error
		if s.options[i].command, err = s.command(s.options[i].operator); err != nil {
			return err
		}
	}
	slices.SortFunc(s.options, func(a, b option) int { return strings.Compare(a.command, b.command) })
	s.admissible = make([]episode.Action, 0, len(s.options))
	for i, o := range s.options {
		if i == 0 || s.options[i-1].command != o.command {
			s.admissible = append(s.admissible, episode.Action(o.command))
		}
	}
	return nil
}

// command is how a player gives an operator. One for which the grammar asks for nothing that varies is kept.
func (s *State) command(operator int) (string, error) {
	g := s.game
	if kept := g.fixed[operator].Load(); kept != nil {
		return *kept, nil
	}
	s.varied = false
	command, err := g.grammar.Command(g.actions[operator], g.args[operator], s, g)
	if err != nil {
		return "", fmt.Errorf("command for action %s: %w", g.actions[operator], err)
	}
	if !s.varied {
		g.fixed[operator].Store(&command)
	}
	return command, nil
}

// Admissible lists the commands that are possible now, sorted. Callers read the list only. A command that starts or
// ends in white space, such as one that ends in a name of ALFWorld's for an id without "_bar_", is listed but cannot be
// given: the engine strips what players say, not what it compares with.
func (s *State) Admissible() []episode.Action { return s.admissible }

// Step takes a command and returns the answer, and whether the command was admissible. One that was not changes
// nothing. An error is a text that the grammar cannot say.
func (s *State) Step(command string) (answer string, admissible bool, err error) {
	command = strip(command)
	i, found := slices.BinarySearchFunc(s.options, command, func(o option, c string) int { return strings.Compare(o.command, c) })
	if !found {
		return nothingHappens, false, nil
	}
	same := s.scratch[:0]
	for ; i < len(s.options) && s.options[i].command == command; i++ {
		same = append(same, s.options[i].operator)
	}
	s.scratch = same
	o := s.game.problem.First(same)
	s.facts.Apply(o)
	answer, err = s.game.grammar.Feedback(s.game.actions[o], s.game.args[o], s, s.game)
	if err != nil {
		return "", true, fmt.Errorf("answer to %q: %w", command, err)
	}
	return answer, true, s.look()
}

// strip removes white space around a command, that which the original engine takes for white space.
func strip(command string) string {
	return strings.TrimFunc(command, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}
