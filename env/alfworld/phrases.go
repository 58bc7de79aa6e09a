package alfworld

import (
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"skillmaster/episode"
)

// helpText is the answer to "help", as the games of release 0.4 and later give it.
const helpText = "Available commands:\n" +
	"  look:                             look around your current location\n" +
	"  inventory:                        check your current inventory\n" +
	"  go to (receptacle):               move to a receptacle\n" +
	"  open (receptacle):                open a receptacle\n" +
	"  close (receptacle):               close a receptacle\n" +
	"  take (object) from (receptacle):  take an object from a receptacle\n" +
	"  move (object) to (receptacle):  place an object in or on a receptacle\n" +
	"  examine (something):              examine a receptacle or an object\n" +
	"  use (object):                     use an object\n" +
	"  heat (object) with (receptacle):  heat an object using a receptacle\n" +
	"  clean (object) with (receptacle): clean an object using a receptacle\n" +
	"  cool (object) with (receptacle):  cool an object using a receptacle\n" +
	"  slice (object) with (object):     slice an object using a sharp object\n"

const (
	middleOfRoom = "You are in the middle of a room. Looking quickly around you, you see "
	welcome      = "-= Welcome to TextWorld, ALFRED! =-\n\n"
)

// phrases are the commands of a game, its names and its first observation, in one wording. They are made when the game
// is first played and shared by its episodes.
//
// Commands of one verb sort as the names in them do: a blank, or the end, sorts below every letter of a name.
//
// Most places stay as they were at the start, in most episodes. What can be done and seen there with empty hands is kept
// once it was made: making lists anew costs more in collecting garbage than all else in a step.
type phrases struct {
	wording Wording
	intro   string
	named   map[string]int32 // receptacle number, or the complement of an object number

	goTo                  []episode.Action // sorted
	examine, open, closeR []episode.Action // [receptacle]
	examineO, use         []episode.Action // [object]; use is empty for what cannot be switched
	take                  []episode.Action // of the objects in each receptacle at the start, in turn
	takeFrom              []int32          // [receptacle] where they start in take

	receptacleRank, receptacleAt []int16   // rank of a receptacle's name among them, and the reverse
	objectRank, objectAt         []int16   // the same of objects
	here                         [][]int16 // [location] receptacles by name
	goHere                       [][]int16 // [location] the positions in goTo of the receptacles there, ascending

	pickupable, toggleable, sliceable bitset

	untouched []lazy[[]episode.Action] // [location] admissible actions
	arrivals  []lazy[string]           // [receptacle] answers to going to it
}

// lazy is a value that is made when it is first asked for and shared from then on. It is safe for concurrent use: two
// may make it at once, and agree on one.
type lazy[T any] struct{ made atomic.Pointer[T] }

func (l *lazy[T]) get(make func() T) *T {
	if v := l.made.Load(); v != nil {
		return v
	}
	v := make()
	l.made.CompareAndSwap(nil, &v)
	return l.made.Load()
}

// phrasesIn returns the phrases of a wording; FromFile stands for the game's own.
func (g *Game) phrasesIn(w Wording) *phrases {
	if w == FromFile {
		w = g.Wording
	}
	return g.text[w].get(func() phrases { return newPhrases(g, w) })
}

func newPhrases(g *Game, w Wording) phrases {
	p := phrases{
		wording: w, named: make(map[string]int32, len(g.Receptacles)+len(g.Objects)),
		untouched: make([]lazy[[]episode.Action], len(g.Locations)), arrivals: make([]lazy[string], len(g.Receptacles)),
	}
	var j joiner
	p.rank(g, &j)
	p.commands(g, &j)
	p.takes(g, &j)
	p.intro = intro(g)
	return p
}

// rank orders the names.
func (p *phrases) rank(g *Game, j *joiner) {
	p.receptacleAt, p.receptacleRank = ranked(len(g.Receptacles), func(i int) string { return g.Receptacles[i].Name })
	p.objectAt, p.objectRank = ranked(len(g.Objects), func(i int) string { return g.Objects[i].Name })
	p.goTo = make([]episode.Action, 0, len(g.Receptacles))
	p.here, p.goHere = make([][]int16, len(g.Locations)), make([][]int16, len(g.Locations))
	room := make([]int16, 2*len(g.Receptacles))
	for i, l := range g.Locations {
		n := len(l.Receptacles)
		p.here[i], p.goHere[i], room = room[:0:n], room[n:n:2*n], room[2*n:]
	}
	for _, r := range p.receptacleAt {
		if l := g.Receptacles[r].Location; l >= 0 {
			p.here[l] = append(p.here[l], r)
			p.goHere[l] = append(p.goHere[l], int16(len(p.goTo)))
			p.goTo = append(p.goTo, j.action("go to ", g.Receptacles[r].Name))
		}
	}
}

func ranked(n int, name func(int) string) (at, rank []int16) {
	at, rank = make([]int16, n), make([]int16, n)
	for i := range at {
		at[i] = int16(i)
	}
	slices.SortFunc(at, func(a, b int16) int { return strings.Compare(name(int(a)), name(int(b))) })
	for i, x := range at {
		rank[x] = int16(i)
	}
	return at, rank
}

func (p *phrases) commands(g *Game, j *joiner) {
	of := func(n int) []episode.Action { return make([]episode.Action, 0, n) }
	p.examine, p.open, p.closeR = of(len(g.Receptacles)), of(len(g.Receptacles)), of(len(g.Receptacles))
	p.examineO, p.use = of(len(g.Objects)), of(len(g.Objects))
	for i, r := range g.Receptacles {
		p.named[r.Name] = int32(i)
		p.examine = append(p.examine, j.action("examine ", r.Name))
		var open, closeR episode.Action
		if r.Openable {
			open, closeR = j.action("open ", r.Name), j.action("close ", r.Name)
		}
		p.open, p.closeR = append(p.open, open), append(p.closeR, closeR)
	}
	n := wordsFor(len(g.Objects))
	p.pickupable, p.toggleable, p.sliceable = make(bitset, n), make(bitset, n), make(bitset, n)
	for i, o := range g.Objects {
		p.named[o.Name] = ^int32(i)
		p.examineO = append(p.examineO, j.action("examine ", o.Name))
		var use episode.Action
		if o.Traits&Toggleable != 0 {
			p.toggleable.add(i)
			use = j.action("use ", o.Name)
		}
		p.use = append(p.use, use)
		if o.Traits&Pickupable != 0 {
			p.pickupable.add(i)
		}
		if o.Traits&Sliceable != 0 {
			p.sliceable.add(i)
		}
	}
}

func (p *phrases) takes(g *Game, j *joiner) {
	p.take, p.takeFrom = make([]episode.Action, 0, len(g.Objects)), make([]int32, 0, len(g.Receptacles))
	for r := range g.Receptacles {
		p.takeFrom = append(p.takeFrom, int32(len(p.take)))
		for _, o := range g.Contents(r) {
			p.take = append(p.take, j.action("take ", g.Objects[o].Name, " from ", g.Receptacles[r].Name))
		}
	}
}

// takeOf is the command, not made anew for an object that was there at the start.
func (p *phrases) takeOf(g *Game, object, receptacle int) episode.Action {
	first := g.first.in(&g.layout, receptacle)
	if !first.has(object) {
		return episode.Action("take " + g.Objects[object].Name + " from " + g.Receptacles[receptacle].Name)
	}
	at := bits.OnesCount64(first[object>>6] & (1<<(object&63) - 1))
	for _, w := range first[:object>>6] {
		at += bits.OnesCount64(w)
	}
	return p.take[int(p.takeFrom[receptacle])+at]
}

func intro(g *Game) string {
	b := []byte(welcome)
	if len(g.Locations[g.Start].Receptacles) > 0 {
		b = append(appendFacing(b, g, g.Start), "nothing."...) // nothing was taken yet
	} else {
		b = append(b, middleOfRoom...)
		var l lister
		for _, r := range g.Receptacles {
			if r.Location >= 0 {
				b = l.add(b, "a ", r.Name)
			}
		}
		b = append(l.end(b), '.')
	}
	b = append(b, "\n\nYour task is to: "...)
	return string(append(b, g.Task...))
}

// appendFacing writes "You are facing the …. Next to it, you see ".
func appendFacing(b []byte, g *Game, location int) []byte {
	b = append(b, "You are facing the "...)
	var l lister
	for _, r := range g.Locations[location].Receptacles {
		b = l.add(b, "", g.Receptacles[r].Name)
	}
	return append(l.end(b), ". Next to it, you see "...)
}

// lister writes "nothing", "x", "x, and y" or "x, y, and z". It holds one item back, since the last is joined otherwise.
type lister struct {
	article, held string
	any, written  bool
}

func (l *lister) add(b []byte, article, name string) []byte {
	if l.any {
		b = l.join(b, ", ")
	}
	l.article, l.held, l.any = article, name, true
	return b
}

// join writes the item held back, behind the separator unless it is the first.
func (l *lister) join(b []byte, separator string) []byte {
	if l.written {
		b = append(b, separator...)
	}
	l.written = true
	b = append(b, l.article...)
	return append(b, l.held...)
}

func (l *lister) end(b []byte) []byte {
	if !l.any {
		return append(b, "nothing"...)
	}
	return l.join(b, ", and ")
}
