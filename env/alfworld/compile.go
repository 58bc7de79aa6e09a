package alfworld

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unique"
)

// mostOfAKind is how many objects, receptacles, locations and classes a game may have, since what an episode takes grows
// with their products. A released game has at most 54 receptacles, 61
// locations and fewer than a hundred objects.
const mostOfAKind = 1024

// compiler turns a spec into a game. Its maps go from lower-case mangled ids to numbers.
type compiler struct {
	spec        *Spec
	g           *Game
	locations   map[string]int
	receptacles map[string]int
	objects     map[string]int
	classes     map[string]Class  // by lower-case name
	keys        map[string]string // see key
	texts       joiner            // of what the game keeps, lest it keep the text they were read from
	folded      joiner            // of keys
}

func compile(s Spec) (*Game, error) {
	g := &Game{
		ID: s.ID, Task: s.Task, Goal: s.Goal, Wording: cmp.Or(s.Wording, Move), Scene: s.Scene,
		Annotations: slices.Clone(s.Annotations), Classes: []string{""},
	}
	c := compiler{
		spec: &s, g: g, keys: map[string]string{}, classes: map[string]Class{}, locations: map[string]int{},
		receptacles: make(map[string]int, len(s.Receptacles)), objects: make(map[string]int, len(s.Objects)),
	}
	for _, step := range []func() error{c.check, c.listClasses, c.entities, c.name, c.facts, c.rules, c.walkthrough} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// check looks at what stands alone.
func (c *compiler) check() error {
	s := c.spec
	switch {
	case s.Goal.Family == 0 || s.Goal.Family >= families:
		return errors.New("its goal has no family")
	case s.Goal.Object == "" || s.Goal.Target == "":
		return errors.New("its goal names no object class or no target class")
	case !isID(s.Goal.Object) || !isID(s.Goal.Target):
		return fmt.Errorf("its goal names class %q or %q, which cannot be", s.Goal.Object, s.Goal.Target)
	case s.Goal.NearLamp && s.Goal.Family != LookInLight:
		return fmt.Errorf("a goal of %v cannot ask for a lamp", s.Goal.Family)
	case s.Wording >= wordings:
		return fmt.Errorf("no such wording: %v", s.Wording)
	case len(s.Objects) > mostOfAKind || len(s.Receptacles) > mostOfAKind:
		return fmt.Errorf("%d objects and %d receptacles: more than %d of a kind", len(s.Objects), len(s.Receptacles), mostOfAKind)
	}
	return nil
}

// entities makes the three sorted lists.
func (c *compiler) entities() error {
	if err := c.listLocations(); err != nil {
		return err
	}
	for _, r := range c.spec.Receptacles {
		id, err := mangle(r.ID)
		if err != nil {
			return err
		}
		location := -1
		if r.Location != "" {
			location = c.locations[c.key(r.Location)]
		}
		c.g.Receptacles = append(c.g.Receptacles, Receptacle{
			ID: c.texts.join(id), Class: c.classes[c.key(r.Class)], Location: int16(location), Openable: r.Openable,
		})
	}
	for _, o := range c.spec.Objects {
		id, err := mangle(o.ID)
		if err != nil {
			return err
		}
		c.g.Objects = append(c.g.Objects, Object{ID: c.texts.join(id), Class: c.classes[c.key(o.Class)], Traits: o.Traits})
	}
	if err := sortByID(c, c.g.Receptacles, c.receptacles, func(r Receptacle) string { return r.ID }); err != nil {
		return err
	}
	if err := sortByID(c, c.g.Objects, c.objects, func(o Object) string { return o.ID }); err != nil {
		return err
	}
	for i, r := range c.g.Receptacles {
		if r.Location >= 0 {
			l := &c.g.Locations[r.Location]
			l.Receptacles = append(l.Receptacles, int16(i))
		}
	}
	return nil
}

// listLocations lists those that some fact names.
func (c *compiler) listLocations() error {
	add := func(id string) error {
		m, err := mangle(id)
		if err != nil {
			return fmt.Errorf("location: %w", err)
		}
		if key := c.key(m); !hasKey(c.locations, key) {
			c.locations[key] = 0
			c.g.Locations = append(c.g.Locations, Location{ID: c.texts.join(m)})
		}
		return nil
	}
	if err := add(c.spec.Start); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	for _, r := range c.spec.Receptacles {
		if r.Location == "" {
			continue
		}
		if err := add(r.Location); err != nil {
			return err
		}
	}
	for _, o := range c.spec.Objects {
		for _, at := range o.At {
			if err := add(at); err != nil {
				return err
			}
		}
	}
	if len(c.g.Locations) > mostOfAKind {
		return fmt.Errorf("%d locations: more than %d", len(c.g.Locations), mostOfAKind)
	}
	clear(c.locations)
	if err := sortByID(c, c.g.Locations, c.locations, func(l Location) string { return l.ID }); err != nil {
		return err
	}
	c.g.Start = c.locations[c.key(c.spec.Start)]
	return nil
}

func hasKey[V any](m map[string]V, k string) bool { _, ok := m[k]; return ok }

// key is the lower-case mangled id; the same few hundred are asked for again and again.
func (c *compiler) key(id string) string {
	k, ok := c.keys[id]
	if !ok {
		k = c.folded.lower(mangler.Replace(id))
		c.keys[id] = k
	}
	return k
}

// sortByID sorts by lower-case id, the order of the original engine, and fills the index.
func sortByID[T any](c *compiler, list []T, index map[string]int, id func(T) string) error {
	keys := make([]string, len(list))
	order := make([]int, len(list))
	for i, x := range list {
		keys[i], order[i] = c.key(id(x)), i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	from := slices.Clone(list)
	for to, i := range order {
		if hasKey(index, keys[i]) {
			return fmt.Errorf("id %s is given twice", id(from[i]))
		}
		list[to] = from[i]
		index[keys[i]] = to
	}
	return nil
}

// listClasses lists the classes that occur, in the order of their lower-case names.
func (c *compiler) listClasses() error {
	spelled := map[string]string{}
	add := func(name string) error {
		if name == "" {
			return nil
		}
		if m, err := mangle(name); err != nil || m != name {
			return fmt.Errorf("class %q: classes are plain words", name)
		}
		key := c.key(name)
		if other, ok := spelled[key]; !ok || name < other {
			spelled[key] = name
		}
		return nil
	}
	for _, r := range c.spec.Receptacles {
		if err := add(r.Class); err != nil {
			return fmt.Errorf("receptacle %s: %w", r.ID, err)
		}
	}
	ofReceptacles := maps.Clone(spelled)
	for _, o := range c.spec.Objects {
		if err := add(o.Class); err != nil {
			return fmt.Errorf("object %s: %w", o.ID, err)
		}
		if hasKey(ofReceptacles, c.key(o.Class)) {
			return fmt.Errorf("object %s: class %s is one of receptacles", o.ID, o.Class)
		}
	}
	if len(spelled) > mostOfAKind {
		return fmt.Errorf("%d classes: more than %d", len(spelled), mostOfAKind)
	}
	for _, key := range slices.Sorted(maps.Keys(spelled)) {
		c.classes[key] = Class(len(c.g.Classes))
		c.g.Classes = append(c.g.Classes, unique.Make(spelled[key]).Value())
	}
	return nil
}

// name numbers all ids together: within a base the first in order gets the highest number. An id without "_bar_" is
// its own name, with a blank behind it.
func (c *compiler) name() error {
	type named struct {
		key  string
		name *string
	}
	var all []named
	for i := range c.g.Locations {
		all = append(all, named{c.key(c.g.Locations[i].ID), &c.g.Locations[i].Name})
	}
	for i := range c.g.Receptacles {
		all = append(all, named{c.key(c.g.Receptacles[i].ID), &c.g.Receptacles[i].Name})
	}
	for i := range c.g.Objects {
		all = append(all, named{c.key(c.g.Objects[i].ID), &c.g.Objects[i].Name})
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.key, b.key) })
	left := map[string]int{}
	for i, n := range all {
		if i > 0 && all[i-1].key == n.key {
			return fmt.Errorf("id %s is given to two things", n.key)
		}
		if base, numbered := baseOf(n.key); numbered {
			left[base]++
		}
	}
	for _, n := range all {
		base, numbered := baseOf(n.key)
		if !numbered {
			*n.name = c.texts.join(n.key, " ")
			continue
		}
		*n.name = c.texts.join(base, " ", strconv.Itoa(left[base]))
		left[base]--
	}
	return nil
}

// baseOf is the part of a lower-case id that its name starts with; false if the id has no number.
func baseOf(key string) (string, bool) {
	base, _, ok := strings.Cut(key, "_bar_")
	if ok && strings.Contains(key, "basin") {
		base += "basin"
	}
	return base, ok
}

// facts fills the state at the start.
func (c *compiler) facts() error {
	g := c.g
	g.layout = layoutOf(len(g.Objects), len(g.Receptacles), len(g.Locations))
	g.first = make(slab, g.layout.words)
	for _, r := range c.spec.Receptacles {
		if r.Opened {
			g.first.opened(&g.layout).add(c.receptacles[c.key(r.ID)])
		}
	}
	for _, o := range c.spec.Objects {
		if err := c.object(o); err != nil {
			return fmt.Errorf("object %s: %w", o.ID, err)
		}
	}
	slices.SortFunc(g.inside, func(a, b [2]int16) int { return slices.Compare(a[:], b[:]) })
	g.inside = slices.Compact(g.inside)
	return nil
}

func (c *compiler) object(o ObjectSpec) error {
	g := c.g
	i := c.objects[c.key(o.ID)]
	for _, id := range o.In {
		r, ok := c.receptacles[c.key(id)]
		if !ok {
			return fmt.Errorf("it is in %s, which is no receptacle of the game", id)
		}
		g.first.in(&g.layout, r).add(i)
	}
	for _, id := range o.At {
		g.first.near(&g.layout, i).add(c.locations[c.key(id)])
	}
	for _, id := range o.Inside {
		v, ok := c.objects[c.key(id)]
		if !ok {
			return fmt.Errorf("it lies inside %s, which is no object of the game", id)
		}
		g.inside = append(g.inside, [2]int16{int16(i), int16(v)})
	}
	for k := range conditions {
		if o.Condition>>k&1 != 0 {
			g.first.having(&g.layout, 1<<k).add(i)
		}
	}
	return nil
}

// rules resolves classes. Pairs of classes that no object or receptacle has are dropped; a goal's class may be absent.
func (c *compiler) rules() error {
	g := c.g
	g.canContain = make(bitset, wordsFor(len(g.Classes)*len(g.Classes)))
	for _, p := range c.spec.CanContain {
		r, o := c.classes[c.key(p.Receptacle)], c.classes[c.key(p.Object)]
		if r != 0 && o != 0 {
			g.canContain.add(int(r)*len(g.Classes) + int(o))
		}
	}
	g.Goal.Object, g.Goal.Target = unique.Make(g.Goal.Object).Value(), unique.Make(g.Goal.Target).Value()
	g.goalObject = c.classes[c.key(g.Goal.Object)]
	g.goalTarget = c.classes[c.key(g.Goal.Target)]
	g.roles = make([]role, len(g.Classes))
	for i, name := range g.Classes {
		g.roles[i] = roleOf[c.key(name)]
	}
	c.goal()
	return nil
}

// goalTraits are what an object must allow for the family's goal to be about it.
var goalTraits = [families]Traits{CleanAndPlace: Cleanable, HeatAndPlace: Heatable, CoolAndPlace: Coolable}

// goal lists what the goal can be about.
func (c *compiler) goal() {
	g := c.g
	g.goalObjects, g.goalLamps = make(bitset, g.layout.perObjects), make(bitset, g.layout.perObjects)
	need := goalTraits[g.Goal.Family]
	for i, o := range g.Objects {
		if g.goalObject != 0 && o.Class == g.goalObject && o.Traits&need == need {
			g.goalObjects.add(i)
		}
		if g.goalTarget != 0 && o.Class == g.goalTarget && o.Traits&Toggleable != 0 {
			g.goalLamps.add(i)
		}
	}
	for i, r := range g.Receptacles {
		if g.Goal.Family != LookInLight && g.goalTarget != 0 && r.Class == g.goalTarget {
			g.goalReceptacles = append(g.goalReceptacles, int16(i))
		}
	}
}

// walkthrough puts its commands in names.
func (c *compiler) walkthrough() error {
	for _, command := range c.spec.Walkthrough {
		words := strings.Split(command, " ")
		for i, w := range words {
			if !strings.Contains(w, "_bar_") {
				continue
			}
			if r, ok := c.receptacles[c.key(w)]; ok {
				words[i] = c.g.Receptacles[r].Name
			} else if o, ok := c.objects[c.key(w)]; ok {
				words[i] = c.g.Objects[o].Name
			} else {
				return fmt.Errorf("its walkthrough names %s, which is nothing in the game", w)
			}
		}
		c.g.Walkthrough = append(c.g.Walkthrough, strings.Join(words, " "))
	}
	return nil
}
