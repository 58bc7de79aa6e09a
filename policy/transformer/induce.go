package transformer

import (
	"errors"
	"math"
)

// What Induce sets. Attention is sharp enough to single out one of some hundred positions, and what the heads write is about as large as
// an embedding.
const (
	stepSharpness  = 12.0 // nats that the score of the position before has for every pair of dimensions
	matchSharpness = 2.5  // of queries and keys
	writeBefore    = 2.0  // size of what the first head writes, of an embedding's
	writeNext      = 6.0  // of what the second head writes
)

// Induce lays an induction circuit (Olsson et al. 2022, arXiv:2209.11895) into a new model, which then can copy before it has
// learnt anything: the first head of layer 1 writes to every position which token stood before it, the first head of
// layer 2 looks for a position behind the token that is at hand and writes which token stands there. Everything else that
// writes to the residual stream starts at 0. All of it is learnt on from there like any weight.
//
// The first head goes by position alone, through biases of queries and keys that are turned against each other by one step. The
// second one compares in the slower half of its rotary pairs, so that distance matters little; Config.RopeBase says how
// little. The model must have biases, two layers, and a width of at least twice HeadDim, which must be a multiple of 4.
func (m *Model) Induce() error {
	c := m.config
	if !c.Bias || c.Layers < 2 || c.Width < 2*c.HeadDim || c.HeadDim%4 != 0 || m.values == nil || m.version != 0 {
		return errors.New("model: an induction circuit needs a new model with biases, 2 layers, and a width of at least 2 heads whose size is a multiple of 4")
	}
	for _, y := range m.layout.layers {
		clear(y.out.of(m.values))
		clear(y.down.of(m.values))
	}
	n := c.HeadDim / 2 // dimensions that tell tokens apart: the first n of the width; the next n say what stood before
	m.lookBack(m.layout.layers[0], n)
	m.lookUpNext(m.layout.layers[1], n)
	return nil
}

// lookBack makes the first head of a layer attend to the position before, and copy the first n dimensions into the next n.
func (m *Model) lookBack(y layerLayout, n int) {
	c := m.config
	query, key, value := m.headRows(y)
	clear(query)
	clear(key)
	bias := y.bias.of(m.values)
	size := math.Sqrt(stepSharpness * math.Sqrt(float64(c.HeadDim)))
	half := c.HeadDim / 2
	for f := range half {
		angle := math.Pow(c.RopeBase, -2*float64(f)/float64(c.HeadDim))
		bias[f] = float32(size)
		bias[c.queryWidth()+f] = float32(size * math.Cos(angle))
		bias[c.queryWidth()+half+f] = float32(size * math.Sin(angle))
	}
	m.carry(y, value, n, func(i int) (from, to int) { return i, n + i }, writeBefore)
}

// lookUpNext makes the first head of a layer attend to where the token that stood before is the one at hand, and copy two parts of
// n dimensions in which nothing was written yet.
func (m *Model) lookUpNext(y layerLayout, n int) {
	c := m.config
	query, key, value := m.headRows(y)
	clear(query)
	clear(key)
	half := c.HeadDim / 2
	for i := range n { // the slower pairs: the second quarter of the head and the last one
		row := half/2 + i%(half/2) + i/(half/2)*half
		query[row*c.Width+i] = matchSharpness
		key[row*c.Width+n+i] = matchSharpness
	}
	m.carry(y, value, 2*n, func(i int) (from, to int) {
		if i >= n {
			i += n
		}
		return i, i
	}, writeNext)
}

// headRows are the rows of the first head's queries, keys and values, each [HeadDim, Width].
func (m *Model) headRows(y layerLayout) (query, key, value []float32) {
	c, rows := m.config, y.qkv.of(m.values)
	size := c.HeadDim * c.Width
	keys, values := c.queryWidth()*c.Width, (c.queryWidth()+c.keyWidth())*c.Width
	return rows[:size], rows[keys : keys+size], rows[values : values+size]
}

// carry makes the first head of a layer bring n dimensions from where it looks to where it stands: the i-th of them from and to which the
// function says, size times an embedding large if the input is.
func (m *Model) carry(y layerLayout, value []float32, n int, which func(i int) (from, to int), size float64) {
	c := m.config
	out := y.out.of(m.values) // [Width, queryWidth]
	for i := range n {
		from, to := which(i)
		clear(value[i*c.Width : (i+1)*c.Width])
		value[i*c.Width+from] = 1
		out[to*c.queryWidth()+i] = float32(size * embeddingDeviation)
	}
}
