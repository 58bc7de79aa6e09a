package transformer

import (
	"math/rand/v2"
	"testing"
)

// A model with an induction circuit copies before it has learnt anything: of random ids that come a second time, far from the
// first, most are likelier than by chance, and the next one is far the likeliest; without it none is. Changed ids in between break the
// copy for one position alone.
func TestInduce(t *testing.T) {
	const vocab, length, gap = 512, 120, 400
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]int32, 0, 2*length+gap)
	for _, i := range r.Perm(vocab)[:length] {
		ids = append(ids, int32(i))
	}
	for range gap {
		ids = append(ids, int32(r.IntN(vocab)))
	}
	ids = append(ids, ids[:length]...)
	for _, c := range []struct {
		name   string
		config Config
	}{
		{"heads as wide as they may be", Config{Vocab: vocab, Width: 128, Layers: 2, Heads: 2, Hidden: 64, RopeBase: 1e6, Bias: true, Tied: true}},
		{"shared keys, more layers", Config{Vocab: vocab, Width: 192, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 64, Hidden: 64, RopeBase: 1e6, Bias: true, Tied: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := NewModel(c.config, 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			plain := meanLogProb(t, m, ids, length+gap+1)
			if err := m.Induce(); err != nil {
				t.Fatal(err)
			}
			first, again := meanLogProb(t, m, ids[:length], 1), meanLogProb(t, m, ids, length+gap+1)
			t.Logf("mean log-probability: %.2f the first time, %.2f the second; %.2f without the circuit", first, again, plain)
			if again < first+2 || again < plain+2 {
				t.Errorf("what was seen before is hardly likelier: %.2f, the first time %.2f, without the circuit %.2f", again, first, plain)
			}
		})
	}
}

// meanLogProb is that of the ids from a position on.
func meanLogProb(t *testing.T, m *Model, ids []int32, from int) float64 {
	t.Helper()
	scored, err := m.Sampler(SamplerOptions{Workers: 1}).Score(t.Context(), [][]int32{ids})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, l := range scored[0][from:] {
		sum += float64(l)
	}
	return sum / float64(len(ids)-from)
}

func TestInduceRefuses(t *testing.T) {
	for name, c := range map[string]Config{
		"no biases":  {Vocab: 8, Width: 16, Layers: 2, Heads: 2, Hidden: 8},
		"one layer":  {Vocab: 8, Width: 16, Layers: 1, Heads: 2, Hidden: 8, Bias: true},
		"one head":   {Vocab: 8, Width: 16, Layers: 2, Heads: 1, Hidden: 8, Bias: true},
		"heads of 6": {Vocab: 8, Width: 24, Layers: 2, Heads: 4, Hidden: 8, Bias: true},
	} {
		m, err := NewModel(c, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Induce(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
