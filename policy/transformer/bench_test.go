package transformer

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/policy/transformer/internal/simd"
)

// benchConfig is the small policy that learns household tasks: 1.3 million parameters.
var benchConfig = Config{Vocab: 2048, Width: 128, Layers: 4, Heads: 4, Hidden: 512, Tied: true}

func benchModel(b *testing.B) *Model {
	b.Helper()
	m, err := NewModel(benchConfig, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func randomIDs(r *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(benchConfig.Vocab))
	}
	return ids
}

// BenchmarkTrain updates on sequences of about 250 ids, every one of them with weight, or every third.
func BenchmarkTrain(b *testing.B) {
	for _, c := range []struct{ sequences, every int }{{6, 1}, {24, 1}, {24, 3}} {
		b.Run(fmt.Sprintf("sequences=%d/weighted=1in%d", c.sequences, c.every), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			var batch []grpo.Datum
			tokens := 0
			for range c.sequences {
				n := 150 + r.IntN(201)
				d := grpo.Datum{IDs: randomIDs(r, n), Stream: make([]grpo.Stream, n), Weight: make([]float32, n), Advantage: make([]float32, n)}
				for t := 1; t < n; t += c.every {
					d.Weight[t] = 1e-3
				}
				batch, tokens = append(batch, d), tokens+n
			}
			l := NewLearner(benchModel(b), LearnerOptions{})
			o := testOptim()
			start := cpuSeconds()
			for b.Loop() {
				if _, err := l.Update(b.Context(), batch, o); err != nil {
					b.Fatal(err)
				}
			}
			report(b, tokens*b.N, start)
		})
	}
}

// report gives tokens per second, and per second of one processor since start.
func report(b *testing.B, tokens int, start float64) {
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(tokens)/(cpuSeconds()-start), "tokens/cpu-s")
	b.Logf("kernel %s", simd.Kernel())
}

// BenchmarkSample plays 48 conversations at a time, each a prompt of 40 ids and then turns of a 15-token observation and
// an 8-token action. Every id counts, shown or sampled.
func BenchmarkSample(b *testing.B) {
	for _, turns := range []int{8, 24} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			s := benchModel(b).Sampler(SamplerOptions{})
			defer s.Close()
			start, run := cpuSeconds(), uint64(0)
			for b.Loop() {
				run++
				var wg sync.WaitGroup
				for i := range uint64(48) {
					wg.Go(func() { converse(b, s, run*100+i, turns) })
				}
				wg.Wait()
			}
			c := s.Counters()
			report(b, c.Prefilled+c.Decoded, start)
			b.ReportMetric(float64(c.Prefilled+c.Decoded)/float64(c.Steps), "rows/step")
		})
	}
}

// converse plays one conversation.
func converse(b *testing.B, s *Sampler, seed uint64, turns int) {
	r := rand.New(rand.NewPCG(seed, 0))
	ids := randomIDs(r, 40)
	for range turns {
		ids = append(ids, randomIDs(r, 15)...)
		got, err := s.Sample(b.Context(), ids, policy.Sampling{Temperature: 1, MaxTokens: 8, Seed: r.Uint64()})
		if err != nil {
			b.Error(err)
			return
		}
		ids = append(ids, got.IDs...)
	}
}

// BenchmarkScore scores sequences of 250 ids.
func BenchmarkScore(b *testing.B) {
	s := benchModel(b).Sampler(SamplerOptions{})
	r := rand.New(rand.NewPCG(1, 1))
	var seqs [][]int32
	for range 16 {
		seqs = append(seqs, randomIDs(r, 250))
	}
	start := cpuSeconds()
	for b.Loop() {
		if _, err := s.Score(b.Context(), seqs); err != nil {
			b.Fatal(err)
		}
	}
	report(b, 16*250*b.N, start)
}
