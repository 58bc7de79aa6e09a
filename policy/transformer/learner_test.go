package transformer

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"skillmaster/grpo"
	"skillmaster/policy"
)

func updateTwice(t *testing.T, name string, o LearnerOptions) ([]byte, policy.Stats) {
	t.Helper()
	l := NewLearner(testModel(t, name), o)
	var s policy.Stats
	for range 2 {
		var err error
		optim := testOptim()
		optim.Loss = grpo.Loss{Kind: grpo.PolicyGradient, ClipLow: 0.2, ClipHigh: 0.3, KL: 0.1, Entropy: 0.01}
		if s, err = l.Update(t.Context(), testBatch(l.model.config, 30, 5, 70, 2, 41, 9, 30), optim); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := l.Save(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), s
}

func TestWorkersDoNotChangeAnything(t *testing.T) {
	for name := range variants {
		want, wantStats := updateTwice(t, name, LearnerOptions{Workers: 1})
		for workers := 2; workers <= 5; workers++ {
			got, stats := updateTwice(t, name, LearnerOptions{Workers: workers})
			if !bytes.Equal(got, want) || stats != wantStats {
				t.Errorf("%s with %d workers: bytes equal %v, got %+v, want %+v", name, workers, bytes.Equal(got, want), stats, wantStats)
			}
		}
	}
}

// TestRecompute: computing layers again changes no bit, and keeps what ActivationBytes says.
func TestRecompute(t *testing.T) {
	for name := range variants {
		want, wantStats := updateTwice(t, name, LearnerOptions{Workers: 2})
		got, stats := updateTwice(t, name, LearnerOptions{Workers: 2, Recompute: true})
		if !bytes.Equal(got, want) || stats != wantStats {
			t.Errorf("%s: bytes equal %v, got %+v, want %+v", name, bytes.Equal(got, want), stats, wantStats)
		}
		for _, recompute := range []bool{false, true} {
			m := testModel(t, name)
			w := m.snapshot(Float32, 1)
			p := newPass(w, recompute)
			p.forward(ramp(150, 1, m.config.Vocab))
			if got, want := p.kept(), m.config.ActivationBytes(150, recompute); got != want {
				t.Errorf("%s, recompute %v: a pass keeps %d bytes, ActivationBytes says %d", name, recompute, got, want)
			}
		}
	}
}

func TestSplit(t *testing.T) {
	var batch []grpo.Datum
	for _, n := range []int{3, 9, 4, 9, 1, 2} {
		batch = append(batch, grpo.Datum{IDs: make([]int32, n)})
	}
	// 9 | 9 | 4; then 3 to the third, 2 and 1 where 7 are.
	want := [][]int{{1}, {3}, {0, 2, 5}}
	want[0] = append(want[0], 4) // 9, 9 and 9: the first of them
	if got := split(batch, 3); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := split(batch[:1], 3); len(got) != 1 {
		t.Errorf("one datum in %d lanes", len(got))
	}
}

// TestStepByHand compares one clipped step with AdamW written out in float64.
func TestStepByHand(t *testing.T) {
	m := testModel(t, "qwen")
	before := slices.Clone(m.values)
	l := NewLearner(m, LearnerOptions{Workers: 2})
	batch := testBatch(m.config, 12, 8)
	l.prepare()
	g, _, err := l.gradient(t.Context(), batch, grpo.Loss{})
	if err != nil {
		t.Fatal(err)
	}
	gradient := slices.Clone(g)
	o := policy.Optim{Rate: 0.01, Beta1: 0.8, Beta2: 0.9, Epsilon: 1e-6, WeightDecay: 0.2, Clip: 0.5}
	s, err := l.Update(t.Context(), batch, o)
	if err != nil {
		t.Fatal(err)
	}
	var square float64
	for _, v := range gradient {
		square += float64(v) * float64(v)
	}
	norm := math.Sqrt(square)
	if math.Abs(s.GradNorm-norm) > 1e-6*norm || norm < o.Clip {
		t.Fatalf("got norm %v, want %v, above the clip", s.GradNorm, norm)
	}
	for _, tensor := range m.layout.tensors {
		keep := 1.0
		if len(tensor.shape) == 2 {
			keep = 1 - o.Rate*o.WeightDecay
		}
		for i, got := range tensor.of(m.values) {
			v := float64(tensor.of(gradient)[i]) * o.Clip / norm
			// The first step's corrected moments are v and v².
			want := keep*float64(tensor.of(before)[i]) - o.Rate*v/(math.Abs(v)+o.Epsilon)
			if math.Abs(float64(got)-want) > 1e-5 {
				t.Fatalf("%s[%d]: got %v, want %v", tensor.name, i, got, want)
			}
		}
	}
}

func TestStatistics(t *testing.T) {
	m := testModel(t, "plain")
	batch := testBatch(m.config, 20, 33)
	r := newReference(m)
	logps := r.logProbs(batch)
	var want policy.Stats
	var timed int
	for i, d := range batch {
		z := r.logits(d.IDs)
		for p, w := range d.Weight {
			if w == 0 {
				continue
			}
			want.Trained++
			_, entropy := logSoftmax(z[p-1])
			want.Entropy += entropy
			if d.LogProb != nil {
				timed++
				want.Drift += math.Abs(logps[i][p] - float64(d.LogProb[p]))
				k3, _ := grpo.K3(logps[i][p], float64(d.Ref[p]))
				want.KL += k3
				if ratio := math.Exp(logps[i][p] - float64(d.LogProb[p])); d.Advantage[p] > 0 && ratio > 1.1 || d.Advantage[p] < 0 && ratio < 0.9 {
					want.ClipShare++
				}
			}
		}
	}
	o := testOptim()
	o.Loss = grpo.Loss{Kind: grpo.PolicyGradient, ClipLow: 0.1, ClipHigh: 0.1}
	got, err := NewLearner(m, LearnerOptions{}).Update(t.Context(), batch, o)
	if err != nil {
		t.Fatal(err)
	}
	n := float64(want.Trained)
	for name, v := range map[string][2]float64{
		"entropy": {got.Entropy, want.Entropy / n}, "drift": {got.Drift, want.Drift / float64(timed)},
		"KL": {got.KL, want.KL / float64(timed)}, "clip share": {got.ClipShare, want.ClipShare / n},
	} {
		if !near(v[0], v[1]) {
			t.Errorf("%s: got %v, want %v", name, v[0], v[1])
		}
	}
	if got.Tokens != 53 || got.Trained != want.Trained || want.ClipShare == 0 {
		t.Errorf("got %+v, want 53 tokens, %d trained", got, want.Trained)
	}
}

// TestNotFinite: what is not finite is an error that names where, and leaves the learner as it was.
func TestNotFinite(t *testing.T) {
	infinite := float32(math.Inf(1))
	for _, c := range []struct {
		tensor string
		value  float32
		names  string
	}{
		{"model.layers.1.self_attn.v_proj.weight", infinite, "layer 1: attention"},
		{"model.layers.1.mlp.up_proj.weight", infinite, "layer 1: feed-forward"},
		{"model.layers.0.mlp.down_proj.weight", infinite, "layer 1: input"},
		{"model.embed_tokens.weight", infinite, "layer 0: input"},
		{"model.norm.weight", infinite, "the head"},
	} {
		m := testModel(t, "qwen")
		for _, tensor := range m.layout.tensors {
			if tensor.name == c.tensor {
				fill(tensor.of(m.values), c.value)
			}
		}
		checkRefusal(t, c.tensor, m, testBatch(m.config, 9, 14), c.names)
	}
	m := testModel(t, "qwen")
	batch := testBatch(m.config, 9, 14)
	batch[1].Weight[13] = 1e25 // the loss is finite, the square of the gradient is not in float32
	checkRefusal(t, "huge weight", m, batch, "gradient norm")
	batch[1].Weight[13] = 3e38
	batch[1].Weight[12] = 3e38
	checkRefusal(t, "infinite gradient", m, batch, "gradient of model.")
}

func checkRefusal(t *testing.T, name string, m *Model, batch []grpo.Datum, want string) {
	t.Helper()
	before := slices.Clone(m.values)
	for _, recompute := range []bool{false, true} {
		l := NewLearner(m, LearnerOptions{Workers: 2, Recompute: recompute})
		_, err := l.Update(t.Context(), batch, testOptim())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that names %q", name, err, want)
		}
		if l.step != 0 || m.version != 0 || !slices.EqualFunc(m.values, before, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Errorf("%s: the learner has changed", name)
		}
	}
}

// TestDeadDatums: positions whose gradient is zero throughout change nothing but the counts.
func TestDeadDatums(t *testing.T) {
	m := testModel(t, "grouped")
	batch := testBatch(m.config, 20, 30)
	dead := testBatch(m.config, 25)[0]
	clear(dead.Advantage)
	loss := grpo.Loss{Kind: grpo.PolicyGradient}
	gradient := func(b []grpo.Datum) []float32 {
		l := NewLearner(m, LearnerOptions{Lanes: 1})
		l.prepare()
		g, _, err := l.gradient(t.Context(), b, loss)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if !slices.Equal(gradient(append(slices.Clone(batch), dead)), gradient(batch)) {
		t.Error("a datum without advantages changed the gradient")
	}
}

// TestOverfit: a model learns a sequence by heart and then says it.
func TestOverfit(t *testing.T) {
	m, err := NewModel(variants["grouped"], 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := testBatch(m.config, 24)[0]
	for i := range d.Weight {
		d.Weight[i] = 1.0 / 23
	}
	d.Weight[0] = 0
	l := NewLearner(m, LearnerOptions{})
	o := testOptim()
	o.Rate, o.WeightDecay = 1e-2, 0
	var s policy.Stats
	for range 150 {
		if s, err = l.Update(t.Context(), []grpo.Datum{d}, o); err != nil {
			t.Fatal(err)
		}
	}
	if s.Loss > 0.05 {
		t.Errorf("after 150 steps the loss is %v", s.Loss)
	}
	sampler, err := l.Sampler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := sampler.Sample(t.Context(), d.IDs[:2], policy.Sampling{MaxTokens: 22})
	if err != nil || !slices.Equal(got.IDs, d.IDs[2:]) || got.Version != 150 {
		t.Errorf("got %v of version %d, %v; want %v", got.IDs, got.Version, err, d.IDs[2:])
	}
}
