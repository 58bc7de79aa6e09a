package tinker

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/policy/policytest"
	"skillmaster/policy/transformer"
)

const (
	testVocab   = 50
	testContext = 80
)

// here is a learner of a tiny model that nobody trained, the same each time.
func here(t testing.TB, rank int, seed uint64) *transformer.Learner {
	t.Helper()
	m, err := transformer.NewModel(transformer.Config{Vocab: testVocab, Width: 16, Layers: 1, Heads: 2, Hidden: 24, Context: testContext}, 7, nil)
	if err == nil && rank > 0 {
		err = m.Adapt(transformer.AdapterConfig{Rank: rank}, seed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return transformer.NewLearner(m, transformer.LearnerOptions{Workers: 2, Sampler: transformer.SamplerOptions{Workers: 2, CacheBytes: 1 << 20}})
}

// serve is a server of the tiny model.
func serve(t testing.TB, folder string, change func(*Served)) *Server {
	t.Helper()
	s := Served{Model: "tiny", Vocab: testVocab, Context: testContext, Folder: folder, Now: time.Now, Open: func(_ context.Context, rank int, seed uint64) (policy.Learner, error) {
		return here(t, rank, seed), nil
	}}
	if change != nil {
		change(&s)
	}
	v, err := NewServer(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func client(t testing.TB, o Options) *Client {
	t.Helper()
	if o.Dialect == "" {
		o.Dialect = SkillMaster
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// there is a learner on a server.
func there(t testing.TB, c *Client, o LearnerOptions) *Learner {
	t.Helper()
	o.Base = "tiny"
	l, err := c.NewLearner(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rows are sequences as training makes them: two streams, sampling and reference log-probabilities.
func rows(seed uint64, n int) []grpo.Datum {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []grpo.Datum
	for range n {
		size := 4 + r.IntN(testContext-4)
		d := grpo.Datum{}
		for t := range size {
			stream := grpo.Stream(r.IntN(3))
			w := float32(0)
			if t > 0 && stream != grpo.Context {
				w = float32(0.3+r.Float64()) / 40
			}
			d.IDs = append(d.IDs, int32(r.IntN(testVocab)))
			d.Stream, d.Weight, d.Advantage = append(d.Stream, stream), append(d.Weight, w), append(d.Advantage, float32(r.NormFloat64()))
			d.LogProb = append(d.LogProb, float32(-3.9+0.4*r.NormFloat64()))
			d.Ref = append(d.Ref, float32(-3.9+0.4*r.NormFloat64()))
		}
		out = append(out, d)
	}
	return out
}

var losses = map[string]grpo.Loss{
	"cross-entropy":   {},
	"policy gradient": {Kind: grpo.PolicyGradient},
	"all of it":       {Kind: grpo.PolicyGradient, ClipLow: 0.2, ClipHigh: 0.28, DualClip: 3, KL: 0.05, MaxDrift: 2},
}

func optim(l grpo.Loss) policy.Optim {
	return policy.Optim{Loss: l, Rate: 3e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01, Clip: 1}
}

// scores are those of a learner's weights as they are.
func scores(t testing.TB, l policy.Learner, batch []grpo.Datum) [][]float32 {
	t.Helper()
	s, err := l.Sampler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seqs [][]int32
	for _, d := range batch {
		seqs = append(seqs, d.IDs)
	}
	out, err := s.(policy.Scorer).Score(t.Context(), seqs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apart is the largest difference.
func apart(a, b [][]float32) float64 {
	most := 0.0
	for i := range a {
		for j := range a[i] {
			most = math.Max(most, math.Abs(float64(a[i][j]-b[i][j])))
		}
	}
	return most
}

// near says whether two numbers are the same but for rounding; NaN, which is not measured, is near NaN.
func near(a, b, tolerance float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tolerance*(1+math.Abs(b))
}

// Learning through a server is learning here: the same log-probabilities to the last bit, and after three steps of any loss
// the same weights but for the rounding of advantages to float32.
func TestLearnsAsHere(t *testing.T) {
	url := listen(t, serve(t, t.TempDir(), nil))
	for name, loss := range losses {
		for _, rank := range []int{0, 4} {
			c := client(t, Options{URL: url})
			a, b := policy.Learner(here(t, rank, 3)), there(t, c, LearnerOptions{Rank: rank, Seed: 3, Unchecked: true})
			batch := rows(5, 7)
			if d := apart(scores(t, a, batch), scores(t, b, batch)); d != 0 {
				t.Errorf("%s, rank %d: log-probabilities differ by %v before a step", name, rank, d)
			}
			for step := range uint64(3) {
				batch := rows(step, 7)
				want, err := a.Update(t.Context(), batch, optim(loss))
				if err != nil {
					t.Fatal(err)
				}
				got, err := b.Update(t.Context(), batch, optim(loss))
				if err != nil {
					t.Fatal(err)
				}
				for what, pair := range map[string][2]float64{
					"loss": {got.Loss, want.Loss}, "norm": {got.GradNorm, want.GradNorm}, "KL": {got.KL, want.KL}, "drift": {got.Drift, want.Drift},
					"clipped": {got.ClipShare, want.ClipShare}, "tokens": {float64(got.Tokens), float64(want.Tokens)}, "trained": {float64(got.Trained), float64(want.Trained)},
				} {
					if !near(pair[0], pair[1], 1e-5) {
						t.Errorf("%s, rank %d, step %d: %s is %v, here it is %v", name, rank, step, what, pair[0], pair[1])
					}
				}
				if !math.IsNaN(got.Entropy) {
					t.Errorf("%s: an entropy of %v, which nobody measured", name, got.Entropy)
				}
			}
			if d := apart(scores(t, a, batch), scores(t, b, batch)); d > 2e-5 {
				t.Errorf("%s, rank %d: log-probabilities differ by %v after three steps", name, rank, d)
			}
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// One pass is the same step where the policy is the one that sampled.
func TestOnePass(t *testing.T) {
	url := listen(t, serve(t, t.TempDir(), nil))
	c := client(t, Options{URL: url})
	a, b := policy.Learner(here(t, 0, 0)), there(t, c, LearnerOptions{OnePass: true})
	batch := rows(5, 7)
	for i, row := range scores(t, a, batch) {
		batch[i].LogProb = row
	}
	o := optim(grpo.Loss{Kind: grpo.PolicyGradient, ClipLow: 0.2, ClipHigh: 0.3, KL: 0.1})
	want, err := a.Update(t.Context(), batch, o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Update(t.Context(), batch, o)
	if err != nil {
		t.Fatal(err)
	}
	if !near(got.Loss, want.Loss, 1e-5) || !near(got.GradNorm, want.GradNorm, 1e-5) || !near(got.KL, want.KL, 1e-5) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if d := apart(scores(t, a, batch), scores(t, b, batch)); d > 2e-5 {
		t.Errorf("log-probabilities differ by %v", d)
	}
	for name, l := range map[string]grpo.Loss{"dual clip": {Kind: grpo.PolicyGradient, DualClip: 3}, "truncation": {Kind: grpo.PolicyGradient, MaxDrift: 2}} {
		if _, err := b.Update(t.Context(), batch, optim(l)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A sample from afar is the sample that the model gives here, to the last bit, and says which weights it is of.
func TestSamplesAsHere(t *testing.T) {
	url := listen(t, serve(t, t.TempDir(), nil))
	l := there(t, client(t, Options{URL: url}), LearnerOptions{Unchecked: true})
	for version := range 2 {
		mine := here(t, 0, 0)
		for range version {
			for _, x := range []policy.Learner{mine, l} {
				if _, err := x.Update(t.Context(), rows(1, 4), optim(losses["cross-entropy"])); err != nil {
					t.Fatal(err)
				}
			}
		}
		a, err := mine.Sampler(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Sampler(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			p := policy.Sampling{Temperature: 0.9, TopP: 0.95, TopK: 20, MaxTokens: 12, Seed: seed << 60, Stop: []int32{int32(seed)}}
			want, err := a.Sample(t.Context(), []int32{5, 9, 20, 13}, p)
			if err != nil {
				t.Fatal(err)
			}
			got, err := b.Sample(t.Context(), []int32{5, 9, 20, 13}, p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.IDs, want.IDs) || got.Stop != want.Stop || got.Version != version || version == 0 && !slices.Equal(got.LogProbs, want.LogProbs) {
				t.Errorf("version %d: got %+v, want %+v", version, got, want)
			}
		}
	}
}

// What goes over the wire and back keeps the contracts of samplers and scorers. Choices cannot be asked for.
func TestConforms(t *testing.T) {
	url := listen(t, serve(t, t.TempDir(), nil))
	limits := policytest.Limits{Vocab: testVocab, Context: testContext}
	open := func(t *testing.T) *Sampler {
		s, err := client(t, Options{URL: url}).Base(t.Context(), "tiny", testContext, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("scorer", func(t *testing.T) {
		policytest.RunScorer(t, limits, func(t *testing.T) policy.Scorer { return open(t) })
	})
}
