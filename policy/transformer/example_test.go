package transformer_test

import (
	"context"
	"fmt"
	"log"

	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/policy/transformer"
)

// A small model learns to say 1 2 3 after 0.
func Example() {
	model, err := transformer.NewModel(transformer.Config{Vocab: 8, Width: 16, Layers: 1, Heads: 2, KVHeads: 2, Hidden: 32, Context: 16}.Complete(), 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	learner := transformer.NewLearner(model, transformer.LearnerOptions{Workers: 1})
	ctx := context.Background()
	row := grpo.Datum{
		IDs: []int32{0, 1, 2, 3}, Stream: []grpo.Stream{grpo.Context, grpo.Action, grpo.Action, grpo.Action}, Weight: []float32{0, 1, 1, 1},
		Advantage: make([]float32, 4),
	}
	for range 60 {
		if _, err := learner.Update(ctx, []grpo.Datum{row}, policy.Optim{Rate: 0.02, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Loss: grpo.Loss{Kind: grpo.CrossEntropy}}); err != nil {
			log.Fatal(err)
		}
	}
	sampler, err := learner.Sampler(ctx)
	if err != nil {
		log.Fatal(err)
	}
	s, err := sampler.Sample(ctx, []int32{0}, policy.Sampling{MaxTokens: 3})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.IDs)
	// Output: [1 2 3]
}
