package webshop

import (
	_ "embed" // the colour words
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Score is what buying a product with some options is worth for a goal.
type Score struct {
	// Total is Kind·(Attributes + Options + price) / (|goal attributes| + |goal options| + 1), from 0 to 1. The goal is
	// reached if it is exactly 1.
	Total float64
	// Kind is 1 for a product of the kind that was asked for: found by the same query, in a like category, or with a
	// title that shares more than a fifth of the goal's nouns; else 0.5. It is 0.1 below a tenth of the nouns and 0
	// with none, whatever query and category say.
	Kind         float64
	SameQuery    bool
	LikeCategory bool
	Title        float64 // share of the goal's nouns that the title has
	Attributes   int     // of the goal that the product has
	Options      int     // of the goal that were chosen
	Affordable   bool
	OfAttributes int // that the goal has
	OfOptions    int
}

// Reached tells whether the goal is reached.
func (s Score) Reached() bool { return s.Total == 1 }

// parts is the number of things that Total counts.
func (s Score) parts() float64 { return float64(s.OfAttributes + s.OfOptions + 1) }

// Score judges the purchase of a product.
func (s *Shop) Score(g Goal, product int, chosen []GoalOption) Score {
	p, wanted := s.product(product), s.product(g.Product)
	r := Score{
		SameQuery: p.Query == wanted.Query, LikeCategory: likePaths(p.Path, wanted.Path),
		Attributes: matchAttributes(g.Attributes, p), OfAttributes: len(g.Attributes),
		Options: matchOptions(g.Options, chosen), OfOptions: len(g.Options),
		Affordable: s.price(product) <= g.Most,
	}
	r.Title = titleScore(s.nounsOf(p), s.nounsOf(wanted))
	r.Kind = kindScore(r.SameQuery || r.LikeCategory, r.Title)
	r.Total = r.total()
	return r
}

func (s Score) total() float64 {
	counted := float64(s.Attributes + s.Options)
	if s.Affordable {
		counted++
	}
	return counted / s.parts() * s.Kind
}

func kindScore(related bool, title float64) float64 {
	switch {
	case title == 0:
		return 0
	case title < 0.1:
		return 0.1
	case related || title > 0.2:
		return 1
	default:
		return 0.5
	}
}

// likePaths tells whether two paths have at least two steps in common.
func likePaths(a, b string) bool {
	steps := func(path string) map[string]bool {
		set := map[string]bool{}
		for s := range strings.SplitSeq(path, strings.TrimSpace(pathMark)) {
			set[trim(s)] = true
		}
		return set
	}
	inA, n := steps(a), 0
	for s := range steps(b) {
		if inA[s] {
			n++
		}
	}
	return n >= 2
}

// titleScore is the number of different nouns that both titles have, over the number of the goal's, repeats included;
// 0.2 if the goal's title has none.
func titleScore(product, goal []string) float64 {
	if len(goal) == 0 {
		return 0.2
	}
	both := map[string]bool{}
	for _, n := range goal {
		if slices.Contains(product, n) {
			both[n] = true
		}
	}
	return float64(len(both)) / float64(len(goal))
}

// alike is the ratio above which two texts count as the same.
const alike = 85

// matchAttributes counts the goal's attributes that the product has, in its list or in its texts.
func matchAttributes(goal []string, p *Product) int {
	title, bullets, description := lower(p.Title), lower(strings.Join(p.Bullets, " ")), lower(p.Description)
	n := 0
	for _, a := range goal {
		if slices.ContainsFunc(p.Attributes, func(has string) bool { return setRatio(has, a) > alike }) ||
			strings.Contains(title, a) || strings.Contains(bullets, a) || strings.Contains(description, a) {
			n++
		}
	}
	return n
}

// matchOptions counts the goal's options that were chosen. A chosen value may serve several of them, whatever its group.
func matchOptions(goal, chosen []GoalOption) int {
	n := 0
	for _, o := range goal {
		want := o.compared()
		if slices.ContainsFunc(chosen, func(c GoalOption) bool { return setRatio(colourOf(c.Value), want) > alike }) {
			n++
		}
	}
	return n
}

// compared is the text that a chosen value must be like. With a group, the original compares the pair: the first colour
// word that is its name or its value, whole; else both, as Python prints a pair.
func (o GoalOption) compared() string {
	if o.Group == "" {
		return colourOf(o.Value)
	}
	for _, c := range colours {
		if c == o.Group || c == o.Value {
			return c
		}
	}
	return printed(o.Group) + " " + printed(o.Value)
}

// printed is a text as Python's repr shows it, without the quotes.
func printed(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

//go:embed tables/colours.txt
var coloursText string

// colours are the words that stand for a whole option, sorted.
var colours = strings.Fields(coloursText)

// colourOf is the first colour word in a text, be it a part of a word; the text if there is none.
func colourOf(text string) string {
	for _, c := range colours {
		if strings.Contains(text, c) {
			return c
		}
	}
	return text
}
