package transformer

import "skillmaster/policy/transformer/internal/simd"

// backward is the workspace of a backward pass.
type backward struct {
	dx     matrix // gradient of the residual stream [T, D]
	dh     matrix // of a normed input [T, D]
	dQKV   matrix
	dMixed matrix
	dGU    matrix // of gateUp
	dAct   matrix
	dHeads []float32 // of one normed head [HeadDim]
	packed packing
	u, du  matrix    // of an adapter [T, rank]
	unused []float32 // receives gradients of norms that are not trained
}

func newBackward(c Config, rank int) backward {
	return backward{
		u: newMatrix(rank), du: newMatrix(rank), unused: make([]float32, max(c.Width, c.HeadDim)),
		dx: newMatrix(c.Width), dh: newMatrix(c.Width), dQKV: newMatrix(c.qkvWidth()), dMixed: newMatrix(c.queryWidth()),
		dGU: newMatrix(2 * c.Hidden), dAct: newMatrix(c.Hidden), dHeads: make([]float32, c.HeadDim),
	}
}

func (b *backward) grow(n int) {
	for _, m := range []*matrix{&b.dx, &b.dh, &b.dQKV, &b.dMixed, &b.dGU, &b.dAct, &b.u, &b.du} {
		m.grow(n)
	}
}

// startBackward makes room for n positions, with no gradient yet.
func (p *pass) startBackward(n int) {
	p.back.grow(n)
	for i := range n {
		clear(p.back.dx.row(i))
	}
}

// backward goes down from the gradient of the last layer's output in p.back.dx, which the head has left there, and
// adds the gradients of the weights that are trained, those of y, to grad.
func (p *pass) backward(ids []int32, y *layout, grad []float32) {
	n, d := len(ids), p.w.config.Width
	for l := len(p.layers) - 1; l >= 0; l-- {
		a := p.again(l, n)
		p.backwardFeedForward(a, l, n, &y.layers[l], grad)
		p.backwardAttention(a, l, n, &y.layers[l], grad)
	}
	if y.embed.size == 0 {
		return
	}
	embed := y.embed.of(grad)
	for i, id := range ids {
		simd.Add(embed[int(id)*d:(int(id)+1)*d], p.back.dx.row(i))
	}
}

func (p *pass) backwardFeedForward(a *activations, l, n int, y *layerLayout, grad []float32) {
	w, b, f := &p.w.layers[l], &p.back, p.w.config.Hidden
	b.linear(&w.down, b.dAct, b.dx, a.act, n, y.down, y.downLow, grad)
	for i := range n {
		row, out := a.gateUp.row(i), b.dGU.row(i)
		simd.SwiGLUBackward(out[:f], out[f:], row[:f], row[f:], b.dAct.row(i))
	}
	b.linear(&w.gateUp, b.dh, b.dGU, a.h2, n, y.gateUp, y.gateUpLow, grad)
	p.backwardNorm(a.x2, w.norm2, a.inv2, b.gradient(y.norm2, grad, len(w.norm2)), n)
}

// linear sets n rows of dx to the gradient of a product's input x from dy, that of its output, and adds the gradients of
// the matrix and of its adapter that are trained, at the spans, to grad.
func (b *backward) linear(l *linear, dx, dy, x matrix, n int, at span, low []lowSpan, grad []float32) {
	l.backward(dx, dy, n, false)
	if at.size > 0 {
		l.gradient(at.of(grad), dy, x, n, &b.packed)
	}
	for i := range l.low {
		r := &l.low[i]
		part := dy.columns(r.first, r.b.out)
		r.b.backward(b.du, part, n, false)
		r.a.backward(dx, b.du, n, true)
		r.a.gradient(low[i].a.of(grad), b.du, x, n, &b.packed)
		r.a.forward(b.u, x, n, matrix{})
		for t := range n {
			simd.Scale(b.u.row(t), low[i].scale)
		}
		r.b.gradient(low[i].b.of(grad), part, b.u, n, &b.packed)
	}
}

// gradient is where the gradient of a norm of n weights goes.
func (b *backward) gradient(s span, grad []float32, n int) []float32 {
	if s.size == 0 {
		return b.unused[:n]
	}
	return s.of(grad)
}

func (p *pass) backwardAttention(a *activations, l, n int, y *layerLayout, grad []float32) {
	w, b := &p.w.layers[l], &p.back
	b.linear(&w.out, b.dMixed, b.dx, a.mixed, n, y.out, y.outLow, grad)
	p.attention.backward(a, b.dQKV, b.dMixed, n)
	for i := range n {
		p.w.rotary.turn(p.w.config, b.dQKV.row(i), i, -1)
		if w.qNorm != nil {
			p.backwardHeads(l, i, y, grad)
		}
		if y.bias.size > 0 {
			simd.Add(y.bias.of(grad), b.dQKV.row(i))
		}
	}
	b.linear(&w.qkv, b.dh, b.dQKV, a.h1, n, y.qkv, y.qkvLow, grad)
	p.backwardNorm(a.x, w.norm1, a.inv1, b.gradient(y.norm1, grad, len(w.norm1)), n)
}

// backwardHeads takes the gradient of a row's normed queries and keys in dQKV to that of the raw ones.
func (p *pass) backwardHeads(l, row int, y *layerLayout, grad []float32) {
	c, a, w, dh := p.w.config, p.layers[l], &p.w.layers[l], p.back.dHeads
	for h := range c.Heads + c.KVHeads {
		at := h * c.HeadDim
		dx := p.back.dQKV.row(row)[at : at+c.HeadDim]
		copy(dh, dx)
		clear(dx)
		norm := y.qNorm
		if h >= c.Heads {
			norm = y.kNorm
		}
		simd.RMSNormBackward(dx, p.back.gradient(norm, grad, c.HeadDim), dh, a.raw.row(row)[at:at+c.HeadDim], w.headNorm(c, h), a.invHeads.row(row)[h])
	}
}

// backwardNorm adds to dx the gradient that reaches x through its norm, from dh.
func (p *pass) backwardNorm(x matrix, weight, inverse, grad []float32, n int) {
	b := &p.back
	for i := range n {
		simd.RMSNormBackward(b.dx.row(i), grad, b.dh.row(i), x.row(i), weight, inverse[i])
	}
}
