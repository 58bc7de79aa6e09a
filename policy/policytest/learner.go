package policytest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// RunLearner checks that learners keep the contract of policy.Learner. open returns a new learner with the same weights every
// time.
func RunLearner(t *testing.T, l Limits, open func(t *testing.T) policy.Learner) {
	s := learnerSuite{l, open}
	t.Run("imitation", s.imitation)
	t.Run("advantages", s.advantages)
	t.Run("statistics", s.statistics)
	t.Run("repeatable", s.repeatable)
	t.Run("resume", s.resume)
	t.Run("snapshots", s.snapshots)
	t.Run("refusals", s.refusals)
	t.Run("damage", s.damage)
}

type learnerSuite struct {
	Limits
	open func(t *testing.T) policy.Learner
}

// Optim returns settings under which a small model learns a small batch in some dozens of steps.
func Optim(l grpo.Loss) policy.Optim {
	return policy.Optim{Loss: l, Rate: 3e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01, Clip: 1}
}

// batch returns sequences of different lengths with weight on about half their positions.
func (l Limits) batch(seed uint64) []grpo.Datum {
	var out []grpo.Datum
	trained := 0
	for i, n := range []int{9, 2, 40, 17, 23} {
		d := grpo.Datum{
			IDs: l.prompt(seed+uint64(i), n), Stream: make([]grpo.Stream, n), Weight: make([]float32, n), Advantage: make([]float32, n),
		}
		for t := 1; t < n; t += 1 + i%2 {
			d.Stream[t], d.Weight[t], d.Advantage[t] = grpo.Action, 1, float32(t%3-1)
			trained++
		}
		out = append(out, d)
	}
	for _, d := range out {
		for t := range d.Weight {
			d.Weight[t] /= float32(trained)
		}
	}
	return out
}

func update(t *testing.T, l policy.Learner, batch []grpo.Datum, o policy.Optim) policy.Stats {
	t.Helper()
	s, err := l.Update(t.Context(), batch, o)
	if err != nil {
		t.Fatalf("update: %v", err)
	}
	return s
}

func save(t *testing.T, l policy.Learner) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := l.Save(t.Context(), &b); err != nil {
		t.Fatalf("save: %v", err)
	}
	return b.Bytes()
}

func samplerOf(t *testing.T, l policy.Learner) policy.Sampler {
	t.Helper()
	s, err := l.Sampler(t.Context())
	if err != nil {
		t.Fatalf("sampler: %v", err)
	}
	closeAfter(t, s)
	return s
}

func (s learnerSuite) imitation(t *testing.T) {
	l := s.open(t)
	batch := s.batch(1)
	first := update(t, l, batch, Optim(grpo.Loss{})).Loss
	last := first
	for range 60 {
		last = update(t, l, batch, Optim(grpo.Loss{})).Loss
	}
	if !(last < first/2) {
		t.Errorf("the loss of one batch went from %v to %v in 60 steps", first, last)
	}
}

// advantages checks that ids with a positive advantage become likelier and those with a negative one less so.
func (s learnerSuite) advantages(t *testing.T) {
	l := s.open(t)
	d := grpo.Datum{IDs: s.prompt(2, 6), Stream: make([]grpo.Stream, 6), Weight: make([]float32, 6), Advantage: make([]float32, 6)}
	d.Weight[3], d.Advantage[3] = 0.5, 1
	d.Weight[5], d.Advantage[5] = 0.5, -1
	score := func() []float32 {
		sc, ok := samplerOf(t, l).(policy.Scorer)
		if !ok {
			t.Skip("the learner's samplers are no scorers")
		}
		rows, err := sc.Score(t.Context(), [][]int32{d.IDs})
		if err != nil {
			t.Fatal(err)
		}
		return rows[0]
	}
	before := score()
	for range 5 {
		update(t, l, []grpo.Datum{d}, Optim(grpo.Loss{Kind: grpo.PolicyGradient}))
	}
	if after := score(); !(after[3] > before[3] && after[5] < before[5]) {
		t.Errorf("log-probabilities went from %v to %v, want position 3 up and 5 down", before, after)
	}
}

func (s learnerSuite) statistics(t *testing.T) {
	batch := s.batch(3)
	ids, trained := 0, 0
	for _, d := range batch {
		ids += len(d.IDs)
		for _, w := range d.Weight {
			if w != 0 {
				trained++
			}
		}
	}
	got := update(t, s.open(t), batch, Optim(grpo.Loss{}))
	if got.Tokens != ids || got.Trained != trained {
		t.Errorf("got %d tokens, %d trained; want %d, %d", got.Tokens, got.Trained, ids, trained)
	}
	if !(got.GradNorm > 0) || !(got.Entropy >= 0 && got.Entropy <= math.Log(float64(s.Vocab))+1e-3) {
		t.Errorf("got gradient norm %v, entropy %v with %d ids", got.GradNorm, got.Entropy, s.Vocab)
	}
	if !math.IsNaN(got.KL) || !math.IsNaN(got.Drift) || got.ClipShare != 0 {
		t.Errorf("without reference and sampler: got KL %v, drift %v, clip share %v; want NaN, NaN, 0", got.KL, got.Drift, got.ClipShare)
	}
	s.agreeingStatistics(t)
}

// agreeingStatistics checks that log-probabilities that come from the policy itself show no drift, no KL and no clipping.
func (s learnerSuite) agreeingStatistics(t *testing.T) {
	l := s.open(t)
	sc, ok := samplerOf(t, l).(policy.Scorer)
	if !ok {
		return
	}
	batch := s.batch(4)
	for i, d := range batch {
		rows, err := sc.Score(t.Context(), [][]int32{d.IDs})
		if err != nil {
			t.Fatal(err)
		}
		batch[i].LogProb, batch[i].Ref = rows[0], rows[0]
	}
	got := update(t, l, batch, Optim(grpo.Loss{Kind: grpo.PolicyGradient, ClipLow: 0.2, ClipHigh: 0.2, KL: 0.1}))
	if !(got.Drift >= 0 && got.Drift <= agreement) || !(math.Abs(got.KL) <= agreement) || got.ClipShare != 0 {
		t.Errorf("against itself: got drift %v, KL %v, clip share %v; want 0", got.Drift, got.KL, got.ClipShare)
	}
}

func (s learnerSuite) repeatable(t *testing.T) {
	a, b := s.open(t), s.open(t)
	for i := range uint64(3) {
		batch, o := s.batch(i), Optim(grpo.Loss{Kind: grpo.PolicyGradient, Entropy: 0.01})
		got, want := update(t, a, batch, o), update(t, b, batch, o)
		if got.Loss != want.Loss || got.GradNorm != want.GradNorm {
			t.Errorf("update %d: got loss %v and norm %v, then %v and %v", i, got.Loss, got.GradNorm, want.Loss, want.GradNorm)
		}
	}
	if !bytes.Equal(save(t, a), save(t, b)) {
		t.Error("the same updates led to different bytes")
	}
}

// resume checks that a learner that is saved and loaded goes on to the same bytes as one that was not.
func (s learnerSuite) resume(t *testing.T) {
	o := Optim(grpo.Loss{})
	whole := s.open(t)
	for i := range uint64(2) {
		update(t, whole, s.batch(i), o)
	}
	saved := save(t, whole)
	resumed := s.open(t)
	update(t, resumed, s.batch(9), o) // what it was does not matter
	stream := bytes.NewReader(append(slices.Clone(saved), "what follows"...))
	if err := resumed.Load(t.Context(), stream); err != nil {
		t.Fatalf("load: %v", err)
	}
	if stream.Len() != len("what follows") {
		t.Errorf("load left %d bytes of the stream, want those that follow", stream.Len())
	}
	if !bytes.Equal(save(t, resumed), saved) {
		t.Error("what was loaded is saved as different bytes")
	}
	for i := range uint64(2) {
		update(t, whole, s.batch(2+i), o)
		update(t, resumed, s.batch(2+i), o)
	}
	if !bytes.Equal(save(t, resumed), save(t, whole)) {
		t.Error("after two more updates the resumed learner differs from the one that was not interrupted")
	}
}

// snapshots checks that a sampler goes on speaking with its weights while the learner learns.
func (s learnerSuite) snapshots(t *testing.T) {
	l := s.open(t)
	before := samplerOf(t, l)
	p := policy.Sampling{Temperature: 1, MaxTokens: 10, Seed: 1}
	want := sample(t, before, s.prompt(5, 4), p)
	for i := range uint64(10) {
		update(t, l, s.batch(i), Optim(grpo.Loss{}))
	}
	if d := different(sample(t, before, s.prompt(5, 4), p), want); d != "" {
		t.Errorf("after updates the earlier sampler says something else: %s", d)
	}
	after := sample(t, samplerOf(t, l), s.prompt(5, 4), p)
	if after.Version != want.Version+10 {
		t.Errorf("after 10 updates got version %d, want %d", after.Version, want.Version+10)
	}
	if slices.Equal(after.LogProbs, want.LogProbs) {
		t.Error("after 10 updates a new sampler has the old probabilities")
	}
}

// refusals checks that an update that cannot be made is an error and changes nothing.
func (s learnerSuite) refusals(t *testing.T) {
	l := s.open(t)
	update(t, l, s.batch(1), Optim(grpo.Loss{}))
	want := save(t, l)
	change := func(f func(b []grpo.Datum, o *policy.Optim) []grpo.Datum) error {
		o := Optim(grpo.Loss{})
		b := f(s.batch(2), &o)
		_, err := l.Update(t.Context(), b, o)
		return err
	}
	for name, f := range map[string]func(b []grpo.Datum, o *policy.Optim) []grpo.Datum{
		"an empty batch":  func([]grpo.Datum, *policy.Optim) []grpo.Datum { return nil },
		"no weight":       func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum { clear(b[0].Weight); return b[:1] },
		"weight at first": func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum { b[0].Weight[0] = 1; return b },
		"an unknown id":   func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum { b[2].IDs[3] = int32(s.Vocab); return b },
		"weight of NaN":   func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum { b[1].Weight[1] = float32(math.NaN()); return b },
		"infinite loss": func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum {
			b[1].Weight[1] = 3e38
			b[3].Weight[2] = 3e38
			return b
		},
		"a rate of NaN":    func(b []grpo.Datum, o *policy.Optim) []grpo.Datum { o.Rate = math.NaN(); return b },
		"a beta of 1":      func(b []grpo.Datum, o *policy.Optim) []grpo.Datum { o.Beta2 = 1; return b },
		"an unknown loss":  func(b []grpo.Datum, o *policy.Optim) []grpo.Datum { o.Loss.Kind = 99; return b },
		"a missing stream": func(b []grpo.Datum, _ *policy.Optim) []grpo.Datum { b[0].Stream = nil; return b },
		"a long sequence":  func([]grpo.Datum, *policy.Optim) []grpo.Datum { return s.long() },
		"a negative clip":  func(b []grpo.Datum, o *policy.Optim) []grpo.Datum { o.Clip = -1; return b },
	} {
		if err := change(f); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Update(ended, s.batch(2), Optim(grpo.Loss{})); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v, want %v", err, context.Canceled)
	}
	if !bytes.Equal(save(t, l), want) {
		t.Error("updates that were refused changed the learner")
	}
}

// long returns a sequence longer than the context.
func (l Limits) long() []grpo.Datum {
	n := l.Context + 1
	d := grpo.Datum{IDs: l.prompt(1, n), Stream: make([]grpo.Stream, n), Weight: make([]float32, n), Advantage: make([]float32, n)}
	d.Weight[1] = 1
	return []grpo.Datum{d}
}

// damage checks that a damaged checkpoint is an error and changes nothing.
func (s learnerSuite) damage(t *testing.T) {
	l := s.open(t)
	good := save(t, l)
	update(t, l, s.batch(1), Optim(grpo.Loss{}))
	want := save(t, l)
	for name, b := range map[string][]byte{
		"nothing": nil, "a byte": good[:1], "half": good[:len(good)/2], "all but a byte": good[:len(good)-1],
		"noise": bytes.Repeat([]byte{0xa5}, 4096), "zeros": make([]byte, 4096),
	} {
		if err := l.Load(t.Context(), bytes.NewReader(b)); err == nil {
			t.Errorf("loading %s: got no error", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Load(ended, bytes.NewReader(good)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v, want %v", err, context.Canceled)
	}
	if !bytes.Equal(save(t, l), want) {
		t.Error("what could not be loaded changed the learner")
	}
}
