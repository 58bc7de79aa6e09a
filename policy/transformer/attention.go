package transformer

import (
	"math"

	"skillmaster/policy/transformer/internal/simd"
)

const (
	// rowBlock is how many queries are scored at a time. Small blocks waste less on keys that come later.
	rowBlock = 56
	// chunk is how many positions a piece of a cache holds. Values are summed chunk by chunk everywhere, so that
	// training and sampling round alike. A multiple of simd.PanelWidth.
	chunk = 128
)

// attention is causal grouped-query attention over one whole sequence. Probabilities are not kept: the backward pass
// computes them again from the scores and lse, block by block (Dao et al. 2022, arXiv:2205.14135, without its tiling
// over keys).
type attention struct {
	config         Config
	scores, dScore matrix // [rowBlock, T]
	keysT, values  []float32
	keys, valuesT  []float32 // for the backward pass
	queries, dMix  []float32
}

func newAttention(c Config) attention { return attention{config: c} }

// growScores makes m [rowBlock, n] at least.
func growScores(m *matrix, n int) {
	if m.width < n {
		*m = newMatrix(n)
		m.grow(rowBlock)
	}
}

// queryHead, keyHead and valueHead are the columns of a head in a qkv matrix.
func (c Config) queryHead(qkv matrix, h int) matrix { return qkv.columns(h*c.HeadDim, c.HeadDim) }

func (c Config) keyHead(qkv matrix, g int) matrix {
	return qkv.columns(c.queryWidth()+g*c.HeadDim, c.HeadDim)
}

func (c Config) valueHead(qkv matrix, g int) matrix {
	return qkv.columns(c.queryWidth()+c.keyWidth()+g*c.HeadDim, c.HeadDim)
}

// forward fills a.mixed and a.lse for n positions.
func (t *attention) forward(a *activations, n int) {
	c := t.config
	growScores(&t.scores, n)
	group := c.Heads / c.KVHeads
	for g := range c.KVHeads {
		keys := packTransposed(&t.keysT, c.keyHead(a.qkv, g), n)
		values := packRows(&t.values, c.valueHead(a.qkv, g), n)
		for h := g * group; h < (g+1)*group; h++ {
			t.forwardHead(a, h, n, keys, values)
		}
	}
}

func (t *attention) forwardHead(a *activations, h, n int, keys, values []float32) {
	d := t.config.HeadDim
	queries, mixed := t.config.queryHead(a.qkv, h), a.mixed.columns(h*d, d)
	for first := 0; first < n; first += rowBlock {
		rows := min(rowBlock, n-first)
		seen := first + rows
		q, out := queries.from(first), mixed.from(first)
		simd.Gemm(t.scores.v, t.scores.ld, q.v, q.ld, rows, seen, d, keys, d, 0, false)
		var sums [rowBlock]float32
		for i := range rows {
			scores := t.scores.v[i*t.scores.ld:][:seen]
			most, sum := softmax(scores, first+i+1)
			a.lse.row(first + i)[h], sums[i] = most+float32(math.Log(float64(sum))), sum
		}
		for k := 0; k < seen; k += chunk {
			s := t.scores.v[k:]
			simd.Gemm(out.v, out.ld, s, t.scores.ld, rows, d, min(chunk, seen-k), values, n, k, k > 0)
		}
		for i := range rows {
			simd.Scale(out.row(i), 1/sums[i])
		}
	}
}

// softmax replaces the first valid scores s by exp(s − most) and the others by 0, and returns most, the largest, and the
// sum of the exponentials.
func softmax(scores []float32, valid int) (most, sum float32) {
	most = simd.Max(scores[:valid])
	sum = simd.ExpSum(scores[:valid], most)
	clear(scores[valid:])
	return most, sum
}

// backward fills dQKV (before turning back) from dMixed, for n positions.
func (t *attention) backward(a *activations, dQKV, dMixed matrix, n int) {
	c := t.config
	growScores(&t.scores, n)
	growScores(&t.dScore, n)
	group := c.Heads / c.KVHeads
	for g := range c.KVHeads {
		k, v := c.keyHead(a.qkv, g), c.valueHead(a.qkv, g)
		p := packedHead{
			keysT: packTransposed(&t.keysT, k, n), keys: packRows(&t.keys, k, n),
			valuesT: packTransposed(&t.valuesT, v, n),
		}
		for h := g * group; h < (g+1)*group; h++ {
			t.backwardHead(a, dQKV, dMixed, h, n, p, h > g*group)
		}
	}
}

// packedHead is a key and value head in the forms the backward pass reads.
type packedHead struct{ keysT, keys, valuesT []float32 }

// backwardHead sets the gradient of head h's queries, and sets or adds that of its keys and values.
func (t *attention) backwardHead(a *activations, dQKV, dMixed matrix, h, n int, p packedHead, add bool) {
	c, d := t.config, t.config.HeadDim
	g := h / (c.Heads / c.KVHeads)
	q, dm := c.queryHead(a.qkv, h), dMixed.columns(h*d, d)
	dq, dk, dv := c.queryHead(dQKV, h), c.keyHead(dQKV, g), c.valueHead(dQKV, g)
	queries, dMix := packRows(&t.queries, q, n), packRows(&t.dMix, dm, n)
	// The last block sees every key, so it can set what the others add to.
	for first := (n - 1) / rowBlock * rowBlock; first >= 0; first -= rowBlock {
		rows := min(rowBlock, n-first)
		seen := first + rows
		s, ds := t.scores, t.dScore
		simd.Gemm(s.v, s.ld, q.from(first).v, q.ld, rows, seen, d, p.keysT, d, 0, false)
		simd.Gemm(ds.v, ds.ld, dm.from(first).v, dm.ld, rows, seen, d, p.valuesT, d, 0, false)
		t.backwardRows(a, dm, h, first, rows)
		simd.Gemm(dq.from(first).v, dq.ld, ds.v, ds.ld, rows, d, seen, p.keys, n, 0, false)
		accumulate := add || seen < n
		simd.GemmT(dk.v, dk.ld, ds.v, ds.ld, seen, d, rows, queries, n, first, accumulate)
		simd.GemmT(dv.v, dv.ld, s.v, s.ld, seen, d, rows, dMix, n, first, accumulate)
	}
}

// backwardRows turns scores into probabilities and their gradients into those of the scores. Σ p·dp is the product of
// a head's output with its gradient.
func (t *attention) backwardRows(a *activations, dm matrix, h, first, rows int) {
	d := t.config.HeadDim
	mixed := a.mixed.columns(h*d, d)
	for i := range rows {
		valid, seen := first+i+1, first+rows
		p, dp := t.scores.v[i*t.scores.ld:][:seen], t.dScore.v[i*t.dScore.ld:][:seen]
		simd.ExpSum(p[:valid], a.lse.row(first + i)[h])
		simd.SoftmaxBackward(dp[:valid], p[:valid], simd.Dot(mixed.row(first+i), dm.row(first+i)), 1)
		clear(p[valid:])
		clear(dp[valid:])
	}
}
