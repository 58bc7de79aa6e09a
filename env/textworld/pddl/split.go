package pddl

import "slices"

// derived is the head of a rule that only derives a fact: of a predicate, or of a table of its own.
type derived struct {
	table int32
	args  []term
}

// splitter makes rules for a conditional effect as the original's exploration does: it joins two parts of the body at a
// time, and forgets a variable as soon as nothing else asks for it, which is before it has seen that it is the same in
// both. So more seems possible than is, and texts may be told that what never was true is false.
type splitter struct {
	*reach
	slots int // of the variables so far
}

// part is an atom of a body: its predicate's or another table, and its arguments.
type part struct {
	derived
	rank string // orders parts
}

// splitEffect makes the rules for one way in which an effect can come about, of the action's rule in a table.
func (r *reach) splitEffect(action part, e *effect, way *clause, slots int) {
	s := splitter{r, slots}
	head := derived{e.lit.predicate, slices.Clone(e.lit.args)}
	body := []part{action}
	for _, lit := range way.literals {
		if lit.negated {
			continue
		}
		p := part{derived{lit.predicate, slices.Clone(lit.args)}, ""}
		switch lit.predicate {
		case equality:
			p.table, p.rank = r.equalTable(), "="
		case ofType:
			p.table, p.rank = r.typeTable(lit.kind), "type@"+r.l.types[lit.kind].name
		default:
			p.rank = r.l.predicates[lit.predicate].name
		}
		body = append(body, p)
	}
	known := variablesOf(body...)
	for _, v := range sorted(variablesOf(part{derived: head})) {
		if !slices.Contains(known, v) {
			body = append(body, part{derived{r.objectTable(), []term{^term(v)}}, "@object"})
		}
	}
	var equal []part
	s.distinct(head.args, &equal)
	for i := range body {
		s.distinct(body[i].args, &equal)
	}
	s.split(head, append(body, equal...))
}

// distinct renames variables that repeat within an atom, and asks for them to be equal.
func (s *splitter) distinct(args []term, equal *[]part) {
	for i, a := range args {
		if _, isVariable := a.variable(); isVariable && slices.Contains(args[:i], a) {
			args[i] = ^term(s.slots)
			s.slots++
			*equal = append(*equal, part{derived{s.equalTable(), []term{a, args[i]}}, "="})
		}
	}
}

// variablesOf lists the slots of the variables of some atoms, without repeats.
func variablesOf(parts ...part) []int {
	var slots []int
	for _, p := range parts {
		for _, a := range p.args {
			if slot, isVariable := a.variable(); isVariable && !slices.Contains(slots, slot) {
				slots = append(slots, slot)
			}
		}
	}
	return slots
}

func sorted(slots []int) []int { return slices.Sorted(slices.Values(slots)) }

// common lists what of a is in b.
func common(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(x int) bool { return !slices.Contains(b, x) })
}

// split makes rules of a body whose parts fall into components that share no variable: one for each, and one for all.
func (s *splitter) split(head derived, body []part) {
	components, trivial := components(body)
	if len(components) == 1 && len(trivial) == 0 {
		s.binary(head, body)
		return
	}
	for _, c := range components {
		aux := s.auxiliary(common(sorted(variablesOf(c...)), variablesOf(part{derived: head})))
		s.binary(aux.derived, c)
		trivial = append(trivial, aux)
	}
	s.addDerivation(head, trivial)
}

// components parts a body; each component is ordered. What has no variable is trivial.
func components(body []part) (found [][]part, trivial []part) {
	var rest []part
	for _, p := range body {
		if len(variablesOf(p)) == 0 {
			trivial = append(trivial, p)
		} else {
			rest = append(rest, p)
		}
	}
	for len(rest) > 0 {
		c := []part{rest[0]}
		rest = slices.Clone(rest[1:])
		for i := 0; i < len(rest); {
			if len(common(variablesOf(rest[i]), variablesOf(c...))) == 0 {
				i++
				continue
			}
			c = append(c, rest[i])
			rest = slices.Delete(rest, i, i+1)
			i = 0
		}
		slices.SortStableFunc(c, comparePart)
		found = append(found, c)
	}
	return found, trivial
}

func comparePart(a, b part) int {
	switch {
	case a.rank < b.rank:
		return -1
	case a.rank > b.rank:
		return 1
	}
	return slices.Compare(a.args, b.args)
}

// auxiliary is a new table for the values of some variables.
func (s *splitter) auxiliary(slots []int) part {
	p := part{derived: derived{table: s.newTable(len(slots), true)}}
	for _, slot := range slots {
		p.args = append(p.args, ^term(slot))
	}
	return p
}

// binary joins parts, two at a time: first those that share most and add least.
func (s *splitter) binary(head derived, parts []part) {
	if len(parts) == 1 {
		s.addDerivation(head, parts)
		return
	}
	occurrences := map[int]int{}
	count := func(d derived, n int) {
		for _, a := range d.args {
			if slot, isVariable := a.variable(); isVariable {
				occurrences[slot] += n
			}
		}
	}
	count(head, 1)
	for _, p := range parts {
		count(p.derived, 1)
	}
	parts = slices.Clone(parts)
	for len(parts) >= 2 {
		i, j := cheapest(parts)
		pair := []part{parts[i], parts[j]} // j < i
		parts = slices.Delete(parts, i, i+1)
		parts = slices.Delete(parts, j, j+1)
		count(pair[0].derived, -1)
		count(pair[1].derived, -1)
		shared := common(variablesOf(pair[0]), variablesOf(pair[1]))
		kept := slices.DeleteFunc(variablesOf(pair...), func(slot int) bool { return occurrences[slot] == 0 })
		for k, p := range pair {
			own := variablesOf(p)
			retained := slices.DeleteFunc(slices.Clone(own), func(slot int) bool { return !slices.Contains(kept, slot) && !slices.Contains(shared, slot) })
			if len(retained) < len(own) {
				aux := s.auxiliary(retained)
				s.addDerivation(aux.derived, []part{p})
				pair[k] = aux
			}
		}
		if len(parts) == 0 {
			s.addDerivation(head, pair)
			return
		}
		joint := s.auxiliary(sorted(kept))
		s.addDerivation(joint.derived, pair)
		count(joint.derived, 1)
		parts = append(parts, joint)
	}
}

// cheapest finds the two parts to join next; the first is the later one.
func cheapest(parts []part) (left, right int) {
	var least []int
	for i := range parts {
		for j := range i {
			few, many := variablesOf(parts[i]), variablesOf(parts[j])
			if len(few) > len(many) {
				few, many = many, few
			}
			n := len(common(few, many))
			if cost := []int{len(few) - n, len(many) - n, -n}; least == nil || slices.Compare(cost, least) < 0 {
				least, left, right = cost, i, j
			}
		}
	}
	return left, right
}

// addDerivation adds a rule. Variables that its head does not have may be anything, each time they occur.
func (s *splitter) addDerivation(head derived, body []part) {
	n := &rule{action: -1, derives: &head}
	known := variablesOf(part{derived: head})
	for _, slot := range known {
		n.vars = append(n.vars, variable{slot, anyKind})
	}
	var literals []literal
	for _, p := range body {
		args := slices.Clone(p.args)
		for i, a := range args {
			if slot, isVariable := a.variable(); isVariable && !slices.Contains(known, slot) {
				args[i] = ^term(wild)
			}
		}
		literals = append(literals, literal{predicate: p.table, args: args})
	}
	s.most = max(s.most, s.slots)
	s.addRule(n, literals)
}

// newTable makes a table that is no predicate's.
func (r *reach) newTable(arity int, grows bool) int32 {
	r.tables = append(r.tables, table{arity: arity, wanted: true})
	r.trigger = append(r.trigger, nil)
	r.grows = append(r.grows, grows)
	return int32(len(r.tables) - 1)
}

// objectTable holds all objects.
func (r *reach) objectTable() int32 { return r.typeTable(anyKind) }

// typeTable holds the objects of a type.
func (r *reach) typeTable(t typeID) int32 {
	if n, ok := r.ofType[t]; ok {
		return n
	}
	n := r.newTable(1, false)
	r.ofType[t] = n
	for _, o := range r.l.members(t) {
		r.tables[n].add([]int32{o})
	}
	return n
}

// equalTable holds all objects twice.
func (r *reach) equalTable() int32 {
	if r.equal == 0 {
		r.equal = r.newTable(2, false)
		for o := range int32(r.l.strangers) {
			r.tables[r.equal].add([]int32{o, o})
		}
	}
	return r.equal
}
