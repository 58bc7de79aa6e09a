package alfworld

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// factsText holds statistics of the household rooms of ALFRED as ALFWorld plays them: how often a receptacle or an
// object type occurs, where it lies, what it can do, what it is asked for. No room is in it, only counts over rooms.
// It is made from the train games by the test TestFacts (-facts writes it), so no evaluation game has a part in it.
//
//go:embed facts.txt
var factsText string

// facts are the tables of factsText. They are shared and nobody changes them.
type facts struct {
	rooms   []*roomFacts
	objects map[string]*objectFacts
	// openable is the share of a receptacle type's instances that can be opened, over all rooms.
	openable map[string]float64
	beside   []besideFacts
	twice    []twiceFacts
	number   map[string][]float64 // family: weight of 1, 2, 3 and 4 objects of the type asked for
	single   map[string]bool      // receptacle types that hold one thing at a time
	// asked is how much likelier, by receptacle type, a thing that the task asks for lies there than one it does not.
	asked map[string]float64
	// inside is the chance, by types of vessel and thing, that a thing lies inside a vessel of the room.
	inside map[string]map[string]float64
}

// roomFacts describe one kind of room.
type roomFacts struct {
	kind        string
	tasks       map[string]int // games of each family
	receptacles []receptacleFacts
	objects     []objectCount
	fixtures    []fixtureFacts
	goals       [families][]goalFacts
}

// goalFacts are what a task in a room can be about, and how often it is, in a room that has the target.
type goalFacts struct {
	sentence
	weight float64
}

// receptacleFacts say how many receptacles of a type a room of some kind has.
type receptacleFacts struct {
	name     string
	openable float64 // share that can be opened
	stacked  float64 // share that stands at the place of another of its type
	counts   []int   // one for each observed room, sorted; 0 where there is none
}

// objectCount says how many objects of a type a room of some kind has: the weight of 0, 1, 2 and 3.
type objectCount struct {
	name   string
	weight [4]float64
}

// fixtureFacts describe things that lie on receptacles and cannot be taken.
type fixtureFacts struct {
	objectCount
	on []weighted
}

// weighted is a receptacle type with a weight.
type weighted struct {
	name   string
	weight float64
}

// besideFacts say what share of the receptacles of type a stand at the place of one of type b.
type besideFacts struct {
	a, b  string
	share float64
}

// twiceFacts say what share of the objects in a receptacle of type a are in one of type b as well: a coffee machine
// stands on a countertop.
type twiceFacts struct {
	a, b  string
	share float64
}

// objectFacts describe a type of object.
type objectFacts struct {
	name                                  string
	cleanable, heatable, coolable, hollow bool
	sliceable, switchable                 bool
	nowhere                               float64        // share that lies in no receptacle, where no agent finds it
	tasks                                 map[string]int // games of each family that ask for it
	in                                    []whereFacts   // sorted by receptacle type
}

// whereFacts tie an object type to a receptacle type.
type whereFacts struct {
	receptacle string
	held       float64 // chance that one receptacle of the type holds one, in a room with both
	weight     float64 // of the type as a place of the object, where there is one receptacle of the type
	target     int     // games that want it put there
	may        bool    // it may be put there
}

// where returns what ties the object type to the receptacle type; zero if nothing does.
func (f *facts) where(object, receptacle string) whereFacts {
	o := f.objects[object]
	if o == nil {
		return whereFacts{}
	}
	i, found := slices.BinarySearchFunc(o.in, receptacle, func(w whereFacts, r string) int { return strings.Compare(w.receptacle, r) })
	if !found {
		return whereFacts{}
	}
	return o.in[i]
}

// household returns the tables. The text is ours, so an error in it is a panic.
var household = sync.OnceValue(func() *facts {
	f, err := parseFacts(factsText)
	if err != nil {
		panic(err)
	}
	return f
})

// parseFacts reads the text of facts.txt, whose head explains its lines.
func parseFacts(text string) (*facts, error) {
	f := &facts{
		objects: map[string]*objectFacts{}, openable: map[string]float64{}, number: map[string][]float64{},
		single: map[string]bool{}, asked: map[string]float64{}, inside: map[string]map[string]float64{},
	}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if err := f.parseLine(words); err != nil {
			return nil, fmt.Errorf("facts.txt line %d: %w", i+1, err)
		}
	}
	for _, o := range f.objects {
		slices.SortFunc(o.in, func(a, b whereFacts) int { return strings.Compare(a.receptacle, b.receptacle) })
	}
	f.countOpenable()
	for _, room := range f.rooms {
		for _, family := range Families() {
			room.goals[family] = f.goals(room, family)
		}
	}
	return f, nil
}

// goals lists what tasks of a family in a kind of room can be about. How often an object is asked for is known over all
// kinds of rooms, and where it is to go over all families; the one is shared out by how many rooms have the object, the
// other by the targets that the family has.
func (f *facts) goals(room *roomFacts, family Family) []goalFacts {
	var goals []goalFacts
	for _, c := range room.objects {
		o := f.objects[c.name]
		often := float64(o.tasks[familyWords[family]]) * f.shareOf(family, c)
		switch {
		case often == 0:
		case family == LookInLight:
			goals = append(goals, goalFacts{sentence{family, c.name, lampClass}, often})
		default:
			goals = append(goals, targets(room, family, o, often)...)
		}
	}
	return goals
}

// shareOf is the part that falls to one game in a room of this kind, of the games of a family that ask for an object.
func (f *facts) shareOf(family Family, c objectCount) float64 {
	rooms := 0.0
	for _, other := range f.rooms {
		for _, k := range other.objects {
			if k.name == c.name {
				rooms += float64(float64(other.tasks[familyWords[family]]) * (1 - k.weight[0]))
			}
		}
	}
	return (1 - c.weight[0]) / max(rooms, 1)
}

// targets shares out how often an object is asked for among the targets it can go to in a room.
func targets(room *roomFacts, family Family, o *objectFacts, often float64) []goalFacts {
	const seldom = 0.5 // games that want the object in a target where none does
	var goals []goalFacts
	sum := 0.0
	for _, w := range o.in {
		share := room.share(w.receptacle)
		if !w.may || share == 0 || slices.Contains(neverTargets[family], w.receptacle) {
			continue
		}
		games := float64(w.target) + seldom
		goals = append(goals, goalFacts{sentence{family, o.name, w.receptacle}, games / share})
		sum += games
	}
	for i := range goals {
		goals[i].weight *= often / sum
	}
	return goals
}

// share of the rooms of the kind that have a receptacle of the type.
func (r *roomFacts) share(receptacle string) float64 {
	for _, c := range r.receptacles {
		if c.name == receptacle {
			has := len(c.counts) - slices.IndexFunc(c.counts, func(n int) bool { return n > 0 })
			return float64(has) / float64(len(c.counts))
		}
	}
	return 0
}

// countOpenable sums the rooms' shares of openable receptacles.
func (f *facts) countOpenable() {
	open, all := map[string]float64{}, map[string]float64{}
	for _, r := range f.rooms {
		for _, c := range r.receptacles {
			for _, n := range c.counts {
				all[c.name] += float64(n)
				open[c.name] += float64(float64(n) * c.openable) // rounded before the sum, the same on every machine
			}
		}
	}
	for t, n := range all {
		f.openable[t] = open[t] / n
	}
}

func (f *facts) parseLine(words []string) error {
	n := numbers{}
	var room *roomFacts
	if len(f.rooms) > 0 {
		room = f.rooms[len(f.rooms)-1]
	}
	switch key, rest := words[0], words[1:]; {
	case key == "room" && len(rest) > 1:
		f.rooms = append(f.rooms, &roomFacts{kind: rest[0], tasks: n.pairs(rest[1:])})
	case key == "receptacle" && len(rest) > 3 && room != nil:
		c := receptacleFacts{name: rest[0], openable: n.percent(rest[1]), stacked: n.percent(rest[2]), counts: n.runs(rest[3:])}
		room.receptacles = append(room.receptacles, c)
	case key == "objects" && len(rest) == 5 && room != nil:
		room.objects = append(room.objects, n.count(rest))
	case key == "fixture" && len(rest) > 5 && room != nil:
		room.fixtures = append(room.fixtures, fixtureFacts{objectCount: n.count(rest[:5]), on: n.weights(rest[5:])})
	case key == "beside" && len(rest) == 3:
		f.beside = append(f.beside, besideFacts{rest[0], rest[1], n.percent(rest[2])})
	case key == "twice" && len(rest) == 3:
		f.twice = append(f.twice, twiceFacts{rest[0], rest[1], n.percent(rest[2])})
	case key == "number" && len(rest) == 5:
		for _, w := range rest[1:] {
			f.number[rest[0]] = append(f.number[rest[0]], n.percent(w))
		}
	case key == "single":
		for _, r := range rest {
			f.single[r] = true
		}
	case key == "asked":
		f.asked = n.shares(rest, 100)
	case key == "inside" && len(rest) > 0:
		f.inside[rest[0]] = n.shares(rest[1:], 10000)
	case key == "object" && len(rest) > 1:
		o := n.object(rest)
		f.objects[o.name] = o
	default:
		return fmt.Errorf("cannot read %q", strings.Join(words, " "))
	}
	return n.err
}

// numbers reads numbers and keeps the first error.
type numbers struct{ err error }

func (n *numbers) int(s string) int {
	v, err := strconv.Atoi(s)
	if err != nil && n.err == nil {
		n.err = err
	}
	return v
}

func (n *numbers) percent(s string) float64 { return float64(n.int(s)) / 100 }

// pairs reads "place 12 two 7".
func (n *numbers) pairs(words []string) map[string]int {
	m := map[string]int{}
	for i := 0; i+1 < len(words); i += 2 {
		m[words[i]] = n.int(words[i+1])
	}
	return m
}

// weights reads "countertop 12 shelf 7", keeping the order.
func (n *numbers) weights(words []string) []weighted {
	var w []weighted
	for i := 0; i+1 < len(words); i += 2 {
		w = append(w, weighted{words[i], float64(n.int(words[i+1]))})
	}
	return w
}

// runs reads "0*3 1 2*4": three rooms with none, one with one, four with two.
func (n *numbers) runs(words []string) []int {
	var out []int
	for _, w := range words {
		value, times, many := strings.Cut(w, "*")
		k := 1
		if many {
			k = n.int(times)
		}
		v := n.int(value)
		for range k {
			out = append(out, v)
		}
	}
	return out
}

// count reads "mug 12 29 31 28".
func (n *numbers) count(words []string) objectCount {
	c := objectCount{name: words[0]}
	for i := range c.weight {
		c.weight[i] = n.percent(words[i+1])
	}
	return c
}

// object reads "mug 5 clean hollow : clean 32 heat 102 : cabinet=81/35/40 -desk=7/2".
func (n *numbers) object(words []string) *objectFacts {
	o := &objectFacts{name: words[0]}
	part := strings.Split(strings.Join(words[1:], " "), ":")
	if len(part) != 3 {
		n.err = fmt.Errorf("object %s has %d parts, want 3", o.name, len(part))
		return o
	}
	property := strings.Fields(part[0])
	o.nowhere = n.percent(property[0])
	for _, p := range property[1:] {
		switch p {
		case "clean":
			o.cleanable = true
		case "heat":
			o.heatable = true
		case "cool":
			o.coolable = true
		case "slice":
			o.sliceable = true
		case "switch":
			o.switchable = true
		case "hollow":
			o.hollow = true
		default:
			n.err = fmt.Errorf("object %s: no property %q", o.name, p)
		}
	}
	o.tasks = n.pairs(strings.Fields(part[1]))
	for _, w := range strings.Fields(part[2]) {
		o.in = append(o.in, n.place(w))
	}
	return o
}

// shares reads "drawer=41 bed=110", in parts of whole.
func (n *numbers) shares(words []string, whole float64) map[string]float64 {
	m := map[string]float64{}
	for _, w := range words {
		name, number, _ := strings.Cut(w, "=")
		m[name] = float64(n.int(number)) / whole
	}
	return m
}

// place reads "cabinet=81/35/40" or "-desk=7/2".
func (n *numbers) place(word string) whereFacts {
	name, numbers, _ := strings.Cut(word, "=")
	w := whereFacts{receptacle: strings.TrimPrefix(name, "-"), may: !strings.HasPrefix(name, "-")}
	part := strings.Split(numbers, "/")
	if len(part) < 2 || w.may != (len(part) == 3) {
		n.err = fmt.Errorf("cannot read place %q", word)
		return w
	}
	w.held = float64(n.int(part[0])) / 1000
	w.weight = float64(n.int(part[1])) / 1000
	if w.may {
		w.target = n.int(part[2])
	}
	return w
}
