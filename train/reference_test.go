package train

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"skillmaster/policy/transformer"
)

// With a KL term the reference is the policy that learning began with: the first update finds no distance to it, later
// ones do, and a run that goes on needs the same one again.
func TestReferencePolicy(t *testing.T) {
	cfg := hallConfig()
	cfg.Learn.KL, cfg.Learn.Rate, cfg.Learn.RateWarmUp = 0.1, 1e-3, 0
	cfg.Evaluate = 0
	m := &memory{}
	if err := halls(t, cfg, 2, m).Run(t.Context(), Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	var kl []float64
	for _, r := range m.reports {
		if r.Phase == Learning {
			v, ok := r.Metrics["learn/kl_k3"]
			if !ok {
				t.Fatalf("iteration %d measured no KL", r.Round)
			}
			kl = append(kl, v)
		}
	}
	if math.Abs(kl[0]) > 1e-9 || kl[2] <= 1e-6 {
		t.Errorf("KL by iteration %v, want 0 at first and then more", kl)
	}

	at := 3 // after the first iteration
	resume := func(reference *transformer.Model) (*memory, error) {
		rest := &memory{}
		trainer := halls(t, cfg, 2, rest)
		if reference != nil {
			trainer.Reference = reference.Sampler(transformer.SamplerOptions{})
		}
		if err := trainer.Learner.Load(t.Context(), bytes.NewReader(m.weights[at])); err != nil {
			t.Fatal(err)
		}
		return rest, trainer.Run(t.Context(), m.checkpoints[at])
	}
	if _, err := resume(nil); err == nil || !strings.Contains(err.Error(), "reference") {
		t.Errorf("going on without the reference: %v", err)
	}
	warm, err := transformer.ReadModel(t.Context(), bytes.NewReader(m.weights[2]))
	if err != nil {
		t.Fatal(err)
	}
	rest, err := resume(warm)
	if err != nil {
		t.Fatal(err)
	}
	same(t, rest, &memory{reports: m.reports[at+1:], checkpoints: m.checkpoints[at+1:], weights: m.weights[at+1:]})
}
