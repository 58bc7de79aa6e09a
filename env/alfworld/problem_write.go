package alfworld

import (
	"fmt"
	"strings"
)

// Problem writes the game as a problem text of the released domain: ReadProblem gives the same facts, and the original
// engine plays it. The sentence of the task is no part of it.
func (g *Game) Problem() string {
	w := problemWriter{g: g}
	w.line("(define (problem plan_%s)", g.trial())
	w.line("(:domain alfred)")
	w.line("(:objects")
	w.declarations()
	w.line(")")
	w.line("(:init")
	w.receptacles()
	w.objects()
	w.line(")")
	w.line("(:goal")
	w.goal()
	w.line(")")
	w.line(")")
	return w.b.String()
}

// trial is the last part of the id, fit for a problem's name.
func (g *Game) trial() string {
	name := g.ID[strings.LastIndexByte(g.ID, '/')+1:]
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

const agent = "agent1"

type problemWriter struct {
	g *Game
	b strings.Builder
}

func (w *problemWriter) line(format string, args ...any) {
	fmt.Fprintf(&w.b, format+"\n", args...)
}

// declarations declares, besides what there is, the classes that the domain names.
func (w *problemWriter) declarations() {
	g := w.g
	w.line("%s - agent", agent)
	receptacles := []string{"SinkBasin", "Microwave", "Fridge"}
	objects := []string{"Sink", "Knife", "ButterKnife", g.Goal.Object}
	if g.Goal.Family == LookInLight {
		objects = append(objects, g.Goal.Target)
	} else {
		receptacles = append(receptacles, g.Goal.Target)
	}
	for _, r := range g.Receptacles {
		receptacles = append(receptacles, g.Classes[r.Class])
	}
	for _, o := range g.Objects {
		objects = append(objects, g.Classes[o.Class])
	}
	declared := map[string]bool{"": true}
	w.classes(declared, receptacles, "rtype")
	w.classes(declared, objects, "otype")
	for _, o := range g.Objects {
		w.line("%s - object", o.ID)
	}
	for _, r := range g.Receptacles {
		w.line("%s - receptacle", r.ID)
	}
	for _, l := range g.Locations {
		w.line("%s - location", l.ID)
	}
}

func (w *problemWriter) classes(declared map[string]bool, names []string, sort string) {
	for _, n := range names {
		key := strings.ToLower(n)
		if declared[key] {
			continue
		}
		declared[key] = true
		if c, ok := w.g.ClassOf(n); ok {
			n = w.g.Classes[c]
		}
		w.line("%sType - %s", n, sort)
	}
}

func (w *problemWriter) receptacles() {
	g := w.g
	for i, r := range g.Receptacles {
		if r.Class != 0 {
			w.line("(receptacleType %s %sType)", r.ID, g.Classes[r.Class])
		}
		if r.Location >= 0 {
			w.line("(receptacleAtLocation %s %s)", r.ID, g.Locations[r.Location].ID)
		}
		if r.Openable {
			w.line("(openable %s)", r.ID)
		}
		if g.first.opened(&g.layout).has(i) {
			w.line("(opened %s)", r.ID)
		}
	}
	for _, p := range g.Spec().CanContain {
		w.line("(canContain %sType %sType)", p.Receptacle, p.Object)
	}
}

var traitFacts = []struct {
	trait Traits
	name  string
}{
	{Pickupable, "pickupable"},
	{Cleanable, "cleanable"},
	{Heatable, "heatable"},
	{Coolable, "coolable"},
	{Toggleable, "toggleable"},
	{Sliceable, "sliceable"},
	{Vessel, "isReceptacleObject"},
}

var conditionFacts = [conditions]string{"isClean", "isHot", "isCool", "isSliced", "isToggled", "isOn"}

func (w *problemWriter) objects() {
	g := w.g
	w.line("(atLocation %s %s)", agent, g.Locations[g.Start].ID)
	for i, o := range g.Objects {
		if o.Class != 0 {
			w.line("(objectType %s %sType)", o.ID, g.Classes[o.Class])
		}
		for _, f := range traitFacts {
			if o.Traits&f.trait != 0 {
				w.line("(%s %s)", f.name, o.ID)
			}
		}
		for k, name := range conditionFacts {
			if g.first.condition(&g.layout, i)>>k&1 != 0 {
				w.line("(%s %s)", name, o.ID)
			}
		}
		for _, r := range g.Places(i) {
			w.line("(inReceptacle %s %s)", o.ID, g.Receptacles[r].ID)
		}
		for _, l := range g.first.near(&g.layout, i).list() {
			w.line("(objectAtLocation %s %s)", o.ID, g.Locations[l].ID)
		}
	}
	for _, p := range g.inside {
		w.line("(inReceptacleObject %s %s)", g.Objects[p[0]].ID, g.Objects[p[1]].ID)
	}
}

func (w *problemWriter) goal() {
	object, target := w.g.Goal.Object+"Type", w.g.Goal.Target+"Type"
	switch w.g.Goal.Family {
	case LookInLight:
		lamp := "(?ot - object ?r - receptacle ?a - agent ?l - location)"
		place := "(receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)"
		if w.g.Goal.NearLamp {
			lamp, place = "(?ot - object ?a - agent ?l - location)", "(objectAtLocation ?ot ?l) (atLocation ?a ?l)"
		}
		w.line("(and (exists %s (and (objectType ?ot %s) (toggleable ?ot) (isToggled ?ot) %s))", lamp, target, place)
		w.line("(exists (?o - object ?a - agent) (and (objectType ?o %s) (holds ?a ?o))))", object)
	case PickTwo:
		w.line("(and (exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 %s) (receptacleType ?r %s)", object, target)
		w.line("(inReceptacle ?o1 ?r) (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 %s) (receptacleType ?r %s)", object, target)
		w.line("(inReceptacle ?o2 ?r)))))))")
	case PickAndPlace:
		w.place("", object, target)
	case CleanAndPlace:
		w.place("(cleanable ?o) (isClean ?o) ", object, target)
	case HeatAndPlace:
		w.place("(heatable ?o) (isHot ?o) ", object, target)
	case CoolAndPlace:
		w.place("(coolable ?o) (isCool ?o) ", object, target)
	default:
		panic("alfworld: a compiled game has a family")
	}
}

func (w *problemWriter) place(conditions, object, target string) {
	w.line("(and (exists (?r - receptacle) (exists (?o - object) (and %s(objectType ?o %s) (receptacleType ?r %s) (inReceptacle ?o ?r)))))", conditions, object, target)
}
