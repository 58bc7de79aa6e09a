package alfworld

import (
	"fmt"
	"math/bits"
)

// answer is the text for a command that was just done.
func (s *State) answer(c Command) string {
	switch {
	case c.Verb == VerbHelp:
		return helpText
	case c.Verb == VerbGo && !s.touched(int16(c.Receptacle)):
		return *s.text.arrivals[c.Receptacle].get(func() string { return s.say(c) })
	default:
		return s.say(c)
	}
}

func (s *State) say(c Command) string {
	s.buffer = s.appendAnswer(s.buffer[:0], c)
	return string(s.buffer)
}

func (s *State) appendAnswer(b []byte, c Command) []byte {
	var object, receptacle string
	if c.Object >= 0 {
		object = s.game.Objects[c.Object].Name
	}
	if c.Receptacle >= 0 {
		receptacle = s.game.Receptacles[c.Receptacle].Name
	}
	switch c.Verb {
	case VerbLook:
		return s.appendLook(b)
	case VerbInventory:
		return s.appendInventory(b)
	case VerbGo:
		if s.text.wording == Put {
			receptacle = s.game.Locations[s.location].Name
		}
		return s.appendReceptacle(concat(b, "You arrive at ", receptacle, ". "), c.Receptacle)
	case VerbOpen:
		return s.appendReceptacle(concat(b, "You open the ", receptacle, ". "), c.Receptacle)
	case VerbClose:
		return concat(b, "You close the ", receptacle, ".")
	case VerbExamine:
		if c.Receptacle >= 0 {
			return s.appendReceptacle(b, c.Receptacle)
		}
		return s.appendObject(b, c.Object)
	case VerbTake:
		return concat(b, "You pick up the ", object, " from the ", receptacle, ".")
	case VerbPut:
		if s.text.wording == Put {
			return concat(b, "You put the ", object, " in/on the ", receptacle, ".")
		}
		return concat(b, "You move the ", object, " to the ", receptacle, ".")
	case VerbClean, VerbHeat, VerbCool:
		return concat(b, "You ", c.Verb.String(), " the ", object, " using the ", receptacle, ".")
	case VerbUse:
		return concat(b, "You turn on the ", object, ".")
	case VerbSlice:
		return concat(b, "You sliced the ", object, " with the ", s.game.Objects[s.held].Name, ".")
	default:
		panic(fmt.Sprintf("alfworld: no answer to %v", c.Verb))
	}
}

func concat(b []byte, parts ...string) []byte {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// appendReceptacle writes what a receptacle shows.
func (s *State) appendReceptacle(b []byte, r int) []byte {
	name := s.game.Receptacles[r].Name
	if !s.game.Receptacles[r].Openable {
		b = concat(b, "On the ", name, ", you see ")
	} else if s.Opened(r) {
		b = concat(b, "The ", name, " is open. In it, you see ")
	} else {
		return concat(b, "The ", name, " is closed.")
	}
	var l lister
	for w, x := range s.sets.in(&s.game.layout, r) {
		for ; x != 0; x &= x - 1 {
			b = l.add(b, "a ", s.game.Objects[w<<6+bits.TrailingZeros64(x)].Name)
		}
	}
	return append(l.end(b), '.')
}

// appendObject writes what a held object looks like. The first that fits of a fixed order is said: what can hold other
// things is always "normal".
func (s *State) appendObject(b []byte, o int) []byte {
	name := s.game.Objects[o].Name
	traits := s.game.Objects[o].Traits
	if traits&Vessel != 0 {
		return s.appendVessel(b, o)
	}
	is := s.sets.condition(&s.game.layout, o)
	if looks := appearance(is); looks != "" {
		return concat(b, "This is a ", looks, " ", name, ".")
	}
	switch {
	case traits&Toggleable != 0 && is&Toggled != 0:
		return concat(b, "This ", name, " is on.")
	case traits&Sliceable != 0 && is&Sliced != 0:
		return concat(b, "This is a sliced ", name, ".")
	default:
		return concat(b, "There's nothing special about ", name, ".")
	}
}

// appearance puts conditions in words; "" for those that have none of their own.
func appearance(is Condition) string {
	clean, hot, cool, sliced := is&Clean != 0, is&Hot != 0, is&Cool != 0, is&Sliced != 0
	switch {
	case clean && hot && sliced:
		return "hot and clean sliced"
	case clean && cool && sliced:
		return "cool and clean sliced"
	case clean && sliced:
		return "clean sliced"
	case hot && sliced:
		return "hot sliced"
	case cool && sliced:
		return "cool sliced"
	case clean && hot:
		return "hot and clean"
	case clean && cool:
		return "cool and clean"
	case hot:
		return "hot"
	case clean:
		return "clean"
	case cool:
		return "cold"
	default:
		return ""
	}
}

// appendVessel lists what lies inside an object from the start. Some released pans lie inside themselves; that is not
// shown.
func (s *State) appendVessel(b []byte, o int) []byte {
	b = concat(b, "This is a normal ", s.game.Objects[o].Name, ". In it, you see ")
	var l lister
	for _, p := range s.game.inside {
		if int(p[1]) == o && p[0] != p[1] {
			b = l.add(b, "a ", s.game.Objects[p[0]].Name)
		}
	}
	return append(l.end(b), '.')
}

func (s *State) appendInventory(b []byte) []byte {
	if s.held < 0 {
		return append(b, "You are not carrying anything."...)
	}
	return concat(b, "You are carrying: a ", s.game.Objects[s.held].Name, ".")
}

// appendLook writes the receptacles here, and as things on the floor those near here that were taken from one of them
// and not put back there.
func (s *State) appendLook(b []byte) []byte {
	g := s.game
	here := g.Locations[s.location].Receptacles
	if len(here) == 0 {
		return append(b, middleOfRoom+"nothing."...)
	}
	b = appendFacing(b, g, s.location)
	var l lister
	for o := range g.Objects {
		if !s.sets.near(&g.layout, o).has(s.location) {
			continue
		}
		for _, r := range here {
			if s.sets.out(&g.layout, int(r)).has(o) {
				b = l.add(b, "a ", g.Objects[o].Name)
			}
		}
	}
	return append(l.end(b), '.')
}
