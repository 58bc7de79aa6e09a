package alfworld

import (
	"slices"

	"skillmaster/env"
	"skillmaster/episode"
)

// knower plays a shortest plan from the state as it is, whatever was done before.
type knower struct{ state *State }

var _ env.Expert = knower{}

// Next implements env.Expert.
func (k knower) Next() (episode.Action, bool) {
	if k.state.Won() {
		return "", false
	}
	plan, ok := k.state.Plan()
	if !ok || len(plan) == 0 {
		return "", false
	}
	return episode.Action(k.state.words(plan[0])), true
}

// Observe implements env.Expert. There is nothing to learn: Next looks at the state.
func (k knower) Observe(episode.Action, episode.StepResult) {}

// Plan returns the commands of a shortest plan for the goal, or false if there is none. The goal must not hold yet. A
// lamp that is near the goal's place but in no receptacle is not seen by it.
//
// A plan is found by trying every way there is: which object, from which receptacle, treated in which appliance, put
// into which receptacle, after putting down what is held or not. Each way is a route, and no step of a route can be
// spared, so the shortest route is a shortest plan. A large room has some hundred.
func (s *State) Plan() ([]Command, bool) {
	p := planner{State: s, goal: s.game.Goal.Family}
	for i, o := range s.game.Objects {
		if s.game.goalObjects.has(i) && o.Traits&Pickupable != 0 {
			p.objects = append(p.objects, i)
		}
	}
	if treatment, ok := treatments[p.goal]; ok {
		for i, r := range s.game.Receptacles {
			if s.game.roles[r.Class] == treatment.role {
				p.appliances = append(p.appliances, i)
			}
		}
	}
	p.tryAll()
	return p.best.commands, p.found
}

// treatments are what families ask to do with an object before it is put away.
var treatments = map[Family]struct {
	verb   Verb
	role   role
	trait  Traits
	result Condition
}{
	CleanAndPlace: {VerbClean, sink, Cleanable, Clean},
	HeatAndPlace:  {VerbHeat, microwave, Heatable, Hot},
	CoolAndPlace:  {VerbCool, fridge, Coolable, Cool},
}

// words are the text of a command.
func (s *State) words(c Command) string {
	var object, receptacle string
	if c.Object >= 0 {
		object = s.game.Objects[c.Object].Name
	}
	if c.Receptacle >= 0 {
		receptacle = s.game.Receptacles[c.Receptacle].Name
	}
	switch c.Verb {
	case VerbTake:
		return "take " + object + " from " + receptacle
	case VerbPut:
		if s.text.wording == Put {
			return "put " + object + " in/on " + receptacle
		}
		return "move " + object + " to " + receptacle
	case VerbClean, VerbHeat, VerbCool:
		return c.Verb.String() + " " + object + " with " + receptacle
	default: // one thing or none
		return c.Verb.String() + " " + object + receptacle
	}
}

// route is a way from the state as it is: the commands so far, and where they lead.
type route struct {
	commands []Command
	location int
}

func (r route) then(v Verb, object, receptacle int) route {
	r.commands = append(slices.Clip(r.commands), Command{v, object, receptacle})
	return r
}

// planner keeps the shortest route found.
type planner struct {
	*State
	goal       Family
	best       route
	found      bool
	objects    []int // of the goal, that can be taken
	appliances []int
}

// to walks to a receptacle, if the agent is not there.
func (p *planner) to(r route, receptacle int) route {
	if l := int(p.game.Receptacles[receptacle].Location); l != r.location {
		r = r.then(VerbGo, -1, receptacle)
		r.location = l
	}
	return r
}

// into walks to a receptacle and opens it, if it has to be.
func (p *planner) into(r route, receptacle int) route {
	r = p.to(r, receptacle)
	opening := Command{VerbOpen, -1, receptacle}
	if p.game.Receptacles[receptacle].Openable && !p.Opened(receptacle) && !slices.Contains(r.commands, opening) {
		r = r.then(opening.Verb, opening.Object, opening.Receptacle)
	}
	return r
}

// stands tells whether one can go to a receptacle.
func (p *planner) stands(receptacle int) bool { return p.game.Receptacles[receptacle].Location >= 0 }

// tryAll tries all routes: with what is held, and without it, putting it down first.
func (p *planner) tryAll() {
	start := route{location: p.location}
	if p.held < 0 {
		p.tryEmpty(start)
		return
	}
	if slices.Contains(p.objects, p.held) {
		p.tryHolding(start, p.held)
	}
	for i, r := range p.game.Receptacles {
		if p.stands(i) && p.game.CanContain(r.Class, p.game.Objects[p.held].Class) {
			p.tryEmpty(p.into(start, i).then(VerbPut, p.held, i))
		}
	}
}

// tryEmpty tries the routes that go on from r with an empty hand.
func (p *planner) tryEmpty(r route) {
	for _, o := range p.objects {
		p.eachSource(r, o, p.tryHolding)
	}
}

// eachSource takes the object from each receptacle it is in.
func (p *planner) eachSource(r route, object int, next func(route, int)) {
	if p.hopeless(r) {
		return
	}
	for i := range p.game.Receptacles {
		if p.stands(i) && p.In(object, i) {
			next(p.into(r, i).then(VerbTake, object, i), object)
		}
	}
}

// hopeless tells whether a route, unfinished, is no shorter than the best.
func (p *planner) hopeless(r route) bool { return p.found && len(r.commands) >= len(p.best.commands) }

// tryHolding tries the routes that go on from r with an object of the goal in the hand.
func (p *planner) tryHolding(r route, object int) {
	if p.hopeless(r) {
		return
	}
	if p.goal == LookInLight {
		p.tryLamps(r)
		return
	}
	treatment, needed := treatments[p.goal]
	if !needed || p.Is(object, treatment.result) {
		p.tryTargets(r, object)
		return
	}
	if p.game.Objects[object].Traits&treatment.trait == 0 {
		return
	}
	for _, a := range p.appliances {
		if !p.stands(a) {
			continue
		}
		next := p.to(r, a).then(treatment.verb, object, a)
		if p.leftIn(next, object) {
			p.keep(next)
			continue
		}
		p.tryTargets(next, object)
	}
}

// leftIn tells whether an object in the hand is in a target all the same: one that is in two receptacles stays in the
// other when it is taken from one.
func (p *planner) leftIn(r route, object int) bool {
	return slices.ContainsFunc(p.game.goalReceptacles, func(t int16) bool {
		return p.In(object, int(t)) && !slices.Contains(r.commands, Command{VerbTake, object, int(t)})
	})
}

func (p *planner) tryLamps(r route) {
	for _, lamp := range p.game.goalLamps.list() {
		for i := range p.game.Receptacles {
			if !p.stands(i) || !p.In(lamp, i) {
				continue
			}
			next := p.to(r, i)
			if !p.Is(lamp, Toggled) {
				next = next.then(VerbUse, lamp, -1)
			}
			p.keep(next)
		}
	}
}

// tryTargets puts the object into each target, and then, for PickTwo, a second one if there is none yet.
func (p *planner) tryTargets(r route, object int) {
	for _, t := range p.game.goalReceptacles {
		target := int(t)
		if p.hopeless(r) || !p.stands(target) || !p.game.CanContain(p.game.Receptacles[t].Class, p.game.goalObject) {
			continue
		}
		next := p.into(r, target).then(VerbPut, object, target)
		other := func(o int) bool { return o != object && p.In(o, target) }
		if p.goal != PickTwo || slices.ContainsFunc(p.objects, other) {
			p.keep(next)
			continue
		}
		for _, second := range p.objects {
			if second != object {
				p.eachSource(next, second, func(r route, o int) { p.keep(p.into(r, target).then(VerbPut, o, target)) })
			}
		}
	}
}

func (p *planner) keep(r route) {
	if !p.hopeless(r) {
		p.best, p.found = r, true
	}
}
