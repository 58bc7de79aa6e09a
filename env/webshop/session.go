package webshop

import (
	"slices"
	"strings"

	"skillmaster/episode"
)

// page is where a session is.
type page uint8

const (
	indexPage page = iota
	resultsPage
	itemPage
	descriptionPage
	featuresPage
	reviewsPage
	attributesPage
	donePage
)

// Session is a visit to the shop with one goal. It follows the original's rules to the letter: what it does not
// understand changes nothing, a search is possible everywhere, and nothing ends but by buying. It is not safe for
// concurrent use.
type Session struct {
	terms
	at      page
	query   string  // as it was searched, lower case
	hits    []int32 // products found, shared with forks and never changed
	number  int     // of the page of results, from 1
	product int32   // that is looked at
	visited []int32
	chosen  []GoalOption // in the order of their first choice, one for each group
	score   *Score       // of what was bought; nil before
}

// terms are what a visit does not change.
type terms struct {
	shop       *Shop
	goal       *Goal
	seed       episode.Seed // of random results
	attributes bool         // products have a page of their attributes
	variation  variation
}

// NewSession begins a visit. The seed settles what a search for random products finds.
func (s *Shop) NewSession(g Goal, seed episode.Seed) *Session {
	return &Session{terms: terms{shop: s, goal: &g, seed: seed}}
}

// Goal is what the visit is for.
func (s *Session) Goal() Goal { return *s.goal }

// Bought is the score of what was bought; false if nothing is.
func (s *Session) Bought() (Score, bool) {
	if s.score == nil {
		return Score{}, false
	}
	return *s.score, true
}

// asin is what the visit calls a product.
func (s *Session) asin(product int32) string { return s.variation.asin(s.shop.shelf, int(product)) }

// HasSearchBar tells whether the page shows a field to search with.
func (s *Session) HasSearchBar() bool { return s.at == indexPage }

// Fork returns an independent visit in the same state.
func (s *Session) Fork() *Session {
	f := *s
	f.visited, f.chosen = slices.Clone(s.visited), slices.Clone(s.chosen)
	return &f
}

// Act takes an action, such as "search[red shoes]" or "click[buy now]", and tells whether it was one: anything else,
// and a click on what the page does not have, changes nothing.
func (s *Session) Act(action string) bool {
	name, argument, ok := parseAction(action)
	switch {
	case !ok:
		return false
	case name == "search":
		s.search(lower(argument))
		return true
	case name == "click":
		return s.click(lower(argument))
	default:
		return false
	}
}

// parseAction reads name[argument], both at least one character, in the first line of an action. The argument begins
// behind the last bracket that leaves one, and ends at the last bracket; what follows does not count.
func parseAction(action string) (name, argument string, ok bool) {
	if i := strings.IndexByte(action, '\n'); i >= 0 {
		action = action[:i]
	}
	end := strings.LastIndexByte(action, ']')
	if end < 2 {
		return "", "", false
	}
	begin := strings.LastIndexByte(action[:end-1], '[')
	if begin < 1 {
		return "", "", false
	}
	return action[:begin], action[begin+1 : end], true
}

func (s *Session) search(query string) {
	s.query, s.hits = query, s.variation.without(s.shop.answer(query, s.seed), s.goal.Product)
	s.at, s.number, s.product, s.chosen = resultsPage, 1, 0, nil
}

// The names of buttons, as they are clicked.
const (
	toSearch    = "back to search"
	toNext      = "next >"
	toPrevious  = "< prev"
	description = "description"
	features    = "features"
	reviews     = "reviews"
	attributes  = "attributes"
	buy         = "buy now"
)

// asShown are the names of buttons as pages show them. Case does not matter to a click.
var asShown = map[string]string{
	toSearch: "Back to Search", toNext: "Next >", toPrevious: "< Prev", description: "Description", features: "Features", reviews: "Reviews", attributes: "Attributes", buy: "Buy Now",
}

// shownNames lists what can be clicked as the page shows it, in the page's order.
func (s *Session) shownNames() []string {
	if s.at == resultsPage {
		return s.resultNames(asShown[toSearch], asShown[toPrevious], asShown[toNext], s.asin)
	}
	names := s.Clickables()
	for i, n := range names {
		if shown, button := asShown[n]; button {
			names[i] = shown
		}
	}
	return names
}

func (s *Session) click(target string) bool {
	if target == toSearch && s.at != indexPage && s.at != donePage {
		*s = Session{terms: s.terms, score: s.score}
		return true
	}
	switch s.at {
	case indexPage, donePage:
		return false
	case resultsPage:
		return s.clickResults(target)
	case itemPage:
		return s.clickItem(target)
	case descriptionPage, featuresPage, reviewsPage, attributesPage:
		if target != toPrevious {
			return false
		}
		s.at = itemPage
		return true
	default:
		panic("no such page")
	}
}

func (s *Session) clickResults(target string) bool {
	switch {
	case target == toNext:
		s.number++
		s.chosen = nil
		return true
	case target == toPrevious && s.number > 1:
		s.number--
		s.chosen = nil
		return true
	}
	for _, i := range s.onPage() {
		if lower(s.asin(i)) == target {
			s.at, s.product = itemPage, i
			if !slices.Contains(s.visited, i) {
				s.visited = append(s.visited, i)
			}
			return true
		}
	}
	return false
}

func (s *Session) clickItem(target string) bool {
	switch target {
	case toPrevious:
		s.at, s.chosen = resultsPage, nil
	case description:
		s.at = descriptionPage
	case features:
		s.at = featuresPage
	case reviews:
		s.at = reviewsPage
	case attributes:
		if !s.attributes {
			return s.choose(target)
		}
		s.at = attributesPage
	case buy:
		score := s.shop.Score(*s.goal, int(s.product), s.chosen)
		s.at, s.score = donePage, &score
	default:
		return s.choose(target)
	}
	return true
}

// choose takes an option of the last group that has it.
func (s *Session) choose(value string) bool {
	for _, g := range slices.Backward(s.shop.product(int(s.product)).Options) {
		if !slices.Contains(g.Values, value) {
			continue
		}
		s.chosen = slices.Clone(s.chosen) // a fork may share it
		for i := range s.chosen {
			if s.chosen[i].Group == g.Name {
				s.chosen[i].Value = value
				return true
			}
		}
		s.chosen = append(s.chosen, GoalOption{g.Name, value})
		return true
	}
	return false
}

// perPage is the number of products on a page of results.
const perPage = 10

// onPage lists the products of the page of results.
func (s *Session) onPage() []int32 {
	from := min((s.number-1)*perPage, len(s.hits))
	return s.hits[from:min(from+perPage, len(s.hits))]
}

// Clickables lists what can be clicked, lower case, in the order of the page. "search", of the index page, is listed as
// the original does; it needs a query and cannot be clicked.
func (s *Session) Clickables() []string {
	switch s.at {
	case indexPage:
		return []string{"search"}
	case resultsPage:
		return s.resultNames(toSearch, toPrevious, toNext, func(i int32) string { return lower(s.asin(i)) })
	case itemPage:
		return s.shop.product(int(s.product)).clickables(s.attributes)
	case descriptionPage, featuresPage, reviewsPage, attributesPage:
		return []string{toSearch, toPrevious}
	case donePage:
		return []string{}
	default:
		panic("no such page")
	}
}

// resultNames lists what can be clicked on a page of results, by given names.
func (s *Session) resultNames(search, previous, next string, asin func(product int32) string) []string {
	names := append(make([]string, 0, perPage+3), search)
	if s.number > 1 {
		names = append(names, previous)
	}
	names = append(names, next)
	for _, i := range s.onPage() {
		names = append(names, asin(i))
	}
	return names
}

func (p *Product) clickables(withAttributes bool) []string {
	c := []string{toSearch, toPrevious, description, features, reviews, buy}
	if withAttributes {
		c = slices.Insert(c, len(c)-1, attributes)
	}
	seen := make(map[string]bool, 16)
	for _, name := range c {
		seen[name] = true
	}
	for _, g := range p.Options {
		for _, v := range g.Values {
			if !seen[v] {
				seen[v] = true
				c = append(c, v)
			}
		}
	}
	return c
}
