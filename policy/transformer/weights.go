package transformer

import (
	"math"
	"slices"

	"skillmaster/policy/transformer/internal/simd"
)

// layerWeights are a layer's weights as the kernels read them.
type layerWeights struct {
	norm1, norm2           []float32
	bias                   []float32 // of queries, keys and values; nil: none
	qNorm, kNorm           []float32 // of a head; nil: none
	qkv, out, gateUp, down linear
}

// weights are a model's weights as the kernels read them.
type weights struct {
	config Config
	embed  *rows // [V, D]
	norm   []float32
	layers []layerWeights
	head   linear
	rotary *rotary
	rank   int // of the adapter; 0: none
}

// newWeights makes room for the weights of a model; those that are not trained are there already.
func newWeights(m *Model, p Precision) *weights {
	c := m.config
	w := &weights{config: c, layers: make([]layerWeights, c.Layers), rotary: newRotary(c)}
	for i := range w.layers {
		y := &w.layers[i]
		y.qkv = linear{in: c.Width, out: c.qkvWidth(), precision: p}
		y.out = linear{in: c.queryWidth(), out: c.Width, precision: p}
		y.gateUp = linear{in: c.Width, out: 2 * c.Hidden, precision: p}
		y.down = linear{in: c.Hidden, out: c.Width, precision: p}
	}
	w.head = linear{in: c.Width, out: c.Vocab, precision: p}
	if m.frozen() {
		w.alias(m)
		w.each(m, func(to *linear, from span) { to.frozen = m.rows(from, to.in) })
	}
	if m.adapter != nil {
		w.adapt(m.adapter)
	}
	return w
}

// snapshot returns forward weights that share nothing with the model but what is not trained.
func (m *Model) snapshot(p Precision, workers int) *weights {
	w := newWeights(m, p)
	if m.adapter != nil {
		w.packAdapter(m.adapter, (*linear).pack, workers)
	}
	if m.frozen() {
		return w
	}
	w.alias(m)
	w.embed = &rows{m.config.Width, []part{{rows: m.config.Vocab, values: slices.Clone(m.layout.embed.of(m.values))}}}
	w.norm = slices.Clone(w.norm)
	for i := range w.layers {
		y := &w.layers[i]
		for _, v := range []*[]float32{&y.norm1, &y.norm2, &y.bias, &y.qNorm, &y.kNorm} {
			*v = slices.Clone(*v)
		}
	}
	w.pack(m, (*linear).pack, workers)
	return w
}

// alias points the weights that are read as they are into the model.
func (w *weights) alias(m *Model) {
	w.embed, w.norm = m.rows(m.layout.embed, m.config.Width), m.vector(m.layout.norm)
	for i := range w.layers {
		y, at := &w.layers[i], m.layout.layers[i]
		y.norm1, y.norm2 = m.vector(at.norm1), m.vector(at.norm2)
		if w.config.Bias {
			y.bias = m.vector(at.bias)
		}
		if w.config.QKNorm {
			y.qNorm, y.kNorm = m.vector(at.qNorm), m.vector(at.kNorm)
		}
	}
}

// each calls f with every matrix and where it is.
func (w *weights) each(m *Model, f func(to *linear, from span)) {
	f(&w.head, m.layout.head)
	for i := range w.layers {
		y, at := &w.layers[i], m.layout.layers[i]
		f(&y.qkv, at.qkv)
		f(&y.out, at.out)
		f(&y.gateUp, at.gateUp)
		f(&y.down, at.down)
	}
}

// pack brings every matrix into a form, on so many workers.
func (w *weights) pack(m *Model, form func(*linear, []float32), workers int) {
	var jobs []func()
	w.each(m, func(to *linear, from span) { jobs = append(jobs, func() { form(to, from.of(m.values)) }) })
	parallel(workers, len(jobs), func(_, j int) { jobs[j]() })
}

// rotary holds the angles of every position. Those of queries carry the attention's scale 1/sqrt(HeadDim), so that no
// score has to be multiplied by it.
type rotary struct {
	half               int // HeadDim/2, the length of a row
	cos, sin           []float32
	queryCos, querySin []float32
}

func newRotary(c Config) *rotary {
	half := c.HeadDim / 2
	n := c.Context * half
	r := &rotary{half, make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)}
	scale := 1 / math.Sqrt(float64(c.HeadDim))
	for i := range half {
		frequency := c.RopeScaling.apply(math.Pow(c.RopeBase, -2*float64(i)/float64(c.HeadDim)))
		for t := range c.Context {
			sin, cos := math.Sincos(float64(t) * frequency)
			r.cos[t*half+i], r.sin[t*half+i] = float32(cos), float32(sin)
			r.queryCos[t*half+i], r.querySin[t*half+i] = float32(cos*scale), float32(sin*scale)
		}
	}
	return r
}

// turn turns the queries and keys of a row at a position; sign −1 is the backward pass.
func (r *rotary) turn(c Config, qkv []float32, position int, sign float32) {
	at, end := position*r.half, (position+1)*r.half
	keys := c.queryWidth()
	for o := 0; o < keys; o += c.HeadDim {
		simd.Rotary(qkv[o:o+c.HeadDim], r.queryCos[at:end], r.querySin[at:end], sign)
	}
	for o := keys; o < c.turnedWidth(); o += c.HeadDim {
		simd.Rotary(qkv[o:o+c.HeadDim], r.cos[at:end], r.sin[at:end], sign)
	}
}

// normHeads norms each head of the queries and keys of a row that is not turned yet; inverse receives their inverse root
// mean squares [Heads + KVHeads].
func (y *layerWeights) normHeads(c Config, qkv, inverse []float32) {
	for h := range c.Heads + c.KVHeads {
		x := qkv[h*c.HeadDim:][:c.HeadDim]
		inverse[h] = simd.RMSNorm(x, x, y.headNorm(c, h), float32(c.NormEps))
	}
}

// headNorm is the norm's weight of a head, the queries' heads first.
func (y *layerWeights) headNorm(c Config, h int) []float32 {
	if h < c.Heads {
		return y.qNorm
	}
	return y.kNorm
}
