package alfworld

import (
	"strings"

	"skillmaster/skill"
)

// The sentences that an expert understands. Each names receptacle types to try first; % stands for one word. They are
// worded for few tokens, since a policy has to read them and to write them.
const (
	findForm   = "Look for % in the % first."            // an object type, a receptacle type
	secondForm = "Look for the second % in the % first." // the same, once one was found
	orderForm  = "Search the % first, then the %."       // two receptacle types, whatever is looked for
)

// hint is one sentence of advice, understood.
type hint struct {
	object      string   // what it helps to find; "" for anything
	second      bool     // holds only once one was found
	receptacles []string // types to try first, best first
}

// skill puts a hint in words. Where a thing lies is as good for every task that names it; an order in which to search goes by
// the task's category.
func (h hint) skill(category string) skill.Skill {
	s := skill.Skill{Category: skill.General}
	switch {
	case h.object == "":
		s.Category = category
		s.Title = "Search order"
		s.Principle = fillForm(orderForm, h.receptacles[0], h.receptacles[1])
	case h.second:
		s.Title = "Find the second " + h.object
		s.Principle = fillForm(secondForm, h.object, h.receptacles[0])
		s.When = "the task names " + article(h.object)
	default:
		s.Title = "Find the " + h.object
		s.Principle = fillForm(findForm, article(h.object), h.receptacles[0])
		s.When = "the task names " + article(h.object)
	}
	return s
}

func fillForm(form, first, second string) string {
	return strings.Replace(strings.Replace(form, "%", first, 1), "%", second, 1)
}

func article(noun string) string {
	if strings.IndexByte("aeiou", noun[0]) >= 0 {
		return "an " + noun
	}
	return "a " + noun
}

// parseHints reads the sentences of a skill's principle that have one of the forms and name types that there are.
func parseHints(s skill.Skill) []hint {
	var hints []hint
	for _, text := range strings.SplitAfter(strings.ToLower(s.Principle), ".") {
		if h, ok := parseHint(strings.TrimSpace(text)); ok {
			hints = append(hints, h)
		}
	}
	return hints
}

func parseHint(text string) (hint, bool) {
	text = strings.TrimSuffix(text, ".") + "."
	known := household()
	if a, b, ok := matchForm(text, strings.ToLower(orderForm)); ok {
		return hint{receptacles: []string{a, b}}, known.receptacle(a) && known.receptacle(b)
	}
	if object, r, ok := matchForm(text, strings.ToLower(secondForm)); ok {
		return hint{object: object, second: true, receptacles: []string{r}}, known.thing(object) && known.receptacle(r)
	}
	for _, determiner := range []string{"a ", "an ", "the "} {
		form := strings.Replace(strings.ToLower(findForm), "%", determiner+"%", 1)
		if object, r, ok := matchForm(text, form); ok {
			return hint{object: object, receptacles: []string{r}}, known.thing(object) && known.receptacle(r)
		}
	}
	return hint{}, false
}

// thing tells whether there are objects of the type that somebody may look for.
func (f *facts) thing(class string) bool { return f.objects[class] != nil }

// receptacle tells whether rooms have receptacles of the type.
func (f *facts) receptacle(class string) bool { _, ok := f.openable[class]; return ok }
