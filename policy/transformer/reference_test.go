package transformer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"skillmaster/grpo"
)

// variants are models that differ in every way a Config allows, with sizes that fit no vector.
var variants = map[string]Config{
	"plain":   {Vocab: 37, Width: 20, Layers: 2, Heads: 2, Hidden: 27, Context: 200, Tied: true},
	"grouped": {Vocab: 45, Width: 24, Layers: 2, Heads: 6, KVHeads: 2, HeadDim: 10, Hidden: 33, Context: 200, RopeBase: 500},
	"qwen":    {Vocab: 70, Width: 16, Layers: 2, Heads: 4, KVHeads: 1, HeadDim: 34, Hidden: 18, Context: 200, Tied: true, Bias: true, NormEps: 1e-5},
	"qwen3":   {Vocab: 41, Width: 18, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 12, Hidden: 21, Context: 200, Tied: true, QKNorm: true},
	"scaled":  {Vocab: 31, Width: 16, Layers: 1, Heads: 2, HeadDim: 16, Hidden: 9, Context: 200, RopeScaling: RopeScaling{4, 1, 3, 64}},
	"one":     {Vocab: 2, Width: 2, Layers: 1, Heads: 1, Hidden: 1, Context: 200, Bias: true},
}

// testModel is a model of a variant with norms and biases that are not trivial.
func testModel(t testing.TB, name string) *Model {
	t.Helper()
	m, err := NewModel(variants[name], 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range m.values {
		m.values[i] += float32(r.NormFloat64() * 0.1)
	}
	return m
}

// adaptedModel is testModel with an adapter of every projection that changes what it says.
func adaptedModel(t testing.TB, name string) *Model {
	t.Helper()
	m := testModel(t, name)
	if err := m.Adapt(AdapterConfig{Rank: 3, Scale: 1.5}, 8); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	for i := range m.adapter.values {
		m.adapter.values[i] += float32(r.NormFloat64() * 0.2)
	}
	return m
}

// testBatch is three sequences of different lengths, the second longer than a chunk of the cache.
func testBatch(c Config, lengths ...int) []grpo.Datum {
	r := rand.New(rand.NewPCG(5, 6))
	var batch []grpo.Datum
	for i, n := range lengths {
		d := grpo.Datum{
			IDs: make([]int32, n), Stream: make([]grpo.Stream, n), Weight: make([]float32, n),
			Advantage: make([]float32, n), LogProb: make([]float32, n), Ref: make([]float32, n),
		}
		for t := range n {
			d.IDs[t] = int32(r.IntN(c.Vocab))
			d.Advantage[t] = float32(r.NormFloat64())
			d.LogProb[t] = float32(-2 + 0.5*r.NormFloat64())
			d.Ref[t] = float32(-2 + 0.5*r.NormFloat64())
			if t > 0 && r.IntN(3) > 0 {
				d.Weight[t] = float32(r.Float64())
			}
		}
		d.Weight[n-1] = 0.5
		if i == 0 {
			d.LogProb, d.Ref = nil, nil
		}
		batch = append(batch, d)
	}
	return batch
}

// reference is the slow model in float64, written from the definition.
type reference struct {
	c     Config
	p     map[string][]float64
	scale float64 // of an adapter
}

func newReference(m *Model) reference {
	r := reference{c: m.config, p: map[string][]float64{}}
	add := func(y *layout, values []float32) {
		for _, t := range y.tensors {
			for _, v := range t.of(values) {
				r.p[t.name] = append(r.p[t.name], float64(v))
			}
		}
	}
	add(m.layout, m.values)
	if m.adapter != nil {
		add(m.trained())
		r.scale = m.adapter.config.Scale
	}
	return r
}

func (r reference) linear(name string, x []float64) []float64 {
	w, bias := r.p[name+".weight"], r.p[name+".bias"]
	if r.p[name+".lora_A.weight"] != nil {
		low := r.linear(name+".lora_B", r.linear(name+".lora_A", x))
		for i := range low {
			low[i] *= r.scale
		}
		bias = slices.Concat(bias, make([]float64, len(low)-len(bias)))
		addTo(bias, low)
	}
	y := make([]float64, len(w)/len(x))
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
		if bias != nil {
			y[o] += bias[o]
		}
	}
	return y
}

func (r reference) norm(name string, x []float64) []float64 {
	var s float64
	for _, v := range x {
		s += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(s/float64(len(x))+r.c.NormEps) * r.p[name+".weight"][i]
	}
	return y
}

func (r reference) turn(x []float64, position int) {
	half := len(x) / 2
	for i := range half {
		sin, cos := math.Sincos(float64(position) * r.frequency(math.Pow(r.c.RopeBase, -2*float64(i)/float64(len(x)))))
		x[i], x[i+half] = x[i]*cos-x[i+half]*sin, x[i+half]*cos+x[i]*sin
	}
}

// frequency scales one as Llama 3.1 does, in its own terms.
func (r reference) frequency(f float64) float64 {
	s := r.c.RopeScaling
	if s.Factor == 0 {
		return f
	}
	wavelength, original := 2*math.Pi/f, float64(s.Original)
	switch {
	case wavelength < original/s.HighFactor:
		return f
	case wavelength > original/s.LowFactor:
		return f / s.Factor
	}
	smooth := (original/wavelength - s.LowFactor) / (s.HighFactor - s.LowFactor)
	return (1-smooth)*f/s.Factor + smooth*f
}

// head norms a head, if there is a norm, and turns it.
func (r reference) head(norm string, x []float64, position int) {
	if r.c.QKNorm {
		copy(x, r.norm(norm, x))
	}
	r.turn(x, position)
}

// attend returns the attention of each position over those before it and itself.
func (r reference) attend(q, k, v [][]float64) [][]float64 {
	c, d := r.c, r.c.HeadDim
	out := make([][]float64, len(q))
	for t := range q {
		out[t] = make([]float64, len(q[t]))
		for h := range c.Heads {
			g := h / (c.Heads / c.KVHeads)
			p, sum := make([]float64, t+1), 0.0
			for s := range p {
				var dot float64
				for i := range d {
					dot += q[t][h*d+i] * k[s][g*d+i]
				}
				p[s] = math.Exp(dot / math.Sqrt(float64(d)))
				sum += p[s]
			}
			for s := range p {
				for i := range d {
					out[t][h*d+i] += p[s] / sum * v[s][g*d+i]
				}
			}
		}
	}
	return out
}

func addTo(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}

// logits returns those after each id.
func (r reference) logits(ids []int32) [][]float64 {
	c, n := r.c, len(ids)
	x := make([][]float64, n)
	for t, id := range ids {
		x[t] = append([]float64{}, r.p["model.embed_tokens.weight"][int(id)*c.Width:(int(id)+1)*c.Width]...)
	}
	for l := range c.Layers {
		at := fmt.Sprintf("model.layers.%d.", l)
		q, k, v := make([][]float64, n), make([][]float64, n), make([][]float64, n)
		for t := range n {
			h := r.norm(at+"input_layernorm", x[t])
			q[t], k[t], v[t] = r.linear(at+"self_attn.q_proj", h), r.linear(at+"self_attn.k_proj", h), r.linear(at+"self_attn.v_proj", h)
			for o := 0; o < len(q[t]); o += c.HeadDim {
				r.head(at+"self_attn.q_norm", q[t][o:o+c.HeadDim], t)
			}
			for o := 0; o < len(k[t]); o += c.HeadDim {
				r.head(at+"self_attn.k_norm", k[t][o:o+c.HeadDim], t)
			}
		}
		for t, mixed := range r.attend(q, k, v) {
			addTo(x[t], r.linear(at+"self_attn.o_proj", mixed))
			h := r.norm(at+"post_attention_layernorm", x[t])
			gate, up := r.linear(at+"mlp.gate_proj", h), r.linear(at+"mlp.up_proj", h)
			for i, g := range gate {
				up[i] *= g / (1 + math.Exp(-g))
			}
			addTo(x[t], r.linear(at+"mlp.down_proj", up))
		}
	}
	head := "lm_head"
	if c.Tied {
		head = "model.embed_tokens"
	}
	for t := range n {
		x[t] = r.linear(head, r.norm("model.norm", x[t]))
	}
	return x
}

// logSoftmax returns the log-probabilities of logits, and their entropy.
func logSoftmax(z []float64) (logp []float64, entropy float64) {
	var s float64
	for _, v := range z {
		s += math.Exp(v)
	}
	for _, v := range z {
		logp = append(logp, v-math.Log(s))
	}
	for _, v := range logp {
		entropy -= math.Exp(v) * v
	}
	return logp, entropy
}

// loss is Σ weight·loss of a batch. frozen holds the log-probability that stands for each missing sampling one: the ratio is 1
// there, but its gradient flows.
func (r reference) loss(batch []grpo.Datum, l grpo.Loss, frozen [][]float64) float64 {
	var s float64
	for i, d := range batch {
		z := r.logits(d.IDs)
		for t, w := range d.Weight {
			if w == 0 {
				continue
			}
			logp, entropy := logSoftmax(z[t-1])
			sampling := at(d.LogProb, t)
			if math.IsNaN(sampling) {
				sampling = frozen[i][t]
			}
			v, _, _ := l.Token(logp[d.IDs[t]], sampling, at(d.Ref, t), float64(d.Advantage[t]))
			s += float64(w) * (v - l.Entropy*entropy)
		}
	}
	return s
}

// logProbs returns the log-probability of every id of every sequence but the first.
func (r reference) logProbs(batch []grpo.Datum) [][]float64 {
	var out [][]float64
	for _, d := range batch {
		row := make([]float64, len(d.IDs))
		z := r.logits(d.IDs)
		for t := 1; t < len(d.IDs); t++ {
			logp, _ := logSoftmax(z[t-1])
			row[t] = logp[d.IDs[t]]
		}
		out = append(out, row)
	}
	return out
}
