package pddl

import (
	"cmp"
	"container/heap"
	"slices"
	"strconv"
	"strings"
)

// First returns the operator that the original comes upon first, of some that are possible. It matters where several
// answer to one command.
func (p *Problem) First(operators []int) int {
	if len(operators) == 1 {
		return operators[0]
	}
	p.order.Do(func() { p.rank = p.rankOperators() })
	return slices.MinFunc(operators, func(a, b int) int { return cmp.Compare(p.rank[a], p.rank[b]) })
}

// rankOperators orders operators as Fast Downward's successor generator does: by what they need, variables in the order
// that its translator gives them, and by name, needs and effects among those that need the same. Where universal
// conditions are copied into several effects, shared by actions or stand within each other, the order may differ: the
// translator numbers them in ways that are not followed here.
func (p *Problem) rankOperators() []int32 {
	ids := p.operatorIDs()
	place := p.variableOrder(ids)
	needs := make([][]code, len(p.operators))
	for i := range p.operators {
		needs[i] = p.renumbered(p.operators[i].needs, place)
	}
	order := slices.Clone(ids)
	slices.SortStableFunc(order, func(a, b int32) int { return slices.Compare(needs[a], needs[b]) })
	rank := make([]int32, len(order))
	for i, o := range order {
		rank[o] = int32(i)
	}
	return rank
}

// variables numbers atoms and universal conditions as the translator does before it orders them: universal conditions
// are atoms of predicates called new-axiom@0, … there.
func (p *Problem) variables() []int32 {
	before := int32(0)
	for before < int32(len(p.atoms)) && p.l.predicates[p.atoms[before].predicate].name < "new-axiom@" {
		before++
	}
	number := make([]int32, len(p.atoms)+len(p.universals))
	for i := range p.atoms {
		if number[i] = int32(i); number[i] >= before {
			number[i] += int32(len(p.universals))
		}
	}
	order := make([]int, len(p.universals))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &p.universals[i], &p.universals[j]
		return cmp.Or(strings.Compare(strconv.Itoa(a.number), strconv.Itoa(b.number)), slices.CompareFunc(a.args, b.args, func(x, y int32) int {
			return strings.Compare(p.l.objects[x].name, p.l.objects[y].name)
		}))
	})
	for rank, i := range order {
		number[len(p.atoms)+i] = before + int32(rank)
	}
	return number
}

// renumbered puts literals over other numbers, ascending. That a universal condition holds is, for the translator, that
// the atom of its exceptions does not.
func (p *Problem) renumbered(cs []code, number []int32) []code {
	out := make([]code, len(cs))
	for i, c := range cs {
		out[i] = code(number[c.atom()]<<1) | c&1
		if !p.isAtom(c) {
			out[i] = out[i].opposite()
		}
	}
	slices.Sort(out)
	return out
}

// prevail lists what an operator needs and does not change.
func (o *operator) prevail() []code {
	var kept []code
	for _, c := range o.needs {
		if !slices.ContainsFunc(o.changes, func(d change) bool { return d.to.atom() == c.atom() }) {
			kept = append(kept, c)
		}
	}
	return kept
}

// before is the value that an operator needs an atom to have: 0 true, 1 false, -1 any.
func (o *operator) before(atom int32) int {
	for _, c := range o.needs {
		if c.atom() == atom {
			return int(c & 1)
		}
	}
	return -1
}

// operatorIDs lists the operators by name, then by what they need and do.
func (p *Problem) operatorIDs() []int32 {
	names := make([]string, len(p.operators))
	ids := make([]int32, len(p.operators))
	for i := range ids {
		ids[i] = int32(i)
		names[i] = p.operatorName(i)
	}
	number := p.variables()
	prevail := func(o *operator) []code { return p.renumbered(o.prevail(), number) }
	effects := func(of, other *operator) int {
		return slices.CompareFunc(of.changes, other.changes, func(a, b change) int {
			return cmp.Or(
				cmp.Compare(a.to.atom(), b.to.atom()), cmp.Compare(of.before(a.to.atom()), other.before(b.to.atom())),
				cmp.Compare(a.to, b.to), slices.Compare(p.renumbered(a.when, number), p.renumbered(b.when, number)),
			)
		})
	}
	slices.SortStableFunc(ids, func(i, j int32) int {
		if c := strings.Compare(names[i], names[j]); c != 0 {
			return c
		}
		a, b := &p.operators[i], &p.operators[j]
		return cmp.Or(slices.Compare(prevail(a), prevail(b)), effects(a, b))
	})
	return ids
}

func (p *Problem) operatorName(i int) string {
	o := &p.operators[i]
	var b strings.Builder
	b.WriteString("(" + p.l.actions[o.action].name + " ")
	for k, object := range o.args {
		if k > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.l.objects[object].name)
	}
	b.WriteByte(')')
	return b.String()
}

// causes is the causal graph of the translator: how often a variable is a condition for a change of another. Variables
// have the numbers of Problem.variables.
type causes struct {
	to     [][]int32 // of each variable: those it bears on, ascending
	weight [][]int
	goal   map[int32]bool
}

// causalGraph counts. What an operator needs and changes counts once for each of its changes, what it only needs once.
func (p *Problem) causalGraph(ids []int32) *causes {
	number := p.variables()
	var edges []uint64
	edge := func(source, target int32) {
		if source != target {
			edges = append(edges, uint64(number[source])<<32|uint64(number[target]))
		}
	}
	var sources []int32
	for _, i := range ids {
		o := &p.operators[i]
		sources = sources[:0]
		for _, c := range o.needs {
			times := 0
			for _, d := range o.changes {
				if d.to.atom() == c.atom() {
					times++
				}
			}
			for range max(times, 1) {
				sources = append(sources, c.atom())
			}
		}
		for _, c := range o.changes {
			for _, s := range sources {
				edge(s, c.to.atom())
			}
			for _, w := range c.when {
				edge(w.atom(), c.to.atom())
			}
		}
	}
	for i := range p.universals {
		for _, rule := range p.universals[i].rules() {
			for _, c := range rule {
				edge(c.atom(), int32(len(p.atoms)+i))
			}
		}
	}
	slices.Sort(edges)
	g := &causes{to: make([][]int32, len(number)), weight: make([][]int, len(number)), goal: map[int32]bool{}}
	for i := 0; i < len(edges); {
		j := i
		for j < len(edges) && edges[j] == edges[i] {
			j++
		}
		source := edges[i] >> 32
		g.to[source] = append(g.to[source], int32(uint32(edges[i])))
		g.weight[source] = append(g.weight[source], j-i)
		i = j
	}
	if isPlain(&p.l.goal) {
		for _, c := range p.goals[0] {
			g.goal[number[c.atom()]] = true
		}
	}
	return g
}

// mostRules bounds how many rules of one universal condition are counted.
const mostRules = 1 << 10

// rules lists what the translator makes of a universal condition: the ways in which it fails, and those in which it does
// not; those that contradict themselves left out.
func (u *universal) rules() [][]code {
	fails := least(u.exceptions())
	holds := [][]code{nil}
	for _, way := range fails {
		var more [][]code
		for _, c := range way {
			for _, h := range holds {
				more = append(more, append(slices.Clone(h), c.opposite()))
			}
		}
		if holds = more; len(holds) > mostRules {
			holds = nil
			break
		}
	}
	return slices.DeleteFunc(slices.Concat(fails, least(holds)), func(way []code) bool {
		_, ok := tidy(slices.Clone(way))
		return !ok
	})
}

// exceptions lists the ways in which a ground condition fails; none if they are too many to count.
func (c *condition) exceptions() [][]code {
	switch c.is {
	case always:
		return nil
	case never:
		return [][]code{nil}
	case literalOf:
		return [][]code{{c.lit.opposite()}}
	case allOf:
		var ways [][]code
		for i := range c.parts {
			ways = append(ways, c.parts[i].exceptions()...)
		}
		return ways
	case anyOf:
		ways := [][]code{nil}
		for i := range c.parts {
			var more [][]code
			for _, way := range ways {
				for _, e := range c.parts[i].exceptions() {
					more = append(more, slices.Concat(way, e))
				}
			}
			if ways = more; len(ways) > mostRules {
				return nil
			}
		}
		return ways
	default:
		panic("pddl: a ground condition of no kind")
	}
}

// least leaves out of some conjunctions those that ask for all that another asks for; each is ascending then.
func least(ways [][]code) [][]code {
	var kept [][]code
	for i, way := range ways {
		slices.Sort(way)
		ways[i] = slices.Compact(way)
	}
	within := func(a, b []code) bool {
		return !slices.ContainsFunc(a, func(c code) bool { _, found := slices.BinarySearch(b, c); return !found })
	}
	if len(ways) > mostRules {
		return ways
	}
	for i, way := range ways {
		dominated := false
		for j, other := range ways {
			if i != j && within(other, way) && (len(other) < len(way) || j < i) {
				dominated = true
				break
			}
		}
		if !dominated {
			kept = append(kept, way)
		}
	}
	return kept
}

// variableOrder gives each atom and universal condition its place: components of the causal graph in topological order, within a component
// those first on which the least bears.
func (p *Problem) variableOrder(ids []int32) []int32 {
	g := p.causalGraph(ids)
	place := make([]int32, len(g.to))
	next := int32(0)
	for _, component := range g.components() {
		if len(component) > 1 {
			component = g.acyclic(component)
		}
		for _, v := range component {
			place[v] = next
			next++
		}
	}
	number := p.variables()
	ordered := make([]int32, len(place))
	for i, n := range number {
		ordered[i] = place[n]
	}
	return ordered
}

// components finds the strongly connected components (Tarjan), causes first.
func (g *causes) components() [][]int32 {
	n := len(g.to)
	index, low, at := make([]int32, n), make([]int32, n), make([]int32, n) // at: place on the stack + 1, 0 if not there
	var stack []int32
	var found [][]int32
	count := int32(0)
	type frame struct{ v, next int32 }
	for root := range int32(n) {
		if index[root] > 0 {
			continue
		}
		calls := []frame{{root, -1}}
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.next < 0 {
				count++
				index[v], low[v] = count, count
				stack = append(stack, v)
				at[v] = int32(len(stack))
				f.next = 0
			} else if f.next > 0 { // back from, or past, the edge before
				if w := g.to[v][f.next-1]; at[w] > 0 {
					low[v] = min(low[v], low[w])
				}
			}
			if int(f.next) < len(g.to[v]) {
				w := g.to[v][f.next]
				f.next++
				if index[w] == 0 {
					calls = append(calls, frame{w, -1})
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if low[v] == index[v] {
				component := slices.Clone(stack[at[v]-1:])
				stack = stack[:at[v]-1]
				for _, w := range component {
					at[w] = 0
				}
				found = append(found, component)
			}
		}
	}
	slices.Reverse(found)
	return found
}

// weights is a heap of numbers.
type weights []int

func (w weights) Len() int           { return len(w) }
func (w weights) Less(i, j int) bool { return w[i] < w[j] }
func (w weights) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *weights) Push(x any)        { *w = append(*w, x.(int)) }
func (w *weights) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	*w = (*w)[:last]
	return x
}

const goalWeight = 100000

// acyclic orders a component: again and again the variable with the least weight on it, whose own edges then count no
// more. Ties go to the one that got its weight first.
func (g *causes) acyclic(component []int32) []int32 {
	type edge struct {
		to     int32
		weight int
	}
	inside := map[int32]bool{}
	for _, v := range component {
		inside[v] = true
	}
	edges := map[int32][]edge{}
	incoming := map[int32]int{}
	for _, v := range component {
		for i, w := range g.to[v] {
			if !inside[w] {
				continue
			}
			cost := g.weight[v][i]
			if g.goal[w] {
				edges[v] = append(edges[v], edge{w, goalWeight + cost})
				incoming[w] += goalWeight + cost
			}
			edges[v] = append(edges[v], edge{w, cost})
			incoming[w] += cost
		}
	}
	waiting := map[int][]int32{}
	var keys weights
	put := func(weight int, v int32) {
		if _, ok := waiting[weight]; !ok {
			heap.Push(&keys, weight)
		}
		waiting[weight] = append(waiting[weight], v)
	}
	for _, v := range component {
		put(incoming[v], v)
	}
	done := map[int32]bool{}
	var order []int32
	for len(keys) > 0 {
		least := keys[0]
		entries := waiting[least]
		v := int32(-1)
		for len(entries) > 0 && (v < 0 || done[v] || least > incoming[v]) {
			v, entries = entries[0], entries[1:]
		}
		waiting[least] = entries
		if len(entries) == 0 {
			delete(waiting, least)
			heap.Pop(&keys)
		}
		if v < 0 || done[v] {
			continue
		}
		done[v] = true
		order = append(order, v)
		for _, e := range edges[v] {
			if weight := e.weight % goalWeight; !done[e.to] && weight > 0 {
				incoming[e.to] -= weight
				put(incoming[e.to], e.to)
			}
		}
	}
	return order
}
