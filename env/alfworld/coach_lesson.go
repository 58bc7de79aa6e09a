package alfworld

import (
	"slices"

	"skillmaster/episode"
	"skillmaster/skill"
)

// longSearch is the number of receptacles looked into in vain from which a search teaches an order for the whole
// category, not only a place for the object.
const longSearch = 6

// hunt is the search for one thing in an episode.
type hunt struct {
	object string
	second bool
	vain   []string // types of the receptacles looked into before, in order
	found  string   // type of the receptacle it was in; "" if it was not found
}

// lesson tells what an episode taught: where the thing was that took the longest search, if it was not of the type
// that was tried first. Only texts go in.
func lesson(intro string, steps []episode.Step, category string) (skill.Skill, bool) {
	m, err := newMemory(intro)
	if err != nil {
		return skill.Skill{}, false
	}
	var best hunt
	for _, h := range m.hunts(steps) {
		if h.found != "" && len(h.vain) > len(best.vain) && slices.ContainsFunc(h.vain, func(c string) bool { return c != h.found }) {
			best = h
		}
	}
	if best.found == "" {
		return skill.Skill{}, false
	}
	advice := hint{object: best.object, second: best.second, receptacles: []string{best.found}}
	if next := m.nextBest(best); len(best.vain) >= longSearch && !best.second && next != "" {
		advice = hint{receptacles: []string{best.found, next}}
	}
	return advice.skill(category), true
}

// hunts replays the steps and returns the search for the object, then the one for the lamp or the second object.
func (m *memory) hunts(steps []episode.Step) []hunt {
	hunts := []hunt{{object: m.task.object}}
	switch m.task.family {
	case LookInLight:
		hunts = append(hunts, hunt{object: m.task.target})
	case PickTwo:
		hunts = append(hunts, hunt{object: m.task.object, second: true})
	}
	known := map[string]bool{} // objects that were hunted and seen
	for _, s := range steps {
		before := slices.Clone(m.receptacles)
		m.observe(string(s.Action), s.Observation)
		for r, c := range m.receptacles {
			if !c.looked || before[r].looked {
				continue
			}
			m.note(hunts, c, known)
		}
	}
	return hunts
}

// note takes down that a receptacle was looked into for the first time.
func (m *memory) note(hunts []hunt, c remembered, known map[string]bool) {
	hit := false
	for _, o := range c.objects {
		for i := range hunts {
			h := &hunts[i]
			if h.found == "" && !known[o] && className(o) == h.object && (h.object != m.task.object || m.task.mayStartIn(c.class)) {
				h.found, known[o], hit = c.class, true, true
			}
		}
	}
	for i := range hunts {
		if h := &hunts[i]; h.found == "" && !hit {
			h.vain = append(h.vain, c.class)
			return // one search at a time: the next begins when this one has ended
		}
	}
}

// nextBest is the type of receptacle in the room, other than the one found, that is likeliest to hold the object.
func (m *memory) nextBest(h hunt) string {
	best, chance := "", 0.0
	for _, c := range m.receptacles {
		held := household().where(h.object, c.class).held
		if c.class != h.found && m.task.mayStartIn(c.class) && held > chance {
			best, chance = c.class, held
		}
	}
	return best
}
