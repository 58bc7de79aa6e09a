package pddl

import "slices"

// effect makes a literal true: for all objects that its variables can be, where its condition holds.
type effect struct {
	vars []variable
	when formula
	lit  literal // of a declared predicate

	ways  []clause // in which the condition can hold
	plain bool     // see plain
}

// actionsOf reads the actions of a domain. One without effects can never be seen to be done; it is left out, as in the
// original.
func (l *lifted) actionsOf(sections []node) error {
	seen := map[string]bool{}
	for _, n := range sections {
		if n.head() != ":action" {
			continue
		}
		a, err := l.readAction(n)
		if err != nil {
			return err
		}
		if seen[a.name] {
			return l.domain.errorf(n.at, "action %s is defined twice", a.name)
		}
		seen[a.name] = true
		if len(a.effects) > 0 {
			l.actions = append(l.actions, a)
		}
	}
	for i := range l.actions {
		for _, e := range l.actions[i].effects {
			l.predicates[e.lit.predicate].fluent = true
		}
	}
	return nil
}

func (l *lifted) readAction(n node) (action, error) {
	s := l.domain
	if len(n.list) < 2 || n.list[1].isList() {
		return action{}, s.errorf(n.at, "want (:action NAME …)")
	}
	a := action{name: n.list[1].word, at: n.at}
	r := reader{l: l, s: s}
	seen := map[string]bool{}
	for i := 2; i < len(n.list); i += 2 {
		part := n.list[i]
		switch part.word {
		case ":parameters", ":precondition", ":effect":
		default:
			return action{}, s.errorf(part.at, "action %s: want :parameters, :precondition or :effect", a.name)
		}
		if seen[part.word] {
			return action{}, s.errorf(part.at, "action %s: a second %s", a.name, part.word)
		}
		seen[part.word] = true
		if i+1 == len(n.list) {
			return action{}, s.errorf(part.at, "action %s: nothing after %s", a.name, part.word)
		}
		if part.word != ":parameters" && !seen[":parameters"] && hasParameters(n.list[i+2:]) {
			return action{}, s.errorf(part.at, "action %s: %s stands before :parameters", a.name, part.word)
		}
		if err := r.actionPart(&a, part.word, n.list[i+1]); err != nil {
			return action{}, err
		}
	}
	if !seen[":effect"] {
		return action{}, s.errorf(n.at, "action %s has no :effect", a.name)
	}
	a.slots = r.slots
	return a, nil
}

func hasParameters(ns []node) bool {
	return slices.ContainsFunc(ns, func(n node) bool { return n.word == ":parameters" })
}

func (r *reader) actionPart(a *action, part string, n node) error {
	empty := n.isList() && len(n.list) == 0
	var err error
	switch {
	case part == ":parameters":
		a.params, err = r.variables(n)
		for _, v := range r.scope {
			a.names = append(a.names, v.name[1:])
		}
	case empty:
	case part == ":precondition":
		a.when, err = r.condition(n, false)
	default:
		err = r.effect(n, effect{}, &a.effects)
	}
	return err
}

// effect reads an effect that stands inside the variables and the condition of another.
func (r *reader) effect(n node, in effect, all *[]effect) error {
	if !n.isList() || len(n.list) == 0 {
		return r.s.errorf(n.at, "want an effect: (predicate …), (not …), (and …), (when …) or (forall …)")
	}
	switch h := n.head(); h {
	case "and":
		for _, part := range n.list[1:] {
			if err := r.effect(part, in, all); err != nil {
				return err
			}
		}
		return nil
	case "increase":
		return nil // of costs, which nothing asks for
	case "when":
		if len(n.list) != 3 {
			return r.s.errorf(n.at, "want (when CONDITION EFFECT)")
		}
		when, err := r.condition(n.list[1], false)
		if err != nil {
			return err
		}
		in.when = both([]formula{in.when, when})
		return r.effect(n.list[2], in, all)
	case "forall":
		if len(n.list) != 3 {
			return r.s.errorf(n.at, "want (forall (?variable - type …) EFFECT)")
		}
		outer := len(r.scope)
		vars, err := r.variables(n.list[1])
		if err != nil {
			return err
		}
		in.vars = slices.Concat(in.vars, vars)
		err = r.effect(n.list[2], in, all)
		r.scope = r.scope[:outer]
		return err
	case "or", "exists", "imply", "assign", "decrease", "scale-up", "scale-down", "oneof", "probabilistic":
		return r.s.errorf(n.at, "%q in an effect cannot be played", h)
	default:
		return r.simpleEffect(n, in, all)
	}
}

// simpleEffect reads an atom or its negation.
func (r *reader) simpleEffect(n node, in effect, all *[]effect) error {
	atom, negated := n, false
	for atom.head() == "not" {
		if len(atom.list) != 2 || !atom.list[1].isList() {
			return r.s.errorf(atom.at, "want (not EFFECT)")
		}
		atom, negated = atom.list[1], !negated
	}
	if _, ok := r.l.predicateOf[atom.head()]; !ok {
		return r.s.errorf(atom.at, "%q in an effect: there is no such predicate", atom.head())
	}
	lit, err := r.literal(atom, negated, false)
	in.lit = lit
	*all = append(*all, in)
	return err
}
