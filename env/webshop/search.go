package webshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"skillmaster/bm25"
	"skillmaster/episode"
)

// mostHits of a ranked search are shown; searches for a category or a query show all that there are.
const mostHits = 50

// ranking finds products by how well they match a query.
type ranking struct {
	index *bm25.Index
	order []int32 // products by ASIN, which is how equal scores are ordered: what the index calls document 0, 1, …
}

// search returns at most k products, the best first.
func (r *ranking) search(query string, k int) []int32 {
	found := r.index.Search(query, k)
	hits := make([]int32, len(found))
	for i, h := range found {
		hits[i] = r.order[h.Document]
	}
	return hits
}

// newRanking indexes products. With a path the index is read from that file, or put there if there is none yet; a file
// that is damaged or the index of other products is an error.
func newRanking(ctx context.Context, products []Product, path string) (*ranking, error) {
	r := &ranking{order: make([]int32, len(products))}
	for i := range r.order {
		r.order[i] = int32(i)
	}
	slices.SortFunc(r.order, func(a, b int32) int { return strings.Compare(products[a].ASIN, products[b].ASIN) })
	contents := func(yield func(string) bool) {
		for _, i := range r.order {
			if !yield(products[i].contents()) {
				return
			}
		}
	}
	var err error
	if path != "" {
		r.index, err = bm25.Open(path, bm25.Hash(contents))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			if errors.Is(err, bm25.ErrOther) || errors.Is(err, bm25.ErrDamaged) {
				err = fmt.Errorf("%w (delete it to have it made anew, or name another)", err)
			}
			return r, err
		}
	}
	if r.index, err = bm25.Build(ctx, contents, runtime.GOMAXPROCS(0)); err == nil && path != "" {
		err = r.index.WriteFile(path)
	}
	return r, err
}

// find answers a search of a session. The first word may make it a special one: <r> draws 50 products, <c> finds a
// category, <q> a query and <a> an attribute. The original draws anew for every page; here the draw is settled by the
// query and the seed of the session, so that pages of one search go together. It fails at an <a>, and at a <c> of
// nothing, which are answered here.
func (c *Catalogue) find(query string, seed episode.Seed) []int32 {
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
		return c.filter(func(p *Product) bool { return p.Category == trim(category) })
	case "<q>":
		return c.filter(func(p *Product) bool { return p.Query == trim(rest) })
	case "<a>":
		return c.filter(func(p *Product) bool { return slices.Contains(p.Attributes, trim(rest)) })
	default:
		return c.ranked.search(query, mostHits)
	}
}

// filter lists the products that are as asked, in the order of the file.
func (c *Catalogue) filter(is func(p *Product) bool) []int32 {
	var hits []int32
	for i := range c.products {
		if is(&c.products[i]) {
			hits = append(hits, int32(i))
		}
	}
	return hits
}
