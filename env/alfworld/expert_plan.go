package alfworld

import "slices"

// A plan is found by trying every way there is: which object, from which receptacle, treated in which appliance, put
// into which receptacle. Each way is a route, and each step of a route is needed, so the shortest route is a shortest
// plan. There are a few hundred routes in a large room.

// situation is where an episode stands.
type situation struct {
	g    *Game
	now  slab
	at   int // location of the agent
	held int // object, -1 for none
}

// command is one action of a route. Its two things are numbers of objects or receptacles, as the verb has them.
type command struct {
	verb               verb
	object, receptacle int
}

type verb uint8

const (
	goTo verb = iota
	open
	take
	move
	treat // clean, heat or cool, as the goal says
	use
)

// route is a way from a situation: the commands so far and where they lead.
type route struct {
	s        *situation
	commands []command
	at       int
}

func (r route) then(v verb, object, receptacle int) route {
	r.commands = append(slices.Clip(r.commands), command{v, object, receptacle})
	return r
}

// to walks to a receptacle, if the agent is not there.
func (r route) to(receptacle int) route {
	if l := int(r.s.g.Receptacles[receptacle].Location); l != r.at {
		r = r.then(goTo, -1, receptacle)
		r.at = l
	}
	return r
}

// into walks to a receptacle and opens it, if it has to be.
func (r route) into(receptacle int) route {
	r = r.to(receptacle)
	opening := command{open, -1, receptacle}
	if r.s.shut(receptacle) && !slices.Contains(r.commands, opening) {
		r = r.then(open, -1, receptacle)
	}
	return r
}

func (s *situation) shut(receptacle int) bool {
	return s.g.Receptacles[receptacle].Openable && !s.now.opened(&s.g.layout).has(receptacle)
}

func (s *situation) in(object, receptacle int) bool {
	return s.now.in(&s.g.layout, receptacle).has(object)
}

// planner keeps the shortest route found.
type planner struct {
	*situation
	best       *route
	objects    []int // that the goal is about, ascending
	lamps      []int
	targets    []int // receptacles
	appliances []int
}

// plan returns the commands of a shortest plan, or false if there is none. It is empty if the goal holds.
func (s *situation) plan() ([]command, bool) {
	p := planner{situation: s}
	g := s.g
	_, appliance := g.Goal.Family.treatment()
	applianceClass, _ := g.ClassOf(appliance)
	for i, o := range g.Objects {
		if o.Class == g.goalObject && o.Traits&Pickupable != 0 && o.Traits&treatable[g.Goal.Family] == treatable[g.Goal.Family] {
			p.objects = append(p.objects, i)
		}
		if o.Class == g.goalTarget && o.Traits&Toggleable != 0 {
			p.lamps = append(p.lamps, i)
		}
	}
	for i, r := range g.Receptacles {
		switch {
		case r.Location < 0:
		case r.Class == g.goalTarget && g.CanContain(r.Class, g.goalObject):
			p.targets = append(p.targets, i)
		case r.Class == applianceClass && appliance != "":
			p.appliances = append(p.appliances, i)
		}
	}
	p.tryAll()
	if p.best == nil {
		return nil, false
	}
	return p.best.commands, true
}

// treatable is the trait that the treatment of a family needs.
var treatable = [families]Traits{CleanAndPlace: Cleanable, HeatAndPlace: Heatable, CoolAndPlace: Coolable}

// treated is the condition that the goal of a family asks for.
var treated = [families]Condition{CleanAndPlace: Clean, HeatAndPlace: Hot, CoolAndPlace: Cool}

// tryAll tries all routes: with what is held, and without it, putting it down first.
func (p *planner) tryAll() {
	start := route{s: p.situation, at: p.at}
	if p.held < 0 {
		p.tryEmpty(start)
		return
	}
	if slices.Contains(p.objects, p.held) {
		p.tryHolding(start, p.held)
	}
	for i, r := range p.g.Receptacles {
		if r.Location >= 0 && p.g.CanContain(r.Class, p.g.Objects[p.held].Class) {
			p.tryEmpty(start.into(i).then(move, p.held, i))
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
	for i, c := range p.g.Receptacles {
		if c.Location >= 0 && p.in(object, i) {
			next(r.into(i).then(take, object, i), object)
		}
	}
}

// tryHolding tries the routes that go on from r with an object of the goal in the hand.
func (p *planner) tryHolding(r route, object int) {
	if p.best != nil && len(r.commands) >= len(p.best.commands) {
		return
	}
	if p.g.Goal.Family == LookInLight {
		p.tryLamps(r)
		return
	}
	want := treated[p.g.Goal.Family]
	if want == 0 || p.now.condition(&p.g.layout, object)&want != 0 {
		p.tryTargets(r, object)
		return
	}
	for _, a := range p.appliances {
		p.tryTargets(r.to(a).then(treat, object, a), object)
	}
}

func (p *planner) tryLamps(r route) {
	for _, lamp := range p.lamps {
		for i, c := range p.g.Receptacles {
			if c.Location < 0 || !p.in(lamp, i) {
				continue
			}
			next := r.to(i)
			if p.now.condition(&p.g.layout, lamp)&Toggled == 0 {
				next = next.then(use, lamp, i)
			}
			p.keep(next)
		}
	}
}

// tryTargets puts the object into each target, and then, for PickTwo, a second one if there is none.
func (p *planner) tryTargets(r route, object int) {
	for _, t := range p.targets {
		next := r.into(t).then(move, object, t)
		if p.g.Goal.Family != PickTwo || slices.ContainsFunc(p.objects, func(o int) bool { return o != object && p.in(o, t) }) {
			p.keep(next)
			continue
		}
		for _, second := range p.objects {
			if second == object {
				continue
			}
			p.eachSource(next, second, func(r route, o int) { p.keep(r.into(t).then(move, o, t)) })
		}
	}
}

func (p *planner) keep(r route) {
	if p.best == nil || len(r.commands) < len(p.best.commands) {
		p.best = &r
	}
}
