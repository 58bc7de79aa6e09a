package tinker

import (
	"context"
	"errors"
	"fmt"
	"math"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// Check looks at what a throw-away model on the server learns from a step, and refuses a server that adds up otherwise
// than the table says of its dialect: the direction of a step would then be another one than was meant, and nothing would
// show it. Three such steps are looked at, each of a fresh model, all of one sequence that stands twice in the batch and is
// pulled both ways at one position; which way it goes tells the sum from other reductions.
//
//	advantages  counted positions   of the sum   else
//	+1   +0.2   1 and 1             up           0 where advantages are centred
//	+1   −1.5   1 and 4             down         up where each sequence counts by its mean
//	+1.5 −1     1 and 4             up           down where the correction for such means is out of place
//
// It also sees that a sampler scores what the trainer does, and, where the server tells the gradient's norm, that a sequence
// that stands twice counts twice. Divisors that are the same for all positions are not seen by the direction; they matter for
// clipping alone, which is refused where the norm is not told and the table does not say that it is the sum's.
func (c *Client) Check(ctx context.Context, o LearnerOptions) error {
	o.Unchecked = true
	if o.Context == 0 {
		if err := c.complete(ctx, &o); err != nil {
			return err
		}
	}
	for _, look := range []struct {
		about  string
		first  float32
		second float32
		counts int // positions of the second sequence
		up     bool
	}{
		{"advantages of one sign", 1, 0.2, 1, true},
		{"a sequence of more positions against one of fewer", 1, -1.5, 4, false},
		{"a sequence of fewer positions against one of more", 1.5, -1, 4, true},
	} {
		rise, _, err := c.look(ctx, o, looked(look.first, look.second, look.counts))
		switch {
		case err != nil:
			return err
		case !(math.Abs(rise) > least):
			return fmt.Errorf("%s: a step moved the log-probability by %.2g, so nothing can be told: does the model learn at all?", look.about, rise)
		case rise > 0 != look.up:
			return fmt.Errorf("%s: the log-probability went by %+.3g, the other way than a sum would: the server adds up in a way that is not that of dialect %s "+
				"(name the server's own dialect; if it is, this release of the server cannot be learnt with)", look.about, rise, c.options.Dialect)
		}
	}
	return c.twice(ctx, o)
}

// Of a look.
const (
	lookRate = 1e-2
	least    = 1e-4
	lookAt   = 6 // the position that is pulled
	// agreement is how far log-probabilities of sampler and trainer may be apart: servers compute in bfloat16.
	agreement = 0.2
	// normAgreement is how far a norm may be from the one expected, as a share.
	normAgreement = 0.1
)

// looked is a sequence twice, with an advantage each at one position, and further positions that count with 0.
func looked(first, second float32, counts int) []grpo.Datum {
	var out []grpo.Datum
	for _, a := range []float32{first, second} {
		d := grpo.Datum{
			IDs: []int32{11, 7, 5, 3, 13, 2, 17, 19, 23}, Stream: make([]grpo.Stream, 9), Weight: make([]float32, 9), Advantage: make([]float32, 9),
		}
		d.Weight[lookAt], d.Advantage[lookAt], d.Stream[lookAt] = 1, a, grpo.Action
		if len(out) == 1 {
			for t := 1; t < counts; t++ {
				d.Weight[t] = 1
			}
		}
		out = append(out, d)
	}
	return out
}

// look takes one step of a fresh model and tells how far the log-probability rose, and the norm of the gradient.
func (c *Client) look(ctx context.Context, o LearnerOptions, batch []grpo.Datum) (rise, norm float64, err error) {
	l := &Learner{client: c, options: o}
	if err := l.create(ctx); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) }()
	score := func() (float64, error) {
		sampler, err := l.sampler(ctx)
		if err != nil {
			return 0, err
		}
		rows, err := sampler.Score(ctx, [][]int32{batch[0].IDs})
		if err != nil {
			return 0, err
		}
		return float64(rows[0][lookAt]), nil
	}
	before, err := score()
	if err != nil {
		return 0, 0, err
	}
	if !o.OnePass {
		trained, err := l.logProbs(ctx, batch[:1])
		if err != nil {
			return 0, 0, err
		}
		if d := math.Abs(float64(trained[0][lookAt]) - before); !(d <= agreement) {
			return 0, 0, fmt.Errorf("the sampler gives an id log-probability %.3g, the trainer %.3g: are they of the same weights?", before, trained[0][lookAt])
		}
	}
	for i := range batch {
		batch[i].LogProb = make([]float32, len(batch[i].IDs))
		batch[i].LogProb[lookAt] = float32(before)
	}
	s, err := l.update(ctx, batch, policy.Optim{Loss: grpo.Loss{Kind: grpo.PolicyGradient}, Rate: lookRate, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-12})
	if err != nil {
		return 0, 0, err
	}
	l.version++
	after, err := score()
	return after - before, s.GradNorm, err
}

// twice sees that a sequence that stands twice has twice the gradient, where the server tells the norm.
func (c *Client) twice(ctx context.Context, o LearnerOptions) error {
	_, one, err := c.look(ctx, o, looked(1, 1, 1)[:1])
	if err != nil || math.IsNaN(one) {
		return err
	}
	_, two, err := c.look(ctx, o, looked(1, 1, 1))
	if err == nil && !(math.Abs(two/(2*one)-1) <= normAgreement) {
		err = fmt.Errorf("a sequence that stands twice has a gradient of norm %.3g, %.3g was expected: the server divides by something that dialect %s does not know of",
			two, 2*one, c.options.Dialect)
	}
	return err
}
