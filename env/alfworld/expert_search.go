package alfworld

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

// searchNoise is the standard deviation of the noise on the logarithm of a receptacle type's rank.
const searchNoise = 0.3

// searcher plays by what it has read. It looks into receptacles by the chance to find what it looks for over the work
// of looking, all of one type in the order of their numbers, and does what the task says with what it finds.
type searcher struct {
	*memory
	hints    []hint
	noise    map[string]float64 // factor for each receptacle type
	wording  Wording
	target   int             // the receptacle to put into; -1 for LookInLight
	refused  map[string]bool // own actions that nothing came of
	next     string          // the last action it asked for
	finished bool
}

// newSearcher returns a player for an episode that began with this text; an error if it does not say what is wanted. r, if not nil, perturbs the order of search.
func newSearcher(intro string, w Wording, advice []skill.Skill, r *rand.Rand) (*searcher, error) {
	m, err := newMemory(intro)
	if err != nil {
		return nil, err
	}
	s := &searcher{memory: m, noise: map[string]float64{}, refused: map[string]bool{}, wording: w, target: -1}
	for _, a := range advice {
		s.hints = append(s.hints, parseHints(a)...)
	}
	for i, c := range m.receptacles {
		if _, seen := s.noise[c.class]; !seen {
			s.noise[c.class] = 1
			if r != nil {
				s.noise[c.class] = math.Exp(searchNoise * r.NormFloat64())
			}
		}
		if c.class == m.task.target && (s.target < 0 || c.number < m.receptacles[s.target].number) {
			s.target = i
		}
	}
	return s, nil
}

var _ env.Expert = (*searcher)(nil)

// Observe implements env.Expert.
func (s *searcher) Observe(a episode.Action, r episode.StepResult) {
	action := string(a)
	if r.Observation.Text == nothingHappens && action == s.next {
		s.refused[action] = true
	}
	s.observe(action, r.Observation.Text)
	s.finished = s.finished || r.Done
}

// Next implements env.Expert.
func (s *searcher) Next() (episode.Action, bool) {
	if s.finished {
		return "", false
	}
	s.next = s.choose()
	return episode.Action(s.next), s.next != ""
}

// choose returns the next action, or "" if there is none.
func (s *searcher) choose() string {
	switch {
	case s.held == "":
		return s.fetch()
	case className(s.held) != s.task.object:
		return s.putDown()
	case !s.ready(s.task.family, s.held):
		return s.treatHeld()
	case s.task.family == LookInLight:
		return s.light()
	default:
		return s.putIn(s.target)
	}
}

// fetch finds an object of the wanted type and takes it.
func (s *searcher) fetch() string {
	object, r := s.find(s.task.object)
	if r < 0 {
		return s.search(s.task.object)
	}
	if step := s.reach(r, true); step != "" {
		return step
	}
	return "take " + object + " from " + s.receptacles[r].name
}

// treatHeld cleans, heats or cools what is held.
func (s *searcher) treatHeld() string {
	verb, class := s.task.family.treatment()
	r := s.first(class)
	if r < 0 {
		return ""
	}
	if step := s.reach(r, false); step != "" {
		return step
	}
	return s.unlessRefused(verb + " " + s.held + " with " + s.receptacles[r].name)
}

// treatment is the verb of what a family asks to do with the object and the type of receptacle it takes.
func (f Family) treatment() (verb, receptacle string) {
	switch f {
	case CleanAndPlace:
		return "clean", "sinkbasin"
	case HeatAndPlace:
		return "heat", "microwave"
	case CoolAndPlace:
		return "cool", "fridge"
	default:
		return "", ""
	}
}

// light finds a lamp and switches it on.
func (s *searcher) light() string {
	lamp, r := s.find(s.task.target)
	if r < 0 {
		return s.search(s.task.target)
	}
	if step := s.reach(r, false); step != "" {
		return step
	}
	return s.unlessRefused("use " + lamp)
}

func (s *searcher) putIn(r int) string {
	if r < 0 {
		return ""
	}
	if step := s.reach(r, true); step != "" {
		return step
	}
	return s.unlessRefused(s.putCommand(r))
}

func (s *searcher) putCommand(r int) string {
	if s.wording == Put {
		return "put " + s.held + " in/on " + s.receptacles[r].name
	}
	return "move " + s.held + " to " + s.receptacles[r].name
}

func (s *searcher) unlessRefused(action string) string {
	if s.refused[action] {
		return ""
	}
	return action
}

// surfaces are receptacle types to put a wrong object down on, the handiest first.
var surfaces = []string{
	"countertop", "diningtable", "sidetable", "desk", "dresser", "coffeetable", "bed", "sofa", "shelf", "drawer", "cabinet", "garbagecan",
}

// putDown gets rid of an object that is not wanted: here if something here takes it, else on some surface.
func (s *searcher) putDown() string {
	class := className(s.held)
	for r, c := range s.receptacles {
		if s.at(r) && !c.shut && household().where(class, c.class).may && !s.refused[s.putCommand(r)] {
			return s.putCommand(r)
		}
	}
	for _, surface := range surfaces {
		r := s.first(surface)
		if r < 0 || !household().where(class, surface).may || s.refused[s.putCommand(r)] {
			continue
		}
		return s.putIn(r)
	}
	return ""
}

// reach returns the next action on the way to a receptacle, opened if it has to be; "" when there.
func (s *searcher) reach(r int, open bool) string {
	c := s.receptacles[r]
	switch {
	case !s.at(r):
		return "go to " + c.name
	case open && !c.looked && !c.shut:
		return s.unlessRefused("examine " + c.name) // stands here, and nothing was shown of it
	case open && c.shut:
		return s.unlessRefused("open " + c.name)
	default:
		return ""
	}
}

// first returns the receptacle of a type with the lowest number, or -1.
func (s *searcher) first(class string) int {
	best := -1
	for r, c := range s.receptacles {
		if c.class == class && (best < 0 || c.number < s.receptacles[best].number) {
			best = r
		}
	}
	return best
}

// find returns a known object of a type that still has its use and the receptacle it is in, one that is here if there
// is one; -1 if none is known. Objects in the target of the task are where they belong.
func (s *searcher) find(class string) (object string, receptacle int) {
	receptacle = -1
	for r, c := range s.receptacles {
		if s.settled(r) || (receptacle >= 0 && !s.at(r)) {
			continue
		}
		for _, o := range c.objects {
			if className(o) != class || s.inTarget(o) || s.refused["take "+o+" from "+c.name] {
				continue
			}
			if s.at(r) {
				return o, r
			}
			if receptacle < 0 {
				object, receptacle = o, r
			}
		}
	}
	return object, receptacle
}

// fills tells whether the task is done by putting objects in its target as they are, so that those in it need no
// more and, at the start, there were too few.
func (f Family) fills() bool { return f == PickAndPlace || f == PickTwo }

// settled tells whether the objects in a receptacle are where the task wants them.
func (s *searcher) settled(r int) bool { return s.task.family.fills() && r == s.target }

// inTarget tells whether the object is known to be in the target; one in two receptacles may be shown elsewhere too.
func (s *searcher) inTarget(object string) bool {
	return s.target >= 0 && s.settled(s.target) && slices.Contains(s.receptacles[s.target].objects, object)
}

// search returns the next action of looking for objects of a type; "" when there is nowhere left to look.
func (s *searcher) search(class string) string {
	best, rank := -1, math.Inf(-1)
	for r, c := range s.receptacles {
		if c.looked || s.hopeless(class, c.class) {
			continue
		}
		if s.at(r) { // finish what is here
			return s.reach(r, true)
		}
		if v := s.rank(class, c.class); v > rank || v == rank && s.before(r, best) {
			best, rank = r, v
		}
	}
	if best < 0 {
		return ""
	}
	return s.reach(best, true)
}

// hopeless tells whether it follows from the task that no object of the type is in receptacles of the other type at
// the start.
func (s *searcher) hopeless(object, receptacle string) bool {
	return object == s.task.object && !s.task.mayStartIn(receptacle)
}

func (s *searcher) before(a, b int) bool {
	x, y := s.receptacles[a], s.receptacles[b]
	return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.number, y.number)) < 0
}

// rank orders receptacle types for the search of an object type: the chance that one holds it over the work of
// looking into one. Advice that names the object comes before advice for any, and both before chance.
func (s *searcher) rank(object, receptacle string) float64 {
	const unlikely = 1e-4
	f := household()
	v := float64((f.where(object, receptacle).held + unlikely) / (1 + f.openable[receptacle]) * s.noise[receptacle])
	for i, h := range s.hints {
		place := slices.Index(h.receptacles, receptacle)
		if place < 0 || h.object != "" && h.object != object || h.second && !s.holdsOne() {
			continue
		}
		v += h.weight() + 1/float64(1+i) - float64(10*place)
	}
	return v
}

// holdsOne tells whether one object is in the target already.
func (s *searcher) holdsOne() bool {
	return s.target >= 0 && slices.ContainsFunc(s.receptacles[s.target].objects, s.wanted)
}

func (s *searcher) wanted(object string) bool { return className(object) == s.task.object }

// weight puts advice on the second of two before advice on an object, and that before advice on any.
func (h hint) weight() float64 {
	switch {
	case h.second:
		return 300
	case h.object != "":
		return 200
	default:
		return 100
	}
}
