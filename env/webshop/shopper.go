package webshop

import (
	"cmp"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"skillmaster/bm25"
	"skillmaster/episode"
	"skillmaster/skill"
)

// shopper is the expert that sees what an agent sees: pages, as text. Besides it knows by what queries the shop's things
// are found, as somebody who has been there before does; so it can tell what a thing is from what it should be like.
type shopper struct {
	show  Show
	left  int // steps
	wish  wish
	hints []hint
	right string // the ASIN of the goal's product, lower case, for one that is told; else ""
	r     *rand.Rand

	page    shown
	current string           // product that was opened last, lower case
	picked  []GoalOption     // values that were chosen on its page
	seen    map[string]*look // products that were opened
	order   map[string]int   // jitter of the order of products, drawn once
}

// wish is what an instruction asks for, as far as its words tell.
type wish struct {
	search  string   // what to search for: all but the price
	body    string   // of it, attributes and query
	terms   []string // of the attributes
	kind    []string // terms of the query: what it should be
	options string   // "size: large, color: red," as the instruction has them; "" if it names no groups
	groups  []string
	text    string // all of it, lower case
	most    float64
}

// look is what a shopper knows of a product.
type look struct {
	title    string
	groups   []OptionGroup
	text     strings.Builder // of the pages below it that were read
	read     map[string]bool // those pages, by button
	rejected bool
	missing  int // terms of the wish that nothing of it has
}

// optionStart finds where an instruction begins to name options.
var optionStart = regexp.MustCompile(` with [^:,]{1,30}: `)

func parseWish(instruction string, queries []string) wish {
	body, most, err := cutBound(instruction)
	if err != nil {
		body, most = instruction, unbounded
	}
	w := wish{text: lower(body), search: strings.TrimPrefix(body, "Find me "), most: most}
	if at := optionStart.FindAllStringIndex(body, -1); len(at) > 0 {
		// The last " with " of the first match: attributes may stand before it.
		i := strings.LastIndex(body[:at[0][1]], " with ")
		w.options = strings.TrimPrefix(lower(body[i:]), " with ") + ","
		body = body[:i]
		for part := range strings.SplitSeq(w.options, ", and ") {
			if name, _, ok := strings.Cut(part, ": "); ok {
				w.groups = append(w.groups, name)
			}
		}
	}
	w.body = strings.TrimPrefix(body, "Find me ")
	rest, query := w.body, longestIn(lower(w.body), queries)
	if i := strings.Index(lower(rest), query); i >= 0 && len(lower(rest)) == len(rest) {
		rest = rest[:i] + " " + rest[i+len(query):]
	}
	w.terms, w.kind = distinct(bm25.Terms(rest)), distinct(bm25.Terms(query))
	return w
}

// longestIn is the longest of some phrases that a text has; "" if it has none.
func longestIn(text string, phrases []string) (longest string) {
	for _, p := range phrases {
		if len(p) > len(longest) && strings.Contains(" "+text+" ", " "+p+" ") {
			longest = p
		}
	}
	return longest
}

func distinct(terms []string) []string {
	slices.Sort(terms)
	return slices.Compact(terms)
}

func newShopper(instruction string, o Options, queries []string, advice []skill.Skill, r *rand.Rand) *shopper {
	x := &shopper{
		show: o.Show, left: o.StepLimit, wish: parseWish(instruction, queries), r: r, page: shown{kind: indexPage}, seen: map[string]*look{}, order: map[string]int{},
	}
	for _, s := range advice {
		for _, h := range parseHints(s) {
			if strings.Contains(x.wish.text, h.phrase) {
				x.hints = append(x.hints, h)
			}
		}
	}
	return x
}

// Observe implements env.Expert.
func (x *shopper) Observe(a episode.Action, r episode.StepResult) {
	x.left--
	if r.Done {
		x.page = shown{kind: donePage}
		return
	}
	_, button, _ := parseAction(string(a))
	button = lower(button)
	before := x.page
	if x.show == Brief && x.stays(button, r.Observation.Text) {
		return
	}
	x.page = readPage(x.show, r.Observation)
	switch x.page.kind {
	case indexPage, resultsPage:
		x.picked = nil
	case itemPage:
		if slices.ContainsFunc(before.products, func(o offer) bool { return o.asin == button }) {
			x.current = button
		}
		if x.seen[x.current] == nil {
			x.seen[x.current] = &look{title: x.page.title, groups: x.page.groups, read: map[string]bool{}}
		}
		x.pick(button)
	case descriptionPage:
		if l := x.seen[x.current]; l != nil && !l.read[button] {
			l.read[button] = true
			l.text.WriteString("\n" + x.page.text)
		}
	}
}

// stays tells whether a page says that it stays as it was, and notes what was chosen on it.
func (x *shopper) stays(button, text string) bool {
	if strings.HasPrefix(text, chosenMark) {
		x.pick(button)
		return true
	}
	return text == nothing
}

// pick notes that a value was chosen.
func (x *shopper) pick(value string) {
	for _, g := range slices.Backward(x.page.groups) {
		if slices.Contains(g.Values, value) {
			x.picked = slices.DeleteFunc(x.picked, func(o GoalOption) bool { return o.Group == g.Name })
			x.picked = append(x.picked, GoalOption{g.Name, value})
			return
		}
	}
}

// Next implements env.Expert.
func (x *shopper) Next() (episode.Action, bool) {
	switch x.page.kind {
	case indexPage:
		return searchFor(x.wish.search), true
	case resultsPage:
		return x.open()
	case itemPage:
		return x.consider()
	case descriptionPage:
		return x.leave()
	default:
		return "", false
	}
}

// leave goes on from a page below a product's: back to the product, or, if it is not right, by the shortest way to others,
// which is a search.
func (x *shopper) leave() (episode.Action, bool) {
	l := x.seen[x.current]
	if l == nil || l.rejected {
		return press(toPrevious), true
	}
	choices, _ := x.choices(l)
	if l.missing = x.lacking(x.wish.terms, l.title, l); x.enough(l) || x.mustDo(l, x.left-1, len(choices)+1) {
		return press(toPrevious), true
	}
	l.rejected = true
	return searchFor(x.wish.search), true
}

// few of the terms of a wish may be missing, one in so many: attributes are put in other words, too.
const few = 7

// enough tells whether a product has what the wish asks for.
func (x *shopper) enough(l *look) bool { return l.missing*few <= len(x.wish.terms) }

// mustDo tells whether a product has to do for want of steps, of which so many are left and it takes finish to buy it: they
// do not reach for another, or, if nothing lacks less than this one, not for reading about another.
func (x *shopper) mustDo(l *look, left, finish int) bool {
	return left < finish+another || x.leastSoFar(l) && left < finish+another+2
}

// another is the number of steps to leave a product, open another one and buy it.
const another = 3

// open chooses the product of the page that is likeliest right, then the page behind it, then what was best of all.
func (x *shopper) open() (episode.Action, bool) {
	if x.right != "" {
		if shown, found := x.told(); found {
			return clickOn(shown), true
		}
		if len(x.page.products) == perPage && x.left > x.page.number+3 {
			return press(toNext), true
		}
	}
	best, found := x.best(func(l *look) bool { return l == nil || !l.rejected })
	if found {
		return clickOn(best), true
	}
	if x.page.number < 2 && x.left > 6 && len(x.page.products) == perPage {
		return press(toNext), true
	}
	if best, found = x.best(func(*look) bool { return true }); found {
		return clickOn(best), true
	}
	if x.page.number > 1 {
		return press(toPrevious), true
	}
	return "", false
}

// told is what one who is told which product is right opens: what advice praises first, to see for itself, then that one.
func (x *shopper) told() (shown string, found bool) {
	for _, p := range x.page.products {
		l := x.seen[p.asin]
		if p.asin != x.right && l == nil && p.low <= x.wish.most && len(x.unadvised(p.title)) < len(x.wish.terms) {
			return p.shown, true
		}
		if p.asin == x.right {
			shown, found = p.shown, true
		}
	}
	return shown, found
}

// best is the product of the page that lacks least of the wish, of those that may be and cost little enough.
func (x *shopper) best(may func(*look) bool) (shown string, found bool) {
	least := 0
	for i, p := range x.page.products {
		l := x.seen[p.asin]
		if p.low > x.wish.most || !may(l) {
			continue
		}
		lacks := 14*x.lacking(x.unadvised(p.title), p.title, l) + 4*x.lacking(x.wish.kind, p.title, nil) + 4*i + x.jitter(p.asin)
		if l != nil && l.rejected {
			lacks += 1 << 16
		}
		if !found || lacks < least {
			shown, least, found = p.shown, lacks, true
		}
	}
	return shown, found
}

// jitter moves a product in the order, less than one term of the wish does.
func (x *shopper) jitter(asin string) int {
	if x.r == nil {
		return 0
	}
	if _, drawn := x.order[asin]; !drawn {
		x.order[asin] = x.r.IntN(5)
	}
	return x.order[asin]
}

// unadvised are the terms of the wish that no hint promises of the maker of a title.
func (x *shopper) unadvised(title string) []string {
	terms := x.wish.terms
	for _, h := range x.hints {
		if strings.EqualFold(brandOf(title), h.brand) {
			promised := bm25.Terms(h.phrase)
			terms = slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return slices.Contains(promised, t) })
		}
	}
	return terms
}

// lacking counts the terms that neither the title nor what was read of a product has.
func (x *shopper) lacking(terms []string, title string, l *look) int {
	text := title
	if l != nil {
		text += l.text.String()
	}
	have := distinct(bm25.Terms(text))
	n := 0
	for _, t := range terms {
		if _, ok := slices.BinarySearch(have, t); !ok {
			n++
		}
	}
	return n
}

// consider decides what to do on a product's page: read, choose, buy or leave.
func (x *shopper) consider() (episode.Action, bool) {
	l := x.seen[x.current]
	choices, all := x.choices(l)
	finish := len(choices) + 1
	l.missing = x.lacking(x.wish.terms, l.title, l)
	switch {
	case x.right != "" && x.current != x.right && x.left > finish:
		l.rejected = true
		return press(toPrevious), true
	case l.rejected || x.left <= finish || x.current == x.right:
		return x.finish(choices)
	case !all:
		l.rejected = true
		if x.left < finish+another {
			return x.finish(choices)
		}
		return press(toPrevious), true
	case x.enough(l):
		return x.finish(choices)
	case !l.read[features] && x.left >= finish+2:
		return press(features), true
	}
	l.rejected = true
	if x.mustDo(l, x.left, finish) {
		return x.finish(choices)
	}
	return press(toPrevious), true
}

// leastSoFar tells whether nothing that was looked at lacks less.
func (x *shopper) leastSoFar(l *look) bool {
	for _, o := range x.seen {
		if o != l && o.missing < l.missing {
			return false
		}
	}
	return true
}

func (x *shopper) finish(choices []string) (episode.Action, bool) {
	if len(choices) > 0 {
		return clickOn(choices[0]), true
	}
	return press(buy), true
}

// choices lists the values of a product that the wish asks for and that were not chosen yet, in the order in which it asks for
// them; all is false if the product has none of a group of the wish.
func (x *shopper) choices(l *look) (values []string, all bool) {
	all = true
	for _, g := range x.wish.groups {
		if !slices.ContainsFunc(l.groups, func(p OptionGroup) bool { return p.Name == g }) {
			all = false
		}
	}
	asked := func(g OptionGroup) int { return slices.Index(x.wish.groups, g.Name) }
	for _, g := range slices.SortedStableFunc(slices.Values(l.groups), func(a, b OptionGroup) int { return cmp.Compare(asked(a), asked(b)) }) {
		v, ok := x.wish.value(g)
		switch {
		case ok && !slices.Contains(x.picked, GoalOption{g.Name, v}):
			values = append(values, v)
		case !ok && slices.Contains(x.wish.groups, g.Name):
			all = false
		}
	}
	return values, all
}

// value is the value of a group that the wish asks for: the one behind the group's name, or, if it names no groups, the
// longest that its text has.
func (w *wish) value(g OptionGroup) (string, bool) {
	best := ""
	for _, v := range g.Values {
		switch {
		case w.options != "" && strings.Contains(", and "+w.options, ", and "+g.Name+": "+v+","):
			return v, true
		case w.options == "" && len(v) > len(best) && strings.Contains(" "+w.text+" ", " "+v+" "):
			best = v
		}
	}
	return best, best != ""
}

// shown is a page as a shopper reads it. Sub-pages are all called descriptionPage.
type shown struct {
	kind     page
	number   int
	products []offer
	title    string
	groups   []OptionGroup
	text     string
}

// offer is a product on a page of results.
type offer struct {
	asin, title string // asin in lower case
	shown       string // the ASIN as it is shown
	low         float64
}

// texts are the parts of a page, whatever its form, without the instruction's.
func texts(show Show, page string) []string {
	switch show {
	case Line:
		return strings.Split(page, separator)
	case Parts:
		parts := strings.Split(page, separator)
		for i, p := range parts {
			parts[i] = strings.TrimSuffix(strings.TrimPrefix(p, "'"), "'")
		}
		return parts
	case Brief:
		return strings.Split(page, "\n")
	case Rich:
		var parts []string
		for line := range strings.SplitSeq(page, "\n") {
			if m := buttonForm.FindStringSubmatch(line); m != nil {
				line = m[1]
			}
			if line = trim(line); line != "" {
				parts = append(parts, line)
			}
		}
		return parts
	default:
		panic("no such form of a page")
	}
}

var buttonForm = regexp.MustCompile(`^ *\[(?:clicked )?button\] (.*) \[(?:clicked )?button_\]$`)

// readPage takes a page apart. What can be clicked tells values from the names of their groups.
func readPage(show Show, o episode.Observation) shown {
	parts := texts(show, o.Text)
	back := slices.Index(parts, "Back to Search")
	if back < 0 {
		return shown{kind: indexPage}
	}
	rest := parts[back+1:]
	s := shown{kind: descriptionPage, text: strings.Join(rest[min(1, len(rest)):], "\n")}
	price := slices.IndexFunc(rest, func(p string) bool { return strings.HasPrefix(p, "Price: ") })
	switch {
	case len(rest) > 0 && strings.HasPrefix(rest[0], "Page "):
		s.readResults(rest)
	case price > 1 && slices.Contains(rest[price:], "Buy Now"):
		s.kind, s.title = itemPage, rest[price-1]
		s.readOptions(rest[1:price-1], o.Admissible)
	}
	return s
}

func (s *shown) readResults(parts []string) {
	s.kind = resultsPage
	digits := strings.TrimPrefix(parts[0], "Page ")
	for _, c := range digits {
		if c < '0' || c > '9' {
			break
		}
		s.number = min(10*s.number+int(c-'0'), 1<<20)
	}
	parts = parts[min(len(parts), slices.Index(parts, "Next >")+1):]
	for ; len(parts) >= 3; parts = parts[3:] {
		price, err := parsePrice(parts[2])
		if err != nil {
			return
		}
		s.products = append(s.products, offer{lower(parts[0]), parts[1], parts[0], min(price.Low, cmp.Or(price.High, price.Low))})
	}
}

func (s *shown) readOptions(parts []string, can []episode.Action) {
	for _, p := range parts {
		_, value := slices.BinarySearch(can, clickOn(p)) // options are shown in lower case
		switch n := len(s.groups); {
		case !value:
			s.groups = append(s.groups, OptionGroup{Name: p})
		case n > 0:
			s.groups[n-1].Values = append(s.groups[n-1].Values, p)
		}
	}
}
