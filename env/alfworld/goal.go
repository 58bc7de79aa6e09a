package alfworld

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// expression is a word, or a list of expressions if it has no word.
type expression struct {
	word string // lower case
	list []expression
}

// Limits of a goal; the released ones have seven levels, at most eight conditions and some fifty words.
const (
	deepest   = 32
	mostAtoms = 64
	longest   = 4096 // bytes
)

// goal reads the expression of a goal.
func (w *wordReader) goal() (expression, error) {
	limited := wordReader{text: w.text[:min(w.at+longest, len(w.text))], at: w.at}
	e, err := limited.expression(0)
	if err != nil && limited.at == len(limited.text) && len(limited.text) < len(w.text) {
		err = fmt.Errorf("it has more than %d bytes", longest)
	}
	w.at = limited.at
	return e, err
}

// expression reads one; depth is the number of lists around it.
func (w *wordReader) expression(depth int) (expression, error) {
	word := w.next()
	switch {
	case isWord(word):
		return expression{word: strings.ToLower(word)}, nil
	case word != "(":
		return expression{}, fmt.Errorf("got %s, want an expression", orEnd(word))
	case depth == deepest:
		return expression{}, fmt.Errorf("lists are nested more than %d deep", deepest)
	}
	var e expression
	for {
		mark := w.at
		if w.next() == ")" {
			return e, nil
		}
		w.at = mark
		x, err := w.expression(depth + 1)
		if err != nil {
			return expression{}, err
		}
		e.list = append(e.list, x)
	}
}

func (e expression) head() string {
	if len(e.list) == 0 {
		return ""
	}
	return e.list[0].word
}

// atom is a condition of a goal without its connectives: a predicate and one or two variables or classes. Variables are
// numbered by the quantifier that binds them ("?0").
type atom struct{ predicate, a, b string }

// flattener collects the atoms of nested "and" and "exists".
type flattener struct {
	atoms []atom
	bound int
}

func (f *flattener) add(e expression, scope map[string]string) error {
	switch e.head() {
	case "and":
		for _, x := range e.list[1:] {
			if err := f.add(x, scope); err != nil {
				return err
			}
		}
		return nil
	case "exists":
		return f.exists(e, scope)
	case "not":
		if len(e.list) != 2 || e.list[1].head() != "=" {
			return errors.New("only equality can be denied")
		}
		return f.atom("differ", e.list[1], scope)
	case "", "or", "forall", "imply", "when", "=":
		return fmt.Errorf("%q is in no goal of the released games", e.head())
	default:
		return f.atom(e.head(), e, scope)
	}
}

func (f *flattener) exists(e expression, outer map[string]string) error {
	if len(e.list) != 3 {
		return fmt.Errorf("\"exists\" has %d parts, want variables and one condition", len(e.list)-1)
	}
	scope := maps.Clone(outer)
	for i := 0; i < len(e.list[1].list); i++ {
		switch word := e.list[1].list[i].word; {
		case word == "-":
			i++ // and its type
		case strings.HasPrefix(word, "?"):
			scope[word] = "?" + strconv.Itoa(f.bound)
			f.bound++
		default:
			return fmt.Errorf("\"exists\" names %q, which is no variable", word)
		}
	}
	return f.add(e.list[2], scope)
}

func (f *flattener) atom(predicate string, e expression, scope map[string]string) error {
	var args [2]string
	if len(e.list) < 2 || len(e.list) > 3 {
		return fmt.Errorf("%s has %d arguments, want one or two", predicate, len(e.list)-1)
	}
	for i, x := range e.list[1:] {
		args[i] = x.word
		if strings.HasPrefix(x.word, "?") {
			bound, ok := scope[x.word]
			if !ok {
				return fmt.Errorf("variable %s is not bound", x.word)
			}
			args[i] = bound
		}
		if args[i] == "" {
			return fmt.Errorf("%s has a list as argument", predicate)
		}
	}
	if len(f.atoms) == mostAtoms {
		return fmt.Errorf("it has more than %d conditions", mostAtoms)
	}
	if a := (atom{predicate, args[0], args[1]}); !slices.Contains(f.atoms, a) {
		f.atoms = append(f.atoms, a)
	}
	return nil
}

// goalShape is what the goals of a family say. Lower-case letters stand for variables, O and T for the classes.
type goalShape struct {
	family   Family
	nearLamp bool
	atoms    []atom
}

var goalShapes = []goalShape{
	{PickAndPlace, false, atoms("inreceptacle o r, objecttype o O, receptacletype r T")},
	{CleanAndPlace, false, atoms("cleanable o, objecttype o O, receptacletype r T, isclean o, inreceptacle o r")},
	{HeatAndPlace, false, atoms("heatable o, objecttype o O, receptacletype r T, ishot o, inreceptacle o r")},
	{CoolAndPlace, false, atoms("coolable o, objecttype o O, receptacletype r T, iscool o, inreceptacle o r")},
	{PickTwo, false, atoms("objecttype o O, receptacletype r T, inreceptacle o r, differ o p, objecttype p O, inreceptacle p r")},
	{LookInLight, false, atoms("objecttype t T, toggleable t, istoggled t, receptacleatlocation r l, atlocation a l, inreceptacle t r, objecttype o O, holds b o")},
	{LookInLight, true, atoms("objecttype t T, toggleable t, istoggled t, objectatlocation t l, atlocation a l, objecttype o O, holds b o")},
	{LookInLight, true, atoms("objecttype t T, istoggled t, objectatlocation t l, atlocation a l, objecttype o O, holds b o")},
}

func atoms(text string) []atom {
	var as []atom
	for _, part := range strings.Split(text, ", ") {
		words := append(strings.Fields(part), "")
		as = append(as, atom{words[0], words[1], words[2]})
	}
	return as
}

// unsupported predicates are those of the task types that the text games leave out.
var unsupported = []string{"issliced", "inreceptacleobject", "isreceptacleobject", "isreceptacleobjectfull"}

func (p *problemReader) readGoal() (Goal, error) {
	var f flattener
	if err := f.add(p.goal, map[string]string{}); err != nil {
		return Goal{}, err
	}
	for _, a := range f.atoms {
		if slices.Contains(unsupported, a.predicate) {
			return Goal{}, fmt.Errorf("%w: it asks for %s", ErrUnsupported, a.predicate)
		}
	}
	for _, shape := range goalShapes {
		bound := map[string]string{}
		if len(shape.atoms) != len(f.atoms) || !match(shape.atoms, f.atoms, bound) {
			continue
		}
		object, err := p.goalClass(bound["O"])
		if err != nil {
			return Goal{}, err
		}
		target, err := p.goalClass(bound["T"])
		if err != nil {
			return Goal{}, err
		}
		return Goal{Family: shape.family, Object: object, Target: target, NearLamp: shape.nearLamp}, nil
	}
	return Goal{}, fmt.Errorf("%w: it is of none of the six families (conditions %v)", ErrUnsupported, f.atoms)
}

func (p *problemReader) goalClass(id string) (string, error) {
	s, err := p.symbol(id)
	if err != nil {
		return "", err
	}
	return bareClass(s)
}

// match binds the letters of the shape so that every atom of it is one of those given, each of them once.
func match(shape, given []atom, bound map[string]string) bool {
	if len(shape) == 0 {
		return true
	}
	for i, a := range given {
		if a.predicate != shape[0].predicate {
			continue
		}
		try := maps.Clone(bound)
		if !bind(try, shape[0].a, a.a) || !bind(try, shape[0].b, a.b) {
			continue
		}
		rest := slices.Concat(given[:i], given[i+1:])
		if match(shape[1:], rest, try) {
			maps.Copy(bound, try)
			return true
		}
	}
	return false
}

// bind lets a letter stand for a variable or a class; a letter that stands for something stays so.
func bind(bound map[string]string, letter, value string) bool {
	isClass := letter == "O" || letter == "T"
	if letter == "" || value == "" || isClass == strings.HasPrefix(value, "?") {
		return letter == value
	}
	if old, ok := bound[letter]; ok {
		return old == value
	}
	bound[letter] = value
	return true
}
