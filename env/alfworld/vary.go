package alfworld

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"skillmaster/episode"
)

// Vary makes a game with the goal of g in a thinned-out room, the same one for the same arguments. A share of the
// receptacles and the objects is dropped, drawn anew for each game, from hardly any to nearly all; what is left is
// numbered anew. What the goal needs stays: its target, its appliance, a lamp, and enough objects of the type asked
// for. The goal holds at the start only if it does in g. Something is dropped unless the room is all but bare.
func (g *Game) Vary(id string, seed episode.Seed) (*Game, error) {
	const tries = 16 // about one in twenty drops nothing
	r := seed.Rand()
	var s Spec
	for range tries {
		s = g.Spec()
		v := variation{r: r, spec: &s, thin: r.Float64()}
		v.drop()
		if len(s.Receptacles) < len(g.Receptacles) || len(s.Objects) < len(g.Objects) {
			break
		}
	}
	s.ID, s.Walkthrough = id, nil
	return NewGame(s)
}

// variation is a room being thinned out.
type variation struct {
	r       *rand.Rand
	spec    *Spec
	thin    float64         // 0 drops hardly anything, 1 nearly everything
	dropped map[string]bool // receptacle ids
}

func (v *variation) drop() {
	v.dropReceptacles()
	need := 1
	if v.spec.Goal.Family == PickTwo {
		need = 2
	}
	v.keepHolders(v.spec.Goal.Object, need)
	if v.spec.Goal.Family == LookInLight {
		v.keepHolders(v.spec.Goal.Target, 1)
	}
	v.spec.Receptacles = slices.DeleteFunc(v.spec.Receptacles, func(c ReceptacleSpec) bool { return v.dropped[c.ID] })
	v.dropObjects()
}

// dropReceptacles drops all of a type, or keeps a random number of it, or leaves it as it is.
func (v *variation) dropReceptacles() {
	v.dropped = map[string]bool{}
	_, appliance := v.spec.Goal.Family.treatment()
	classes, of := v.byClass()
	for _, class := range classes {
		ids := of[class]
		keep := len(ids)
		if v.r.Float64() < 0.3*v.thin {
			keep = 0
		} else if v.r.Float64() < v.thin {
			keep = 1 + v.r.IntN(len(ids))
		}
		if strings.EqualFold(class, v.spec.Goal.Target) || strings.EqualFold(class, appliance) {
			keep = max(keep, 1)
		}
		for _, i := range v.r.Perm(len(ids))[keep:] {
			v.dropped[ids[i]] = true
		}
	}
}

// byClass lists the receptacle classes in the order of the spec, and the ids of each.
func (v *variation) byClass() (classes []string, ids map[string][]string) {
	ids = map[string][]string{}
	for _, c := range v.spec.Receptacles {
		if ids[c.Class] == nil {
			classes = append(classes, c.Class)
		}
		ids[c.Class] = append(ids[c.Class], c.ID)
	}
	return classes, ids
}

// keepHolders takes back dropped receptacles, in random order, until need objects of the class can be found.
func (v *variation) keepHolders(class string, need int) {
	var objects []ObjectSpec
	for _, o := range v.spec.Objects {
		if strings.EqualFold(o.Class, class) && len(o.In) > 0 {
			objects = append(objects, o)
			if v.stays(o) {
				need--
			}
		}
	}
	for _, i := range v.r.Perm(len(objects)) {
		if o := objects[i]; need > 0 && !v.stays(o) {
			delete(v.dropped, o.In[v.r.IntN(len(o.In))])
			need--
		}
	}
}

// stays tells whether an object is in a receptacle that was not dropped.
func (v *variation) stays(o ObjectSpec) bool {
	return slices.ContainsFunc(o.In, func(r string) bool { return !v.dropped[r] })
}

// dropObjects drops what lies in no receptacle that is left, and some of what the goal does not name.
func (v *variation) dropObjects() {
	goal := v.spec.Goal
	v.spec.Objects = slices.DeleteFunc(v.spec.Objects, func(o ObjectSpec) bool {
		named := strings.EqualFold(o.Class, goal.Object) || strings.EqualFold(o.Class, goal.Target)
		return !v.stays(o) || !named && v.r.Float64() < 0.25*v.thin
	})
	left := map[string]bool{}
	for i := range v.spec.Objects {
		o := &v.spec.Objects[i]
		o.In = slices.DeleteFunc(o.In, func(r string) bool { return v.dropped[r] })
		left[o.ID] = true
	}
	for i := range v.spec.Objects {
		o := &v.spec.Objects[i]
		o.Inside = slices.DeleteFunc(o.Inside, func(vessel string) bool { return !left[vessel] })
	}
}

// variationMark parts the id of a task from the seed of a variation.
const variationMark = "~"

// Vary implements env.Varier: a thinned-out room with the same goal. The id says how to make it again.
func (s *Suite) Vary(t episode.Task, seed episode.Seed) (episode.Task, error) {
	if _, err := s.Game(t.ID); err != nil {
		return episode.Task{}, fmt.Errorf("vary task %s: %w", t.ID, err)
	}
	t.ID += variationMark + strconv.FormatUint(uint64(seed), 16)
	return t, nil
}

// game finds a game of the source, or makes a variation of one.
func (s *Suite) game(id string) (*Game, error) {
	mark := strings.LastIndex(id, variationMark)
	if mark < 0 {
		return s.source.Game(id)
	}
	seed, err := strconv.ParseUint(id[mark+len(variationMark):], 16, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %s does not end in the seed of a variation", ErrNoGame, id)
	}
	base, err := s.game(id[:mark])
	if err != nil {
		return nil, err
	}
	return base.Vary(id, episode.Seed(seed))
}
