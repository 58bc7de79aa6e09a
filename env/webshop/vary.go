package webshop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"skillmaster/env"
	"skillmaster/episode"
)

var _ env.Varier = (*Suite)(nil)

// variationMark parts the id of a task from the seed of a variation.
const variationMark = "~"

// Vary implements env.Varier: the same goal in a shop where some products, never the goal's own, are sold out, so that
// searches do not find them, and where products have other ASINs, so that nobody can know those by heart. The id says how to
// make it again.
func (s *Suite) Vary(t episode.Task, seed episode.Seed) (episode.Task, error) {
	if _, err := s.Goal(t.ID); err != nil {
		return episode.Task{}, fmt.Errorf("vary task %s: %w", t.ID, err)
	}
	base, _, _ := strings.Cut(t.ID, variationMark)
	t.ID = base + variationMark + strconv.FormatUint(uint64(seed), 16)
	return t, nil
}

// cutVariation parts the id of a task from what is varied in it.
func cutVariation(id string) (base string, v variation, err error) {
	base, text, varied := strings.Cut(id, variationMark)
	if !varied {
		return id, variation{}, nil
	}
	seed, err := strconv.ParseUint(text, 16, 64)
	if err != nil || strconv.FormatUint(seed, 16) != text {
		return "", variation{}, fmt.Errorf("%w: %q does not end in the seed of a variation", ErrNoGoal, id)
	}
	return base, newVariation(episode.Seed(seed)), nil
}

// variation tells what is varied in a visit. The zero variation is nothing.
type variation struct {
	seed   uint64
	stock  float64 // share of the products that are not sold out
	varied bool
}

// newVariation draws how many of the hits of a ranked search are left: one as often as two or three, or as four to seven …,
// and at most all.
func newVariation(s episode.Seed) variation {
	r := s.Derive("webshop stock").Rand()
	return variation{uint64(s), math.Pow(mostHits, r.Float64()-1), true}
}

// of is chance that belongs to a product.
func (v variation) of(product int) *rand.Rand { return rand.New(rand.NewPCG(v.seed, uint64(product))) }

// without leaves out of hits what is sold out, but for the product to keep. It writes over hits.
func (v variation) without(hits []int32, keep int) []int32 {
	if !v.varied {
		return hits
	}
	left := hits[:0]
	for _, h := range hits {
		if int(h) == keep || v.of(int(h)).Float64() < v.stock {
			left = append(left, h)
		}
	}
	return left
}

// asin is what a product is called: its ASIN, or one put together of those of others, two characters from each, so that it
// looks like those of this shop.
func (v variation) asin(s *shelf, product int) string {
	own := s.asin(product)
	if !v.varied {
		return own
	}
	r := v.of(product)
	name := []byte(own)
	for i := 2; i+2 <= len(name); i += 2 {
		if other := s.asin(r.IntN(s.len())); len(other) >= i+2 {
			copy(name[i:i+2], other[i:])
		}
	}
	return string(name)
}
