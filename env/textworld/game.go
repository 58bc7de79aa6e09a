// Package textworld plays any game file of TextWorld's PDDL engine (game.tw-pddl) as that engine does: the domain and the
// problem by package pddl, the texts by package twl2.
package textworld

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"skillmaster/env/textworld/pddl"
	"skillmaster/env/textworld/twl2"
)

// Naming says how the entities of a game are called.
type Naming uint8

// The namings.
const (
	ByID       Naming = iota // zero: as in TextWorld, an entity's name is its id
	ByAlfworld               // as in ALFWorld, whatever the game: "apple_bar__plus_01" is "apple 1", and "key" is "key "
)

// File is what a game file holds. Fields that are not known are passed over, as in the original.
type File struct {
	Domain      string   `json:"pddl_domain"`
	Grammar     string   `json:"grammar"`
	Problem     string   `json:"pddl_problem"`
	Walkthrough []string `json:"walkthrough"`
}

// ReadFile reads a game file's bytes.
func ReadFile(b []byte) (File, error) {
	var f File
	if !utf8.Valid(b) {
		return File{}, errors.New("read game file: it is not UTF-8 (save it as UTF-8)")
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return File{}, fmt.Errorf("read game file: %w (is it complete?)", err)
	}
	for _, part := range [][2]string{{"pddl_domain", f.Domain}, {"grammar", f.Grammar}, {"pddl_problem", f.Problem}} {
		if part[1] == "" {
			return File{}, fmt.Errorf("read game file: it has no %s", part[0])
		}
	}
	return f, nil
}

// Game is one game, ready to be played. It is immutable and safe for concurrent use.
type Game struct {
	ID          string
	Walkthrough []string // commands that win, in names or ids; nil if the file has none

	problem *pddl.Problem
	grammar *twl2.Grammar
	names   map[string]string // of the entities that players can meet
	actions []string          // of each operator
	args    []map[string]twl2.Arg
	facts   [][]twl2.Arg // of each fact
	varying map[string]bool
	fixed   []atomic.Pointer[string] // commands that are the same in all states
	intro   string
}

// NewGame grounds a game's problem, reads its grammar and checks that the two go together. What cannot be played is an
// error that names it and its place.
func NewGame(id string, f File, n Naming) (*Game, error) {
	g := &Game{ID: id, Walkthrough: slices.Clone(f.Walkthrough)}
	if err := g.build(f, n); err != nil {
		return nil, fmt.Errorf("game %s: %w", id, err)
	}
	return g, nil
}

func (g *Game) build(f File, n Naming) error {
	var err error
	if g.problem, err = pddl.Read(f.Domain, f.Problem); err != nil {
		return err
	}
	if g.grammar, err = twl2.Parse(f.Grammar); err != nil {
		return err
	}
	ids := g.problem.Known()
	switch n {
	case ByID:
		g.names = make(map[string]string, len(ids))
		for _, id := range ids {
			g.names[id] = id
		}
	case ByAlfworld:
		if g.names, err = alfworldNames(ids); err != nil {
			return err
		}
	default:
		panic("textworld: a naming that there is not")
	}
	if err := g.readOperators(); err != nil {
		return err
	}
	if err := g.readFacts(); err != nil {
		return err
	}
	if err := g.checkQueries(); err != nil {
		return err
	}
	g.intro, err = g.grammar.Expand("intro", nil, g.start(), g)
	return err
}

// alfworldNames numbers entities as ALFWorld does: those with "_bar_" in their id by what stands before it, the last in
// the order of the ids first. Other ids become names with a blank behind them.
func alfworldNames(ids []string) (map[string]string, error) {
	ids = slices.Sorted(slices.Values(ids))
	count := map[string]int{}
	base := func(before, id string) string {
		if strings.Contains(id, "basin") {
			return before + "basin"
		}
		return before
	}
	for _, id := range ids {
		if before, _, ok := strings.Cut(id, "_bar_"); ok {
			count[base(before, id)]++
		}
	}
	names := make(map[string]string, len(ids))
	for _, id := range ids {
		text := unmangled(id)
		before, _, ok := strings.Cut(text, "|")
		if !ok {
			names[id] = text + " "
			continue
		}
		name := base(before, id)
		if count[name] == 0 {
			return nil, fmt.Errorf("entity %s: ALFWorld cannot name it (what stands before the first _bar_ may not be mangled)", id)
		}
		names[id] = name + " " + strconv.Itoa(count[name])
		count[name]--
	}
	return names, nil
}

// unmangled undoes the spelling of ids in problem files, one sign after the other.
func unmangled(id string) string {
	for _, sign := range [][2]string{{"_bar_", "|"}, {"_minus_", "-"}, {"_plus_", "+"}, {"_dot_", "."}, {"_comma_", ","}} {
		id = strings.ReplaceAll(id, sign[0], sign[1])
	}
	return id
}

// readOperators sees that the grammar knows how to give each action, and each entity it is done with has a name.
func (g *Game) readOperators() error {
	known := map[string]bool{}
	for _, a := range g.grammar.Actions() {
		known[a.Name] = true
	}
	n := g.problem.Operators()
	g.actions = make([]string, n)
	g.args = make([]map[string]twl2.Arg, n)
	g.fixed = make([]atomic.Pointer[string], n)
	for o := range n {
		name := g.problem.Action(o)
		if !known[name] {
			return fmt.Errorf("action %s of the domain is not in the grammar (add: action %s { template :: …; feedback :: …; })", name, name)
		}
		arguments := g.problem.Arguments(o)
		args := make(map[string]twl2.Arg, len(arguments))
		for _, a := range arguments {
			if err := g.named(a.Object); err != nil {
				return fmt.Errorf("action %s: %w", name, err)
			}
			args[a.Parameter] = twl2.Arg{ID: a.Object, Type: a.Type}
		}
		g.actions[o], g.args[o] = name, args
	}
	return nil
}

// named is an error for an entity without a name. The original stops when it comes upon one.
func (g *Game) named(id string) error {
	if _, ok := g.names[id]; !ok {
		return fmt.Errorf("entity %s has no name: no fact of :init is about it (add one, of any predicate)", id)
	}
	return nil
}

// readFacts prepares the facts for queries, and notes which predicates vary in play.
func (g *Game) readFacts() error {
	g.facts = make([][]twl2.Arg, g.problem.Facts())
	for i := range g.facts {
		_, ids := g.problem.Fact(i)
		args := make([]twl2.Arg, len(ids))
		for j, id := range ids {
			args[j] = twl2.Arg{ID: id, Type: g.problem.TypeOf(id)}
		}
		g.facts[i] = args
	}
	g.varying = map[string]bool{}
	for _, p := range g.problem.Varying() {
		g.varying[p] = true
	}
	return nil
}

// checkQueries sees that what texts ask for can be answered.
func (g *Game) checkQueries() error {
	asked := map[string]bool{}
	start := g.problem.Start()
	for _, q := range g.grammar.Queries() {
		if _, err := start.Told(q.Predicate, q.Types, nil); err != nil {
			return fmt.Errorf("grammar line %d, column %d: %s: %w", q.Line, q.Column, q.Predicate, err)
		}
		asked[q.Predicate] = true
	}
	for i, args := range g.facts {
		predicate, _ := g.problem.Fact(i)
		for _, a := range args {
			if err := g.named(a.ID); asked[predicate] && err != nil {
				return fmt.Errorf("texts ask for %s: %w", predicate, err)
			}
		}
	}
	return nil
}

// Name is what players read of an entity.
func (g *Game) Name(id string) string { return g.names[id] }

// Type is the type of an entity.
func (g *Game) Type(id string) string { return g.problem.TypeOf(id) }

// Intro is the first observation.
func (g *Game) Intro() string { return g.intro }

const taskMark = "Your task is to: "

// Task is the sentence of the intro that says what to do, or all of the intro if none says so.
func (g *Game) Task() string {
	if _, task, ok := strings.Cut(g.intro, taskMark); ok {
		return strings.TrimSpace(task)
	}
	return strings.Join(strings.Fields(g.intro), " ")
}

// Domain is the name of the game's domain.
func (g *Game) Domain() string { return g.problem.Domain() }

// Named puts names for ids in a command: walkthroughs may be written in ids.
func (g *Game) Named(command string) string {
	words := strings.Split(command, " ")
	for i, w := range words {
		if name, ok := g.names[w]; ok {
			words[i] = name
		}
	}
	return strings.TrimSpace(strings.Join(words, " "))
}
