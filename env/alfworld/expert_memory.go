package alfworld

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// memory is what an agent knows from the texts it has read: the first observation, actions, and the answers to them.
// Nothing else goes in.
type memory struct {
	task        sentence
	receptacles []remembered // in the order of the first observation
	index       map[string]int
	here        int               // a receptacle that stands where the agent is; -1 before it has gone anywhere
	held        string            // name of the object in the hand; "" for none
	treated     map[string]Family // what was last done to an object: cleaned, heated or cooled
	cleaned     map[string]bool
}

// remembered is what is known of one receptacle.
type remembered struct {
	name, class string
	number      int
	place       int      // index of a receptacle at the same place, or its own: a forest, see memory.place
	looked      bool     // its objects were shown at some time
	open, shut  bool     // how its door was when last heard of; neither: has none, or never heard of
	objects     []string // those in it, as far as shown
}

const (
	nothingHappens = "Nothing happens."
	taskMark       = "Your task is to: "
	seeMark        = "you see "
)

// newMemory reads the first observation. It is an error if the task's sentence does not say what is wanted, or a
// receptacle's name is not of the form "cabinet 3".
func newMemory(intro string) (*memory, error) {
	room, task, ok := strings.Cut(intro, taskMark)
	if !ok {
		return nil, fmt.Errorf("the first observation does not say %q, as those of household games do", taskMark)
	}
	m := &memory{here: -1, index: map[string]int{}, treated: map[string]Family{}, cleaned: map[string]bool{}}
	for _, name := range shown(room) {
		class, number, ok := splitName(name)
		if !ok {
			return nil, fmt.Errorf("%q is no name of a receptacle, such as \"cabinet 3\"", name)
		}
		m.index[name] = len(m.receptacles)
		m.receptacles = append(m.receptacles, remembered{name: name, class: class, number: number, place: len(m.receptacles)})
	}
	var err error
	m.task, err = readSentence(task, func(class string) bool {
		return slices.ContainsFunc(m.receptacles, func(r remembered) bool { return r.class == class })
	})
	return m, err
}

// shown reads the list after "you see": "a mug 1, a pan 2, and a pot 1".
func shown(text string) []string {
	_, list, ok := strings.Cut(text, seeMark)
	if !ok {
		return nil
	}
	list, _, _ = strings.Cut(list, ".")
	return listed(list)
}

// listed reads "a mug 1, a pan 2, and a pot 1"; "nothing" is the empty list.
func listed(list string) []string {
	if list == "nothing" {
		return nil
	}
	names := strings.Split(list, ", ")
	for i, n := range names {
		names[i] = strings.TrimPrefix(strings.TrimPrefix(n, "and "), "a ")
	}
	return names
}

// splitName splits "cabinet 3".
func splitName(name string) (class string, number int, ok bool) {
	class, digits, ok := strings.Cut(name, " ")
	number, err := strconv.Atoi(digits)
	return class, number, ok && err == nil
}

func className(name string) string {
	class, _, _ := strings.Cut(name, " ")
	return class
}

// place names the place of a receptacle: two receptacles known to stand together have the same.
func (m *memory) place(r int) int {
	for m.receptacles[r].place != r {
		r = m.receptacles[r].place
	}
	return r
}

// at tells whether the receptacle is known to stand where the agent is.
func (m *memory) at(r int) bool { return m.here >= 0 && m.place(r) == m.place(m.here) }

// together notes that the receptacle stands where the agent is.
func (m *memory) together(r int) {
	if m.here < 0 {
		m.here = r
		return
	}
	m.receptacles[m.place(r)].place = m.place(m.here)
}

// observe reads the answer to an action, whoever took it.
func (m *memory) observe(action, answer string) {
	verb, rest, _ := strings.Cut(action, " ")
	if answer == nothingHappens {
		if r, ok := m.index[strings.TrimPrefix(rest, "to ")]; ok && verb == "go" && m.here >= 0 {
			m.together(r) // refused because the agent is there
		}
		return
	}
	switch verb {
	case "go":
		if r, ok := m.index[strings.TrimPrefix(rest, "to ")]; ok {
			m.here = r
			m.look(r, answer)
		}
	case "open", "close", "examine":
		if r, ok := m.index[rest]; ok {
			m.together(r)
			m.look(r, answer)
		}
	case "take":
		m.take(rest)
	case "move", "put":
		m.put(rest)
	case "clean", "heat", "cool":
		m.treat(verb, rest)
	case "look":
		m.lookAround(answer)
	}
}

// look notes what an answer says of a receptacle: its door and the objects in it.
func (m *memory) look(r int, answer string) {
	c := &m.receptacles[r]
	switch {
	case strings.Contains(answer, " is closed.") || strings.HasPrefix(answer, "You close the "):
		c.open, c.shut = false, true
	case strings.Contains(answer, " is open."):
		c.open, c.shut = true, false
	}
	if strings.Contains(answer, seeMark) {
		c.looked, c.objects = true, shown(answer)
	}
}

// lookAround reads the receptacles that stand here: "You are facing the desk 1, and shelf 2. …".
func (m *memory) lookAround(answer string) {
	list, ok := strings.CutPrefix(answer, "You are facing the ")
	if !ok {
		return
	}
	list, _, _ = strings.Cut(list, ".")
	for _, name := range listed(list) {
		if r, ok := m.index[name]; ok {
			m.together(r)
		}
	}
}

func (m *memory) take(rest string) {
	object, from, ok := strings.Cut(rest, " from ")
	if r, known := m.index[from]; ok && known {
		m.together(r)
		m.held = object
		m.receptacles[r].drop(object)
	}
}

func (m *memory) put(rest string) {
	object, to, ok := strings.Cut(rest, " to ")
	if !ok {
		object, to, ok = strings.Cut(rest, " in/on ")
	}
	if r, known := m.index[to]; ok && known {
		m.together(r)
		m.held = ""
		m.receptacles[r].drop(object)
		m.receptacles[r].objects = append(m.receptacles[r].objects, object)
	}
}

func (c *remembered) drop(object string) {
	c.objects = slices.DeleteFunc(c.objects, func(o string) bool { return o == object })
}

func (m *memory) treat(verb, rest string) {
	object, with, ok := strings.Cut(rest, " with ")
	r, known := m.index[with]
	if !ok || !known {
		return
	}
	m.together(r)
	switch verb {
	case "clean":
		m.cleaned[object] = true
	case "heat":
		m.treated[object] = HeatAndPlace
	case "cool":
		m.treated[object] = CoolAndPlace
	}
}

// ready tells whether what the family asks for was done to the object.
func (m *memory) ready(f Family, object string) bool {
	switch f {
	case CleanAndPlace:
		return m.cleaned[object]
	case HeatAndPlace, CoolAndPlace:
		return m.treated[object] == f
	default:
		return true
	}
}
