package transformer

import (
	"testing"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// A learner that forgets its moments takes the step of one that never had any.
func TestRestartForgetsMoments(t *testing.T) {
	config := Config{Vocab: 11, Width: 8, Layers: 1, Heads: 2, Hidden: 12, Context: 16, Tied: true}
	batch := []grpo.Datum{{
		IDs: []int32{1, 2, 3, 4}, Stream: make([]grpo.Stream, 4), Weight: []float32{0, 1, 1, 1}, Advantage: make([]float32, 4),
	}}
	o := policy.Optim{Rate: 1e-2, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}
	newLearner := func() *Learner {
		m, err := NewModel(config, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		return NewLearner(m, LearnerOptions{Workers: 1})
	}
	update := func(l *Learner, o policy.Optim) {
		t.Helper()
		if _, err := l.Update(t.Context(), batch, o); err != nil {
			t.Fatal(err)
		}
	}
	old, fresh, kept := newLearner(), newLearner(), newLearner()
	update(old, o)
	copy(fresh.model.values, old.model.values)
	copy(kept.model.values, old.model.values)
	fresh.stale, kept.stale = true, true
	copy(kept.means, old.means)
	copy(kept.squares, old.squares)
	kept.step = old.step
	restart := o
	restart.Restart = true
	update(old, restart)
	update(fresh, o)
	update(kept, o)
	same := true
	for i, v := range old.model.values {
		if v != fresh.model.values[i] {
			t.Fatalf("value %d is %v, a fresh learner's is %v", i, v, fresh.model.values[i])
		}
		same = same && v == kept.model.values[i]
	}
	if same {
		t.Error("the moments made no difference")
	}
}
