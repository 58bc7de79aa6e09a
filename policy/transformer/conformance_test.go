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
}{
	"one worker":    {"plain", SamplerOptions{Workers: 1}, LearnerOptions{Workers: 1}},
	"three workers": {"grouped", SamplerOptions{Workers: 3, Slots: 4}, LearnerOptions{Workers: 3}},
	"no cache":      {"qwen", SamplerOptions{Workers: 2, CacheBytes: -1}, LearnerOptions{Workers: 2, Lanes: 1}},
}

func limitsOf(variant string) policytest.Limits {
	return policytest.Limits{Vocab: variants[variant].Vocab, Context: variants[variant].Context}
}

func TestSamplerConforms(t *testing.T) {
	for name, c := range conformants {
		t.Run(name, func(t *testing.T) {
			policytest.RunSampler(t, limitsOf(c.variant), func(t *testing.T) policy.Sampler {
				return testModel(t, c.variant).Sampler(c.sampler)
			})
		})
	}
}

func TestScorerConforms(t *testing.T) {
	for name, c := range conformants {
		t.Run(name, func(t *testing.T) {
			policytest.RunScorer(t, limitsOf(c.variant), func(t *testing.T) policy.Scorer {
				return testModel(t, c.variant).Sampler(c.sampler)
			})
		})
	}
}

func TestLearnerConforms(t *testing.T) {
	for name, c := range conformants {
		t.Run(name, func(t *testing.T) {
			policytest.RunLearner(t, limitsOf(c.variant), func(t *testing.T) policy.Learner {
				return NewLearner(testModel(t, c.variant), c.learner)
			})
		})
	}
}
