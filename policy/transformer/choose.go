package transformer

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"skillmaster/policy"
	"skillmaster/policy/transformer/internal/simd"
)

func checkSampling(p policy.Sampling, vocab int) error {
	if err := p.Check(); err != nil {
		return err
	}
	for _, id := range p.Stop {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("stop id %d is outside the vocabulary of %d", id, vocab)
		}
	}
	return nil
}

// choices are the samples that Sampling.Allowed left, sorted: a trie, a node of which is a range of them. The zero
// choices are all samples.
type choices struct {
	left  [][]int32
	depth int // ids that all of left begin with
	next  []int32
}

func newChoices(p policy.Sampling, vocab int) (choices, error) {
	left, err := p.Choices()
	if err != nil {
		return choices{}, err
	}
	for i, ids := range left {
		for _, id := range ids {
			if id < 0 || int(id) >= vocab {
				return choices{}, fmt.Errorf("allowed samples have id %d, which is outside the vocabulary of %d", id, vocab)
			}
		}
		left[i] = slices.Clone(ids)
	}
	return choices{left: left}, nil
}

// ids are those that can come next, ascending.
func (c *choices) ids() []int32 {
	c.next = c.next[:0]
	for _, ids := range c.left {
		if id := ids[c.depth]; len(c.next) == 0 || c.next[len(c.next)-1] != id {
			c.next = append(c.next, id)
		}
	}
	return c.next
}

// take goes on to the choices that begin with id, one of ids.
func (c *choices) take(id int32) {
	first, _ := slices.BinarySearchFunc(c.left, id, func(ids []int32, id int32) int { return cmp.Compare(ids[c.depth], id) })
	end, _ := slices.BinarySearchFunc(c.left, id+1, func(ids []int32, id int32) int { return cmp.Compare(ids[c.depth], id) })
	c.left = c.left[first:end]
	c.depth++
}

// made reports whether one of them is complete.
func (c *choices) made() bool { return len(c.left) == 1 && c.depth == len(c.left[0]) }

// chooser chooses ids from logits. It holds scratch only.
type chooser struct {
	e, tempered, allowed []float32
	candidates           []candidate
}

type candidate struct {
	id int32
	p  float32
}

// choose returns an id drawn from logits z as p asks, and its log-probability at temperature 1 among all ids. As in
// Hugging Face and vLLM, temperature comes first, then top-k, then top-p over what top-k left. Of equal ids the lower
// comes first. One number is drawn from r for each id, none at temperature 0.
func (c *chooser) choose(z []float32, p policy.Sampling, r *rand.Rand) (int32, float32, error) {
	e := room(&c.e, len(z))
	q := exponentiate(e, z)
	if err := q.check(); err != nil {
		return 0, 0, err
	}
	var id int32
	switch {
	case p.Temperature == 0:
		id = int32(slices.Index(z, q.most))
	case p.TopK == 0 && (p.TopP == 0 || p.TopP == 1):
		id = draw(c.temper(z, e, q.most, p.Temperature), r.Float64())
	default:
		id = c.drawFromBest(c.temper(z, e, q.most, p.Temperature), p, r.Float64())
	}
	return id, float32(q.logProb(z[id])), nil
}

// chooseAmong is choose among some ids, ascending: the id, its log-probability at temperature 1 among all ids, and that
// among the given ones.
func (c *chooser) chooseAmong(z []float32, ids []int32, p policy.Sampling, r *rand.Rand) (id int32, free, among float32, err error) {
	q := exponentiate(room(&c.e, len(z)), z)
	if err := q.check(); err != nil {
		return 0, 0, 0, err
	}
	allowed := room(&c.allowed, len(ids))
	for i, id := range ids {
		allowed[i] = z[id]
	}
	i, among, err := c.choose(allowed, p, r)
	if err != nil {
		return 0, 0, 0, err
	}
	return ids[i], float32(q.logProb(z[ids[i]])), among, nil
}

// check reports logits of which nothing can be drawn.
func (d distribution) check() error {
	if math.IsNaN(d.logSum) || math.IsInf(d.logSum, 0) || math.IsInf(float64(d.most), 0) {
		return fmt.Errorf("logits are not finite: largest %v, log Σ exp %v", d.most, d.logSum)
	}
	return nil
}

// temper returns exp((z − max z)/temperature), given e, those at temperature 1.
func (c *chooser) temper(z, e []float32, most float32, temperature float64) []float32 {
	if temperature == 1 {
		return e
	}
	t := room(&c.tempered, len(z))
	inverse := float32(min(1/temperature, math.MaxFloat32))
	for i, v := range z {
		t[i] = (v - most) * inverse
	}
	simd.ExpSum(t, 0)
	return t
}

// drawBlock is how many weights draw sums at a time.
const drawBlock = 64

// draw returns i with probability weights[i]/Σ weights, given u from [0,1).
func draw(weights []float32, u float64) int32 {
	var total float64
	for i := 0; i < len(weights); i += drawBlock {
		total += sum(weights[i:min(i+drawBlock, len(weights))])
	}
	left, last := u*total, 0
	for i := 0; i < len(weights); i += drawBlock {
		block := weights[i:min(i+drawBlock, len(weights))]
		if s := sum(block); left >= s {
			left -= s
			continue
		}
		for j, w := range block {
			if w == 0 {
				continue
			}
			last = i + j
			if left < float64(w) {
				return int32(last)
			}
			left -= float64(w)
		}
	}
	return int32(max(last, lastPositive(weights, last))) // rounding used up the sum
}

// lastPositive returns the last index with a positive weight at or after from.
func lastPositive(weights []float32, from int) int {
	for i := len(weights) - 1; i > from; i-- {
		if weights[i] > 0 {
			return i
		}
	}
	return from
}

// sum adds in float64 in four chains, which is as fast as the machine adds.
func sum(x []float32) float64 {
	var a, b, c, d float64
	for len(x) >= 4 {
		a += float64(x[0])
		b += float64(x[1])
		c += float64(x[2])
		d += float64(x[3])
		x = x[4:]
	}
	for _, v := range x {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

// drawFromBest draws among the ids that top-k and top-p leave.
func (c *chooser) drawFromBest(weights []float32, p policy.Sampling, u float64) int32 {
	least := float32(0)
	if p.TopK == 0 {
		// With every id below this weight gone, more than TopP is left, so none of them is in the nucleus.
		least = float32((1 - p.TopP) * sum(weights) / float64(len(weights)) * (1 - 1e-6))
	}
	best := c.candidates[:0]
	for i, w := range weights {
		if w > 0 && w >= least {
			best = append(best, candidate{int32(i), w})
		}
	}
	c.candidates = best
	slices.SortFunc(best, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.id, b.id)) })
	if p.TopK > 0 && p.TopK < len(best) {
		best = best[:p.TopK]
	}
	var total float64
	if p.TopK == 0 {
		total = sum(weights)
	} else {
		total = mass(best)
	}
	if p.TopP > 0 && p.TopP < 1 {
		best = nucleus(best, p.TopP*total)
	}
	left := u * mass(best)
	for _, b := range best {
		if left < float64(b.p) {
			return b.id
		}
		left -= float64(b.p)
	}
	return best[len(best)-1].id
}

func mass(best []candidate) float64 {
	var s float64
	for _, b := range best {
		s += float64(b.p)
	}
	return s
}

// nucleus returns the fewest of the best that hold a mass.
func nucleus(best []candidate, enough float64) []candidate {
	var s float64
	for i, b := range best {
		if s += float64(b.p); s >= enough {
			return best[:i+1]
		}
	}
	return best
}
