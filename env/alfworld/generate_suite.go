package alfworld

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"skillmaster/episode"
)

// GeneratedOptions say which games a generated suite has. The zero value is a suite of all families in usual rooms.
type GeneratedOptions struct {
	Play Options // how they are played
	// Splits gives the number of tasks of each split. Nil stands for train 4096 and probe, gate, valid and report 256
	// each. Games of different splits come from different seeds.
	Splits     map[string]int
	Families   []Family     // in turn; nil for all six
	Difficulty float64      // see Generate
	Custom     Custom       // of the house; the zero Custom is none
	Seed       episode.Seed // another one gives other games throughout
}

// defaultSplits has the panels of a run.
var defaultSplits = map[string]int{"train": 4096, "probe": 256, "gate": 256, "valid": 256, "report": 256}

// NewGenerated returns a suite of generated games. Tasks have ids like "gen/train/pick_two_obj_and_place-pen-None-desk/17"
// that say what the task is as the released folders do; games are made when they are opened.
func NewGenerated(o GeneratedOptions) (*Suite, error) {
	g := generator{o: o, prefix: "gen", recent: map[string]*Game{}}
	if g.o.Splits == nil {
		g.o.Splits = defaultSplits
	}
	if g.o.Families == nil {
		g.o.Families = Families()
	}
	if err := g.check(); err != nil {
		return nil, fmt.Errorf("generated games: %w", err)
	}
	if o.Seed != 0 {
		g.prefix += "-" + strconv.FormatUint(uint64(o.Seed), 16)
	}
	if o.Difficulty != 0 {
		g.prefix += "-d" + strconv.FormatFloat(o.Difficulty, 'g', -1, 64)
	}
	if c := o.Custom; c.Share != 0 {
		g.prefix += "-c" + strconv.FormatFloat(c.Share, 'g', -1, 64) + "-" + strconv.FormatUint(uint64(c.Seed), 16)
	}
	if o.Families != nil {
		for _, f := range o.Families {
			g.prefix += "-" + familyWords[f]
		}
	}
	return NewSuite(&g, o.Play), nil
}

// generator is a source that makes its games. It keeps the last few, for what is played in groups, advised on and
// learnt from is the same game again and again.
type generator struct {
	o      GeneratedOptions
	prefix string // of all ids: names the options that the games depend on

	mu     sync.Mutex
	recent map[string]*Game
	oldest []string // ids of recent, in the order in which they came
}

// mostRecent is the number of games that a generator keeps, about 50 kB each.
const mostRecent = 128

// known returns a game that is kept, or nil.
func (g *generator) known(id string) *Game {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.recent[id]
}

// keep returns the game that is kept under the id of a game just made: that one, or the one of whoever was faster.
func (g *generator) keep(made *Game) *Game {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first := g.recent[made.ID]; first != nil {
		return first
	}
	if len(g.oldest) == mostRecent {
		delete(g.recent, g.oldest[0])
		g.oldest = g.oldest[1:]
	}
	g.recent[made.ID] = made
	g.oldest = append(g.oldest, made.ID)
	return made
}

func (g *generator) check() error {
	for split, n := range g.o.Splits {
		if n < 1 || split == "" || strings.ContainsAny(split, "/"+variationMark) {
			return fmt.Errorf("split %q of %d tasks: want a name without / or %s and at least one task", split, n, variationMark)
		}
	}
	if c := g.o.Custom.Share; !(c >= 0 && c <= 1) {
		return fmt.Errorf("a custom that holds for %v of the things: want a share from 0 to 1", c)
	}
	for _, split := range g.o.Custom.Usual {
		if g.o.Splits[split] == 0 {
			return fmt.Errorf("split %q is to be usual, and there is no such split", split)
		}
	}
	if len(g.o.Families) == 0 || len(g.o.Splits) == 0 {
		return errors.New("no family or no split")
	}
	for _, f := range g.o.Families {
		if _, err := Generate(f, g.o.Seed, g.o.Difficulty); err != nil {
			return err
		}
	}
	return nil
}

// Splits implements Source.
func (g *generator) Splits() []string { return slices.Sorted(maps.Keys(g.o.Splits)) }

// Tasks implements Source. Families take turns.
func (g *generator) Tasks(split string) ([]episode.Task, error) {
	n, ok := g.o.Splits[split]
	if !ok {
		return nil, fmt.Errorf("no split %q: there are %s", split, strings.Join(g.Splits(), ", "))
	}
	tasks := make([]episode.Task, n)
	for i := range tasks {
		d, id := g.draft(split, i)
		f := d.task.family
		tasks[i] = episode.Task{ID: id, Split: split, Family: f.String(), Category: f.Category(), Goal: d.task.text(d.form)}
	}
	return tasks, nil
}

// draft settles what the i-th task of a split is about.
func (g *generator) draft(split string, i int) (d *draft, id string) {
	f := g.o.Families[i%len(g.o.Families)]
	custom := g.o.Custom
	if slices.Contains(custom.Usual, split) {
		custom = Custom{}
	}
	d = newDraft(f, g.o.Seed.Derive("alfworld generated "+split, uint64(i)), g.o.Difficulty, custom)
	id = fmt.Sprintf("%s/%s/%s-%s-None-%s/%d", g.prefix, split, f, d.task.object, d.task.target, i)
	return d, id
}

// Game implements Source.
func (g *generator) Game(id string) (*Game, error) {
	if made := g.known(id); made != nil {
		return made, nil
	}
	parts := strings.Split(id, "/")
	if len(parts) != 4 || parts[0] != g.prefix {
		return nil, fmt.Errorf("%w: %s is not a generated game of this suite", ErrNoGame, id)
	}
	i, err := strconv.Atoi(parts[3])
	if n := g.o.Splits[parts[1]]; err != nil || i < 0 || i >= n {
		return nil, fmt.Errorf("%w: %s is not one of the %d games of split %s", ErrNoGame, id, n, parts[1])
	}
	d, made := g.draft(parts[1], i)
	if made != id {
		return nil, fmt.Errorf("%w: %s; its number is that of %s", ErrNoGame, id, made)
	}
	game, err := d.game(id)
	if err != nil {
		return nil, err
	}
	return g.keep(game), nil
}
