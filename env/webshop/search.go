package webshop

import (
	"slices"
	"strings"

	"skillmaster/episode"
)

// mostHits of a ranked search are shown; searches for a category or a query show all that there are.
const mostHits = 50

// search returns at most k products, the best first.
func (c *Catalogue) search(query string, k int) []int32 {
	found := c.index.Search(query, k)
	hits := make([]int32, len(found))
	for i, h := range found {
		hits[i] = c.byASIN(h.Document)
	}
	return hits
}

// answer answers a search of a session. The first word may make it a special one: <r> draws 50 products, <c> finds a
// category, <q> a query and <a> an attribute. The original draws anew for every page; here the draw is settled by the
// query and the seed of the session, so that pages of one search go together. It fails at an <a>, and at a <c> of
// nothing, which are answered here.
func (c *Catalogue) answer(query string, seed episode.Seed) []int32 {
	word, rest, _ := strings.Cut(query, " ")
	switch word {
	case "<r>":
		r := seed.Derive("webshop results of " + query).Rand()
		hits := make([]int32, min(mostHits, c.Len()))
		for i, p := range r.Perm(c.Len())[:len(hits)] {
			hits[i] = int32(p)
		}
		return hits
	case "<c>":
		category, _, _ := strings.Cut(rest, " ")
		return c.ofCategory(trim(category))
	case "<q>":
		return c.ofQuery(trim(rest))
	case "<a>":
		return c.filter(func(i int) bool { return c.hasAttribute(i, trim(rest)) })
	default:
		return c.search(query, mostHits)
	}
}

// ofCategory and ofQuery list the products of a category or a query.
func (c *Catalogue) ofCategory(category string) []int32 {
	n := slices.Index(c.categories, category)
	return c.filter(func(i int) bool { return int(c.row(i).category) == n })
}

func (c *Catalogue) ofQuery(query string) []int32 {
	n := slices.Index(c.queries, query)
	return c.filter(func(i int) bool { return int(c.row(i).query) == n })
}

// filter lists the products that are as asked, in the order of the file.
func (c *Catalogue) filter(is func(i int) bool) []int32 {
	var hits []int32
	for i := range c.len() {
		if is(i) {
			hits = append(hits, int32(i))
		}
	}
	return hits
}
