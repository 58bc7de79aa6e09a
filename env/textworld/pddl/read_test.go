package pddl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// domains are the texts under testdata, each a domain and a problem.
func domains(t testing.TB) map[string][2]string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.pddl")
	if err != nil || len(paths) == 0 {
		t.Fatal("no domains under testdata", err)
	}
	all := map[string][2]string{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		domain, problem, ok := strings.Cut(string(b), "(define (problem")
		if !ok {
			t.Fatal(path, "has no problem")
		}
		all[path] = [2]string{domain, "(define (problem" + problem}
	}
	return all
}

const (
	smallDomain = `(define (domain small)
  (:types box - object red - box)
  (:predicates (open ?b - box) (near ?a ?b))
  (:action lift :parameters (?b - box) :precondition (not (open ?b)) :effect (open ?b)))`
	smallProblem = `(define (problem one) (:domain small)
  (:objects crate - red)
  (:init (near crate crate))
  (:goal (open crate)))`
)

func TestRefused(t *testing.T) {
	cases := []struct{ name, text, old, new, want string }{
		{"nothing", "domain", smallDomain, "", `domain, line 1, column 1: want a "("`},
		{"no end", "domain", "(open ?b)))", "(open ?b))", "is never closed"},
		{"more", "problem", "(open crate)))", "(open crate))) (x)", `problem, line 4, column 25: "(" after the end`},
		{"not ASCII", "domain", "open ?b - box", "öpen ?b - box", "not ASCII"},
		{"another domain", "problem", ":domain small", ":domain large", `the problem is of domain "large"`},
		{"derived", "domain", "(:action", "(:derived (open ?b - box) (near ?b ?b)) (:action", "line 4, column 3: :derived cannot be played"},
		{"durative", "domain", ":action lift", ":durative-action lift", ":durative-action cannot be played"},
		{"either", "domain", "lift :parameters (?b - box)", "lift :parameters (?b - (either box red))", `"either"`},
		{"numbers", "domain", "(not (open ?b))", "(> (weight ?b) 3)", "line 4, column 54: \">\": numbers in conditions"},
		{"assign", "domain", ":effect (open ?b)", ":effect (assign (weight ?b) 3)", `"assign" in an effect`},
		{"no predicate", "domain", ":effect (open ?b)", ":effect (opened ?b)", `"opened" in an effect: there is no such predicate`},
		{"no predicate asked", "domain", "(not (open ?b))", "(opened ?b)", "there is no predicate opened"},
		{"arity", "domain", "(not (open ?b))", "(near ?b)", "near has 1 arguments: the domain declares 2"},
		{"free variable", "domain", "(not (open ?b))", "(open ?c)", "variable ?c is not bound"},
		{"twice", "domain", "(:action", "(:action lift :effect (open crate)) (:action", "action lift is defined twice"},
		{"effect of nothing", "domain", ":effect (open ?b)", ":effect (open kettle)", "there is no object kettle"},
		{"no effect", "domain", ":effect (open ?b)", "", "action lift has no :effect"},
		{"order", "domain", ":parameters (?b - box) :precondition (not (open ?b))", ":precondition () :parameters (?b - box)", "stands before :parameters"},
		{"no type", "problem", "crate - red", "crate - blue", "of type blue, which the domain does not declare"},
		{"object twice", "problem", "crate - red", "crate crate - red", "object crate is declared twice"},
		{"no object", "problem", "near crate crate", "near crate cup", "there is no object cup"},
		{"true and false", "problem", "(near crate crate)", "(near crate crate) (not (near crate crate))", "true and false"},
		{"no goal", "problem", "(:goal (open crate))", "", "want one :init and one :goal"},
		{"goal out of reach", "problem", "(open crate)", "(near crate cup)", "can never be reached"},
		{"goal out of hand", "problem", "(open crate)", "(near crate crate)", "nothing that is done changes whether the goal holds"},
		{"constraints", "problem", "(:goal", "(:constraints (and)) (:goal", ":constraints cannot be played"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			texts := map[string]string{"domain": smallDomain, "problem": smallProblem}
			if !strings.Contains(texts[c.text], c.old) {
				t.Fatalf("the %s has no %q", c.text, c.old)
			}
			texts[c.text] = strings.Replace(texts[c.text], c.old, c.new, 1)
			_, err := Read(texts["domain"], texts["problem"])
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Read(smallDomain, smallProblem); err != nil {
		t.Error("the text that the cases change:", err)
	}
}

// TestBounds reads texts made to take memory, stack or time.
func TestBounds(t *testing.T) {
	objects := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " o%d", i)
		}
		return b.String()
	}
	many := "(define (domain d) (:predicates (p ?a) (q ?a ?b ?c ?d)) (:action a :parameters (?a ?b ?c ?d) :effect (q ?a ?b ?c ?d)) (:action b :effect (p o1)))"
	ors := strings.Repeat("(or (p o1) (p o2)) ", 40)
	cases := []struct{ name, domain, problem, want string }{
		{"open", strings.Repeat("(", 1<<22), "", "nested more than"},
		{"empty lists", "(define (domain d)" + strings.Repeat("()", 1<<22), "", "words and lists"},
		{"very long", strings.Repeat("(", largestText+1), "", "at most"},
		{"deep", "(define (domain d) (:action a :precondition " + strings.Repeat("(not ", 1<<20) + strings.Repeat(")", 1<<20) + "))", "", "nested more than"},
		{"many instances", many, "(define (problem p) (:domain d) (:objects" + objects(200) + ") (:init) (:goal (p o1)))", "too large"},
		{"many objects", many, "(define (problem p) (:domain d) (:objects" + objects(mostObjects+1) + ") (:init) (:goal (p o1)))", "at most"},
		{
			"many ways", "(define (domain d) (:predicates (p ?a)) (:action a :precondition (and " + ors + ") :effect (p o1)))",
			"(define (problem p) (:domain d) (:objects o1 o2) (:init) (:goal (p o1)))", "in more than",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Read(c.domain, c.problem); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestCut reads texts cut at every byte, the longer ones at some: an error with a place, or a text that lacks nothing
// that counts.
func TestCut(t *testing.T) {
	texts, step := domains(t), 13
	texts["small"] = [2]string{smallDomain, smallProblem}
	for name, text := range texts {
		if name == "small" {
			step = 1
		}
		for i := 0; i < len(text[0]); i += step {
			checkRead(t, name, text[0][:i], text[1])
		}
		for i := 0; i < len(text[1]); i += step {
			checkRead(t, name, text[0], text[1][:i])
		}
		step = 13
	}
}

func checkRead(t *testing.T, name, domain, problem string) {
	t.Helper()
	p, err := Read(domain, problem)
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
		t.Errorf("%s: %v: an error without a place", name, err)
	}
	if err != nil {
		return
	}
	s := p.Start()
	for range 5 {
		possible := s.Possible(nil)
		if len(possible) == 0 {
			break
		}
		s.Apply(p.First(possible))
		s.Won()
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range domains(f) {
		f.Add(text[0], text[1])
	}
	f.Add(smallDomain, smallProblem)
	f.Fuzz(func(t *testing.T, domain, problem string) { checkRead(t, "fuzz", domain, problem) })
}

// TestTold checks the order in which facts are told, their repeats and those of what became false.
func TestTold(t *testing.T) {
	p, err := Read(`(define (domain d)
  (:types thing - object box - thing red - box)
  (:predicates (in ?t - thing) (gone))
  (:action toggle :parameters (?t - thing) :effect (and (when (in ?t) (not (in ?t))) (when (not (in ?t)) (in ?t))))
  (:action out :parameters (?t - thing) :precondition (in ?t) :effect (and (gone) (not (in ?t)))))`, `(define (problem p) (:domain d)
  (:objects b a - red z y - box p - box)
  (:init (in a) (in b) (in y) (in p) (in z)) (:goal (gone)))`)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Start()
	told := func(predicate string, types ...string) (names []string) {
		t.Helper()
		numbers, err := s.Told(predicate, types, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range numbers {
			_, args := p.Fact(n)
			names = append(names, strings.Join(args, " "))
		}
		return names
	}
	do := func(action, object string) {
		t.Helper()
		for _, o := range s.Possible(nil) {
			if p.Action(o) == action && p.Arguments(o)[0].Object == object {
				s.Apply(o)
				return
			}
		}
		t.Fatal(action, object, "is not possible")
	}
	check := func(got []string, want ...string) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	check(told("in", "red"), "a", "b")
	check(told("in", "box"), "P", "p", "y", "z", "a", "b")
	check(told("in", "thing"), "P", "p", "y", "z", "a", "b", "a", "b")
	check(told("not_in", "box"))
	do("out", "a")
	do("out", "p") // the fact of :init keeps the name the text gives it, and stays
	check(told("in", "box"), "p", "y", "z", "b")
	check(told("not_in", "box"), "P", "a")
	do("toggle", "a") // is in again, but both effects are told, and the second is that it is not
	check(told("in", "red"), "b")
	do("out", "a")
	if _, err := s.Told("in", []string{"blue"}, nil); err == nil || !strings.Contains(err.Error(), "no type blue") {
		t.Errorf("a type that nobody declared: %v", err)
	}
}
