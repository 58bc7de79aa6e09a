package webshop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"skillmaster/env"
	"skillmaster/episode"
)

// Show says in which form an agent sees a page.
type Show uint8

// The forms of a page.
const (
	Line  Show = iota // one line, as the original's "text"
	Rich              // lines that mark what can be clicked and what was, as its "text_rich"
	Parts             // as the training wrapper shows it: the task once, then what the page adds, each part in quotes
	Brief             // the same for few tokens: each part a line, and of a page that stays as it was no more than that
)

func (s Show) String() string { return nameOf(s, "form", "line", "rich", "parts", "brief") }

// MarshalText implements encoding.TextMarshaler.
func (s Show) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Show) UnmarshalText(text []byte) error { return choose(s, text, Line, Rich, Parts, Brief) }

// choose sets a closed choice by its name.
func choose[T fmt.Stringer](to *T, name []byte, all ...T) error {
	names := make([]string, len(all))
	for i, c := range all {
		if names[i] = c.String(); names[i] == string(name) {
			*to = c
			return nil
		}
	}
	return fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
}

// nameOf is the name of a closed choice.
func nameOf[T ~uint8](c T, what string, names ...string) string {
	if int(c) < len(names) {
		return names[c]
	}
	return what + " " + strconv.Itoa(int(c))
}

// Pay says what an episode is worth.
type Pay uint8

// The ways to pay.
const (
	Strict Pay = iota // all for a score of exactly 1, nothing for less
	Shaped            // the score's share of it
)

func (p Pay) String() string { return nameOf(p, "pay", "strict", "shaped") }

// MarshalText implements encoding.TextMarshaler.
func (p Pay) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pay) UnmarshalText(text []byte) error { return choose(p, text, Strict, Shaped) }

// fullPay is the reward for a goal that is reached.
const fullPay = 10

// Options say how goals are played. The zero Options are those of the training wrapper, but for the form of pages.
type Options struct {
	Show      Show
	Pay       Pay
	StepLimit int // most actions of an episode, whatever they do; 0 stands for 15
	// Attributes gives every product a page of its attributes, category and query, which the original can show and does not
	// by default.
	Attributes bool
	// Told lets the expert that Sees know the goal's product when it sees it. What sets apart the original's products stands on
	// no page, so that somebody who is not told is wrong more often than right, and nobody can learn of such a visit.
	Told bool
	// AnyGoal plays a goal drawn by weight with the episode's seed, whatever the task asks for, as the wrapper does where it
	// means to play chosen tasks.
	AnyGoal bool
	// NextVisit lists beside the receipt what can be done in the next visit, whose goal is drawn by weight, as the wrapper
	// does. The receipt stays the end.
	NextVisit bool
}

const defaultLimit = 15

// reportGoals are the first goals, which are not trained on.
const reportGoals = 500

// The splits of the goals.
const (
	reportSplit = "report" // the first reportGoals
	trainSplit  = "train"  // the rest
	warmSplit   = "warm"   // all of other shops; see With
)

// ErrNoGoal says that a shop has no goal of an id.
var ErrNoGoal = errors.New("no such goal")

// Suite offers a shop's goals as tasks. It is safe for concurrent use.
type Suite struct {
	shop   *Shop
	o      Options
	prefix string
	report func() []episode.Task // made when first asked for
	train  func() []episode.Task
	warm   []*Suite                           // of other shops; see With
	items  []atomic.Pointer[[]episode.Action] // what can be done on a product's page, made when first needed
}

// NewSuite makes a suite of a shop.
func NewSuite(s *Shop, o Options) *Suite {
	if o.StepLimit <= 0 {
		o.StepLimit = defaultLimit
	}
	suite := &Suite{shop: s, o: o, prefix: s.o.name(), items: make([]atomic.Pointer[[]episode.Action], s.Len())}
	first := min(reportGoals, s.Goals())
	suite.report = sync.OnceValue(func() []episode.Task { return suite.list(reportSplit, 0, first) })
	suite.train = sync.OnceValue(func() []episode.Task { return suite.list(trainSplit, first, s.Goals()) })
	return suite
}

// name tells apart goals of different options.
func (o GoalOptions) name() string {
	name := "synthetic"
	if o.Human {
		name = "human"
	}
	if o.Order != Constant {
		name += "-" + o.Order.String()
	}
	if o.Seed != 0 {
		name += "-" + strconv.FormatInt(o.Seed, 10)
	}
	return name
}

// With is the suite with all goals of other shops as split "warm", to learn there what holds in all shops. All are played
// with the options of the suite.
func (s *Suite) With(others ...*Shop) *Suite {
	joined := NewSuite(s.shop, s.o)
	for i, other := range others {
		w := NewSuite(other, s.o)
		w.prefix = warmSplit + strconv.Itoa(i+1) + "-" + w.prefix
		w.train = sync.OnceValue(func() []episode.Task { return w.list(warmSplit, 0, other.Goals()) })
		joined.warm = append(joined.warm, w)
	}
	return joined
}

// of is the suite that has a task's id: one of another shop, or this one.
func (s *Suite) of(id string) *Suite {
	prefix, _, _ := strings.Cut(id, "/")
	for _, w := range s.warm {
		if w.prefix == prefix {
			return w
		}
	}
	return s
}

// Winnable tells whether a task can be won: whether buying the product that the goal was made for, with the options that
// are most like what it asks for, is worth exactly 1. In the original's shops that is not so for every goal.
func (s *Suite) Winnable(t episode.Task) (bool, error) {
	g, err := s.Goal(t.ID)
	if err != nil {
		return false, err
	}
	shop := s.of(t.ID).shop
	var chosen []GoalOption
	for _, o := range g.Options {
		if value, ok := shop.product(g.Product).valueFor(o); ok {
			chosen = append(chosen, GoalOption{o.Group, value})
		}
	}
	return shop.Score(g, g.Product, chosen).Reached(), nil
}

// Shop is the shop that is played.
func (s *Suite) Shop() *Shop { return s.shop }

// Splits names the splits there are, sorted.
func (s *Suite) Splits() []string {
	splits := []string{reportSplit, trainSplit}
	if s.warm != nil {
		splits = append(splits, warmSplit)
	}
	return splits
}

// Tasks lists a split in the order of the goals. Ids are like "synthetic/report/B0743JKHBV/0": the product and the
// index of the goal.
func (s *Suite) Tasks(split string) ([]episode.Task, error) {
	switch split {
	case reportSplit:
		return slices.Clone(s.report()), nil
	case trainSplit:
		return slices.Clone(s.train()), nil
	case warmSplit:
		if s.warm != nil {
			var tasks []episode.Task
			for _, w := range s.warm {
				tasks = append(tasks, w.train()...)
			}
			return tasks, nil
		}
	}
	return nil, fmt.Errorf("no split %q: there are %s", split, strings.Join(s.Splits(), ", "))
}

func (s *Suite) list(split string, first, end int) []episode.Task {
	tasks := make([]episode.Task, 0, end-first)
	for i := first; i < end; i++ {
		g := s.shop.Goal(i)
		f := FamilyOf(g.Instruction)
		tasks = append(tasks, episode.Task{
			ID:    strings.Join([]string{s.prefix, split, s.shop.asin(g.Product), strconv.Itoa(i)}, "/"),
			Split: split, Family: f, Category: f, Goal: g.Instruction,
		})
	}
	return tasks
}

// Goal finds the goal of a task's id; an id of another shop is ErrNoGoal.
func (s *Suite) Goal(id string) (Goal, error) {
	if own := s.of(id); own != s {
		return own.Goal(id)
	}
	base, _, err := cutVariation(id)
	if err != nil {
		return Goal{}, err
	}
	parts := strings.Split(base, "/")
	if len(parts) != 4 || parts[0] != s.prefix {
		return Goal{}, fmt.Errorf("%w: %q is not a task of the %s goals", ErrNoGoal, id, s.prefix)
	}
	i, err := strconv.Atoi(parts[3])
	if err != nil || i < 0 || i >= s.shop.Goals() || strconv.Itoa(i) != parts[3] {
		return Goal{}, fmt.Errorf("%w: %q is not one of %d", ErrNoGoal, id, s.shop.Goals())
	}
	g := s.shop.Goal(i)
	if asin := s.shop.asin(g.Product); asin != parts[2] {
		return Goal{}, fmt.Errorf("%w: %q: goal %d of this catalogue asks for %s", ErrNoGoal, id, i, asin)
	}
	return g, nil
}

// Guide describes the shop.
func (s *Suite) Guide() env.Guide {
	g := env.Guide{
		Role: "You shop in an online store and buy what the instruction asks for.",
		Rules: "search[WORDS]: finds products by words of their titles, descriptions and options; possible on every page\n" +
			"click[NAME]: presses a button, opens a product by its number or chooses an option, by the name that the page shows\n" +
			"On a product's page choose the options first, then click[buy now]: that ends the visit\n" +
			"What you buy must have every attribute and option that the instruction names, and cost less than it says\n" +
			"click[back to search] forgets the search, click[< prev] on a product's page its options",
		Horizon: s.o.StepLimit, SuccessReward: fullPay, Categories: map[string][]string{},
	}
	for _, f := range Families() {
		g.Categories[f] = []string{f}
	}
	return g
}

// Open starts a visit for a task's goal. The seed settles what search[<r>] finds, and what is drawn where options ask for
// it.
func (s *Suite) Open(ctx context.Context, t episode.Task, seed episode.Seed) (env.Env, episode.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, episode.Observation{}, err
	}
	g, err := s.Goal(t.ID)
	if err != nil {
		return nil, episode.Observation{}, fmt.Errorf("open task %s: %w", t.ID, err)
	}
	own := s.of(t.ID)
	if s.o.AnyGoal {
		g = own.shop.draw(seed.Derive("webshop goal of the visit"))
	}
	_, v, err := cutVariation(t.ID)
	if err != nil {
		return nil, episode.Observation{}, fmt.Errorf("open task %s: %w", t.ID, err)
	}
	e := own.enter(g, v, seed)
	return e, e.observe(true, ""), nil
}

// enter starts a visit.
func (s *Suite) enter(g Goal, v variation, seed episode.Seed) *Env {
	e := &Env{suite: s, visit: s.shop.NewSession(g, seed), left: s.o.StepLimit}
	e.visit.attributes, e.visit.variation = s.o.Attributes, v
	return e
}

// Env is one visit with a step limit. It is not safe for concurrent use.
type Env struct {
	suite  *Suite
	visit  *Session
	left   int // steps
	last   episode.StepResult
	closed bool
}

// Session is the visit as it stands. It is the episode's own: look at it, do not play it.
func (e *Env) Session() *Session { return e.visit }

// Step takes an action. The admissible actions of the result are shared: the caller must not change them.
func (e *Env) Step(ctx context.Context, a episode.Action) (episode.StepResult, error) {
	if err := ctx.Err(); err != nil {
		return episode.StepResult{}, err
	}
	if e.closed {
		return episode.StepResult{}, errors.New("step of a visit that is closed")
	}
	if e.last.Done {
		return e.last, nil
	}
	e.left--
	observation, took := e.act(a)
	score, bought := e.visit.Bought()
	e.last = episode.StepResult{
		Observation: observation, Admissible: took,
		Done: bought || e.left == 0, Success: bought && score.Reached(), Reward: e.suite.o.pay(score),
	}
	return e.last, nil
}

// pay is what a score is worth; one of nothing bought is 0.
func (o Options) pay(s Score) float64 {
	switch {
	case s.Reached():
		return fullPay
	case o.Pay == Shaped:
		return fullPay * s.Total
	default:
		return 0
	}
}

// Close ends the visit.
func (e *Env) Close() error {
	e.closed = true
	return nil
}

// Fork returns an independent visit in the same state.
func (e *Env) Fork() (env.Env, error) {
	if e.closed {
		return nil, errors.New("fork of a visit that is closed")
	}
	f := *e
	f.visit = e.visit.Fork()
	return &f, nil
}

// act takes an action and tells whether it was one.
func (e *Env) act(a episode.Action) (o episode.Observation, took bool) {
	item := e.visit.at == itemPage
	took = e.visit.Act(string(a))
	instead := ""
	switch {
	case !took:
		instead = nothing
	case item && e.visit.at == itemPage:
		instead = e.visit.choices()
	}
	return e.observe(false, instead), took
}

// observe shows the page, the first one or another. instead, if not "", is what is enough to say of a page that stays as it
// was.
func (e *Env) observe(first bool, instead string) episode.Observation {
	o := episode.Observation{Admissible: e.admissible(), More: true}
	switch e.suite.o.Show {
	case Line:
		o.Text = e.visit.Text()
	case Rich:
		o.Text = e.visit.Rich()
	case Parts:
		o.Text = e.visit.quoted(first)
	case Brief:
		o.Text = e.visit.brief(first, instead)
	default:
		panic("no such form of a page")
	}
	return o
}

// quoted is the page without the task, each part in quotes; the first page has the task above them. The receipt is
// shown whole.
func (s *Session) quoted(first bool) string {
	if s.at == donePage {
		return s.Text()
	}
	var b strings.Builder
	if first {
		b.WriteString("Instruction: " + s.goal.Instruction + "\n")
	}
	for i, p := range s.added() {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString("'" + trim(p.text) + "'")
	}
	return b.String()
}

// added are the parts of a page behind the task.
func (s *Session) added() []part {
	ps := s.parts()
	return ps[slices.IndexFunc(ps, func(p part) bool { return p.text == s.goal.Instruction })+1:]
}

// brief is the page without the task, each part a line, or what stands for it; the first page is the task, the last one what
// was bought and what it was worth.
func (s *Session) brief(first bool, instead string) string {
	switch {
	case first:
		return s.goal.Instruction
	case s.at == donePage:
		return "Purchased " + s.asin(s.product) + "\nYour score (min 0.0, max 1.0) " + float(s.score.Total)
	case instead != "":
		return instead
	}
	var lines []string
	for _, p := range s.added() {
		lines = append(lines, strings.ReplaceAll(trim(p.text), "\n", " "))
	}
	return strings.Join(lines, "\n")
}

// What Brief says of a page that stays as it was.
const (
	nothing    = "Nothing happened."
	chosenMark = "Chosen: "
)

// choices says what is chosen.
func (s *Session) choices() string {
	said := make([]string, len(s.chosen))
	for i, o := range s.chosen {
		said[i] = o.Group + ": " + o.Value
	}
	return chosenMark + strings.Join(said, ", ")
}

// admissible lists the clicks that do something, sorted, and on the page with the search bar a search for the whole
// instruction. More searches are possible than can be listed, on every page.
func (e *Env) admissible() []episode.Action {
	v := e.visit
	switch v.at {
	case indexPage:
		return []episode.Action{searchFor(v.goal.Instruction)}
	case donePage:
		if e.suite.o.NextVisit {
			return []episode.Action{searchFor(v.shop.draw(v.seed.Derive("webshop goal of the next visit")).Instruction)}
		}
		return []episode.Action{}
	case itemPage:
		slot := &e.suite.items[v.product]
		if p := slot.Load(); p != nil {
			return *p
		}
		list := clicks(v.shownNames())
		slot.CompareAndSwap(nil, &list)
		return *slot.Load()
	default:
		return clicks(v.shownNames())
	}
}

// clicks lists clicks on what can be clicked, sorted. A name with a bracket or a line break in it cannot.
func clicks(names []string) []episode.Action {
	list := make([]episode.Action, 0, len(names))
	text := clickOn(strings.Join(names, "]click[")) // one text, of which each is a part
	for _, n := range names {
		a := text[:len("click[]")+len(n)]
		text = text[len(a):]
		if strings.ContainsAny(n, "[]\n") {
			if name, argument, ok := parseAction(string(a)); !ok || name != "click" || argument != n {
				continue
			}
		}
		list = append(list, a)
	}
	slices.Sort(list)
	return list
}

// searchFor is a search for a text, without brackets, which would not be understood.
func searchFor(text string) episode.Action {
	text = strings.Map(func(r rune) rune {
		if r == '[' || r == ']' || r == '\n' {
			return ' '
		}
		return r
	}, text)
	return episode.Action("search[" + text + "]")
}
