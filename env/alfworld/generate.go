package alfworld

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"skillmaster/episode"
)

// Generate makes a game of the family in a room of its own, the same one for the same arguments. The room is drawn
// from statistics of ALFRED's rooms: what stands in one, what can be opened, what stands together, what lies where.
// The goal can be reached and does not hold at the start.
//
// difficulty is between 0 and 1: at 0 objects lie where they usually lie, at 1 anywhere they may, whatever the custom;
// in between, the weight of a receptacle type is the usual one to the power of 1 − difficulty.
func Generate(f Family, seed episode.Seed, difficulty float64) (*Game, error) {
	if f == 0 || f >= families {
		return nil, fmt.Errorf("generate a game of %v: no such family", f)
	}
	if !(difficulty >= 0 && difficulty <= 1) {
		return nil, fmt.Errorf("generate a game of difficulty %v: want 0 to 1", difficulty)
	}
	return newDraft(f, seed, difficulty, Custom{}).game("")
}

// Custom is the way of a house that has one of its own: where its people keep things, whatever is usual elsewhere. It
// is the same in all its rooms, so what one game teaches about it holds in the next.
type Custom struct {
	Share float64      // of the things, from 0 to 1, that lie where the house keeps them; 0: a house without ways of its own
	Seed  episode.Seed // another one is another house
	Usual []string     // splits whose games are of usual houses all the same
}

// order ranks the receptacles an object may be kept in, by index of its list: the house keeps it in the first that the
// room has.
func (c Custom) order(o *objectFacts, object string) []int {
	return c.Seed.Derive("custom " + object).Rand().Perm(len(o.in))
}

// draft is a game in the making. What the task says is settled first, so that a list of tasks need not furnish rooms.
type draft struct {
	r          *rand.Rand
	facts      *facts
	room       *roomFacts
	usual      float64 // exponent of the usual weights
	custom     Custom
	task       sentence
	form       int
	stands     map[string]int // number of receptacles of each type
	spare      map[string]int // those of them that can hold more
	spec       Spec
	receptacle []standing
	weights    []float64 // scratch
}

// standing is a receptacle of a draft.
type standing struct {
	class string
	place int
	full  bool
}

// neverTargets are receptacle types that no game of the family asks to fill, besides the one where it is treated.
var neverTargets = [families][]string{
	PickAndPlace:  {"toaster"},
	CleanAndPlace: {"toaster", "sinkbasin"},
	HeatAndPlace:  {"toaster", "microwave"},
	CoolAndPlace:  {"toaster", "fridge"},
	PickTwo:       {"toaster", "coffeemachine", "toiletpaperhanger", "handtowelholder"},
}

// familyWords name the families in facts.txt.
var familyWords = [families]string{"", "place", "look", "clean", "heat", "cool", "two"}

func newDraft(f Family, seed episode.Seed, difficulty float64, c Custom) *draft {
	d := &draft{r: seed.Rand(), facts: household(), usual: 1 - difficulty, custom: c}
	d.task.family = f
	d.drawRoomKind()
	for !d.drawReceptacles() || !d.drawGoal() {
		// A room without anything to do of the family: draw another. Most rooms have.
	}
	d.form = d.r.IntN(2)
	return d
}

// pick draws an index by weight; -1 if all are zero.
func (d *draft) pick(weights []float64) int {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	if sum == 0 {
		return -1
	}
	u, last := float64(d.r.Float64()*sum), -1
	for i, w := range weights {
		if w > 0 {
			last = i
		}
		if u -= w; u < 0 {
			return last
		}
	}
	return last
}

func (d *draft) drawRoomKind() {
	d.weights = d.weights[:0]
	for _, r := range d.facts.rooms {
		d.weights = append(d.weights, float64(r.tasks[familyWords[d.task.family]]))
	}
	d.room = d.facts.rooms[d.pick(d.weights)]
}

// The fewest and most receptacles of a released room.
const fewest, most = 6, 54

// drawReceptacles draws how many receptacles of each type there are, a number between two that were observed. It
// returns false if they are too few or too many, or the family's lamp could stand on none.
func (d *draft) drawReceptacles() bool {
	total := 0
	d.stands = make(map[string]int, len(d.room.receptacles))
	for _, c := range d.room.receptacles {
		last := len(c.counts) - 1
		at := float64(d.r.Float64() * float64(last+1)) // rounded before the sum, the same on every machine
		low, part := math.Modf(max(at-0.5, 0))
		a, b := c.counts[min(int(low), last)], c.counts[min(int(low)+1, last)]
		between := float64(part * float64(b-a))
		if n := int(math.Round(float64(a) + between)); n > 0 {
			d.stands[c.name] = n
			total += n
		}
	}
	if total < fewest || total > most {
		return false
	}
	return d.task.family != LookInLight || slices.ContainsFunc(d.lamp().on, func(w weighted) bool { return d.stands[w.name] > 0 })
}

// lampClass is the only type that LookInLight games ask to switch on.
const lampClass = "desklamp"

func (d *draft) lamp() fixtureFacts {
	for _, f := range d.room.fixtures {
		if f.name == lampClass {
			return f
		}
	}
	return fixtureFacts{}
}

// drawGoal draws what the task is about: pairs of an object type and a target as often as such games have them, and
// now and then a pair that none has. It returns false if the room allows none.
func (d *draft) drawGoal() bool {
	goals := d.room.goals[d.task.family]
	d.weights = d.weights[:0]
	for _, g := range goals {
		weight := 0.0
		if (d.task.family == LookInLight || d.stands[g.target] > 0) && d.canStart(g.sentence) {
			weight = g.weight
		}
		d.weights = append(d.weights, weight)
	}
	i := d.pick(d.weights)
	if i >= 0 {
		d.task = goals[i].sentence
	}
	return i >= 0
}

// canStart tells whether an object of the type asked for can lie somewhere at the start.
func (d *draft) canStart(s sentence) bool {
	return slices.ContainsFunc(d.facts.objects[s.object].in, func(w whereFacts) bool {
		return d.stands[w.receptacle] > 0 && s.mayStartIn(w.receptacle) && (w.may || w.weight > 0)
	})
}

// mayStartIn tells whether an object of the type asked for may lie in a receptacle of the type at the start: not where
// the goal would hold, nor where it is to be treated.
func (s sentence) mayStartIn(receptacle string) bool {
	_, appliance := s.family.treatment()
	return receptacle != appliance && (!s.family.fills() || receptacle != s.target)
}

// weigh is the weight of the receptacles of a type, those that have room, as the place of an object.
func (d *draft) weigh(w whereFacts, asked bool) float64 {
	const rarely = 0.001 // where objects may be put but never were at the start
	n := float64(d.spare[w.receptacle])
	if n == 0 || asked && !d.task.mayStartIn(w.receptacle) {
		return 0
	}
	weight := w.weight
	if w.may {
		weight += rarely
	}
	if asked {
		weight *= d.facts.asked[w.receptacle]
	}
	weight *= math.Sqrt(math.Sqrt(n)) // see the head of facts.txt
	if d.usual == 1 || weight == 0 {
		return weight
	}
	return n * math.Pow(weight/n, d.usual)
}

// game furnishes the room and compiles the game.
func (d *draft) game(id string) (*Game, error) {
	d.spec = Spec{
		ID: id, Task: d.task.text(d.form), Start: placeID(0),
		Goal: Goal{Family: d.task.family, Object: d.task.object, Target: d.task.target},
	}
	d.spare = maps.Clone(d.stands)
	d.addReceptacles()
	d.addObjects()
	d.addFixtures()
	d.addCanContain()
	return NewGame(d.spec)
}

// placeID names a location, as problem files spell it. 0 is where the agent starts; no receptacle stands there.
func placeID(i int) string { return "loc_bar_" + strconv.Itoa(i) }

// thingID names the n-th thing of a type, n up to 999, as problem files spell it. Types that end in "basin" are spelled as the original does:
// a basin is part of something.
func thingID(class string, n int) string {
	digits := "_bar_" + strconv.Itoa(1000 + n)[1:]
	if whole, basin := strings.CutSuffix(class, "basin"); basin {
		return whole + digits + "_bar_" + class
	}
	return class + digits
}

// addReceptacles gives each receptacle its place and door. The second of two neighbours of a type may share the
// first one's place, and a type that goes with another (a toaster with a countertop) may share that one's.
func (d *draft) addReceptacles() {
	places := 0
	for _, c := range d.room.receptacles {
		n := d.stands[c.name]
		pairs := c.stacked * float64(n) / float64(max(n-n%2, 1))
		for i := range n {
			if i%2 == 0 || d.r.Float64() >= pairs {
				places++
			}
			d.receptacle = append(d.receptacle, standing{class: c.name, place: places})
			d.spec.Receptacles = append(d.spec.Receptacles, ReceptacleSpec{
				ID: thingID(c.name, i), Class: c.name, Openable: d.r.Float64() < c.openable,
			})
		}
	}
	for _, b := range d.facts.beside {
		for i := range d.receptacle {
			if d.receptacle[i].class != b.a || d.stands[b.b] == 0 || d.r.Float64() >= b.share {
				continue
			}
			d.receptacle[i].place = d.receptacle[d.one(b.b)].place
		}
	}
	for i, c := range d.receptacle {
		d.spec.Receptacles[i].Location = placeID(c.place)
	}
}

// one draws a receptacle of the type that has room; there is one.
func (d *draft) one(class string) int {
	first := slices.IndexFunc(d.receptacle, func(c standing) bool { return c.class == class })
	left := d.r.IntN(d.spare[class])
	for i := first; ; i++ {
		if d.receptacle[i].full {
			continue
		}
		if left == 0 {
			return i
		}
		left--
	}
}

// addObjects draws how many objects of each type there are and where they lie. Those asked for lie first, while there is
// room everywhere.
func (d *draft) addObjects() {
	d.addAsked()
	for _, c := range d.room.objects {
		if c.name != d.task.object {
			d.spec.Objects = append(d.spec.Objects, d.layAll(c.name, d.pick(c.weight[:]), 0)...)
		}
	}
	d.fillVessels()
}

// addAsked lays the objects that the task asks for. Games in which too few of them are in the open are about half as
// frequent as chance would have it, so half of those are laid anew.
func (d *draft) addAsked() {
	const hidden = 0.45 // of such games, which stay as they are
	n, need := 1+d.pick(d.facts.number[familyWords[d.task.family]]), 1
	if d.task.family == PickTwo {
		need = 2
	}
	objects := d.layAll(d.task.object, n, need)
	if d.inTheOpen(objects) < need && d.r.Float64() >= hidden {
		d.empty()
		objects = d.layAll(d.task.object, n, need)
	}
	d.spec.Objects = append(d.spec.Objects, objects...)
}

// empty makes room in all receptacles.
func (d *draft) empty() {
	for i := range d.receptacle {
		d.receptacle[i].full = false
	}
	maps.Copy(d.spare, d.stands)
}

// inTheOpen counts the objects that lie in no drawer and no cabinet.
func (d *draft) inTheOpen(objects []ObjectSpec) int {
	n := 0
	shut := func(in string) bool { return strings.HasPrefix(in, "drawer") || strings.HasPrefix(in, "cabinet") }
	for _, o := range objects {
		if len(o.In) > 0 && !slices.ContainsFunc(o.In, shut) {
			n++
		}
	}
	return n
}

// layAll makes n objects of a type and lays them; need of them at least can be found.
func (d *draft) layAll(class string, n, need int) []ObjectSpec {
	o := d.facts.objects[class]
	asked := class == d.task.object
	objects := make([]ObjectSpec, n)
	for i := range objects {
		s := &objects[i]
		*s = ObjectSpec{ID: thingID(class, i), Class: class, Traits: o.traits() | Pickupable}
		if n-i <= need || d.r.Float64() >= o.nowhere {
			d.lay(s, o, asked)
			need--
		}
	}
	return objects
}

// fillVessels moves some things into vessels, those that the task asks for excepted. They lie where the vessel does.
func (d *draft) fillVessels() {
	for _, v := range d.spec.Objects {
		inside := d.facts.inside[v.Class]
		if len(inside) == 0 || len(v.In) == 0 {
			continue
		}
		class, share := "", 0.0
		for i := range d.spec.Objects {
			o := &d.spec.Objects[i]
			if o.Class != class {
				class, share = o.Class, inside[o.Class]
			}
			if share > 0 && class != d.task.object && o.ID != v.ID && d.r.Float64() < share {
				o.In, o.At, o.Inside = slices.Clone(v.In), slices.Clone(v.At), append(o.Inside, v.ID)
			}
		}
	}
}

func (o *objectFacts) traits() Traits {
	var t Traits
	for _, p := range []struct {
		has   bool
		trait Traits
	}{
		{o.cleanable, Cleanable},
		{o.heatable, Heatable},
		{o.coolable, Coolable},
		{o.switchable, Toggleable},
		{o.sliceable, Sliceable},
		{o.hollow, Vessel},
	} {
		if p.has {
			t |= p.trait
		}
	}
	return t
}

// lay puts an object into a receptacle, or several that overlap.
func (d *draft) lay(s *ObjectSpec, o *objectFacts, asked bool) {
	d.weights = d.weights[:0]
	for _, w := range o.in {
		d.weights = append(d.weights, d.weigh(w, asked))
	}
	i := d.pick(d.weights)
	if i < 0 {
		return
	}
	if d.custom.Share > 0 && d.r.Float64() < d.custom.Share {
		for _, kept := range d.custom.order(o, s.Class) {
			if d.weights[kept] > 0 {
				i = kept
				break
			}
		}
	}
	in := o.in[i].receptacle
	r := d.one(in)
	s.At = append(s.At, placeID(d.receptacle[r].place))
	d.putIn(s, r)
	if asked && in == "fridge" {
		s.Condition |= Cool // as in the released games
	}
	for _, t := range d.facts.twice {
		if t.a != in || d.spare[t.b] == 0 || d.r.Float64() >= t.share || asked && !d.task.mayStartIn(t.b) {
			continue
		}
		if also := d.one(t.b); also != r {
			d.putIn(s, also)
		}
	}
}

func (d *draft) putIn(s *ObjectSpec, receptacle int) {
	s.In = append(s.In, d.spec.Receptacles[receptacle].ID)
	c := &d.receptacle[receptacle]
	if d.facts.single[c.class] {
		c.full = true
		d.spare[c.class]--
	}
}

// addFixtures lays the things that cannot be taken, the lamp of the task among them.
func (d *draft) addFixtures() {
	for _, f := range d.room.fixtures {
		n := d.pick(f.weight[:])
		if f.name == d.task.target {
			n = max(n, 1)
		}
		for i := range n {
			d.weights = d.weights[:0]
			for _, w := range f.on {
				d.weights = append(d.weights, w.weight*float64(min(d.stands[w.name], 1)))
			}
			on := d.pick(d.weights)
			if on < 0 {
				break
			}
			r := d.one(f.on[on].name)
			s := ObjectSpec{ID: thingID(f.name, i), Class: f.name, In: []string{d.spec.Receptacles[r].ID}, At: []string{placeID(d.receptacle[r].place)}}
			if o := d.facts.objects[f.name]; o != nil {
				s.Traits = o.traits()
			}
			d.spec.Objects = append(d.spec.Objects, s)
		}
	}
}

func (d *draft) addCanContain() {
	for _, c := range d.room.objects {
		for _, w := range d.facts.objects[c.name].in {
			if w.may && d.stands[w.receptacle] > 0 {
				d.spec.CanContain = append(d.spec.CanContain, Pair{w.receptacle, c.name})
			}
		}
	}
}
