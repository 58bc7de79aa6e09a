package alfworld

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

var (
	_ env.Coach  = (*Suite)(nil)
	_ env.Varier = (*Suite)(nil)
)

// Expert implements env.Coach. One that Sees searches by what rooms usually hold; it heeds advice of the forms that
// Advice gives, and r, if not nil, perturbs its order of search. One that Knows plays a shortest plan and heeds nothing.
func (s *Suite) Expert(e env.Env, k env.Knowledge, advice []skill.Skill, r *rand.Rand) (env.Expert, error) {
	own, ok := e.(*Env)
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

// Advice implements env.Coach. Helpful advice names a type of receptacle that holds what is looked for; the other kind
// one of the room's that usually might, and does not. Seven in ten name the object, the rest an order for the category.
func (s *Suite) Advice(t episode.Task, helpful bool, r *rand.Rand) (skill.Skill, bool) {
	g, err := s.Game(t.ID)
	if err != nil {
		return skill.Skill{}, false
	}
	task := g.sentence()
	h := hint{object: task.object}
	order := r.Float64() < orderShare
	switch u := r.Float64(); {
	case order:
	case task.family == LookInLight && u < lampShare:
		h.object = task.target
	case task.family == PickTwo && u < secondShare:
		h.second = true
	}
	holding, empty := g.candidates(task, h.object)
	from := empty
	if helpful {
		from = holding
	}
	if len(from) == 0 {
		return skill.Skill{}, false
	}
	h.receptacles = []string{from[r.IntN(len(from))]}
	if order {
		rest := slices.DeleteFunc(slices.Concat(holding, empty), func(c string) bool { return c == h.receptacles[0] })
		if !helpful {
			rest = slices.DeleteFunc(slices.Clone(empty), func(c string) bool { return c == h.receptacles[0] })
		}
		if len(rest) == 0 {
			return skill.Skill{}, false
		}
		h.object = ""
		h.receptacles = append(h.receptacles, rest[r.IntN(len(rest))])
	}
	return h.skill(g.Family().Category()), true
}

// candidates parts the receptacle types where an object type may be at the start by whether one is, each list sorted.
// Types where it never is are in neither.
func (g *Game) candidates(task sentence, object string) (holding, empty []string) {
	const plausible = 0.002
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
