package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"text/tabwriter"
	"time"

	"skillmaster/episode"
	"skillmaster/grpo"
	"skillmaster/policy"
	"skillmaster/policy/transformer"

	"golang.org/x/sync/errgroup"
)

// benchEngineCmd measures the embedded transformer.
type benchEngineCmd struct {
	Width     int     `help:"Width of the residual stream." default:"128"`
	Layers    int     `help:"Layers." default:"4"`
	Heads     int     `help:"Query heads." default:"4"`
	KVHeads   int     `help:"Key and value heads." name:"kv-heads" default:"4"`
	Hidden    int     `help:"Width of the feed-forward layer." default:"512"`
	Vocab     int     `help:"Token ids." default:"2048"`
	Batch     int     `help:"Sequences of an update." default:"16"`
	Length    int     `help:"Ids of a sequence of an update." default:"256"`
	Sequences int     `help:"Sequences sampled at once." default:"48"`
	Prompt    int     `help:"Ids of a prompt." default:"128"`
	Sampled   int     `help:"Ids sampled after it." default:"64"`
	Workers   int     `help:"Cores to use. Default: all." default:"0"`
	Seconds   float64 `help:"Seconds to measure each part for, at least." default:"3"`
	JSON      bool    `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (benchEngineCmd) Help() string {
	return `Trains and samples on random ids with fresh weights of the given shape. Peak is what one core reaches with nothing but
multiply-adds, times the cores used; the share of it counts the model's multiply-adds (weights of matrices and attention,
backward twice forward), nothing else.

Examples:
  skillmaster bench engine
  skillmaster bench engine --width 256 --hidden 1024 --length 512 --json`
}

// engineBench is what was measured.
type engineBench struct {
	Kernel     string  `json:"kernel"`
	Workers    int     `json:"workers"`
	Parameters int     `json:"parameters"`
	Train      float64 `json:"train_tokens_per_second"`
	TrainPeak  float64 `json:"train_share_of_peak"`
	Sample     float64 `json:"sampled_tokens_per_second"`
	Read       float64 `json:"prompt_and_sampled_tokens_per_second"`
	Peak       float64 `json:"peak_gflops"`
}

func (c *benchEngineCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	if c.Batch < 1 || c.Length < 2 || c.Sequences < 1 || c.Prompt < 1 || c.Sampled < 1 || !(c.Seconds > 0) {
		return usage(errors.New("--batch, --sequences, --prompt, --sampled and --seconds must be positive, --length at least 2"))
	}
	if c.Workers <= 0 {
		c.Workers = runtime.NumCPU()
	}
	m, err := transformer.NewModel(transformer.Config{
		Vocab: c.Vocab, Width: c.Width, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, Hidden: c.Hidden,
		Context: max(c.Length, c.Prompt+c.Sampled), Tied: true,
	}, 1, nil)
	if err != nil {
		return usage(err)
	}
	b := engineBench{Kernel: transformer.Kernel(), Workers: c.Workers, Parameters: m.Parameters()}
	fmt.Fprintln(stderr, "peak")
	b.Peak = c.peak(ctx) * float64(c.Workers) / 1e9
	fmt.Fprintln(stderr, "sample")
	if err := c.sample(ctx, m, &b); err != nil {
		return err
	}
	fmt.Fprintln(stderr, "train")
	if err := c.train(ctx, m, &b); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(stdout, b)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "kernel\t%s, %d workers\nparameters\t%d\npeak\t%.1f GFLOP/s\n", b.Kernel, b.Workers, b.Parameters, b.Peak)
	fmt.Fprintf(w, "train\t%.0f tokens/s, %.0f %% of peak\n", b.Train, 100*b.TrainPeak)
	fmt.Fprintf(w, "sample\t%.0f tokens/s sampled, %.0f with their prompts\n", b.Sample, b.Read)
	return w.Flush()
}

// measure repeats f until the time is up, at least twice, and returns the seconds of one: the first, which warms up, is
// left out.
func (c *benchEngineCmd) measure(ctx context.Context, f func(i int) error) (float64, error) {
	if err := f(0); err != nil {
		return 0, err
	}
	began := time.Now()
	for n := 1; ; n++ {
		if err := errors.Join(ctx.Err(), f(n)); err != nil {
			return 0, err
		}
		if s := time.Since(began).Seconds(); s >= c.Seconds {
			return s / float64(n), nil
		}
	}
}

// peak is one core's best, in operations a second.
func (c *benchEngineCmd) peak(ctx context.Context) float64 {
	best := 0.0
	for range 5 {
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		n := transformer.Peak(1_000_000)
		best = max(best, float64(n)/time.Since(began).Seconds())
	}
	return best
}

func (c *benchEngineCmd) ids(n int, label string, at ...uint64) []int32 {
	rng := episode.Seed(1).Derive(label, at...).Rand()
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(c.Vocab))
	}
	return out
}

func (c *benchEngineCmd) sample(ctx context.Context, m *transformer.Model, b *engineBench) error {
	s := m.Sampler(transformer.SamplerOptions{Workers: c.Workers})
	defer s.Close()
	seconds, err := c.measure(ctx, func(round int) error {
		var g errgroup.Group
		for i := range c.Sequences {
			g.Go(func() error {
				got, err := s.Sample(ctx, c.ids(c.Prompt, "prompt", uint64(round), uint64(i)),
					policy.Sampling{Temperature: 1, MaxTokens: c.Sampled, Seed: uint64(i)})
				if err == nil && len(got.IDs) != c.Sampled {
					err = fmt.Errorf("sampled %d ids of %d", len(got.IDs), c.Sampled)
				}
				return err
			})
		}
		return g.Wait()
	})
	if err != nil {
		return err
	}
	b.Sample = float64(c.Sequences*c.Sampled) / seconds
	b.Read = float64(c.Sequences*(c.Prompt+c.Sampled)) / seconds
	return nil
}

func (c *benchEngineCmd) train(ctx context.Context, m *transformer.Model, b *engineBench) error {
	l := transformer.NewLearner(m, transformer.LearnerOptions{Workers: c.Workers})
	batch := make([]grpo.Datum, c.Batch)
	for i := range batch {
		d := grpo.Datum{
			IDs: c.ids(c.Length, "datum", uint64(i)), Stream: make([]grpo.Stream, c.Length),
			Weight: make([]float32, c.Length), Advantage: make([]float32, c.Length),
		}
		for t := 1; t < c.Length; t++ {
			d.Stream[t], d.Weight[t] = grpo.Action, 1/float32(c.Batch*(c.Length-1))
		}
		batch[i] = d
	}
	o := policy.Optim{Loss: grpo.Loss{Kind: grpo.CrossEntropy}, Rate: 1e-4, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Clip: 1}
	seconds, err := c.measure(ctx, func(int) error {
		_, err := l.Update(ctx, batch, o)
		return err
	})
	if err != nil {
		return err
	}
	b.Train = float64(c.Batch*c.Length) / seconds
	b.TrainPeak = b.Train * c.operations() / (b.Peak * 1e9)
	if math.IsNaN(b.TrainPeak) || math.IsInf(b.TrainPeak, 0) {
		b.TrainPeak = 0
	}
	return nil
}

// operations of one trained token: 2 for each weight of a matrix and 2·2·D for each position attended to (half the
// length on average), three times (forward, and backward for inputs and for weights).
func (c *benchEngineCmd) operations() float64 {
	d, h := float64(c.Width), float64(c.Hidden)
	kv := d * float64(c.KVHeads) / float64(c.Heads)
	weights := float64(c.Layers)*(2*d*d+2*d*kv+3*d*h) + d*float64(c.Vocab)
	attention := float64(c.Layers) * 2 * d * float64(c.Length) / 2
	return 3 * 2 * (weights + attention)
}
