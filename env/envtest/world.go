// Package envtest holds a conformance suite that every world passes, and a tiny world to test other packages with.
package envtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

// World is a tiny deterministic world for tests: a hall with doors of four colours, two of each, and a treasure behind
// one. There are two families, "find_gem" in category "gems" and "find_coin" in category "coins"; the doors of a
// find_coin hall are locked until the key is taken. Every hall bears an animal, and for each category the animal tells
// the colour of the right door, never the number: a policy that has learned or was told the colour wins in at most
// two openings, one that tries doors blindly wins five gems in eight and four coins in eight before the horizon of 6.
//
// Splits are "train", "probe", "gate" and "valid". World implements env.Suite, env.Coach and env.Varier, and its
// episodes env.Snapshotter. The zero World is ready to use; it is safe for concurrent use.
type World struct {
	Seed episode.Seed // draws the halls: another seed, other halls behind the same task ids
	Size int          // tasks of each split; 0 stands for 24
}

const (
	horizon     = 6
	defaultSize = 24
	perColour   = 2
	nothing     = "Nothing happens."
	variedSplit = "varied"
)

var (
	colours = []string{"blue", "green", "red", "white"}
	animals = []string{"bear", "crow", "fox", "owl"}
	splits  = []string{"train", "probe", "gate", "valid"}
	kinds   = []kind{{"find_gem", "gems", "gem", 1}, {"find_coin", "coins", "coin", 2}}
)

// kind is a family. The colour of the right door is that of the animal's index plus shift.
type kind struct {
	family, category, treasure string
	shift                      int
}

func (k kind) goal() string { return "Take the " + k.treasure + "." }

func (k kind) colour(animal int) string { return colours[(animal+k.shift)%len(colours)] }

// hall is a task, drawn.
type hall struct {
	kind   kind
	animal int
	number int // of the right door, from 1
}

func (h hall) door() string { return h.kind.colour(h.animal) + " door " + strconv.Itoa(h.number) }

func (h hall) locked() bool { return h.kind.treasure == "coin" }

// Tasks lists a split, the families in turn.
func (w World) Tasks(split string) ([]episode.Task, error) {
	if !slices.Contains(splits, split) {
		return nil, fmt.Errorf("no split %q: there are %s", split, strings.Join(splits, ", "))
	}
	n := w.Size
	if n == 0 {
		n = defaultSize
	}
	tasks := make([]episode.Task, n)
	for i := range tasks {
		k := kinds[i%len(kinds)]
		tasks[i] = task(split, fmt.Sprintf("%s/%s/%03d", split, k.family, i), k)
	}
	return tasks, nil
}

func task(split, id string, k kind) episode.Task {
	return episode.Task{ID: id, Split: split, Family: k.family, Category: k.category, Goal: k.goal()}
}

// Guide describes the halls.
func (w World) Guide() env.Guide {
	g := env.Guide{
		Role: "You are in a hall of doors and look for a treasure.",
		Rules: "open COLOUR door NUMBER: opens a door and shows what is behind it\n" +
			"take THING: takes the key, or a treasure that was found\n" +
			"Locked doors open once the key was taken.",
		Horizon: horizon, SuccessReward: 1, Categories: map[string][]string{},
	}
	for _, k := range kinds {
		g.Categories[k.category] = append(g.Categories[k.category], k.family)
	}
	return g
}

// hall draws the task's hall from its id alone.
func (w World) hall(id string) (hall, error) {
	for _, k := range kinds {
		if strings.Contains("/"+id+"/", "/"+k.family+"/") {
			r := w.Seed.Derive("hall " + id).Rand()
			return hall{kind: k, animal: r.IntN(len(animals)), number: 1 + r.IntN(perColour)}, nil
		}
	}
	return hall{}, fmt.Errorf("no task %q: Tasks lists them", id)
}

// Open starts an episode. The seed changes nothing.
func (w World) Open(ctx context.Context, t episode.Task, _ episode.Seed) (env.Env, episode.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, episode.Observation{}, err
	}
	h, err := w.hall(t.ID)
	if err != nil {
		return nil, episode.Observation{}, err
	}
	r := &run{hall: h}
	return r, episode.Observation{Text: h.intro(), Admissible: r.admissible()}, nil
}

// Vary returns another hall of the same family.
func (w World) Vary(t episode.Task, s episode.Seed) (episode.Task, error) {
	h, err := w.hall(t.ID)
	if err != nil {
		return episode.Task{}, err
	}
	return task(variedSplit, fmt.Sprintf("%s/%016x/%s", variedSplit, uint64(s), t.ID), h.kind), nil
}

func (h hall) intro() string {
	doors := "doors"
	if h.locked() {
		doors = "locked doors and a key"
	}
	return fmt.Sprintf("You are in a hall with %s. On the wall is a %s. %s", doors, animals[h.animal], h.kind.goal())
}

// run is an episode.
type run struct {
	hall   hall
	opened []string // doors, in order
	key    bool     // was taken
	steps  int
	last   episode.StepResult
	closed bool
}

func (r *run) admissible() []episode.Action {
	as := []episode.Action{}
	if r.last.Done {
		return as
	}
	for _, c := range colours {
		for n := range perColour {
			if door := c + " door " + strconv.Itoa(n+1); (r.key || !r.hall.locked()) && !slices.Contains(r.opened, door) {
				as = append(as, episode.Action("open "+door))
			}
		}
	}
	if r.found() {
		as = append(as, episode.Action("take "+r.hall.kind.treasure))
	}
	if r.hall.locked() && !r.key {
		as = append(as, "take key")
	}
	return as
}

func (r *run) found() bool { return slices.Contains(r.opened, r.hall.door()) }

// Step takes one action. A world that was closed is broken.
func (r *run) Step(ctx context.Context, a episode.Action) (episode.StepResult, error) {
	if err := ctx.Err(); err != nil {
		return episode.StepResult{}, err
	}
	if r.closed {
		return episode.StepResult{}, errors.New("step after close")
	}
	if r.last.Done {
		return r.last, nil
	}
	ok := slices.Contains(r.admissible(), a)
	r.steps++
	r.last = episode.StepResult{Admissible: ok, Done: r.steps == horizon}
	r.last.Observation.Text = nothing
	if ok {
		r.last.Observation.Text = r.act(string(a))
	}
	r.last.Observation.Admissible = r.admissible()
	return r.last, nil
}

func (r *run) act(a string) string {
	if door, ok := strings.CutPrefix(a, "open "); ok {
		r.opened = append(r.opened, door)
		if door == r.hall.door() {
			return "Behind the " + door + " is a " + r.hall.kind.treasure + "."
		}
		return "Behind the " + door + " is nothing."
	}
	if a == "take key" {
		r.key = true
		return "You take the key. The doors are unlocked."
	}
	r.last.Done, r.last.Success, r.last.Reward = true, true, 1
	return "You take the " + r.hall.kind.treasure + "."
}

// Close ends the episode.
func (r *run) Close() error {
	r.closed = true
	return nil
}

// Fork copies the episode.
func (r *run) Fork() (env.Env, error) {
	c := *r
	c.opened = slices.Clone(r.opened)
	return &c, nil
}

// Expert returns a player of a hall. One that Knows opens the right door at once; one that Sees tries the doors of
// advised colours first and the others in random order.
func (w World) Expert(e env.Env, k env.Knowledge, advice []skill.Skill, r *rand.Rand) (env.Expert, error) {
	at, ok := e.(*run)
	if !ok {
		return nil, fmt.Errorf("an environment of type %T is not of this world", e)
	}
	x := &expert{hall: at.hall}
	if k == env.Knows {
		x.doors = []string{at.hall.door()}
		return x, nil
	}
	order := slices.Clone(colours)
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, s := range slices.Backward(advice) {
		if animal, colour, ok := understand(s.Principle); ok && animal == animals[at.hall.animal] {
			order = append([]string{colour}, slices.DeleteFunc(order, func(c string) bool { return c == colour })...)
		}
	}
	for _, c := range order {
		for n := range perColour {
			x.doors = append(x.doors, c+" door "+strconv.Itoa(n+1))
		}
	}
	return x, nil
}

// advise puts a colour in words.
func advise(k kind, animal int, colour string) skill.Skill {
	return skill.Skill{
		Category:  k.category,
		Title:     "Halls of the " + animals[animal],
		Principle: "If the wall shows a " + animals[animal] + ", open a " + colour + " door.",
		When:      k.goal() + " where there is a " + animals[animal] + " on the wall",
	}
}

// understand reads what advise wrote.
func understand(principle string) (animal, colour string, ok bool) {
	rest, a := strings.CutPrefix(principle, "If the wall shows a ")
	animal, rest, b := strings.Cut(rest, ", open a ")
	colour, c := strings.CutSuffix(rest, " door.")
	return animal, colour, a && b && c && slices.Contains(animals, animal) && slices.Contains(colours, colour)
}

// Advice names the right colour, or a wrong one drawn from r.
func (w World) Advice(t episode.Task, helpful bool, r *rand.Rand) (skill.Skill, bool) {
	h, err := w.hall(t.ID)
	if err != nil {
		return skill.Skill{}, false
	}
	colour := h.kind.colour(h.animal)
	if !helpful {
		i := slices.Index(colours, colour)
		colour = colours[(i+1+r.IntN(len(colours)-1))%len(colours)]
	}
	return advise(h.kind, h.animal, colour), true
}

// Lesson names the colour of the door that the treasure was found behind.
func (w World) Lesson(t episode.Task, steps []episode.Step) (skill.Skill, bool) {
	h, err := w.hall(t.ID)
	if err != nil {
		return skill.Skill{}, false
	}
	for _, s := range steps {
		if s.Observation == "Behind the "+h.door()+" is a "+h.kind.treasure+"." {
			return advise(h.kind, h.animal, h.kind.colour(h.animal)), true
		}
	}
	return skill.Skill{}, false
}

// expert tries doors in order.
type expert struct {
	hall  hall
	doors []string
	key   bool
	found bool
}

// Next is the key, a door, or the treasure.
func (x *expert) Next() (episode.Action, bool) {
	switch {
	case x.found:
		return episode.Action("take " + x.hall.kind.treasure), true
	case x.hall.locked() && !x.key:
		return "take key", true
	case len(x.doors) == 0:
		return "", false
	default:
		return episode.Action("open " + x.doors[0]), true
	}
}

// Observe notes what was found and which doors were tried.
func (x *expert) Observe(a episode.Action, r episode.StepResult) {
	if !r.Admissible {
		return
	}
	door, opens := strings.CutPrefix(string(a), "open ")
	if opens {
		x.doors = slices.DeleteFunc(x.doors, func(d string) bool { return d == door })
		x.found = x.found || strings.HasSuffix(r.Observation.Text, " is a "+x.hall.kind.treasure+".")
	}
	x.key = x.key || a == "take key"
}
