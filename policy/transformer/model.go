package transformer

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"skillmaster/policy/transformer/internal/simd"
)

// span is a part of the flat vector of parameters.
type span struct{ at, size int }

func (s span) of(v []float32) []float32 { return v[s.at : s.at+s.size : s.at+s.size] }

// tensor is one named parameter. Matrices are [out, in], as in Hugging Face's checkpoints.
type tensor struct {
	name  string
	shape []int
	span
}

// decays reports whether weight decay applies: to matrices only.
func (t tensor) decays() bool { return len(t.shape) > 1 }

// layerLayout says where a layer's parameters are; what is multiplied together lies together.
type layerLayout struct {
	norm1, norm2 span
	qkv, bias    span // rows of queries, keys, values
	qNorm, kNorm span // of a head [HeadDim]
	out          span
	gateUp, down span // gateUp: rows of gates, then of ups

	qkvLow, outLow, gateUpLow, downLow []lowSpan // of an adapter, which has nothing else
}

// layout says where everything is in the flat vector.
type layout struct {
	tensors     []tensor // in the order they are saved
	size        int      // of the vector, gaps included
	embed, norm span
	head        span // = embed if tied
	layers      []layerLayout
}

// alignment of tensors in the flat vector: a cache line of float32.
const alignment = 16

func newLayout(c Config) *layout {
	l := &layout{}
	d, q, kv, f := c.Width, c.queryWidth(), c.keyWidth(), c.Hidden
	l.embed = l.add("model.embed_tokens.weight", c.Vocab, d)
	for i := range c.Layers {
		at := func(name string) string { return fmt.Sprintf("model.layers.%d.%s", i, name) }
		var y layerLayout
		y.norm1 = l.add(at("input_layernorm.weight"), d)
		y.qkv = l.join(l.add(at("self_attn.q_proj.weight"), q, d), l.next(at("self_attn.k_proj.weight"), kv, d), l.next(at("self_attn.v_proj.weight"), kv, d))
		if c.Bias {
			y.bias = l.join(l.add(at("self_attn.q_proj.bias"), q), l.next(at("self_attn.k_proj.bias"), kv), l.next(at("self_attn.v_proj.bias"), kv))
		}
		if c.QKNorm {
			y.qNorm = l.add(at("self_attn.q_norm.weight"), c.HeadDim)
			y.kNorm = l.add(at("self_attn.k_norm.weight"), c.HeadDim)
		}
		y.out = l.add(at("self_attn.o_proj.weight"), d, q)
		y.norm2 = l.add(at("post_attention_layernorm.weight"), d)
		y.gateUp = l.join(l.add(at("mlp.gate_proj.weight"), f, d), l.next(at("mlp.up_proj.weight"), f, d))
		y.down = l.add(at("mlp.down_proj.weight"), d, f)
		l.layers = append(l.layers, y)
	}
	l.norm = l.add("model.norm.weight", d)
	l.head = l.embed
	if !c.Tied {
		l.head = l.add("lm_head.weight", c.Vocab, d)
	}
	l.size = align(l.size)
	return l
}

func align(n int) int { return (n + alignment - 1) / alignment * alignment }

// add places a tensor at the next aligned position.
func (l *layout) add(name string, shape ...int) span {
	l.size = align(l.size)
	return l.next(name, shape...)
}

// next places a tensor right after the one before.
func (l *layout) next(name string, shape ...int) span {
	size := 1
	for _, n := range shape {
		size *= n
	}
	s := span{l.size, size}
	l.tensors = append(l.tensors, tensor{name, shape, s})
	l.size += size
	return s
}

func (l *layout) join(parts ...span) span {
	first, last := parts[0], parts[len(parts)-1]
	return span{first.at, last.at + last.size - first.at}
}

// Model is a set of weights. It is not changed once made, except by the Learner it was given to.
type Model struct {
	config  Config
	layout  *layout
	values  []float32 // flat vector of parameters [layout.size]; nil: in files
	files   []numbers // of each tensor of the layout, in place of values
	version int
	adapter *adapter // nil: none; with one, values do not change
}

// thaw brings weights that are in files into memory, to be trained.
func (m *Model) thaw() {
	if m.files == nil {
		return
	}
	m.values = make([]float32, m.layout.size)
	for i, t := range m.layout.tensors {
		m.files[i].read(t.of(m.values), 0)
	}
	m.files = nil
}

// NewModel makes a model with weights drawn from the seed, each tensor from its own name, so that a tensor does not
// depend on the others. Projections are N(0, 1/in), those that write to the residual stream times 1/sqrt(2L); embeddings
// and head N(0, 0.05²); norms 1, biases 0.
//
// pieces, if not nil, names for each id the words its token is made of ("cabinet", "3"). Such an embedding is
// Σ word vectors/sqrt(n) + 0.3·noise, each distinct word having one N(0, 0.05²) vector, so that a rare token starts with
// what is learnt about its words elsewhere. Ids without words are plain.
func NewModel(c Config, seed uint64, pieces [][]string) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if pieces != nil && len(pieces) != c.Vocab {
		return nil, fmt.Errorf("model: words are given for %d ids, the vocabulary has %d", len(pieces), c.Vocab)
	}
	m := emptyModel(c.Complete())
	m.initialise(seed)
	m.compose(seed, pieces)
	return m, nil
}

func emptyModel(c Config) *Model {
	l := newLayout(c)
	return &Model{config: c, layout: l, values: make([]float32, l.size)}
}

const (
	embeddingDeviation = 0.05
	composedNoise      = 0.3 // share of its own in a composed embedding
)

func (m *Model) initialise(seed uint64) {
	residual := 1 / math.Sqrt(2*float64(m.config.Layers))
	deviation := map[int]float64{m.layout.embed.at: embeddingDeviation, m.layout.head.at: embeddingDeviation}
	for _, y := range m.layout.layers {
		deviation[y.out.at] = residual / math.Sqrt(float64(m.config.queryWidth()))
		deviation[y.down.at] = residual / math.Sqrt(float64(m.config.Hidden))
	}
	for _, t := range m.layout.tensors {
		v := t.of(m.values)
		if len(t.shape) == 1 {
			if !m.isBias(t) {
				fill(v, 1)
			}
			continue
		}
		s, special := deviation[t.at]
		if !special {
			s = 1 / math.Sqrt(float64(t.shape[1]))
		}
		normal(v, s, seed, "tensor "+t.name)
	}
}

func (m *Model) isBias(t tensor) bool {
	return slices.ContainsFunc(m.layout.layers, func(y layerLayout) bool {
		return t.at >= y.bias.at && t.at < y.bias.at+y.bias.size
	})
}

func fill(v []float32, x float32) {
	for i := range v {
		v[i] = x
	}
}

// normal fills v with draws from N(0, deviation²) that depend on seed and label alone.
func normal(v []float32, deviation float64, seed uint64, label string) {
	r := labelled(seed, label)
	for i := range v {
		v[i] = float32(r.NormFloat64() * deviation)
	}
}

// uniform fills v with draws from ±limit that depend on seed and label alone.
func uniform(v []float32, limit float64, seed uint64, label string) {
	r := labelled(seed, label)
	for i := range v {
		v[i] = float32((2*r.Float64() - 1) * limit)
	}
}

func labelled(seed uint64, label string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(label))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func (m *Model) compose(seed uint64, pieces [][]string) {
	d := m.config.Width
	words := map[string][]float32{}
	for id, parts := range pieces {
		if len(parts) == 0 {
			continue
		}
		row := m.layout.embed.of(m.values)[id*d : (id+1)*d]
		simd.Scale(row, composedNoise)
		for _, word := range parts {
			v, drawn := words[word]
			if !drawn {
				v = make([]float32, d)
				normal(v, embeddingDeviation, seed, "word "+word)
				words[word] = v
			}
			simd.Axpy(row, v, float32(1/math.Sqrt(float64(len(parts)))))
		}
	}
}

// Config returns the completed shape of the model.
func (m *Model) Config() Config { return m.config }

// Version counts the updates the weights have had.
func (m *Model) Version() int { return m.version }

// Parameters returns the number of weights.
func (m *Model) Parameters() int {
	n := 0
	for _, t := range m.layout.tensors {
		n += t.size
	}
	return n
}
