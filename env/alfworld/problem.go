package alfworld

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupported marks a game of a kind that the text game never had: sliced objects, movable receptacles.
var ErrUnsupported = errors.New("unsupported task type")

// ReadProblem reads the problem text of a game (pddl_problem, initial_state.pddl) that belongs to the released domain.
// It fills the goal, the start, receptacles, objects and can-contain pairs of the Spec; the rest is not in the text.
// Errors name the line. Text that is no such problem is an error whatever it is, and what reading takes is a small
// multiple of the text, whatever it says.
func ReadProblem(text string) (Spec, error) {
	p := problemReader{
		words: wordReader{text: text}, spelled: make(map[string]*symbol, 512), symbols: make(map[string]*symbol, 512),
		predicates: map[string]predicate{},
	}
	if err := p.problem(); err != nil {
		return Spec{}, fmt.Errorf("problem line %d: %w", p.words.line(), err)
	}
	return p.spec()
}

// mostIDs is how many a problem may declare; a released one has 362 at most.
const mostIDs = 1 << 14

// byteKind is what a byte of a problem's text is part of. The zero byteKind is that of bytes no such text has: control
// characters, quotes, and all that is not ASCII.
type byteKind uint8

const (
	stray byteKind = iota
	letter
	blank
	parenthesis
	semicolon
)

var kindOf = func() (kinds [256]byteKind) {
	for c := '!'; c <= '~'; c++ {
		kinds[c] = letter
	}
	for _, c := range " \t\n\v\f\r" {
		kinds[c] = blank
	}
	kinds['('], kinds[')'], kinds[';'], kinds['"'] = parenthesis, parenthesis, semicolon, stray
	return kinds
}()

// wordReader splits text into parentheses and words; ";" starts a comment that ends with the line. A stray byte is a
// word by itself.
type wordReader struct {
	text string
	at   int // behind the last word
}

// next is "" at the end of the text.
func (w *wordReader) next() string {
	for w.at < len(w.text) {
		start := w.at
		switch kindOf[w.text[start]] {
		case blank:
			w.at++
		case semicolon:
			w.comment()
		case letter:
			for w.at++; w.at < len(w.text) && kindOf[w.text[w.at]] == letter; {
				w.at++
			}
			return w.text[start:w.at]
		case parenthesis, stray:
			w.at++
			return w.text[start:w.at]
		}
	}
	return ""
}

// isWord tells words from parentheses, stray bytes and the end.
func isWord(word string) bool { return word != "" && kindOf[word[0]] == letter }

func (w *wordReader) comment() {
	if n := strings.IndexByte(w.text[w.at:], '\n'); n >= 0 {
		w.at += n
		return
	}
	w.at = len(w.text)
}

func (w *wordReader) line() int { return 1 + strings.Count(w.text[:w.at], "\n") }

// expect reads words that have to come next, in any case.
func (w *wordReader) expect(words ...string) error {
	for _, want := range words {
		if got := w.next(); !strings.EqualFold(got, want) {
			return fmt.Errorf("got %s, want %q", orEnd(got), want)
		}
	}
	return nil
}

func orEnd(word string) string {
	if word == "" {
		return "the end of the text (is the file cut off?)"
	}
	return fmt.Sprintf("%.60q", word)
}

// sort is a type of the released domain.
type sort uint8

const (
	_ sort = iota
	agentSort
	locationSort
	receptacleSort
	objectSort
	receptacleClassSort
	objectClassSort
)

var sortNamed = map[string]sort{
	"agent": agentSort, "location": locationSort, "receptacle": receptacleSort, "object": objectSort,
	"rtype": receptacleClassSort, "otype": objectClassSort,
}

// symbol is a declared id.
type symbol struct {
	id   string // as spelled first
	key  string // lower case
	sort sort
	at   int // index into objects or receptacles, -1 before the first fact about it
}

// predicate says what a fact of the initial state means.
type predicate struct {
	args      [2]sort // the second is 0 for facts about one thing
	trait     Traits
	condition Condition
	apply     func(p *problemReader, a, b *symbol) error
}

// predicates of the initial state, by lower-case name.
var predicates = map[string]predicate{
	"atlocation":           {args: [2]sort{agentSort, locationSort}, apply: (*problemReader).start},
	"receptacleatlocation": {args: [2]sort{receptacleSort, locationSort}, apply: (*problemReader).stands},
	"receptacletype":       {args: [2]sort{receptacleSort, receptacleClassSort}, apply: (*problemReader).receptacleClass},
	"openable":             {args: [2]sort{receptacleSort}, apply: (*problemReader).openable},
	"opened":               {args: [2]sort{receptacleSort}, apply: (*problemReader).opened},
	"objecttype":           {args: [2]sort{objectSort, objectClassSort}, apply: (*problemReader).objectClass},
	"objectatlocation":     {args: [2]sort{objectSort, locationSort}, apply: (*problemReader).near},
	"inreceptacle":         {args: [2]sort{objectSort, receptacleSort}, apply: (*problemReader).in},
	"inreceptacleobject":   {args: [2]sort{objectSort, objectSort}, apply: (*problemReader).inside},
	"cancontain":           {args: [2]sort{receptacleClassSort, objectClassSort}, apply: (*problemReader).canContain},
	"pickupable":           {args: [2]sort{objectSort}, trait: Pickupable},
	"cleanable":            {args: [2]sort{objectSort}, trait: Cleanable},
	"heatable":             {args: [2]sort{objectSort}, trait: Heatable},
	"coolable":             {args: [2]sort{objectSort}, trait: Coolable},
	"toggleable":           {args: [2]sort{objectSort}, trait: Toggleable},
	"sliceable":            {args: [2]sort{objectSort}, trait: Sliceable},
	"isreceptacleobject":   {args: [2]sort{objectSort}, trait: Vessel},
	"isclean":              {args: [2]sort{objectSort}, condition: Clean},
	"ishot":                {args: [2]sort{objectSort}, condition: Hot},
	"iscool":               {args: [2]sort{objectSort}, condition: Cool},
	"issliced":             {args: [2]sort{objectSort}, condition: Sliced},
	"istoggled":            {args: [2]sort{objectSort}, condition: Toggled},
	"ison":                 {args: [2]sort{objectSort}, condition: On},
}

// problemReader collects a Spec. spelled and predicates find what was written before without lower-casing it again.
type problemReader struct {
	words      wordReader
	spelled    map[string]*symbol
	symbols    map[string]*symbol // by key
	folded     joiner             // of keys
	predicates map[string]predicate
	pairs      map[[2]*symbol]bool // can-contain pairs that were read
	goal       expression
	result     Spec
}

func (p *problemReader) problem() error {
	if err := p.words.expect("(", "define", "(", "problem"); err != nil {
		return err
	}
	if name := p.words.next(); !isWord(name) {
		return fmt.Errorf("got %s, want the problem's name", orEnd(name))
	}
	if err := p.words.expect(")", "(", ":domain", "alfred", ")", "(", ":objects"); err != nil {
		return err
	}
	if err := p.declarations(); err != nil {
		return fmt.Errorf("in :objects: %w", err)
	}
	if err := p.words.expect("(", ":init"); err != nil {
		return err
	}
	if err := p.facts(); err != nil {
		return fmt.Errorf("in :init: %w", err)
	}
	if err := p.words.expect("(", ":goal"); err != nil {
		return err
	}
	var err error
	if p.goal, err = p.words.goal(); err != nil {
		return fmt.Errorf("in :goal: %w", err)
	}
	if err := p.words.expect(")", ")"); err != nil {
		return err
	}
	if rest := p.words.next(); rest != "" {
		return fmt.Errorf("got %s behind the problem, want nothing", orEnd(rest))
	}
	return nil
}

// declarations reads "a b - type c - type )".
func (p *problemReader) declarations() error {
	var pending []string
	for {
		switch word := p.words.next(); word {
		case "", "(":
			return fmt.Errorf("got %s, want an id or \")\"", orEnd(word))
		case ")":
			if len(pending) > 0 {
				return fmt.Errorf("%.60q has no type", pending[0])
			}
			return nil
		case "-":
			name := p.words.next()
			kind, ok := sortNamed[strings.ToLower(name)]
			if !ok {
				return fmt.Errorf("got type %s, want one of the released domain", orEnd(name))
			}
			if err := p.declare(pending, kind); err != nil {
				return err
			}
			pending = pending[:0]
		default:
			if !isID(word) {
				return fmt.Errorf("got %s, want an id", orEnd(word))
			}
			if len(pending)+len(p.symbols) == mostIDs {
				return fmt.Errorf("more than %d ids", mostIDs)
			}
			pending = append(pending, word)
		}
	}
}

func (p *problemReader) declare(ids []string, kind sort) error {
	for _, id := range ids {
		key := p.folded.lower(id)
		s, twice := p.symbols[key]
		if twice && s.sort != kind {
			return fmt.Errorf("%.60q is declared with two types", id)
		}
		if !twice {
			s = &symbol{id: id, key: key, sort: kind, at: -1}
			p.symbols[key] = s
		}
		p.spelled[id] = s
	}
	return nil
}

// symbol finds a declared id.
func (p *problemReader) symbol(id string) (*symbol, error) {
	if s := p.spelled[id]; s != nil {
		return s, nil
	}
	s := p.symbols[strings.ToLower(id)]
	if s == nil {
		return nil, fmt.Errorf("%s is not declared in :objects", orEnd(id))
	}
	p.spelled[id] = s
	return s, nil
}

// facts reads "(fact) (fact) )".
func (p *problemReader) facts() error {
	p.pairs = map[[2]*symbol]bool{}
	for {
		switch word := p.words.next(); word {
		case ")":
			return nil
		case "(":
			if err := p.fact(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("got %s, want a fact or \")\"", orEnd(word))
		}
	}
}

func (p *problemReader) predicate(name string) (predicate, error) {
	if f, ok := p.predicates[name]; ok {
		return f, nil
	}
	f, ok := predicates[strings.ToLower(name)]
	if !ok {
		return f, fmt.Errorf("got fact %s, which initial states of the released games do not have", orEnd(name))
	}
	p.predicates[name] = f
	return f, nil
}

func (p *problemReader) fact() error {
	name := p.words.next()
	f, err := p.predicate(name)
	if err != nil {
		return err
	}
	var args [2]*symbol
	for i, kind := range f.args {
		if kind == 0 {
			continue
		}
		if args[i], err = p.symbol(p.words.next()); err != nil {
			return fmt.Errorf("fact %s: %w", name, err)
		}
		if args[i].sort != kind {
			return fmt.Errorf("fact %s: %.60q is of the wrong type", name, args[i].id)
		}
	}
	if err := p.words.expect(")"); err != nil {
		return fmt.Errorf("fact %s: %w", name, err)
	}
	if f.apply == nil {
		o := p.object(args[0])
		o.Traits |= f.trait
		o.Condition |= f.condition
		return nil
	}
	if err := f.apply(p, args[0], args[1]); err != nil {
		return fmt.Errorf("fact %s: %w", name, err)
	}
	return nil
}

// object is the object of a symbol, a new one at its first fact.
func (p *problemReader) object(s *symbol) *ObjectSpec {
	if s.at < 0 {
		s.at = len(p.result.Objects)
		p.result.Objects = append(p.result.Objects, ObjectSpec{ID: s.id})
	}
	return &p.result.Objects[s.at]
}

// receptacle is the receptacle of a symbol, a new one at its first fact.
func (p *problemReader) receptacle(s *symbol) *ReceptacleSpec {
	if s.at < 0 {
		s.at = len(p.result.Receptacles)
		p.result.Receptacles = append(p.result.Receptacles, ReceptacleSpec{ID: s.id})
	}
	return &p.result.Receptacles[s.at]
}

// settle sets what can be said only once; saying the same again is harmless.
func settle(to *string, value string) error {
	if *to != "" && !strings.EqualFold(*to, value) {
		return fmt.Errorf("both %.60q and %.60q", *to, value)
	}
	*to = value
	return nil
}

func (p *problemReader) start(_, location *symbol) error {
	return settle(&p.result.Start, location.id)
}

func (p *problemReader) stands(r, location *symbol) error {
	return settle(&p.receptacle(r).Location, location.id)
}

func (p *problemReader) receptacleClass(r, class *symbol) error {
	name, err := bareClass(class)
	if err != nil {
		return err
	}
	return settle(&p.receptacle(r).Class, name)
}

func (p *problemReader) objectClass(o, class *symbol) error {
	name, err := bareClass(class)
	if err != nil {
		return err
	}
	return settle(&p.object(o).Class, name)
}

// bareClass is a class without its suffix.
func bareClass(s *symbol) (string, error) {
	bare, ok := strings.CutSuffix(s.key, "type")
	if !ok || bare == "" {
		return "", fmt.Errorf("class %.60q does not end in \"Type\"", s.id)
	}
	return s.id[:len(bare)], nil
}

func (p *problemReader) openable(r, _ *symbol) error {
	p.receptacle(r).Openable = true
	return nil
}

func (p *problemReader) opened(r, _ *symbol) error {
	p.receptacle(r).Opened = true
	return nil
}

func (p *problemReader) near(o, location *symbol) error {
	x := p.object(o)
	x.At = append(x.At, location.id)
	return nil
}

func (p *problemReader) in(o, r *symbol) error {
	p.receptacle(r)
	x := p.object(o)
	x.In = append(x.In, r.id)
	return nil
}

func (p *problemReader) inside(o, vessel *symbol) error {
	p.object(vessel)
	x := p.object(o)
	x.Inside = append(x.Inside, vessel.id)
	return nil
}

func (p *problemReader) canContain(r, o *symbol) error {
	if p.pairs[[2]*symbol{r, o}] {
		return nil
	}
	p.pairs[[2]*symbol{r, o}] = true
	receptacle, err := bareClass(r)
	if err != nil {
		return err
	}
	object, err := bareClass(o)
	if err != nil {
		return err
	}
	p.result.CanContain = append(p.result.CanContain, Pair{receptacle, object})
	return nil
}

// spec adds the goal to the facts.
func (p *problemReader) spec() (Spec, error) {
	if p.result.Start == "" {
		return Spec{}, errors.New("problem: no fact says where the agent is (atLocation)")
	}
	goal, err := p.readGoal()
	if err != nil {
		return Spec{}, fmt.Errorf("problem: in :goal: %w", err)
	}
	p.result.Goal = goal
	return p.result, nil
}
