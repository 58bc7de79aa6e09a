// Package alfworld plays the household text games of ALFWorld: it reads the released game files and answers every
// action with the text the original engine gives, without that engine.
package alfworld

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Family is one of the six kinds of task. The zero Family is none.
type Family uint8

// The families.
const (
	_             Family = iota
	PickAndPlace         // an object in a receptacle
	LookInLight          // an object held where a lamp was switched on
	CleanAndPlace        // a cleaned object in a receptacle
	HeatAndPlace         // a heated object in a receptacle
	CoolAndPlace         // a cooled object in a receptacle
	PickTwo              // two objects in the same receptacle
	families             // one more than their number
)

var familyNames = [families]string{
	"no family", "pick_and_place_simple", "look_at_obj_in_light", "pick_clean_then_place_in_recep",
	"pick_heat_then_place_in_recep", "pick_cool_then_place_in_recep", "pick_two_obj_and_place",
}

var familyCategories = [families]string{"", "pick_and_place", "look_at_obj_in_light", "clean", "heat", "cool", "pick_and_place"}

// String is the family's name as the released folders spell it.
func (f Family) String() string {
	if f < families {
		return familyNames[f]
	}
	return "family " + strconv.Itoa(int(f))
}

// Category is the shelf of the bank that the family retrieves from; "" for no family.
func (f Family) Category() string {
	if f < families {
		return familyCategories[f]
	}
	return ""
}

// Families lists the six in their order.
func Families() []Family {
	return []Family{PickAndPlace, LookInLight, CleanAndPlace, HeatAndPlace, CoolAndPlace, PickTwo}
}

// FamilyNamed is the inverse of String.
func FamilyNamed(name string) (Family, bool) {
	i := slices.Index(familyNames[1:], name)
	return Family(i + 1), i >= 0
}

// Wording is the dialect of commands and answers. It belongs to the game file; an option may force another.
type Wording uint8

// The wordings.
const (
	FromFile Wording = iota // zero: what the game's own file says
	Move                    // files of release 0.4 and later: "move O to R", help
	Put                     // files before release 0.4: "put O in/on R", arrivals name the location, no help
	wordings
)

func (w Wording) String() string {
	switch w {
	case FromFile:
		return "from file"
	case Move:
		return "move"
	case Put:
		return "put"
	default:
		return "wording " + strconv.Itoa(int(w))
	}
}

// Traits is a set of the lasting properties of an object.
type Traits uint8

// The traits.
const (
	Pickupable Traits = 1 << iota
	Cleanable
	Heatable
	Coolable
	Toggleable
	Sliceable
	Vessel // other objects may lie in it (isReceptacleObject)
)

// Condition is a set of the properties of an object that play changes.
type Condition uint8

// The conditions.
const (
	Clean Condition = 1 << iota
	Hot
	Cool
	Sliced
	Toggled // was switched at some time
	On
	conditions = 6 // their number
)

// Goal is what a game asks for. Object and Target are class names; Target is the class of the receptacle, or of the
// lamp in LookInLight.
type Goal struct {
	Family         Family
	Object, Target string
	// NearLamp is a LookInLight goal of files before release 0.2.3: the lamp's own location counts, not that of a
	// receptacle it is in.
	NearLamp bool
}

// Spec is a game as plain facts: what a problem file or a generator knows. Ids are raw ("Apple|+00.10|+00.90|-01.20",
// "loc|4|-6|1|60") or in the mangled spelling of problem files; classes are bare ("Apple", not "AppleType"). Case does
// not matter but is kept. The order of the lists does not matter.
type Spec struct {
	ID          string // of the task: split/folder/trial
	Task        string // the sentence as it is printed after "Your task is to: ", final period included
	Goal        Goal
	Wording     Wording // FromFile stands for Move
	Start       string  // location of the agent
	Receptacles []ReceptacleSpec
	Objects     []ObjectSpec
	CanContain  []Pair   // receptacle class, object class; repeats and absent classes are harmless
	Walkthrough []string // commands that win, in names or ids; nil if none is known
	Scene       string   // floor plan ("FloorPlan28"); may be empty
	Annotations []string // people's own sentences for the goal; may be nil
}

// ReceptacleSpec is a receptacle of a Spec.
type ReceptacleSpec struct {
	ID, Class string
	Location  string // "" if it stands nowhere, so that nobody can go there
	Openable  bool
	Opened    bool // at the start
}

// ObjectSpec is an object of a Spec.
type ObjectSpec struct {
	ID, Class string
	Traits    Traits
	Condition Condition // at the start
	In        []string  // receptacles it is in; several where they overlap, none if it cannot be seen
	At        []string  // locations it is near; at most one in released games
	Inside    []string  // vessels it lies inside (inReceptacleObject)
}

// Pair is a receptacle class and an object class that it can contain.
type Pair struct{ Receptacle, Object string }

// Class is an index into Game.Classes; 0 is no class.
type Class int16

// Object is an object of a game; its number is its index in Game.Objects.
type Object struct {
	ID     string // mangled, spelled as in the source
	Name   string // what players read: "apple 2"
	Class  Class
	Traits Traits
}

// role is what a class is good for beyond holding things.
type role uint8

const (
	_ role = iota
	sink
	microwave
	fridge
	knife
)

var roleOf = map[string]role{
	"sinkbasin": sink, "sink": sink, "microwave": microwave, "fridge": fridge, "knife": knife, "butterknife": knife,
}

// Receptacle is a receptacle of a game; its number is its index in Game.Receptacles.
type Receptacle struct {
	ID, Name string
	Class    Class
	Location int16 // index into Game.Locations, -1 if none
	Openable bool
}

// Location is a place the agent can be; its number is its index in Game.Locations.
type Location struct {
	ID, Name    string
	Receptacles []int16 // those that stand there, ascending
}

// Game is one game, compiled. It is immutable and shared by all its episodes. Objects, Receptacles and Locations are
// each sorted by lower-case id, the order of every list in an observation; callers read them only.
type Game struct {
	ID          string
	Task        string // with its final period
	Goal        Goal
	Wording     Wording // Move or Put
	Classes     []string
	Objects     []Object
	Receptacles []Receptacle
	Locations   []Location
	Start       int // location of the agent
	Walkthrough []string
	Scene       string
	Annotations []string

	goalObject, goalTarget Class
	goalObjects            bitset     // objects that the goal can be about
	goalReceptacles        []int16    // of the goal's class; none for LookInLight
	goalLamps              bitset     // lamps of the goal's class that can be switched
	roles                  []role     // of each class
	canContain             bitset     // [class of receptacle * len(Classes) + class of object]
	inside                 [][2]int16 // object, vessel; ascending
	layout                 layout
	first                  slab // the state at the start
	text                   [wordings]lazy[phrases]
}

// NewGame compiles a spec: it checks that the facts hang together, numbers and orders everything as the original
// engine does, and keeps nothing of the spec's slices.
func NewGame(s Spec) (*Game, error) {
	g, err := compile(s)
	if err != nil {
		return nil, fmt.Errorf("game %s: %w", orUnnamed(s.ID), err)
	}
	return g, nil
}

func orUnnamed(id string) string { return cmp.Or(id, "without an id") }

// Family of the goal.
func (g *Game) Family() Family { return g.Goal.Family }

// ClassOf finds a class by name, in any case; false if no object or receptacle of the game has it.
func (g *Game) ClassOf(name string) (Class, bool) {
	for i, c := range g.Classes {
		if i > 0 && strings.EqualFold(c, name) {
			return Class(i), true
		}
	}
	return 0, false
}

// GoalObject is the class of the objects the goal is about; 0 if the game has none.
func (g *Game) GoalObject() Class { return g.goalObject }

// GoalTarget is the class of the goal's receptacle or lamp; 0 if the game has none.
func (g *Game) GoalTarget() Class { return g.goalTarget }

// CanContain tells whether receptacles of class r may hold objects of class o.
func (g *Game) CanContain(r, o Class) bool { return g.canContain.has(int(r)*len(g.Classes) + int(o)) }

// Contents lists the objects in a receptacle at the start, ascending.
func (g *Game) Contents(receptacle int) []int { return g.first.in(&g.layout, receptacle).list() }

// Places lists the receptacles an object is in at the start, ascending.
func (g *Game) Places(object int) []int {
	var rs []int
	for r := range g.Receptacles {
		if g.first.in(&g.layout, r).has(object) {
			rs = append(rs, r)
		}
	}
	return rs
}

// Spec gives the game back as facts; NewGame of it is an equal game.
func (g *Game) Spec() Spec {
	s := Spec{
		ID: g.ID, Task: g.Task, Goal: g.Goal, Wording: g.Wording, Start: g.Locations[g.Start].ID, Scene: g.Scene,
		Walkthrough: slices.Clone(g.Walkthrough), Annotations: slices.Clone(g.Annotations),
	}
	for i, r := range g.Receptacles {
		rs := ReceptacleSpec{ID: r.ID, Class: g.Classes[r.Class], Openable: r.Openable, Opened: g.first.opened(&g.layout).has(i)}
		if r.Location >= 0 {
			rs.Location = g.Locations[r.Location].ID
		}
		s.Receptacles = append(s.Receptacles, rs)
	}
	for i, o := range g.Objects {
		os := ObjectSpec{ID: o.ID, Class: g.Classes[o.Class], Traits: o.Traits, Condition: g.first.condition(&g.layout, i)}
		for _, r := range g.Places(i) {
			os.In = append(os.In, g.Receptacles[r].ID)
		}
		for _, l := range g.first.near(&g.layout, i).list() {
			os.At = append(os.At, g.Locations[l].ID)
		}
		for _, p := range g.inside {
			if int(p[0]) == i {
				os.Inside = append(os.Inside, g.Objects[p[1]].ID)
			}
		}
		s.Objects = append(s.Objects, os)
	}
	for _, i := range g.canContain.list() {
		n := len(g.Classes)
		s.CanContain = append(s.CanContain, Pair{g.Classes[i/n], g.Classes[i%n]})
	}
	return s
}

// mangler spells raw ids as problem files do.
var mangler = strings.NewReplacer("-", "_minus_", "|", "_bar_", "+", "_plus_", ".", "_dot_", ",", "_comma_")

// mangle returns the id as problem files spell it, or an error if they cannot.
func mangle(id string) (string, error) {
	if id == "" {
		return "", errors.New("an id is empty")
	}
	if !isID(id) {
		return "", fmt.Errorf("id %q: blanks, quotes, parentheses, semicolons and question marks cannot stand in an id", id)
	}
	return mangler.Replace(id), nil
}

// isID tells whether problem files can hold the id, raw or mangled.
func isID(id string) bool {
	for i := range len(id) {
		if kindOf[id[i]] != letter || id[i] == '?' {
			return false
		}
	}
	return true
}
