package transformer

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"skillmaster/grpo"
)

// torchValues is what testdata/make_torch_values.py writes.
type torchValues struct {
	Config     Config
	IDs        []int32
	Weights    []float32
	Advantages []float32
	Sampling   []float32
	Reference  []float32
	KL         float64
	Entropy    float64
	LogProbs   []float64 `json:"log_probs"` // of IDs[1:]
	Losses     map[string]struct {
		Loss      float64
		Gradients map[string][]float64
	}
}

// TestAgainstTorch compares the loss and every entry of every gradient with PyTorch's, in float64 there and float32 here.
func TestAgainstTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/torch_values.json")
	if err != nil {
		t.Fatal(err)
	}
	var v torchValues
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	m := torchModel(t, v.Config)
	scores, err := m.Sampler(SamplerOptions{}).Score(t.Context(), [][]int32{v.IDs})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range v.LogProbs {
		if got := float64(scores[0][i+1]); !near(got, want) {
			t.Errorf("log-probability at position %d: got %v, want %v", i+1, got, want)
		}
	}
	d := grpo.Datum{
		IDs: v.IDs, Stream: make([]grpo.Stream, len(v.IDs)), Weight: v.Weights, Advantage: v.Advantages,
		LogProb: v.Sampling, Ref: v.Reference,
	}
	for name, loss := range map[string]grpo.Loss{
		"cross_entropy": {}, "policy": {Kind: grpo.PolicyGradient, KL: v.KL, Entropy: v.Entropy},
	} {
		t.Run(name, func(t *testing.T) { compareTorch(t, m, d, loss, v.Losses[name].Loss, v.Losses[name].Gradients) })
	}
}

func compareTorch(t *testing.T, m *Model, d grpo.Datum, loss grpo.Loss, value float64, gradients map[string][]float64) {
	l := NewLearner(m, LearnerOptions{Workers: 1})
	l.prepare()
	gradient, sum, err := l.gradient(t.Context(), []grpo.Datum{d}, loss)
	if err != nil {
		t.Fatal(err)
	}
	if !near(sum.loss, value) {
		t.Errorf("loss: got %v, want %v", sum.loss, value)
	}
	if len(gradients) != len(m.layout.tensors) {
		t.Fatalf("there are %d stored gradients and %d tensors", len(gradients), len(m.layout.tensors))
	}
	for _, tensor := range m.layout.tensors {
		want, got := gradients[tensor.name], tensor.of(gradient)
		if len(want) != len(got) {
			t.Fatalf("%s: got %d entries, want %d", tensor.name, len(got), len(want))
		}
		for i := range want {
			if !near(float64(got[i]), want[i]) {
				t.Errorf("%s[%d]: got %v, want %v", tensor.name, i, got[i], want[i])
			}
		}
	}
}

// torchModel fills a model by the formula of the script.
func torchModel(t *testing.T, c Config) *Model {
	t.Helper()
	m, err := NewModel(c, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for number, tensor := range m.layout.tensors {
		for i := range tensor.of(m.values) {
			v := 0.4 * math.Sin(1.7*float64(number)+0.9*float64(i))
			if len(tensor.shape) == 1 && !m.isBias(tensor) {
				v++
			}
			m.values[tensor.at+i] = float32(v)
		}
	}
	return m
}
