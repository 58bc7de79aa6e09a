package alfworld

import (
	"math/bits"
	"slices"

	"skillmaster/episode"
)

// Admissible lists the actions possible now, sorted. Callers share the list and must not change it.
func (s *State) Admissible() []episode.Action {
	if s.admissible != nil {
		return s.admissible
	}
	if s.held < 0 && !slices.ContainsFunc(s.text.here[s.location], s.touched) {
		s.admissible = *s.text.untouched[s.location].get(s.commands)
	} else {
		s.admissible = s.commands()
	}
	return s.admissible
}

// touched tells whether a receptacle is not as it was at the start.
func (s *State) touched(receptacle int16) bool {
	l, r := &s.game.layout, int(receptacle)
	return s.Opened(r) != s.game.first.opened(l).has(r) || !slices.Equal(s.sets.in(l, r), s.game.first.in(l, r))
}

func (s *State) commands() []episode.Action {
	return slices.Clip(s.appendCommands(make([]episode.Action, 0, s.aboutAdmissible())))
}

// aboutAdmissible is the number of admissible actions, unless there is much to slice or to switch.
func (s *State) aboutAdmissible() int {
	n := len(s.text.goTo) + 6 // help, inventory, look, examining and treating what is held, a lamp
	for _, r := range s.text.here[s.location] {
		n++ // to open or to close it, or to put something in it; examining it stands for going to it
		if s.held >= 0 || !s.reach(int(r)) {
			continue
		}
		for _, x := range s.sets.in(&s.game.layout, int(r)) {
			n += bits.OnesCount64(x)
		}
	}
	return n
}

// appendCommands goes through the verbs in the order of their first words.
func (s *State) appendCommands(as []episode.Action) []episode.Action {
	g, p := s.game, s.text
	here := p.here[s.location]
	as = s.appendTreatments(as, VerbClean, here)
	for _, r := range here {
		if g.Receptacles[r].Openable && s.Opened(int(r)) {
			as = append(as, p.closeR[r])
		}
	}
	as = s.appendTreatments(as, VerbCool, here)
	as = s.appendExamines(as, here)
	as = s.appendGoTos(as)
	as = s.appendTreatments(as, VerbHeat, here)
	if p.wording == Move {
		as = append(as, "help")
	}
	as = append(as, "inventory", "look")
	if p.wording == Move {
		as = s.appendPuts(as, "move ", " to ", here)
	}
	for _, r := range here {
		if g.Receptacles[r].Openable && !s.Opened(int(r)) {
			as = append(as, p.open[r])
		}
	}
	if p.wording == Put {
		as = s.appendPuts(as, "put ", " in/on ", here)
	}
	as = s.appendSlices(as)
	as = s.appendTakes(as, here)
	return s.appendUses(as, here)
}

func (s *State) appendTreatments(as []episode.Action, v Verb, here []int16) []episode.Action {
	if s.held < 0 {
		return as
	}
	for _, r := range here {
		if s.game.treats(Command{Verb: v, Object: s.held, Receptacle: int(r)}) {
			as = append(as, episode.Action(v.String()+" "+s.game.Objects[s.held].Name+" with "+s.game.Receptacles[r].Name))
		}
	}
	return as
}

func (s *State) appendExamines(as []episode.Action, here []int16) []episode.Action {
	held := s.held >= 0
	for _, r := range here {
		if held && s.game.Objects[s.held].Name < s.game.Receptacles[r].Name {
			as, held = append(as, s.text.examineO[s.held]), false
		}
		as = append(as, s.text.examine[r])
	}
	if held {
		as = append(as, s.text.examineO[s.held])
	}
	return as
}

// appendGoTos appends all but those that lead here.
func (s *State) appendGoTos(as []episode.Action) []episode.Action {
	from := 0
	for _, to := range s.text.goHere[s.location] {
		as = append(as, s.text.goTo[from:to]...)
		from = int(to) + 1
	}
	return append(as, s.text.goTo[from:]...)
}

func (s *State) appendPuts(as []episode.Action, verb, between string, here []int16) []episode.Action {
	if s.held < 0 {
		return as
	}
	for _, r := range here {
		if s.Can(Command{Verb: VerbPut, Object: s.held, Receptacle: int(r)}) {
			as = append(as, episode.Action(verb+s.game.Objects[s.held].Name+between+s.game.Receptacles[r].Name))
		}
	}
	return as
}

func (s *State) appendSlices(as []episode.Action) []episode.Action {
	g := s.game
	if s.held < 0 || g.roles[g.Objects[s.held].Class] != knife {
		return as
	}
	for _, o := range s.text.objectAt {
		if s.text.sliceable.has(int(o)) && s.sets.near(&g.layout, int(o)).has(s.location) {
			as = append(as, episode.Action("slice "+g.Objects[o].Name+" with "+g.Objects[s.held].Name))
		}
	}
	return as
}

// appendTakes sorts pairs of an object's rank and a receptacle's, packed into one number.
func (s *State) appendTakes(as []episode.Action, here []int16) []episode.Action {
	if s.held >= 0 {
		return as
	}
	p := s.text
	s.pairs = s.pairs[:0]
	for _, r := range here {
		if !s.reach(int(r)) {
			continue
		}
		for w, x := range s.sets.in(&s.game.layout, int(r)) {
			for x &= p.pickupable[w]; x != 0; x &= x - 1 {
				o := w<<6 + bits.TrailingZeros64(x)
				s.pairs = append(s.pairs, uint32(p.objectRank[o])<<16|uint32(p.receptacleRank[r]))
			}
		}
	}
	slices.Sort(s.pairs)
	for _, k := range s.pairs {
		as = append(as, p.takeOf(s.game, int(p.objectAt[k>>16]), int(p.receptacleAt[k&0xffff])))
	}
	return as
}

func (s *State) appendUses(as []episode.Action, here []int16) []episode.Action {
	p := s.text
	s.pairs = s.pairs[:0]
	for w, x := range p.toggleable {
		if x == 0 {
			continue
		}
		var in uint64
		for _, r := range here {
			in |= s.sets.in(&s.game.layout, int(r))[w]
		}
		for x &= in; x != 0; x &= x - 1 {
			s.pairs = append(s.pairs, uint32(p.objectRank[w<<6+bits.TrailingZeros64(x)]))
		}
	}
	slices.Sort(s.pairs)
	for _, k := range s.pairs {
		as = append(as, p.use[p.objectAt[k]])
	}
	return as
}

// Text is a command as an action, in the wording of the state; slicing is with what is held.
func (s *State) Text(c Command) episode.Action {
	g := s.game
	var object, receptacle string
	if c.Object >= 0 {
		object = g.Objects[c.Object].Name
	}
	if c.Receptacle >= 0 {
		receptacle = g.Receptacles[c.Receptacle].Name
	}
	text := c.Verb.String()
	switch c.Verb {
	case VerbLook, VerbInventory, VerbHelp:
	case VerbGo, VerbOpen, VerbClose, VerbUse, VerbExamine:
		text += " " + object + receptacle // one of them is empty
	case VerbTake:
		text += " " + object + " from " + receptacle
	case VerbPut:
		if s.text.wording == Put {
			text += " " + object + " in/on " + receptacle
		} else {
			text = "move " + object + " to " + receptacle
		}
	case VerbClean, VerbHeat, VerbCool:
		text += " " + object + " with " + receptacle
	case VerbSlice:
		text += " " + object + " with " + g.Objects[s.held].Name
	}
	return episode.Action(text)
}
