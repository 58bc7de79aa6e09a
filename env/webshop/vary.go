package webshop

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"skillmaster/env"
	"skillmaster/episode"
)

var _ env.Varier = (*Suite)(nil)

// variationMark parts the id of a task from the seed of a variation.
const variationMark = "~"

// Vary implements env.Varier: the same goal in a shop where some products, never the goal's own, are sold out: searches do
// not find them. The id says how to make it again.
func (s *Suite) Vary(t episode.Task, seed episode.Seed) (episode.Task, error) {
	if _, err := s.Goal(t.ID); err != nil {
		return episode.Task{}, fmt.Errorf("vary task %s: %w", t.ID, err)
	}
	base, _, _ := strings.Cut(t.ID, variationMark)
	t.ID = base + variationMark + strconv.FormatUint(uint64(seed), 16)
	return t, nil
}

// cutVariation parts the id of a task from what is sold out in it.
func cutVariation(id string) (base string, a away, err error) {
	base, text, varied := strings.Cut(id, variationMark)
	if !varied {
		return id, away{}, nil
	}
	seed, err := strconv.ParseUint(text, 16, 64)
	if err != nil || strconv.FormatUint(seed, 16) != text {
		return "", away{}, fmt.Errorf("%w: %q does not end in the seed of a variation", ErrNoGoal, id)
	}
	return base, newAway(episode.Seed(seed)), nil
}

// away tells which products are sold out in a visit. The zero away is none.
type away struct {
	seed  uint64
	share float64 // of the products
}

// mostAway is the largest share of products that are sold out in a variation.
const mostAway = 0.6

func newAway(s episode.Seed) away {
	return away{uint64(s), mostAway * s.Derive("webshop share that is sold out").Rand().Float64()}
}

// without leaves out of hits what is sold out, but for the product to keep. It writes over hits.
func (a away) without(hits []int32, keep int) []int32 {
	if a.share == 0 {
		return hits
	}
	left := hits[:0]
	for _, h := range hits {
		if int(h) == keep || rand.New(rand.NewPCG(a.seed, uint64(h))).Float64() >= a.share {
			left = append(left, h)
		}
	}
	return left
}
