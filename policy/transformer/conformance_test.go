package transformer

import (
	"testing"

	"skillmaster/policy"
	"skillmaster/policy/policytest"
)

// conformants are the models and machines the suites run with.
var conformants = map[string]struct {
	variant string
	sampler SamplerOptions
	learner LearnerOptions
	model   func(t testing.TB, variant string) *Model
}{
	"one worker":    {"plain", SamplerOptions{Workers: 1}, LearnerOptions{Workers: 1}, testModel},
	"three workers": {"grouped", SamplerOptions{Workers: 3, Slots: 4}, LearnerOptions{Workers: 3}, testModel},
	"no cache":      {"qwen", SamplerOptions{Workers: 2, CacheBytes: -1}, LearnerOptions{Workers: 2, Lanes: 1}, testModel},
	"bfloat16":      {"grouped", SamplerOptions{Workers: 2, Precision: BFloat16}, LearnerOptions{Workers: 2, Precision: BFloat16}, testModel},
	"an adapter":    {"grouped", SamplerOptions{Workers: 2}, LearnerOptions{Workers: 2}, wideAdapter},
}

// wideAdapter has ranks enough for a model whose head is wide enough to learn a batch by heart.
func wideAdapter(t testing.TB, variant string) *Model {
	t.Helper()
	m := testModel(t, variant)
	if err := m.Adapt(AdapterConfig{Rank: 24, Scale: 4}, 8); err != nil {
		t.Fatal(err)
	}
	return m
}

func limitsOf(variant string) policytest.Limits {
	return policytest.Limits{Vocab: variants[variant].Vocab, Context: variants[variant].Context}
}

func TestSamplerConforms(t *testing.T) {
	for name, c := range conformants {
		t.Run(name, func(t *testing.T) {
			policytest.RunSampler(t, limitsOf(c.variant), func(t *testing.T) policy.Sampler {
				return c.model(t, c.variant).Sampler(c.sampler)
			})
		})
	}
}

func TestScorerConforms(t *testing.T) {
	for name, c := range conformants {
		t.Run(name, func(t *testing.T) {
			policytest.RunScorer(t, limitsOf(c.variant), func(t *testing.T) policy.Scorer {
				return c.model(t, c.variant).Sampler(c.sampler)
			})
		})
	}
}

func TestLearnerConforms(t *testing.T) {
	for name, c := range conformants {
		t.Run(name, func(t *testing.T) {
			policytest.RunLearner(t, limitsOf(c.variant), func(t *testing.T) policy.Learner {
				return NewLearner(c.model(t, c.variant), c.learner)
			})
		})
	}
}
