package transformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/policy/transformer/internal/simd"
)

// LearnerOptions say how a Learner uses the machine. The zero value is useful.
type LearnerOptions struct {
	Workers int // goroutines of an update; 0: GOMAXPROCS. They do not change the results
	// Lanes is the number of gradients that are summed apart, then added in order; at most so many workers are busy. A
	// batch is split over the lanes by length alone. Other lanes give other rounding; 0: 4.
	Lanes int
	// Recompute keeps the input of each layer alone for the backward pass, which computes the rest again: the same results
	// in less memory (see Config.ActivationBytes) and about a third more time.
	Recompute bool
	Precision Precision      // of the products with weights; weights, gradients and moments are float32
	Sampler   SamplerOptions // of the samplers it gives out, but for Precision, which is the learner's
}

// Learner improves a model. It implements policy.Learner and is not safe for concurrent use.
type Learner struct {
	model   *Model
	options LearnerOptions
	trained *layout   // what is trained: the model, or its adapter
	means   []float32 // AdamW's moments, laid out as trained
	squares []float32
	step    int // updates so far; the model's version may be ahead of it if it was made from another's weights

	weights *weights
	stale   bool        // weights are not those of the model
	lanes   [][]float32 // gradients, laid out as trained
	passes  []*pass     // one for each worker
	pieces  []piece
}

var _ policy.Learner = (*Learner)(nil)

// piece is a part of a tensor that one worker steps at a time.
type piece struct {
	span
	decays bool
	tensor int
}

// pieceSize bounds a piece so that its parameters, moments and gradient stay in a core's cache.
const pieceSize = 1 << 15

// NewLearner makes a learner of the model, which is its own from then on. It trains the model's adapter alone if there is
// one.
func NewLearner(m *Model, o LearnerOptions) *Learner {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Lanes <= 0 {
		o.Lanes = 4
	}
	if m.adapter == nil {
		m.thaw()
	}
	y, _ := m.trained()
	l := &Learner{
		model: m, options: o, trained: y, weights: newWeights(m, o.Precision), stale: true,
		means: make([]float32, y.size), squares: make([]float32, y.size),
	}
	for i, t := range y.tensors {
		for at := 0; at < t.size; at += pieceSize {
			l.pieces = append(l.pieces, piece{span{t.at + at, min(pieceSize, t.size-at)}, t.decays(), i})
		}
	}
	return l
}

// Model returns the model being trained, to be read between updates.
func (l *Learner) Model() *Model { return l.model }

// Update takes one step of AdamW on Σ weight·loss over the batch; the weights are to hold the divisor of the mean.
// Besides what policy.Learner says: sequences may have any length up to the context; the vocabulary product is made at
// positions with weight only; a batch without such a position is an error. After any error, cancellation included, the
// learner is as it was.
func (l *Learner) Update(ctx context.Context, batch []grpo.Datum, o policy.Optim) (policy.Stats, error) {
	if err := errors.Join(checkOptim(o), l.checkBatch(batch)); err != nil {
		return policy.Stats{}, err
	}
	l.prepare()
	gradient, sum, err := l.gradient(ctx, batch, o.Loss)
	if err != nil {
		return policy.Stats{}, err
	}
	norm, err := l.norm(gradient)
	if err != nil {
		return policy.Stats{}, err
	}
	if o.Restart {
		clear(l.means)
		clear(l.squares)
		l.step = 0
	}
	l.apply(gradient, norm, o)
	stats := sum.stats()
	stats.GradNorm = norm
	for _, d := range batch {
		stats.Tokens += len(d.IDs)
	}
	return stats, nil
}

// stats are the means of a tally; NaN where there was nothing to average.
func (s tally) stats() policy.Stats {
	n := float64(s.trained)
	return policy.Stats{
		Loss: s.loss, Entropy: s.entropy / n, KL: s.kl / float64(s.referred), Drift: s.drift / float64(s.timed),
		ClipShare: float64(s.clipped) / n, Trained: s.trained,
	}
}

func checkOptim(o policy.Optim) error {
	if err := o.Loss.Check(); err != nil {
		return err
	}
	for _, f := range []struct {
		name      string
		v, lo, hi float64
	}{
		{"learning rate", o.Rate, 0, math.MaxFloat32},
		{"beta1", o.Beta1, 0, 1},
		{"beta2", o.Beta2, 0, 1},
		{"epsilon", o.Epsilon, 0, math.MaxFloat32},
		{"weight decay", o.WeightDecay, 0, math.MaxFloat32},
		{"clip", o.Clip, 0, math.MaxFloat32},
	} {
		if !(f.v >= f.lo && f.v <= f.hi) {
			return fmt.Errorf("optimiser has a %s of %v, outside [%g, %g]", f.name, f.v, f.lo, f.hi)
		}
	}
	if o.Beta1 == 1 || o.Beta2 == 1 {
		return fmt.Errorf("optimiser has betas of %v and %v; they must be below 1", o.Beta1, o.Beta2)
	}
	if float32(o.Epsilon) == 0 {
		return fmt.Errorf("optimiser has an epsilon of %v; it must be above 0 (1e-8 is usual)", o.Epsilon)
	}
	return nil
}

func (l *Learner) checkBatch(batch []grpo.Datum) error {
	trained := 0
	for i, d := range batch {
		if err := d.Check(); err != nil {
			return fmt.Errorf("datum %d: %w", i, err)
		}
		if err := l.model.config.checkIDs(d.IDs); err != nil {
			return fmt.Errorf("datum %d: %w", i, err)
		}
		for _, w := range d.Weight {
			if w != 0 {
				trained++
			}
		}
	}
	if trained == 0 {
		return fmt.Errorf("batch of %d datums has no position with weight", len(batch))
	}
	return nil
}

// checkIDs reports a sequence that is too long or has an id outside the vocabulary.
func (c Config) checkIDs(ids []int32) error {
	if len(ids) > c.Context {
		return fmt.Errorf("sequence has %d ids, the model's context is %d", len(ids), c.Context)
	}
	for t, id := range ids {
		if id < 0 || int(id) >= c.Vocab {
			return fmt.Errorf("id %d at position %d is outside the vocabulary of %d", id, t, c.Vocab)
		}
	}
	return nil
}

// prepare packs the weights if they changed.
func (l *Learner) prepare() {
	if !l.stale {
		return
	}
	l.stale = false
	forms := []func(*linear, []float32){(*linear).pack, (*linear).packBackward}
	if a := l.model.adapter; a != nil {
		for _, form := range forms {
			l.weights.packAdapter(a, form, l.options.Workers)
		}
		return
	}
	l.weights.alias(l.model)
	for _, form := range forms {
		l.weights.pack(l.model, form, l.options.Workers)
	}
}

// gradient returns the summed gradient of the batch, in the first lane's memory, and its tally.
func (l *Learner) gradient(ctx context.Context, batch []grpo.Datum, loss grpo.Loss) ([]float32, tally, error) {
	lanes := split(batch, l.options.Lanes)
	for len(l.lanes) < len(lanes) {
		l.lanes = append(l.lanes, make([]float32, l.trained.size))
	}
	for len(l.passes) < min(l.options.Workers, len(lanes)) {
		l.passes = append(l.passes, newPass(l.weights, l.options.Recompute))
	}
	tallies, errs := make([]tally, len(batch)), make([]error, len(batch))
	parallel(l.options.Workers, len(lanes), func(worker, lane int) {
		clear(l.lanes[lane])
		for _, i := range lanes[lane] {
			tallies[i], errs[i] = l.sequence(ctx, l.passes[worker], batch[i], loss, l.lanes[lane])
			if errs[i] != nil {
				return
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, tally{}, err
	}
	var sum tally
	for i := range batch {
		if errs[i] != nil {
			return nil, tally{}, fmt.Errorf("datum %d: %w", i, errs[i])
		}
		sum.add(tallies[i])
	}
	l.reduce(len(lanes))
	return l.lanes[0], sum, nil
}

// split assigns a batch to lanes: the longest sequence first, each to the lane with the fewest ids so far. The indices in
// a lane rise.
func split(batch []grpo.Datum, lanes int) [][]int {
	lanes = min(lanes, len(batch))
	order := make([]int, len(batch))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(batch[b].IDs), len(batch[a].IDs)) })
	out, load := make([][]int, lanes), make([]int, lanes)
	for _, i := range order {
		to := slices.Index(load, slices.Min(load))
		out[to] = append(out[to], i)
		load[to] += len(batch[i].IDs)
	}
	for _, lane := range out {
		slices.Sort(lane)
	}
	return out
}

// sequence adds one datum's gradient to grad.
func (l *Learner) sequence(ctx context.Context, p *pass, d grpo.Datum, loss grpo.Loss, grad []float32) (tally, error) {
	if err := ctx.Err(); err != nil {
		return tally{}, err
	}
	p.forward(d.IDs)
	s, live, err := p.learn(ctx, d, loss, l.trained, grad)
	if err != nil {
		return s, p.blame(err, len(d.IDs))
	}
	if math.IsNaN(s.loss) || math.IsInf(s.loss, 0) {
		return s, fmt.Errorf("loss is %v", s.loss)
	}
	if live {
		p.backward(d.IDs, l.trained, grad)
	}
	return s, nil
}

// blame adds to an error of the head which layer's numbers are the first that are not finite.
func (p *pass) blame(err error, n int) error {
	for i := range p.layers {
		a := p.again(i, n)
		for _, part := range []struct {
			name string
			m    matrix
		}{{"input", a.x}, {"attention", a.mixed}, {"feed-forward", a.act}} {
			for t := range n {
				if s := simd.SumSquares(part.m.row(t)); math.IsNaN(s) || math.IsInf(s, 0) {
					return fmt.Errorf("%w (layer %d: %s is not finite at position %d)", err, i, part.name, t)
				}
			}
		}
	}
	return fmt.Errorf("%w (the head, or the last layer's output)", err)
}

// reduce adds the lanes to the first, in order.
func (l *Learner) reduce(lanes int) {
	parallel(l.options.Workers, len(l.pieces), func(_, i int) {
		for _, lane := range l.lanes[1:lanes] {
			simd.Add(l.pieces[i].of(l.lanes[0]), l.pieces[i].of(lane))
		}
	})
}

// maxNorm is where AdamW's second moment would overflow.
const maxNorm = 1e19

// norm returns the gradient's Euclidean norm, or an error that names the first tensor whose gradient is not finite.
func (l *Learner) norm(gradient []float32) (float64, error) {
	squares := make([]float64, len(l.pieces))
	parallel(l.options.Workers, len(l.pieces), func(_, i int) {
		squares[i] = simd.SumSquares(l.pieces[i].of(gradient))
	})
	var sum float64
	for i, s := range squares {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return 0, fmt.Errorf("gradient of %s is not finite", l.trained.tensors[l.pieces[i].tensor].name)
		}
		sum += s
	}
	norm := math.Sqrt(sum)
	if norm > maxNorm {
		return 0, fmt.Errorf("gradient norm is %g, its square is too large for float32", norm)
	}
	return norm, nil
}

// apply takes one optimiser step along a gradient of the given norm.
func (l *Learner) apply(gradient []float32, norm float64, o policy.Optim) {
	l.step++
	l.model.version++
	l.stale = true
	shrink := float32(1)
	if o.Clip > 0 && norm > o.Clip {
		shrink = float32(o.Clip / norm)
	}
	plain := simd.NewAdamWCoefficients(o.Rate, o.Beta1, o.Beta2, o.Epsilon, 0, l.step)
	decayed := simd.NewAdamWCoefficients(o.Rate, o.Beta1, o.Beta2, o.Epsilon, o.WeightDecay, l.step)
	_, values := l.model.trained()
	parallel(l.options.Workers, len(l.pieces), func(_, i int) {
		p, g, c := l.pieces[i], l.pieces[i].of(gradient), plain
		if p.decays {
			c = decayed
		}
		if shrink != 1 {
			simd.Scale(g, shrink)
		}
		simd.AdamW(p.of(values), p.of(l.means), p.of(l.squares), g, c)
	})
}

// Sampler returns a *Sampler of a copy of the weights.
func (l *Learner) Sampler(ctx context.Context) (policy.Sampler, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o := l.options.Sampler
	o.Precision = l.options.Precision
	return l.model.Sampler(o), nil
}
