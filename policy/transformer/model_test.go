package transformer

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	good := Config{Vocab: 10, Width: 8, Layers: 1, Heads: 2, Hidden: 4}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"vocab is 0":                            func(c *Config) { c.Vocab = 0 },
		"width is -1":                           func(c *Config) { c.Width = -1 },
		"layers is 2000":                        func(c *Config) { c.Layers = 2000 },
		"hidden is 0":                           func(c *Config) { c.Hidden = 0 },
		"width 8 is not a multiple of 3 heads":  func(c *Config) { c.Heads = 3 },
		"not a multiple of kv_heads, 4":         func(c *Config) { c.Heads, c.KVHeads = 2, 4 },
		"head_dim is 3":                         func(c *Config) { c.HeadDim = 3 },
		"rope_base is 1":                        func(c *Config) { c.RopeBase = 1 },
		"rope_base is NaN":                      func(c *Config) { c.RopeBase = math.NaN() },
		"norm_eps is -1":                        func(c *Config) { c.NormEps = -1 },
		"context is -5":                         func(c *Config) { c.Context = -5 },
		"parameters, at most":                   func(c *Config) { c.Hidden, c.Width, c.Layers = 1<<20, 1<<12, 100 },
		"vocab is 0, it must be in 1…4194304\n": func(c *Config) { c.Vocab, c.Width = 0, 0 }, // every fault, a line each
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
		if m, err := NewModel(c, 1, nil); err == nil {
			t.Errorf("%s: got a model of %d parameters", want, m.Parameters())
		}
	}
}

func TestComplete(t *testing.T) {
	got := Config{Vocab: 10, Width: 12, Layers: 1, Heads: 3, Hidden: 4}.Complete()
	want := Config{Vocab: 10, Width: 12, Layers: 1, Heads: 3, KVHeads: 3, HeadDim: 4, Hidden: 4, Context: 1024, RopeBase: 10000, NormEps: 1e-6}
	if got != want || got != got.Complete() {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func (m *Model) find(t *testing.T, name string) []float32 {
	t.Helper()
	for _, tensor := range m.layout.tensors {
		if tensor.name == name {
			return tensor.of(m.values)
		}
	}
	t.Fatalf("no tensor %s", name)
	return nil
}

func deviation(v []float32) float64 {
	var s float64
	for _, x := range v {
		s += float64(x) * float64(x)
	}
	return math.Sqrt(s / float64(len(v)))
}

func TestInitialisation(t *testing.T) {
	c := Config{Vocab: 300, Width: 64, Layers: 8, Heads: 4, Hidden: 256, Bias: true}
	m, err := NewModel(c, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"model.embed_tokens.weight": 0.05, "lm_head.weight": 0.05, "model.norm.weight": 1,
		"model.layers.0.input_layernorm.weight": 1, "model.layers.7.post_attention_layernorm.weight": 1,
		"model.layers.3.self_attn.q_proj.weight": 1.0 / 8, "model.layers.3.self_attn.v_proj.weight": 1.0 / 8,
		"model.layers.3.self_attn.o_proj.weight": 1.0 / 8 / 4, "model.layers.3.mlp.up_proj.weight": 1.0 / 8,
		"model.layers.3.mlp.down_proj.weight": 1.0 / 16 / 4, "model.layers.3.self_attn.k_proj.bias": 0,
	} {
		if got := deviation(m.find(t, name)); math.Abs(got-want) > 0.03*want {
			t.Errorf("%s: root mean square is %v, want %v", name, got, want)
		}
	}
	again, _ := NewModel(c, 5, nil)
	other, _ := NewModel(c, 6, nil)
	if !slices.Equal(again.values, m.values) || slices.Equal(other.values, m.values) {
		t.Error("weights must depend on the seed and nothing else")
	}
	c.Layers = 2 // a tensor is drawn from its name
	fewer, _ := NewModel(c, 5, nil)
	if name := "model.layers.1.mlp.up_proj.weight"; !slices.Equal(fewer.find(t, name), m.find(t, name)) {
		t.Error("a tensor depends on other layers")
	}
	if got, want := m.Parameters(), 2*300*64+64+8*(4*64*64+3*64+3*64*256+2*64); got != want {
		t.Errorf("got %d parameters, want %d", got, want)
	}
}

func TestPieces(t *testing.T) {
	c := Config{Vocab: 6, Width: 512, Layers: 1, Heads: 4, Hidden: 8, Tied: true}
	m, err := NewModel(c, 1, [][]string{{"cabinet", "3"}, {"cabinet", "4"}, {"cabinet"}, {"shelf", "3"}, nil, {"lamp"}})
	if err != nil {
		t.Fatal(err)
	}
	e := m.find(t, "model.embed_tokens.weight")
	row := func(id int) []float32 { return e[id*c.Width : (id+1)*c.Width] }
	cosine := func(a, b int) float64 {
		var s float64
		for i, v := range row(a) {
			s += float64(v) * float64(row(b)[i])
		}
		return s / float64(c.Width) / deviation(row(a)) / deviation(row(b))
	}
	for _, v := range []struct {
		a, b int
		want float64
	}{{0, 1, 0.5 / 1.09}, {0, 3, 0.5 / 1.09}, {0, 2, math.Sqrt(0.5) / 1.09}, {1, 3, 0}, {2, 5, 0}, {0, 4, 0}} {
		if got := cosine(v.a, v.b); math.Abs(got-v.want) > 0.12 {
			t.Errorf("cosine of ids %d and %d is %v, want about %v", v.a, v.b, got, v.want)
		}
	}
	plain, _ := NewModel(c, 1, nil)
	if !slices.Equal(row(4), plain.find(t, "model.embed_tokens.weight")[4*c.Width:5*c.Width]) {
		t.Error("an id without words is not plain")
	}
	if _, err := NewModel(c, 1, make([][]string, 5)); err == nil {
		t.Error("words for 5 of 6 ids were accepted")
	}
}
