package transformer

import "skillmaster/policy/transformer/internal/simd"

// activations are what a layer computes for some rows: positions of one sequence in training, of many in sampling.
type activations struct {
	x          matrix    // input of the layer [n, D]
	h1         matrix    // x normed
	qkv        matrix    // turned queries, scaled by 1/sqrt(HeadDim), and turned keys; values
	mixed      matrix    // attention's output, heads side by side
	x2         matrix    // x + mixed·outᵀ
	h2         matrix    // x2 normed
	gateUp     matrix    // [n, 2·Hidden]
	act        matrix    // silu(gate)·up
	inv1, inv2 []float32 // inverse root mean squares of x and x2 [n]
	raw        matrix    // queries and keys before their norm, and
	invHeads   matrix    // the inverse root mean squares of their heads [n, Heads + KVHeads]; both only with QKNorm
	low        matrix    // scratch for an adapter [n, rank]
	lse        matrix    // log Σ exp(scores) of each row and head [n, Heads]
}

func (w *weights) newActivations() *activations {
	c := w.config
	a := &activations{
		x: newMatrix(c.Width), h1: newMatrix(c.Width), qkv: newMatrix(c.qkvWidth()), mixed: newMatrix(c.queryWidth()),
		x2: newMatrix(c.Width), h2: newMatrix(c.Width), gateUp: newMatrix(2 * c.Hidden), act: newMatrix(c.Hidden),
		lse: newMatrix(c.Heads), low: newMatrix(w.rank),
	}
	if c.QKNorm {
		a.raw, a.invHeads = newMatrix(c.turnedWidth()), newMatrix(c.Heads+c.KVHeads)
	}
	return a
}

func (a *activations) grow(n int) {
	for _, m := range []*matrix{&a.x, &a.h1, &a.qkv, &a.mixed, &a.x2, &a.h2, &a.gateUp, &a.act, &a.lse, &a.raw, &a.invHeads, &a.low} {
		m.grow(n)
	}
	if len(a.inv1) < n {
		a.inv1, a.inv2 = make([]float32, n), make([]float32, n)
	}
}

// lookUp sets the first rows of x to the embeddings of ids.
func (w *weights) lookUp(x matrix, ids []int32) {
	for i, id := range ids {
		w.embed.read(x.row(i), int(id))
	}
}

// normRows norms n rows of x into h and keeps the inverse root mean squares if inverse is not nil.
func (w *weights) normRows(h, x matrix, weight, inverse []float32, n int) {
	eps := float32(w.config.NormEps)
	for i := range n {
		v := simd.RMSNorm(h.row(i), x.row(i), weight, eps)
		if inverse != nil {
			inverse[i] = v
		}
	}
}

// enter computes what attention needs of each row: x → h1 → qkv. positions [n] are those of the rows.
func (w *weights) enter(layer int, a *activations, positions []int) {
	y, n := &w.layers[layer], len(positions)
	w.normRows(a.h1, a.x, y.norm1, a.inv1, n)
	y.qkv.forward(a.qkv, a.h1, n, a.low)
	for i, p := range positions {
		row := a.qkv.row(i)
		if y.bias != nil {
			simd.Add(row, y.bias)
		}
		if y.qNorm != nil {
			copy(a.raw.row(i), row)
			y.normHeads(w.config, row, a.invHeads.row(i))
		}
		w.rotary.turn(w.config, row, p, 1)
	}
}

// leave computes the rest of the layer from attention's output: mixed → x2 → … → next, the input of the layer above,
// which may be a.x itself.
func (w *weights) leave(layer int, a *activations, next matrix, n int) {
	w.expand(layer, a, n)
	copyRows(next, a.x2, n)
	w.layers[layer].down.forwardAdd(next, a.act, n, a.low)
}

// expand computes mixed → x2 → h2 → gateUp → act.
func (w *weights) expand(layer int, a *activations, n int) {
	y, f := &w.layers[layer], w.config.Hidden
	copyRows(a.x2, a.x, n)
	y.out.forwardAdd(a.x2, a.mixed, n, a.low)
	w.normRows(a.h2, a.x2, y.norm2, a.inv2, n)
	y.gateUp.forward(a.gateUp, a.h2, n, a.low)
	for i := range n {
		row := a.gateUp.row(i)
		simd.SwiGLU(a.act.row(i), row[:f], row[f:])
	}
}

// pass runs one sequence at a time through a model, forward and, if it keeps every layer, backward. It holds the
// workspace of one worker, which grows to the longest sequence seen.
type pass struct {
	w         *weights
	layers    []*activations // all the same one if nothing is kept for a backward pass, or inputs alone
	inputs    []matrix       // of each layer [T, D], from which the backward pass computes the layer again; nil: all is kept
	last      matrix         // output of the last layer [T, D]
	positions []int          // 0, 1, 2, …
	attention attention
	head      head
	back      backward
}

// newPass returns a pass that keeps what backward needs: every layer's activations, or its input alone.
func newPass(w *weights, recompute bool) *pass {
	p := newScoringPass(w)
	for i := range p.layers {
		if recompute {
			p.inputs = append(p.inputs, newMatrix(w.config.Width))
			continue
		}
		p.layers[i] = w.newActivations()
	}
	p.back = newBackward(w.config, w.rank)
	return p
}

// newScoringPass returns a pass that goes forward only.
func newScoringPass(w *weights) *pass {
	p := &pass{w: w, layers: make([]*activations, w.config.Layers), last: newMatrix(w.config.Width)}
	p.attention, p.head = newAttention(w.config), newHead(w.config)
	one := w.newActivations()
	for i := range p.layers {
		p.layers[i] = one
	}
	return p
}

// forward runs a sequence through all layers into p.last.
func (p *pass) forward(ids []int32) {
	n := len(ids)
	p.last.grow(n)
	for len(p.positions) < n {
		p.positions = append(p.positions, len(p.positions))
	}
	for _, a := range p.layers {
		a.grow(n)
	}
	for i := range p.inputs {
		p.inputs[i].grow(n)
	}
	p.w.lookUp(p.layers[0].x, ids)
	for l, a := range p.layers {
		next := p.last
		if l+1 < len(p.layers) {
			next = p.layers[l+1].x
		}
		if p.inputs != nil {
			copyRows(p.inputs[l], a.x, n)
		}
		p.w.enter(l, a, p.positions[:n])
		p.attention.forward(a, n)
		p.w.leave(l, a, next, n)
	}
}

// again returns a layer's activations, which it computes from the input if that is all there is, to the same bits.
func (p *pass) again(l, n int) *activations {
	a := p.layers[l]
	if p.inputs != nil {
		copyRows(a.x, p.inputs[l], n)
		p.w.enter(l, a, p.positions[:n])
		p.attention.forward(a, n)
		p.w.expand(l, a, n)
	}
	return a
}

// ActivationBytes is the most memory that an update keeps of one sequence of n ids between its forward and its backward
// pass, in each worker. With recompute it is the input of every layer and the rest of one.
func (c Config) ActivationBytes(n int, recompute bool) int64 {
	c = c.Complete()
	pad := func(widths ...int) (floats int64) {
		for _, w := range widths {
			floats += int64(newMatrix(w).ld)
		}
		return floats
	}
	layer := pad(c.Width, c.Width, c.qkvWidth(), c.queryWidth(), c.Width, c.Width, 2*c.Hidden, c.Hidden, c.Heads) + 2
	if c.QKNorm {
		layer += pad(c.turnedWidth(), c.Heads+c.KVHeads)
	}
	kept := int64(c.Layers) * layer
	if recompute {
		kept = layer + int64(c.Layers)*pad(c.Width)
	}
	return 4 * int64(n) * (kept + pad(c.Width))
}
