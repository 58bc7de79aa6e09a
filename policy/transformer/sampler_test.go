package transformer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"skillmaster/grpo"
	"skillmaster/policy"
)

func ramp(n, from, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((from + i*i) % vocab)
	}
	return ids
}

// TestOneNumber: sampling, scoring and training give one log-probability, bit for bit, past the end of a chunk too.
func TestOneNumber(t *testing.T) {
	for name := range variants {
		for _, p := range []Precision{Float32, BFloat16} {
			oneNumber(t, fmt.Sprint(name, " ", p), testModel(t, name), p)
			oneNumber(t, fmt.Sprint(name, " with an adapter, ", p), adaptedModel(t, name), p)
		}
	}
}

func oneNumber(t *testing.T, name string, m *Model, p Precision) {
	t.Helper()
	s := m.Sampler(SamplerOptions{Workers: 2, Precision: p})
	prompt := ramp(30, 1, m.config.Vocab)
	got, err := s.Sample(t.Context(), prompt, policy.Sampling{Temperature: 1, MaxTokens: 150, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	ids := append(prompt, got.IDs...)
	scores, err := s.Score(t.Context(), [][]int32{ids})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(scores[0][30:], got.LogProbs) {
		t.Errorf("%s: scored %v, sampled %v", name, scores[0][30:], got.LogProbs)
	}
	d := grpo.Datum{IDs: ids, Stream: make([]grpo.Stream, len(ids)), Advantage: make([]float32, len(ids)), LogProb: scores[0]}
	for i := range ids {
		d.Weight = append(d.Weight, min(1, float32(i)))
	}
	stats, err := NewLearner(m, LearnerOptions{Precision: p}).Update(t.Context(), []grpo.Datum{d}, testOptim())
	if err != nil {
		t.Fatal(err)
	}
	if stats.Drift > 3e-7 { // scores are rounded to float32, training keeps float64
		t.Errorf("%s: training differs from sampling by %v", name, stats.Drift)
	}
}

// TestConversationIsReadOnce: a prompt that goes on from a sample costs the new ids only.
func TestConversationIsReadOnce(t *testing.T) {
	m := testModel(t, "grouped")
	s := m.Sampler(SamplerOptions{Workers: 1})
	ids := ramp(20, 3, m.config.Vocab)
	for turn := range uint64(8) {
		before := s.Counters()
		got, err := s.Sample(t.Context(), ids, policy.Sampling{Temperature: 1, MaxTokens: 6, Seed: turn})
		if err != nil {
			t.Fatal(err)
		}
		after := s.Counters()
		fresh := 20
		if turn > 0 {
			fresh = 5 + 1 // the observation, and the last id sampled
		}
		if n := after.Prefilled - before.Prefilled; n != fresh {
			t.Errorf("turn %d: %d positions were computed, want %d", turn, n, fresh)
		}
		if n := after.Cached - before.Cached; n != len(ids)-fresh {
			t.Errorf("turn %d: %d positions were found, want %d", turn, n, len(ids)-fresh)
		}
		if n := after.Decoded - before.Decoded; n != 6 || after.Samples != before.Samples+1 {
			t.Errorf("turn %d: %d ids were sampled, want 6", turn, n)
		}
		ids = append(append(ids, got.IDs...), ramp(5, int(turn), m.config.Vocab)...)
	}
}

// TestGroupSharesItsPrompt: eight calls at once with one prompt read it once, and each its last id.
func TestGroupSharesItsPrompt(t *testing.T) {
	m := testModel(t, "plain")
	prompt := ramp(150, 2, m.config.Vocab)
	for _, workers := range []int{1, 2} {
		c := sampleTogether(t, m, workers, slices.Repeat([][]int32{prompt}, 8))
		if c.Prefilled != 150+7 || c.Cached != 7*149 {
			t.Errorf("%d workers: %d positions computed, %d found; want %d and %d", workers, c.Prefilled, c.Cached, 157, 7*149)
		}
	}
}

// TestArmsShareTheirPrefix: prompts of the two arms of a probe begin alike, then one lists a skill more, then go on alike.
// What they begin with is read once by all plays of both arms, what follows the difference once by each arm.
func TestArmsShareTheirPrefix(t *testing.T) {
	m := testModel(t, "plain")
	start, skill, task := ramp(70, 2, m.config.Vocab), ramp(23, 5, m.config.Vocab), ramp(40, 9, m.config.Vocab)
	before, after := slices.Concat(start, task), slices.Concat(start, skill, task)
	if skill[0] == task[0] {
		t.Fatal("the arms go on alike")
	}
	for _, workers := range []int{1, 2} {
		c := sampleTogether(t, m, workers, [][]int32{before, after, before, after})
		if want := 70 + 40 + 63 + 2; c.Prefilled != want || c.Cached != 2*(110+133)-want {
			t.Errorf("%d workers: %d positions computed, %d found; want %d of %d", workers, c.Prefilled, c.Cached, want, 2*(110+133))
		}
	}
}

// sampleTogether samples after all prompts, none of which is begun before all are there, and returns what that took.
func sampleTogether(t *testing.T, m *Model, workers int, prompts [][]int32) Counters {
	t.Helper()
	s := m.Sampler(SamplerOptions{Workers: workers})
	s.running = workers
	var wg sync.WaitGroup
	for i, prompt := range prompts {
		wg.Go(func() {
			if _, err := s.Sample(t.Context(), prompt, policy.Sampling{Temperature: 1, MaxTokens: 3, Seed: uint64(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	for there := 0; there < len(prompts); runtime.Gosched() {
		s.mu.Lock()
		if there = len(s.pending); there == len(prompts) {
			s.running = 0
			s.employ()
		}
		s.mu.Unlock()
	}
	wg.Wait()
	return s.Counters()
}

func TestNothingIsLeftRunning(t *testing.T) {
	m := testModel(t, "plain")
	before := runtime.NumGoroutine()
	s := m.Sampler(SamplerOptions{Workers: 4})
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			if _, err := s.Sample(t.Context(), ramp(9, i, 37), policy.Sampling{Temperature: 1, MaxTokens: 9}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.ended.Wait()
	if s.running != 0 || s.active != 0 || len(s.pending) != 0 || len(s.reading) != 0 {
		t.Errorf("%d workers, %d active, %d pending, %d reading", s.running, s.active, len(s.pending), len(s.reading))
	}
	for range 100 { // goroutines that were waited for may still be on their way out
		if runtime.NumGoroutine() <= before {
			break
		}
		runtime.Gosched()
	}
	s.cache.check(t)
	if s.cache.nodes == 0 || s.cache.idle.newer == &s.cache.idle {
		t.Error("nothing is remembered")
	}
}

func TestClose(t *testing.T) {
	m := testModel(t, "plain")
	s := m.Sampler(SamplerOptions{Workers: 2, Slots: 2})
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			_, err := s.Sample(t.Context(), ramp(5, i, 37), policy.Sampling{Temperature: 1, MaxTokens: 190})
			if err != nil && !errors.Is(err, ErrClosed) {
				t.Errorf("got %v, want %v", err, ErrClosed)
			}
		})
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if _, err := s.Sample(t.Context(), ramp(5, 1, 37), policy.Sampling{MaxTokens: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close got %v, want %v", err, ErrClosed)
	}
}

// TestCancelledSamplesFreeTheirSlots: the calls that were given up do not hold up the others.
func TestCancelledSamplesFreeTheirSlots(t *testing.T) {
	m := testModel(t, "plain")
	s := m.Sampler(SamplerOptions{Workers: 1, Slots: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() { s.Sample(ctx, ramp(5, i, 37), policy.Sampling{Temperature: 1, MaxTokens: 190}) })
	}
	cancel()
	if _, err := s.Sample(t.Context(), ramp(5, 1, 37), policy.Sampling{MaxTokens: 3}); err != nil {
		t.Error(err)
	}
	wg.Wait()
	s.ended.Wait()
	if s.active != 0 || len(s.reading) != 0 {
		t.Errorf("%d active, %d reading", s.active, len(s.reading))
	}
	s.cache.check(t)
}

func TestSampleRefusesWeightsThatAreNotFinite(t *testing.T) {
	m := testModel(t, "plain")
	fill(m.find(t, "model.norm.weight"), float32(math.Inf(1)))
	s := m.Sampler(SamplerOptions{})
	if got, err := s.Sample(t.Context(), ramp(5, 1, 37), policy.Sampling{MaxTokens: 3}); err == nil {
		t.Errorf("got %+v, want an error", got)
	}
	if got, err := s.Score(t.Context(), [][]int32{ramp(5, 1, 37)}); err == nil {
		t.Errorf("got scores %v, want an error", got)
	}
}
