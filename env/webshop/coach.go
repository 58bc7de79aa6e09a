package webshop

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

var _ env.Coach = (*Suite)(nil)

// Expert implements env.Coach. One that Knows goes straight to the product that the goal was made for and heeds nothing.
// One that Sees reads pages: it searches, opens what looks right and costs little enough, reads features, and buys
// what has all that the instruction names, or the best it saw when steps run out. It heeds advice of the form that
// Advice gives, and r, if not nil, perturbs the order in which it opens products.
func (s *Suite) Expert(e env.Env, k env.Knowledge, advice []skill.Skill, r *rand.Rand) (env.Expert, error) {
	own, ok := e.(*Env)
	if !ok {
		return nil, fmt.Errorf("an expert of the shop cannot shop in a %T", e)
	}
	switch k {
	case env.Knows:
		return knower{own.visit}, nil
	case env.Sees:
		return own.shopper(advice, r), nil
	default:
		return nil, fmt.Errorf("no such knowledge: %d", k)
	}
}

// shopper is the expert that Sees.
func (e *Env) shopper(advice []skill.Skill, r *rand.Rand) *shopper {
	x := newShopper(e.visit.goal.Instruction, e.suite.o, e.suite.shop.queries, advice, r)
	if e.suite.o.Told {
		x.right = lower(e.visit.asin(int32(e.visit.goal.Product)))
	}
	return x
}

// knower shops with the goal's product in mind. It goes by the visit as it stands, whoever brought it there.
type knower struct{ visit *Session }

// Observe implements env.Expert; the visit says all.
func (knower) Observe(episode.Action, episode.StepResult) {}

// Next implements env.Expert.
func (k knower) Next() (episode.Action, bool) {
	v := k.visit
	switch v.at {
	case indexPage:
		return k.search()
	case resultsPage:
		return k.turnTo()
	case itemPage:
		if int(v.product) != v.goal.Product {
			return press(toPrevious), true
		}
		for _, o := range v.goal.Options {
			if matchOptions([]GoalOption{o}, v.chosen) == 0 {
				if value, ok := v.shop.product(int(v.product)).valueFor(o); ok {
					return clickOn(value), true
				}
			}
		}
		return press(buy), true
	case descriptionPage, featuresPage, reviewsPage:
		return press(toPrevious), true
	case donePage:
		return "", false
	default:
		panic("no such page")
	}
}

func clickOn(name string) episode.Action { return episode.Action("click[" + name + "]") }

// press clicks on a button by the name that the page shows.
func press(button string) episode.Action { return clickOn(asShown[button]) }

// valueFor is a value of a product that serves a goal's option: the very one, else one that is like it.
func (p *Product) valueFor(o GoalOption) (string, bool) {
	like := ""
	for _, g := range p.Options {
		for _, v := range g.Values {
			if v == o.Value {
				return v, true
			}
			if like == "" && matchOptions([]GoalOption{o}, []GoalOption{{g.Name, v}}) > 0 {
				like = v
			}
		}
	}
	return like, like != ""
}

// search looks for the title of the product, and if that did not find it, for its query.
func (k knower) search() (episode.Action, bool) {
	p := k.visit.shop.product(k.visit.goal.Product)
	byTitle, byQuery := searchFor(p.Title), searchFor("<q> "+p.Query)
	switch "search[" + k.visit.query + "]" {
	case lower(string(byTitle)):
		return byQuery, true
	case string(byQuery):
		return "", false
	default:
		return byTitle, true
	}
}

// turnTo opens the product, or turns to the page of results that has it.
func (k knower) turnTo() (episode.Action, bool) {
	v := k.visit
	i := slices.Index(v.hits, int32(v.goal.Product))
	if i < 0 {
		return k.search()
	}
	switch page := i/perPage + 1; {
	case page > v.number:
		return press(toNext), true
	case page < v.number:
		return press(toPrevious), true
	default:
		return clickOn(v.asin(v.hits[i])), true
	}
}

// hint is one sentence of advice, understood: whoever wants what the phrase says should look at a maker's things first.
type hint struct{ phrase, brand string }

// The sentence that an expert understands. It is worded for few tokens.
const (
	hintStart  = "For "
	hintMiddle = " choose "
)

// skill puts a hint in words.
func (h hint) skill(category string) skill.Skill {
	return skill.Skill{
		Category: category, Title: strings.ToUpper(h.phrase[:1]) + h.phrase[1:],
		Principle: hintStart + h.phrase + hintMiddle + h.brand + ".", When: "the instruction says " + h.phrase,
	}
}

// parseHints reads the sentences of a skill's principle that have the form.
func parseHints(s skill.Skill) (hints []hint) {
	for sentence := range strings.SplitSeq(lower(s.Principle), ".") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(sentence), lower(hintStart))
		phrase, brand, ok2 := strings.Cut(rest, hintMiddle)
		if ok && ok2 && phrase != "" && brand != "" {
			hints = append(hints, hint{phrase, brand})
		}
	}
	return hints
}

// brandOf is the maker that a title begins with.
func brandOf(title string) string {
	brand, _, _ := strings.Cut(trim(title), " ")
	return brand
}

// Advice implements env.Coach. Helpful advice names the maker of the goal's product for one of its attributes, which
// shortens the visit of the expert that Sees if such advice can and does not lengthen it; the other kind names the maker
// of a product with the same query that does not have the attribute.
func (s *Suite) Advice(t episode.Task, helpful bool, r *rand.Rand) (skill.Skill, bool) {
	s = s.of(t.ID)
	g, err := s.Goal(t.ID)
	if err != nil {
		return skill.Skill{}, false
	}
	_, v, err := cutVariation(t.ID)
	if err != nil {
		return skill.Skill{}, false
	}
	p := s.shop.product(g.Product)
	var hints []hint
	for _, i := range r.Perm(len(g.Attributes)) {
		if a := g.Attributes[i]; helpful {
			hints = append(hints, hint{a, brandOf(p.Title)})
		} else if brand, ok := s.brandWithout(p, a, r); ok {
			hints = append(hints, hint{a, brand})
		}
	}
	if helpful {
		hints = env.Shortening(hints, func(h []hint) int { return s.visitLength(g, v, h) })
	}
	if len(hints) == 0 {
		return skill.Skill{}, false
	}
	return hints[0].skill(t.Category), true
}

// brandWithout draws a maker of products with a query that lack an attribute.
func (s *Suite) brandWithout(p *Product, attribute string, r *rand.Rand) (string, bool) {
	var brands []string
	for _, i := range s.shop.ofQuery(p.Query) {
		q := s.shop.product(int(i))
		if b := brandOf(q.Title); b != "" && b != brandOf(p.Title) && !slices.Contains(brands, b) && matchAttributes([]string{attribute}, q) == 0 {
			brands = append(brands, b)
		}
	}
	if len(brands) == 0 {
		return "", false
	}
	return pickOne(r, brands), true
}

// visitLength is the number of steps in which the expert that Sees wins with these hints; one more than the limit if it
// does not.
func (s *Suite) visitLength(g Goal, v variation, hints []hint) int {
	e := s.enter(g, v, 0)
	x := e.shopper(nil, nil)
	x.hints = hints
	for n := range s.o.StepLimit {
		a, ok := x.Next()
		if !ok {
			break
		}
		e.left--
		o, _ := e.act(a)
		if score, bought := e.visit.Bought(); bought {
			if score.Reached() {
				return n + 1
			}
			break
		}
		x.Observe(a, episode.StepResult{Observation: o})
	}
	return s.o.StepLimit + 1
}

// Lesson implements env.Coach: a visit that succeeded after other products were opened in vain teaches the maker of what
// was bought, for an attribute that its title does not show.
func (s *Suite) Lesson(t episode.Task, steps []episode.Step) (skill.Skill, bool) {
	s = s.of(t.ID)
	g, err := s.Goal(t.ID)
	if err != nil || len(steps) == 0 || steps[len(steps)-1].Reward < fullPay {
		return skill.Skill{}, false
	}
	x := newShopper(g.Instruction, s.o, s.shop.queries, nil, nil)
	for _, step := range steps {
		x.Observe(step.Action, episode.StepResult{Observation: episode.Observation{Text: step.Observation}})
	}
	vain := 0
	for asin := range x.seen {
		if asin != x.current {
			vain++
		}
	}
	bought, known := x.seen[x.current]
	if !known || vain == 0 {
		return skill.Skill{}, false
	}
	for _, a := range g.Attributes {
		if !strings.Contains(lower(bought.title), a) {
			return hint{a, brandOf(bought.title)}.skill(t.Category), true
		}
	}
	return skill.Skill{}, false
}

// productID is what an ASIN looks like in an action.
var productID = regexp.MustCompile(`^[0-9A-Z]{10}$`)

// Sort implements env.Sorter: search, product (opens one), option, buy, page (any other button), other.
func (s *Suite) Sort(a episode.Action) string {
	verb, name, ok := parseAction(string(a))
	switch button := lower(name); {
	case !ok:
		return "other"
	case verb == "search":
		return "search"
	case productID.MatchString(name):
		return "product"
	case button == buy:
		return "buy"
	case asShown[button] != "":
		return "page"
	default:
		return "option"
	}
}
