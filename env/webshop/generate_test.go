package webshop

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var madeCatalogue = sync.OnceValues(func() (*Catalogue, error) {
	return Generate(context.Background(), GenerateOptions{Seed: 1})
})

// made is a generated catalogue of the usual size, made once for all tests.
func made(t testing.TB) *Catalogue {
	t.Helper()
	c, err := madeCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bestScore is the score of a product with its best options for a goal. A value serves goal options of any group, so
// that each group's best is chosen by all of them.
func bestScore(s *Shop, g Goal, product int) Score {
	var best Score
	p := s.Product(product)
	for n := range p.combinations() {
		if r := s.Score(g, product, p.combination(n)); r.Total >= best.Total {
			best = r
		}
	}
	return best
}

// TestGeneratedGoals checks the promises of a generated catalogue on every goal: its product wins, it is found, others
// of its query miss exactly one thing, and the router puts it where it belongs.
func TestGeneratedGoals(t *testing.T) {
	for _, human := range []bool{false, true} {
		s := newShop(t, made(t), GoalOptions{Human: human})
		found, looked, families := 0, 0, map[string]int{}
		byQuery := map[string][]int{}
		for i := range s.Len() {
			byQuery[s.product(i).Query] = append(byQuery[s.product(i).Query], i)
		}
		every := sparse(t, 1)
		for i := range s.Goals() {
			g := s.Goal(i)
			p := s.product(g.Product)
			families[FamilyOf(g.Instruction)]++
			if n := nodeOf(t, p.Query); n.family != FamilyOf(g.Instruction) {
				t.Errorf("%q is of family %s, want %s", g.Instruction, FamilyOf(g.Instruction), n.family)
			}
			if i%every > 0 {
				continue
			}
			looked++
			if !winsFor(s, g) {
				t.Errorf("goal %d, %q: its own product %+v does not win", i, g.Instruction, p)
			}
			if slices.Contains(s.answer(lower(g.Instruction), 0), int32(g.Product)) {
				found++
			}
			if !slices.Contains(s.answer(lower(p.Title), 0), int32(g.Product)) {
				t.Errorf("%s is not found by its title %q", p.ASIN, p.Title)
			}
			if i%distractorEvery != 0 {
				continue
			}
			if n := distractors(s, g, byQuery[p.Query]); n < 3 {
				t.Errorf("goal %d, %q: %d products of its query miss exactly one thing, want at least 3", i, g.Instruction, n)
			}
		}
		t.Logf("human %v: %d goals, of %d looked for %d found by their instruction, by family %v", human, s.Goals(), looked, found, families)
		if found*10 < looked*9 {
			t.Errorf("%d of %d goals find their product by their instruction", found, looked)
		}
		for _, f := range Families() {
			if n := families[f]; !human && (n < 60 || n > 250) {
				t.Errorf("%d goals of family %s, want 60 to 250", n, f)
			}
		}
	}
}

// distractorEvery so many goals are compared with all that is like their product, which takes the longest.
const distractorEvery = 11

// winsFor plays a goal as somebody who knows its product does, click by click.
func winsFor(s *Shop, g Goal) bool {
	p := s.product(g.Product)
	v := s.NewSession(g, 0)
	v.Act("search[" + p.Title + "]")
	if !v.Act("click[" + p.ASIN + "]") {
		return false
	}
	for _, o := range g.Options {
		if !v.Act("click[" + o.Value + "]") {
			return false
		}
	}
	v.Act("click[buy now]")
	score, bought := v.Bought()
	return bought && score.Reached()
}

// distractors counts products that are of the right kind and miss one thing.
func distractors(s *Shop, g Goal, products []int) (n int) {
	for _, i := range products {
		if r := bestScore(s, g, i); i != g.Product && r.Kind == 1 && r.Attributes+r.Options+map[bool]int{true: 1}[r.Affordable] == r.OfAttributes+r.OfOptions {
			n++
		}
	}
	return n
}

func nodeOf(t *testing.T, query string) node {
	t.Helper()
	for _, n := range generatorTables().nodes {
		if n.query == query {
			return n
		}
	}
	t.Fatalf("no node of query %q", query)
	return node{}
}

func TestGeneratedShape(t *testing.T) {
	c := made(t)
	asin := regexp.MustCompile(`^B0[0-9A-Z]{8}$`)
	var bare, blank, unpricedN, ranged, optioned, instructed, attributes, title int
	for i := range c.Len() {
		p := c.product(i)
		if !asin.MatchString(p.ASIN) {
			t.Errorf("ASIN %q", p.ASIN)
		}
		seen := map[string]bool{toSearch: true, toPrevious: true, description: true, features: true, reviews: true, buy: true}
		for _, g := range p.Options {
			optioned++
			for _, v := range g.Values {
				if seen[v] || v != lower(trim(v)) || strings.ContainsAny(v, "[]/\n") {
					t.Errorf("%s: option %q cannot be chosen alone", p.ASIN, v)
				}
				seen[v] = true
			}
		}
		text := lower(p.Title + " " + strings.Join(p.Bullets, " ") + " " + p.Description)
		for _, a := range p.Attributes {
			if !strings.Contains(text, a) {
				t.Errorf("%s does not show that it is %q", p.ASIN, a)
			}
		}
		for _, a := range nodeOf(t, p.Query).attributes {
			if !slices.Contains(p.Attributes, a.phrase) && matchAttributes([]string{a.phrase}, p) > 0 {
				t.Errorf("%s passes for %q: %q", p.ASIN, a.phrase, p.Attributes)
			}
		}
		if nouns := c.nounsOf(p); len(nouns) < 3 {
			t.Errorf("%q has nouns %q", p.Title, nouns)
		}
		bare += map[bool]int{true: 1}[p.Description == ""]
		blank += map[bool]int{true: 1}[slices.Contains(p.Bullets, "")]
		unpricedN += map[bool]int{true: 1}[p.Price.Low == unpriced && !p.Price.Ranged]
		ranged += map[bool]int{true: 1}[p.Price.Ranged]
		instructed += map[bool]int{true: 1}[p.Instruction != ""]
		attributes += len(p.Attributes)
		title += len(p.Title)
	}
	t.Logf("of %d: %d without a description, %d with an empty feature, %d without and %d with two prices, %d option groups, %d asked for, %d attributes, titles of %d characters",
		c.Len(), bare, blank, unpricedN, ranged, optioned, instructed, attributes, title/c.Len())
	for what, share := range map[string][3]float64{
		"without a description": {float64(bare), 0.25, 0.35}, "with an empty feature": {float64(blank), 0.04, 0.1}, "with two prices": {float64(ranged), 0.04, 0.12},
		"asked for": {float64(instructed), 0.3, 0.45},
	} {
		if got := share[0] / float64(c.Len()); got < share[1] || got > share[2] {
			t.Errorf("%v of the products are %s, want %v to %v", got, what, share[1], share[2])
		}
	}
}

func TestGeneratedIsRepeatable(t *testing.T) {
	a := generate(GenerateOptions{Seed: 9, Products: 120})
	b := generate(GenerateOptions{Seed: 9, Products: 120})
	if !reflect.DeepEqual(a, b) || len(a) != 120 {
		t.Error("two catalogues of one seed differ, or are not of the size asked for")
	}
	c := generate(GenerateOptions{Seed: 10, Products: 120})
	if reflect.DeepEqual(a, c) {
		t.Error("two seeds make the same catalogue")
	}
}

func TestSkewedCatalogue(t *testing.T) {
	products := generate(GenerateOptions{Products: 1000, Skewed: true})
	n := map[string]int{}
	for i := range products {
		n[nodeOf(t, products[i].Query).family]++
	}
	if n["apparel"] != 530 || n["beauty_health"] != 10 || len(products) != 1000 {
		t.Errorf("%d products, by family %v", len(products), n)
	}
}

// TestTables checks the generator's words: no two attributes of a node pass for each other, and a chosen value passes
// for itself in both kinds of goals.
func TestTables(t *testing.T) {
	tb := generatorTables()
	if len(tb.nodes) < 60 || len(tb.phrases["openings"]) < 30 {
		t.Errorf("%d nodes, %d openings", len(tb.nodes), len(tb.phrases["openings"]))
	}
	for _, n := range tb.nodes {
		if FamilyOf("find me "+n.query) != n.family {
			t.Errorf("%s: query %q is of family %s", n.family, n.query, FamilyOf("find me "+n.query))
		}
		for _, a := range n.heads {
			for _, b := range n.heads {
				if titleScore(Tagger{}.NounsOf("", a), Tagger{}.NounsOf("", b)) == 0 {
					t.Errorf("%s: a %q passes for another thing than a %q", n.query, a, b)
				}
			}
		}
		for i, a := range n.attributes {
			for j, b := range n.attributes {
				if i != j && (setRatio(a.phrase, b.phrase) > alike || strings.Contains(a.phrase, b.phrase)) {
					t.Errorf("%s: %q passes for %q", n.query, a.phrase, b.phrase)
				}
			}
		}
		for _, g := range n.groups {
			for _, v := range g.Values {
				for _, o := range []GoalOption{{g.Name, v}, {"", v}} {
					if matchOptions([]GoalOption{o}, []GoalOption{{g.Name, v}}) != 1 {
						t.Errorf("%s: choosing %q is not choosing %q", n.query, v, o)
					}
				}
			}
		}
	}
}
