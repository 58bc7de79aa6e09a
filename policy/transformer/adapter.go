package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"skillmaster/policy/transformer/internal/simd"
)

// AdapterConfig is the shape of a low-rank change of a model's projections: W [out, in] becomes W + Scale·B·A with
// A [Rank, in] and B [out, Rank] (LoRA, Hu et al. 2021, arXiv:2106.09685, section 4.1).
type AdapterConfig struct {
	Rank    int      `json:"rank"`
	Scale   float64  `json:"scale"`   // alpha/rank in the paper; 0: 2
	Targets []string `json:"targets"` // of Projections; nil: all
}

// Projections names the matrices of a layer that an adapter can change.
func Projections() []string {
	return []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
}

// Complete returns c with its optional fields filled in, targets in the order of Projections.
func (c AdapterConfig) Complete() AdapterConfig {
	if c.Scale == 0 {
		c.Scale = 2
	}
	targets := c.Targets
	c.Targets = Projections()
	if targets != nil {
		c.Targets = slices.DeleteFunc(c.Targets, func(p string) bool { return !slices.Contains(targets, p) })
	}
	return c
}

// Validate reports the first way in which c cannot be.
func (c AdapterConfig) Validate() error {
	switch {
	case c.Rank < 1 || c.Rank > 1024:
		return fmt.Errorf("adapter: rank is %d, it must be in 1…1024", c.Rank)
	case !(math.Abs(c.Scale) < 1e6):
		return fmt.Errorf("adapter: scale is %v", c.Scale)
	case c.Targets != nil && len(c.Targets) == 0:
		return errors.New("adapter: it has no target")
	}
	for _, t := range c.Targets {
		if !slices.Contains(Projections(), t) {
			return fmt.Errorf("adapter: there is no projection %q: they are %s", t, strings.Join(Projections(), ", "))
		}
	}
	return nil
}

func (c *AdapterConfig) equal(o *AdapterConfig) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.Rank == o.Rank && c.Scale == o.Scale && slices.Equal(c.Targets, o.Targets)
}

func (c *AdapterConfig) String() string {
	if c == nil {
		return "none"
	}
	b, _ := json.Marshal(c) // numbers and strings cannot fail
	return string(b)
}

// adapter is the low-rank part of a model.
type adapter struct {
	config AdapterConfig
	layout *layout
	values []float32
}

// lowSpan says where one A and B are, and which columns of a joined product they change.
type lowSpan struct {
	a, b           span
	in, first, out int
	scale          float32
}

func newAdapterLayout(c Config, a AdapterConfig) *layout {
	l := &layout{}
	add := func(layer int, part, name string, to *[]lowSpan, in, first, out int) {
		if !slices.Contains(a.Targets, name) {
			return
		}
		at := fmt.Sprintf("model.layers.%d.%s.%s.", layer, part, name)
		*to = append(*to, lowSpan{
			a: l.add(at+"lora_A.weight", a.Rank, in), b: l.add(at+"lora_B.weight", out, a.Rank),
			in: in, first: first, out: out, scale: float32(a.Scale),
		})
	}
	q, kv := c.queryWidth(), c.keyWidth()
	for i := range c.Layers {
		var y layerLayout
		add(i, "self_attn", "q_proj", &y.qkvLow, c.Width, 0, q)
		add(i, "self_attn", "k_proj", &y.qkvLow, c.Width, q, kv)
		add(i, "self_attn", "v_proj", &y.qkvLow, c.Width, q+kv, kv)
		add(i, "self_attn", "o_proj", &y.outLow, q, 0, c.Width)
		add(i, "mlp", "gate_proj", &y.gateUpLow, c.Width, 0, c.Hidden)
		add(i, "mlp", "up_proj", &y.gateUpLow, c.Width, c.Hidden, c.Hidden)
		add(i, "mlp", "down_proj", &y.downLow, c.Hidden, 0, c.Width)
		l.layers = append(l.layers, y)
	}
	l.size = align(l.size)
	return l
}

// Adapt gives the model an adapter, which alone is trained from then on: A is drawn uniformly from ±1/sqrt(in), each
// matrix from its own name, and B is 0, so that the model says what it said before. A model has one adapter at most.
func (m *Model) Adapt(c AdapterConfig, seed uint64) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if m.adapter != nil {
		return errors.New("the model has an adapter already: merge it first")
	}
	c = c.Complete()
	y := newAdapterLayout(m.config, c)
	a := &adapter{config: c, layout: y, values: make([]float32, y.size)}
	for _, t := range y.tensors {
		if strings.HasSuffix(t.name, "lora_A.weight") {
			uniform(t.of(a.values), 1/math.Sqrt(float64(t.shape[1])), seed, "tensor "+t.name)
		}
	}
	m.adapter = a
	return nil
}

// frozen reports whether the model's own weights stay as they are: it has an adapter, or they are in files.
func (m *Model) frozen() bool { return m.adapter != nil || m.files != nil }

// stores are the model's tensors, to be written: with an adapter, those of the model that has what it learnt in its weights.
func (m *Model) stores() []store {
	low := map[string]span{}
	if m.adapter != nil {
		for _, t := range m.adapter.layout.tensors {
			low[t.name] = t.span
		}
	}
	all := m.layout.stores("", nil)
	for i, t := range m.layout.tensors {
		width := t.shape[len(t.shape)-1]
		base, at := m.rows(t.span, width), strings.TrimSuffix(t.name, "weight")
		a, adapted := low[at+"lora_A.weight"]
		b := low[at+"lora_B.weight"]
		all[i].row = func(dst []float32, o int) {
			base.read(dst, o)
			if adapted {
				m.adapter.add(dst, a, b, o)
			}
		}
	}
	return all
}

// add adds row o of scale·B·A to a row.
func (l *adapter) add(row []float32, a, b span, o int) {
	rank := l.config.Rank
	for r, x := range b.of(l.values)[o*rank : (o+1)*rank] {
		simd.Axpy(row, a.of(l.values)[r*len(row):(r+1)*len(row)], float32(l.config.Scale)*x)
	}
}

// trained is what a learner trains: the model's own weights, or its adapter's.
func (m *Model) trained() (*layout, []float32) {
	if m.adapter != nil {
		return m.adapter.layout, m.adapter.values
	}
	return m.layout, m.values
}

// retrain puts other values in the place of those of trained.
func (m *Model) retrain(values []float32) {
	if m.adapter != nil {
		m.adapter.values = values
		return
	}
	m.values = values
}

func (m *Model) adapterConfig() *AdapterConfig {
	if m.adapter == nil {
		return nil
	}
	return &m.adapter.config
}

// adapt makes room for the adapter's matrices.
func (w *weights) adapt(a *adapter) {
	w.rank = a.config.Rank
	for i := range w.layers {
		for _, part := range w.layers[i].adapted(a.layout.layers[i]) {
			for _, s := range part.low {
				part.to.low = append(part.to.low, lowRank{
					first: s.first, a: linear{in: s.in, out: w.rank}, b: linear{in: w.rank, out: s.out},
				})
			}
		}
	}
}

// adaptedLinear is a product with the spans of its adapter.
type adaptedLinear struct {
	to  *linear
	low []lowSpan
}

func (w *layerWeights) adapted(y layerLayout) []adaptedLinear {
	return []adaptedLinear{{&w.qkv, y.qkvLow}, {&w.out, y.outLow}, {&w.gateUp, y.gateUpLow}, {&w.down, y.downLow}}
}

// packAdapter brings the adapter's matrices into a form, on so many workers.
func (w *weights) packAdapter(a *adapter, form func(*linear, []float32), workers int) {
	parallel(workers, len(w.layers), func(_, i int) {
		var scaled []float32
		for _, part := range w.layers[i].adapted(a.layout.layers[i]) {
			for k, s := range part.low {
				r := &part.to.low[k]
				form(&r.a, s.a.of(a.values))
				scaled = append(scaled[:0], s.b.of(a.values)...)
				simd.Scale(scaled, s.scale)
				form(&r.b, scaled)
			}
		}
	})
}
