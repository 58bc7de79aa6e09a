package openai

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"skillmaster/policy"
)

// chooseStream tells the generators of choices from those that others make of the same seed.
const chooseStream = 0x43484f4f5345

// choose samples one of the allowed sequences: the server scores all of them, and at each position the ids that go on
// with one of them compete here, with their log-probabilities at p's temperature and through its filters.
func (s *Sampler) choose(ctx context.Context, prompt []int32, p policy.Sampling) (policy.Sample, error) {
	if s.wire.score == nil {
		return policy.Sample{}, fmt.Errorf("a choice among given replies by token ids: %w (dialect %s): decode freely, or use messages",
			ErrNotOffered, s.client.options.Dialect)
	}
	left, err := p.Choices()
	if err != nil {
		return policy.Sample{}, err
	}
	seqs := make([][]int32, len(left))
	for i, ids := range left {
		seqs[i] = slices.Concat(prompt, ids[:min(len(ids), p.MaxTokens)])
	}
	scores, err := s.score(ctx, seqs)
	if err != nil {
		return policy.Sample{}, err
	}
	for i := range scores {
		scores[i] = scores[i][len(prompt):]
	}
	return walk(left, scores, p), nil
}

// walk goes down the trie of the sorted sequences, whose log-probabilities are scores.
func walk(left [][]int32, scores [][]float32, p policy.Sampling) policy.Sample {
	random := rand.New(rand.NewPCG(p.Seed, chooseStream))
	out := policy.Sample{IDs: []int32{}, LogProbs: []float32{}, Among: []float32{}}
	for depth := range p.MaxTokens {
		branches := fork(left, scores, depth)
		i := pick(branches, p, random)
		b := branches[i]
		left, scores = left[b.from:b.to], scores[b.from:b.to]
		out.IDs = append(out.IDs, b.id)
		out.LogProbs = append(out.LogProbs, b.logProb)
		out.Among = append(out.Among, float32(float64(b.logProb)-logSum(branches)))
		if len(left) == 1 && len(left[0]) == depth+1 {
			return out // Stopped
		}
	}
	out.Stop = policy.Length
	return out
}

// branch is an id that can come next, and the sequences that begin with it.
type branch struct {
	id       int32
	logProb  float32
	from, to int
}

// fork returns the branches of sorted sequences at a depth, ids ascending.
func fork(left [][]int32, scores [][]float32, depth int) []branch {
	var all []branch
	for i, ids := range left {
		if n := len(all); n > 0 && all[n-1].id == ids[depth] {
			all[n-1].to = i + 1
			continue
		}
		all = append(all, branch{ids[depth], scores[i][depth], i, i + 1})
	}
	return all
}

// logSum is log Σ exp of the branches' log-probabilities.
func logSum(all []branch) float64 {
	most := float64(slices.MaxFunc(all, func(a, b branch) int { return cmp.Compare(a.logProb, b.logProb) }).logProb)
	var sum float64
	for _, b := range all {
		sum += math.Exp(float64(b.logProb) - most)
	}
	return most + math.Log(sum)
}

// pick chooses a branch: temperature first, then top-k, then top-p over what top-k left; of equal ones the lower id comes
// first.
func pick(all []branch, p policy.Sampling, random *rand.Rand) int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].logProb, all[a].logProb) })
	if p.Temperature == 0 {
		return order[0]
	}
	if p.TopK > 0 && p.TopK < len(order) {
		order = order[:p.TopK]
	}
	weights, sum := make([]float64, len(order)), 0.0
	for k, i := range order {
		weights[k] = math.Exp(float64(all[i].logProb-all[order[0]].logProb) / p.Temperature)
		sum += weights[k]
	}
	if p.TopP > 0 && p.TopP < 1 {
		kept := 0.0
		for k, w := range weights {
			if kept += w; kept >= p.TopP*sum {
				order, weights, sum = order[:k+1], weights[:k+1], kept
				break
			}
		}
	}
	u := random.Float64() * sum
	for k, w := range weights {
		if u -= w; u < 0 {
			return order[k]
		}
	}
	return order[len(order)-1]
}
