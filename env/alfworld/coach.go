package alfworld

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"skillmaster/env"
	"skillmaster/env/textworld"
	"skillmaster/episode"
	"skillmaster/skill"
)

var (
	_ env.Coach  = (*Suite)(nil)
	_ env.Varier = (*Suite)(nil)
)

// Expert implements env.Coach. One that Sees searches by what rooms usually hold; it heeds advice of the forms that
// Advice gives, and r, if not nil, perturbs its order of search. It is an error if it cannot make out what the task's
// sentence asks for; what it makes out of a sentence of a person's own may be wrong. One that Knows plays a shortest plan
// and heeds nothing.
func (s *Suite) Expert(e env.Env, k env.Knowledge, advice []skill.Skill, r *rand.Rand) (env.Expert, error) {
	own, ok := e.(*Env)
	if _, other := e.(*textworld.Env); other {
		return nil, fmt.Errorf("expert: this game is %w", ErrGeneral)
	}
	if !ok {
		return nil, fmt.Errorf("an expert of household games cannot play a %T", e)
	}
	switch k {
	case env.Knows:
		return knower{own.state}, nil
	case env.Sees:
		x, err := newSearcher(own.state.Intro(), own.state.Wording(), advice, r)
		if err != nil {
			return nil, fmt.Errorf("expert for game %s: %w", own.state.game.ID, err)
		}
		return x, nil
	default:
		return nil, fmt.Errorf("no such knowledge: %d", k)
	}
}

// Lesson implements env.Coach: where the thing was that took the longest search. A search that ended with the type of
// receptacle it began with teaches nothing.
func (s *Suite) Lesson(t episode.Task, steps []episode.Step) (skill.Skill, bool) {
	g, err := s.Game(t.ID)
	if err != nil {
		return skill.Skill{}, false
	}
	return lesson(g.NewState(s.o.Wording).Intro(), steps, g.Family().Category())
}

// Shares of the forms of advice.
const (
	orderShare  = 0.3 // an order of search for the whole category
	lampShare   = 0.5 // where the lamp is, of the rest in LookInLight
	secondShare = 0.3 // where the second object is, of the rest in PickTwo
)

// Advice implements env.Coach. Helpful advice names first a type of receptacle that holds what is looked for and does
// not lengthen the search; it shortens it if such advice can. The other kind names types of the room that usually might
// hold it, and do not. Seven in ten name the object, the rest an order for the category.
func (s *Suite) Advice(t episode.Task, helpful bool, r *rand.Rand) (skill.Skill, bool) {
	g, err := s.Game(t.ID)
	if err != nil {
		return skill.Skill{}, false
	}
	h, order := g.topic(r)
	holding, empty := g.candidates(h.object)
	var hints []hint
	if helpful {
		hints = g.hints(h, order, holding, slices.Concat(holding, empty), r)
		hints = env.Shortening(hints, g.searchLength)
	} else {
		hints = g.hints(h, order, empty, empty, r)
	}
	if len(hints) == 0 {
		return skill.Skill{}, false
	}
	return hints[0].skill(g.Family().Category()), true
}

// topic draws what advice is about: what to find, or, with order, where to look whatever is to be found.
func (g *Game) topic(r *rand.Rand) (h hint, order bool) {
	task := g.sentence()
	h.object = task.object
	order = r.Float64() < orderShare
	switch u := r.Float64(); {
	case order:
	case task.family == LookInLight && u < lampShare:
		h.object = task.target
	case task.family == PickTwo && u < secondShare:
		h.second = true
	}
	return h, order
}

// hints lists, in random order, one hint on the topic for each type in first; orders go on with one of then.
func (g *Game) hints(topic hint, order bool, first, then []string, r *rand.Rand) []hint {
	var hints []hint
	for _, i := range r.Perm(len(first)) {
		h := topic
		h.receptacles = []string{first[i]}
		if order {
			rest := slices.DeleteFunc(slices.Clone(then), func(c string) bool { return c == first[i] })
			if len(rest) == 0 {
				continue
			}
			h.object = ""
			h.receptacles = append(h.receptacles, rest[r.IntN(len(rest))])
		}
		hints = append(hints, h)
	}
	return hints
}

// searchLength is the number of steps in which the searcher wins with these hints, or the limit if it does not.
func (g *Game) searchLength(hints []hint) int {
	state := g.NewState(Move)
	x, err := newSearcher(state.Intro(), Move, nil, nil)
	if err != nil {
		return defaultLimit // it cannot read such a sentence, with hints or without
	}
	x.hints = hints
	for n := range defaultLimit {
		if state.Won() {
			return n
		}
		a, ok := x.Next()
		if !ok {
			break
		}
		text, _ := state.Step(string(a))
		x.Observe(a, episode.StepResult{Observation: episode.Observation{Text: text}})
	}
	return defaultLimit
}

// candidates parts the receptacle types where an object type may be at the start by whether one is, each list sorted.
// Types where it never is are in neither.
func (g *Game) candidates(object string) (holding, empty []string) {
	const plausible = 0.002
	task := g.sentence()
	class, _ := g.ClassOf(object)
	types := map[string]bool{}
	for i, r := range g.Receptacles {
		name := strings.ToLower(g.Classes[r.Class])
		if r.Location < 0 || object == task.object && !task.mayStartIn(name) {
			continue
		}
		holds := slices.ContainsFunc(g.Contents(i), func(o int) bool { return g.Objects[o].Class == class })
		if holds || household().where(object, name).held > plausible {
			types[name] = types[name] || holds
		}
	}
	for name, holds := range types {
		if holds {
			holding = append(holding, name)
		} else {
			empty = append(empty, name)
		}
	}
	slices.Sort(holding)
	slices.Sort(empty)
	return holding, empty
}
