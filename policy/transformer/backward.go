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
	packed []float32
}

func newBackward(c Config) backward {
	return backward{
		dx: newMatrix(c.Width), dh: newMatrix(c.Width), dQKV: newMatrix(c.qkvWidth()), dMixed: newMatrix(c.queryWidth()),
		dGU: newMatrix(2 * c.Hidden), dAct: newMatrix(c.Hidden), dHeads: make([]float32, c.HeadDim),
	}
}

func (b *backward) grow(n int) {
	for _, m := range []*matrix{&b.dx, &b.dh, &b.dQKV, &b.dMixed, &b.dGU, &b.dAct} {
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
// adds the gradients of the weights to grad, laid out as y.
func (p *pass) backward(ids []int32, y *layout, grad []float32) {
	n, d := len(ids), p.w.config.Width
	for l := len(p.layers) - 1; l >= 0; l-- {
		p.backwardFeedForward(l, n, &y.layers[l], grad)
		p.backwardAttention(l, n, &y.layers[l], grad)
	}
	embed := y.embed.of(grad)
	for i, id := range ids {
		simd.Add(embed[int(id)*d:(int(id)+1)*d], p.back.dx.row(i))
	}
}

func (p *pass) backwardFeedForward(l, n int, y *layerLayout, grad []float32) {
	a, w, b, f := p.layers[l], &p.w.layers[l], &p.back, p.w.config.Hidden
	w.down.backward(b.dAct, b.dx, n)
	w.down.gradient(y.down.of(grad), b.dx, a.act, n, &b.packed)
	for i := range n {
		row, out := a.gateUp.row(i), b.dGU.row(i)
		simd.SwiGLUBackward(out[:f], out[f:], row[:f], row[f:], b.dAct.row(i))
	}
	w.gateUp.backward(b.dh, b.dGU, n)
	w.gateUp.gradient(y.gateUp.of(grad), b.dGU, a.h2, n, &b.packed)
	p.backwardNorm(a.x2, w.norm2, a.inv2, y.norm2.of(grad), n)
}

func (p *pass) backwardAttention(l, n int, y *layerLayout, grad []float32) {
	a, w, b := p.layers[l], &p.w.layers[l], &p.back
	w.out.backward(b.dMixed, b.dx, n)
	w.out.gradient(y.out.of(grad), b.dx, a.mixed, n, &b.packed)
	p.attention.backward(a, b.dQKV, b.dMixed, n)
	for i := range n {
		p.w.rotary.turn(p.w.config, b.dQKV.row(i), i, -1)
		if w.qNorm != nil {
			p.backwardHeads(l, i, y, grad)
		}
		if w.bias != nil {
			simd.Add(y.bias.of(grad), b.dQKV.row(i))
		}
	}
	w.qkv.backward(b.dh, b.dQKV, n)
	w.qkv.gradient(y.qkv.of(grad), b.dQKV, a.h1, n, &b.packed)
	p.backwardNorm(a.x, w.norm1, a.inv1, y.norm1.of(grad), n)
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
		simd.RMSNormBackward(dx, norm.of(grad), dh, a.raw.row(row)[at:at+c.HeadDim], w.headNorm(c, h), a.invHeads.row(row)[h])
	}
}

// backwardNorm adds to dx the gradient that reaches x through its norm, from dh.
func (p *pass) backwardNorm(x matrix, weight, inverse, grad []float32, n int) {
	b := &p.back
	for i := range n {
		simd.RMSNormBackward(b.dx.row(i), grad, b.dh.row(i), x.row(i), weight, inverse[i])
	}
}
