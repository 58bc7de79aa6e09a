package alfworld

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"skillmaster/episode"
)

// Verb is what a command does.
type Verb uint8

// The verbs; in brackets the fields of a Command they use.
const (
	VerbLook      Verb = iota
	VerbInventory      //
	VerbHelp           // not in the Put wording
	VerbGo             // [Receptacle]
	VerbOpen           // [Receptacle]
	VerbClose          // [Receptacle]
	VerbExamine        // [Receptacle], or [Object] with Receptacle -1
	VerbTake           // [Object, Receptacle]
	VerbPut            // [Object, Receptacle]
	VerbClean          // [Object, Receptacle]
	VerbHeat           // [Object, Receptacle]
	VerbCool           // [Object, Receptacle]
	VerbUse            // [Object]
	VerbSlice          // [Object], with what is held
	verbs
)

var verbNames = [verbs]string{
	"look", "inventory", "help", "go to", "open", "close", "examine", "take", "put", "clean", "heat", "cool", "use", "slice",
}

func (v Verb) String() string {
	if v < verbs {
		return verbNames[v]
	}
	return "verb " + strconv.Itoa(int(v))
}

// Command is an action with its words resolved to numbers of the game; -1 stands for a field the verb does not use.
type Command struct {
	Verb               Verb
	Object, Receptacle int
}

// State is one game being played: the rules and the texts, without step limit or end. It is not safe for concurrent
// use; its Game is shared.
type State struct {
	game     *Game
	text     *phrases
	sets     slab
	location int
	held     int // object, -1 for none

	admissible []episode.Action // of the state as it is; nil when it has to be made
	pairs      []uint32         // scratch
	buffer     []byte           // scratch
}

// NewState starts the game in a wording; FromFile stands for the game's own.
func (g *Game) NewState(w Wording) *State {
	return &State{game: g, text: g.phrasesIn(w), sets: slices.Clone(g.first), location: g.Start, held: -1}
}

// Clone copies the state.
func (s *State) Clone() *State {
	return &State{game: s.game, text: s.text, sets: slices.Clone(s.sets), location: s.location, held: s.held, admissible: s.admissible}
}

// Game that is played.
func (s *State) Game() *Game { return s.game }

// Wording in force: Move or Put.
func (s *State) Wording() Wording { return s.text.wording }

// Intro is the first observation.
func (s *State) Intro() string { return s.text.intro }

// Location of the agent.
func (s *State) Location() int { return s.location }

// Held is the object in the agent's hand; false if none.
func (s *State) Held() (object int, ok bool) { return s.held, s.held >= 0 }

// Opened tells whether a receptacle stands open.
func (s *State) Opened(receptacle int) bool { return s.sets.opened(&s.game.layout).has(receptacle) }

// In tells whether an object is in a receptacle. One that was taken from one of two receptacles stays in the other.
func (s *State) In(object, receptacle int) bool {
	return s.sets.in(&s.game.layout, receptacle).has(object)
}

// Contents lists the objects in a receptacle, ascending.
func (s *State) Contents(receptacle int) []int { return s.sets.in(&s.game.layout, receptacle).list() }

// Is tells whether an object is in a condition.
func (s *State) Is(object int, c Condition) bool { return s.sets.having(&s.game.layout, c).has(object) }

// Won tells whether the goal holds.
func (s *State) Won() bool {
	g := s.game
	switch g.Goal.Family {
	case PickAndPlace:
		return s.placed(nil) > 0
	case CleanAndPlace:
		return s.placed(s.sets.having(&g.layout, Clean)) > 0
	case HeatAndPlace:
		return s.placed(s.sets.having(&g.layout, Hot)) > 0
	case CoolAndPlace:
		return s.placed(s.sets.having(&g.layout, Cool)) > 0
	case PickTwo:
		return s.placed(nil) > 1
	case LookInLight:
		return s.held >= 0 && g.goalObjects.has(s.held) && s.lit()
	default:
		panic("alfworld: a compiled game has a family")
	}
}

// placed is the most objects of the goal in one of its receptacles; only those in among count, nil for all.
func (s *State) placed(among bitset) int {
	most := 0
	for _, r := range s.game.goalReceptacles {
		n := 0
		for w, x := range s.sets.in(&s.game.layout, int(r)) {
			x &= s.game.goalObjects[w]
			if among != nil {
				x &= among[w]
			}
			n += bits.OnesCount64(x)
		}
		most = max(most, n)
	}
	return most
}

// lit tells whether a lamp of the goal that was switched is where the agent is.
func (s *State) lit() bool {
	g := s.game
	toggled := s.sets.having(&g.layout, Toggled)
	if g.Goal.NearLamp {
		for _, o := range g.goalLamps.list() {
			if toggled.has(o) && s.sets.near(&g.layout, o).has(s.location) {
				return true
			}
		}
		return false
	}
	for _, r := range g.Locations[s.location].Receptacles {
		for w, x := range s.sets.in(&g.layout, int(r)) {
			if x&toggled[w]&g.goalLamps[w] != 0 {
				return true
			}
		}
	}
	return false
}

// Can tells whether a command is admissible now.
func (s *State) Can(c Command) bool {
	g := s.game
	switch c.Verb {
	case VerbLook, VerbInventory:
		return true
	case VerbHelp:
		return s.text.wording == Move
	case VerbGo:
		l := g.Receptacles[c.Receptacle].Location
		return l >= 0 && int(l) != s.location
	case VerbOpen, VerbClose:
		return s.here(c.Receptacle) && g.Receptacles[c.Receptacle].Openable && s.Opened(c.Receptacle) == (c.Verb == VerbClose)
	case VerbExamine:
		if c.Receptacle < 0 {
			return c.Object == s.held
		}
		return s.here(c.Receptacle)
	case VerbTake:
		return s.held < 0 && s.reach(c.Receptacle) && s.In(c.Object, c.Receptacle) && g.Objects[c.Object].Traits&Pickupable != 0
	case VerbPut:
		return c.Object == s.held && s.reach(c.Receptacle) && g.CanContain(g.Receptacles[c.Receptacle].Class, g.Objects[c.Object].Class)
	case VerbClean, VerbHeat, VerbCool:
		return c.Object == s.held && s.here(c.Receptacle) && g.treats(c)
	case VerbUse:
		return g.Objects[c.Object].Traits&Toggleable != 0 && s.inSight(c.Object)
	case VerbSlice:
		return s.held >= 0 && g.roles[g.Objects[s.held].Class] == knife && g.Objects[c.Object].Traits&Sliceable != 0 &&
			s.sets.near(&g.layout, c.Object).has(s.location)
	default:
		panic(fmt.Sprintf("alfworld: no such command: %v", c.Verb))
	}
}

// here tells whether a receptacle stands where the agent is.
func (s *State) here(receptacle int) bool {
	return int(s.game.Receptacles[receptacle].Location) == s.location
}

// reach tells whether a receptacle stands here and is not shut.
func (s *State) reach(receptacle int) bool {
	return s.here(receptacle) && (!s.game.Receptacles[receptacle].Openable || s.Opened(receptacle))
}

// treats tells whether the command's receptacle can do to its object what the verb says.
func (g *Game) treats(c Command) bool {
	r, t := treatment(c.Verb)
	return g.roles[g.Receptacles[c.Receptacle].Class] == r && g.Objects[c.Object].Traits&t != 0
}

// treatment says which receptacles do what a verb says, and to which objects.
func treatment(v Verb) (role, Traits) {
	switch v {
	case VerbClean:
		return sink, Cleanable
	case VerbHeat:
		return microwave, Heatable
	case VerbCool:
		return fridge, Coolable
	default:
		panic(fmt.Sprintf("alfworld: %v is no treatment", v))
	}
}

// inSight tells whether an object is in a receptacle here, be it shut or not.
func (s *State) inSight(object int) bool {
	for _, r := range s.game.Locations[s.location].Receptacles {
		if s.In(object, int(r)) {
			return true
		}
	}
	return false
}

// Do does what an admissible command does; the caller has asked Can.
func (s *State) Do(c Command) {
	l := &s.game.layout
	switch c.Verb {
	case VerbLook, VerbInventory, VerbHelp, VerbExamine:
		return
	case VerbGo:
		s.location = int(s.game.Receptacles[c.Receptacle].Location)
	case VerbOpen:
		s.sets.opened(l).add(c.Receptacle)
	case VerbClose:
		s.sets.opened(l).remove(c.Receptacle)
	case VerbTake:
		s.sets.in(l, c.Receptacle).remove(c.Object)
		s.sets.out(l, c.Receptacle).add(c.Object)
		s.sets.near(l, c.Object).remove(s.location)
		s.held = c.Object
	case VerbPut:
		s.sets.in(l, c.Receptacle).add(c.Object)
		s.sets.out(l, c.Receptacle).remove(c.Object)
		s.sets.near(l, c.Object).add(s.location)
		s.held = -1
	case VerbClean:
		s.sets.having(l, Clean).add(c.Object)
	case VerbHeat:
		s.sets.having(l, Hot).add(c.Object)
		s.sets.having(l, Cool).remove(c.Object)
	case VerbCool:
		s.sets.having(l, Cool).add(c.Object)
		s.sets.having(l, Hot).remove(c.Object)
	case VerbUse:
		s.sets.having(l, Toggled).add(c.Object)
		s.flip(c.Object)
	case VerbSlice:
		s.sets.having(l, Sliced).add(c.Object)
	default:
		panic(fmt.Sprintf("alfworld: no such command: %v", c.Verb))
	}
	s.admissible = nil
}

func (s *State) flip(object int) {
	on := s.sets.having(&s.game.layout, On)
	if on.has(object) {
		on.remove(object)
		return
	}
	on.add(object)
}

// Step takes an action as text and returns the answer, and whether the action was admissible. One that was not changes
// nothing.
func (s *State) Step(action string) (answer string, admissible bool) {
	c, ok := s.Parse(action)
	if !ok {
		return nothingHappens, false
	}
	s.Do(c)
	return s.answer(c), true
}

// strip removes white space around an action, that which the original engine takes for white space.
func strip(action string) string {
	return strings.TrimFunc(action, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}

// Parse resolves an action; false if it is not admissible now. White space around it does not matter, inside it does.
func (s *State) Parse(action string) (Command, bool) {
	c, ok := s.resolve(strip(action))
	return c, ok && s.Can(c)
}

// resolve finds the words of an action, whether it is possible or not.
func (s *State) resolve(a string) (Command, bool) {
	none := Command{Object: -1, Receptacle: -1}
	switch a {
	case "look":
		return none, true
	case "inventory":
		none.Verb = VerbInventory
		return none, true
	case "help":
		none.Verb = VerbHelp
		return none, true
	}
	verb, rest, _ := strings.Cut(a, " ")
	switch verb {
	case "go":
		to, ok := strings.CutPrefix(rest, "to ")
		c, found := s.withReceptacle(VerbGo, to)
		return c, ok && found
	case "open":
		return s.withReceptacle(VerbOpen, rest)
	case "close":
		return s.withReceptacle(VerbClose, rest)
	case "use":
		return s.withObject(VerbUse, rest)
	case "examine":
		if c, ok := s.withReceptacle(VerbExamine, rest); ok {
			return c, true
		}
		return s.withObject(VerbExamine, rest)
	case "take":
		return s.withBoth(VerbTake, rest, " from ")
	case "move":
		c, ok := s.withBoth(VerbPut, rest, " to ")
		return c, ok && s.text.wording == Move
	case "put":
		c, ok := s.withBoth(VerbPut, rest, " in/on ")
		return c, ok && s.text.wording == Put
	case "clean":
		return s.withBoth(VerbClean, rest, " with ")
	case "heat":
		return s.withBoth(VerbHeat, rest, " with ")
	case "cool":
		return s.withBoth(VerbCool, rest, " with ")
	case "slice":
		object, tool, ok := strings.Cut(rest, " with ")
		c, found := s.withObject(VerbSlice, object)
		t, known := s.text.named[tool]
		return c, ok && found && known && int(^t) == s.held
	default:
		return none, false
	}
}

func (s *State) withReceptacle(v Verb, name string) (Command, bool) {
	n, ok := s.text.named[name]
	return Command{Verb: v, Object: -1, Receptacle: int(n)}, ok && n >= 0
}

func (s *State) withObject(v Verb, name string) (Command, bool) {
	n, ok := s.text.named[name]
	return Command{Verb: v, Object: int(^n), Receptacle: -1}, ok && n < 0
}

func (s *State) withBoth(v Verb, rest, between string) (Command, bool) {
	object, receptacle, ok := strings.Cut(rest, between)
	if !ok {
		return Command{}, false
	}
	o, foundObject := s.text.named[object]
	r, foundReceptacle := s.text.named[receptacle]
	return Command{Verb: v, Object: int(^o), Receptacle: int(r)}, foundObject && foundReceptacle && o < 0 && r >= 0
}
