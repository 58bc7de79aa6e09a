package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
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
	Group     int     `help:"Sequences that share a prompt, as those of a group do in training." default:"1"`
	Prompt    int     `help:"Ids of a prompt." default:"128"`
	Sampled   int     `help:"Ids sampled after it." default:"64"`
	Workers   int     `help:"Cores to use. Default: all." default:"0"`
	Rounds    int     `help:"Times that everything is measured; medians are printed." default:"3"`
	Seconds   float64 `help:"Seconds to measure each part of a round for, at least." default:"1"`
	Table     string  `help:"Measure a row for each of several values of one thing, with one worker and with all of them." enum:"context,batch,width,size," default:""`
	JSON      bool    `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (benchEngineCmd) Help() string {
	return `Trains and samples on random ids with fresh weights of the given shape, in float32 and, where the processor has
instructions for it, in bfloat16, in turn. Peak is what the workers reach together with nothing but multiply-adds; the share
of it counts the model's multiply-adds (weights of matrices and attention, backward twice forward), nothing else. Memory is
what training made resident at its highest, the model itself left out, and what the learner says it is for.

--table context goes from 256 to 4096 ids, in batches of as many ids as the other options say; batch from 1 sequence to 64, trained
and sampled; width from 64 to 512, with heads and feed-forward layers in proportion; size to models of 1, 5 and 25 million
parameters.

Examples:
  skillmaster bench engine
  skillmaster bench engine --width 256 --hidden 1024 --length 512 --json
  skillmaster bench engine --table size --rounds 5`
}

// engineBench is what was measured of one shape.
type engineBench struct {
	Machine    machine            `json:"machine"`
	Shape      transformer.Config `json:"shape"`
	Batch      int                `json:"batch"`
	Length     int                `json:"length"`
	Sequences  int                `json:"sequences"`
	Group      int                `json:"group"`
	Workers    int                `json:"workers"`
	Parameters int                `json:"parameters"`
	Precisions []enginePrecise    `json:"precisions"`
}

// enginePrecise is what was measured in one precision: medians over the rounds. What was not measured is null.
type enginePrecise struct {
	Precision    transformer.Precision `json:"precision"`
	Kernel       string                `json:"kernel"`
	Peak         *float64              `json:"peak_gflops"` // of all workers
	Train        float64               `json:"train_tokens_per_second"`
	PeakFraction *float64              `json:"peak_fraction"`
	Sample       float64               `json:"sampled_tokens_per_second"`
	Read         float64               `json:"prompt_and_sampled_tokens_per_second"`
	Decode       *float64              `json:"sampled_tokens_per_second_after_the_first"`
	First        float64               `json:"seconds_to_first_token"` // of all sequences at once
	Resident     *float64              `json:"step_bytes"`             // resident memory's growth while training, at its highest
	Memory       transformer.Memory    `json:"memory"`                 // where it goes

	peak, train, sample, decode, first, resident []float64
}

func (c *benchEngineCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	if c.Batch < 1 || c.Length < 2 || c.Sequences < 1 || c.Group < 1 || c.Prompt < 1 || c.Sampled < 1 || c.Rounds < 1 || !(c.Seconds > 0) {
		return usage(errors.New("--batch, --sequences, --group, --prompt, --sampled, --rounds and --seconds must be positive, --length at least 2"))
	}
	if c.Workers <= 0 {
		c.Workers = runtime.NumCPU()
	}
	runs := []engineRun{{command: *c}}
	if c.Table != "" {
		runs = c.tableRuns()
	}
	for i := range runs {
		if err := runs[i].prepare(); err != nil {
			return err
		}
	}
	for round := range c.Rounds {
		for i := range runs {
			fmt.Fprintf(stderr, "round %d of %d, part %d of %d\n", round+1, c.Rounds, i+1, len(runs))
			if err := runs[i].round(ctx); err != nil {
				return err
			}
		}
	}
	var all []engineBench
	for _, r := range runs {
		r.summarise()
		all = append(all, r.bench)
	}
	switch {
	case c.JSON && c.Table == "":
		return printJSON(stdout, all[0])
	case c.JSON:
		return printJSON(stdout, all)
	case c.Table != "":
		return printEngineTable(stdout, c.Table, runs)
	}
	return printEngine(stdout, all[0], c.Rounds)
}

// engineRun is one shape to measure.
type engineRun struct {
	name    string // in a table
	command benchEngineCmd
	model   *transformer.Model
	bench   engineBench
}

func (r *engineRun) prepare() error {
	c := &r.command
	m, err := transformer.NewModel(c.shape(), 1, nil)
	if err != nil {
		return usage(err)
	}
	r.model = m
	r.bench = engineBench{
		Machine: thisMachine(), Shape: m.Config(), Batch: c.Batch, Length: c.Length, Sequences: c.Sequences, Group: c.Group, Workers: c.Workers,
		Parameters: m.Parameters(), Precisions: []enginePrecise{{Precision: transformer.Float32, Kernel: transformer.Kernel()}},
	}
	if k := transformer.KernelBF16(); k != "generic" {
		r.bench.Precisions = append(r.bench.Precisions, enginePrecise{Precision: transformer.BFloat16, Kernel: k})
	}
	return nil
}

// round measures everything once.
func (r *engineRun) round(ctx context.Context) error {
	for i := range r.bench.Precisions {
		p := &r.bench.Precisions[i]
		p.peak = append(p.peak, r.command.peak(ctx, p.Precision)/1e9)
		if err := errors.Join(r.command.sample(ctx, r.model, p), r.command.train(ctx, p)); err != nil {
			return err
		}
	}
	return nil
}

func (r *engineRun) summarise() {
	for i := range r.bench.Precisions {
		r.command.summarise(&r.bench.Precisions[i])
	}
}

func printEngine(out io.Writer, b engineBench, rounds int) error {
	fmt.Fprintf(out, "%s\n%d parameters, %d workers, medians of %d rounds\n", b.Machine, b.Parameters, b.Workers, rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "precision\tkernel\tpeak GFLOP/s\ttrain tokens/s\tof peak\tsampled tokens/s\twith prompts\tafter the first\tfirst token s\t\n")
	for _, p := range b.Precisions {
		fmt.Fprintf(w, "%v\t%s\t%s\t%.0f\t%s\t%.0f\t%.0f\t%s\t%.3f\t\n", p.Precision, p.Kernel, measured("%.0f", p.Peak, 1), p.Train,
			measured("%.0f %%", p.PeakFraction, 100), p.Sample, p.Read, measured("%.0f", p.Decode, 1), p.First)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "memory MB\tresident growth\theld\tweights\tpacked\tmoments\tgradients\tactivations\twork\t\n")
	for _, p := range b.Precisions {
		fmt.Fprintf(w, "%v\t%s\t", p.Precision, measured("%.0f", p.Resident, 1e-6))
		for _, n := range []int64{p.Memory.Total(), p.Memory.Weights, p.Memory.Packed, p.Memory.Moments, p.Memory.Gradients, p.Memory.Activations, p.Memory.Work} {
			fmt.Fprintf(w, "%.0f\t", float64(n)/1e6)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// measured formats a number times a scale, or says that there is none.
func measured(format string, v *float64, scale float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v*scale)
}

func (c *benchEngineCmd) shape() transformer.Config {
	return transformer.Config{
		Vocab: c.Vocab, Width: c.Width, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, Hidden: c.Hidden,
		Context: max(c.Length, c.Prompt+c.Sampled), Tied: true,
	}
}

func (c *benchEngineCmd) summarise(p *enginePrecise) {
	p.Train, p.Sample, p.First = median(p.train), median(p.sample), median(p.first)
	p.Read = p.Sample * float64(c.Prompt+c.Sampled) / float64(c.Sampled)
	if peak := median(p.peak); peak > 0 {
		share := p.Train * c.operations() / (peak * 1e9)
		p.Peak, p.PeakFraction = &peak, &share
	}
	for _, m := range []struct {
		to   **float64
		from []float64
	}{{&p.Decode, p.decode}, {&p.Resident, p.resident}} {
		if len(m.from) > 0 {
			v := median(m.from)
			*m.to = &v
		}
	}
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

// peak is the best of all workers at once, in operations a second.
func (c *benchEngineCmd) peak(ctx context.Context, p transformer.Precision) float64 {
	run := transformer.Peak
	if p == transformer.BFloat16 {
		run = transformer.PeakBF16
	}
	best := 0.0
	for range 5 {
		if ctx.Err() != nil {
			break
		}
		var wg sync.WaitGroup
		var done atomic.Int64
		began := time.Now()
		for range c.Workers {
			wg.Go(func() { done.Add(int64(run(500_000))) })
		}
		wg.Wait()
		best = max(best, float64(done.Load())/time.Since(began).Seconds())
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

func (c *benchEngineCmd) sample(ctx context.Context, m *transformer.Model, p *enginePrecise) error {
	s := m.Sampler(transformer.SamplerOptions{Workers: c.Workers, Precision: p.Precision})
	defer s.Close()
	batch := func(round, ids int) error {
		var g errgroup.Group
		for i := range c.Sequences {
			g.Go(func() error {
				got, err := s.Sample(ctx, c.ids(c.Prompt, "prompt", uint64(round), uint64(i/c.Group)),
					policy.Sampling{Temperature: 1, MaxTokens: ids, Seed: uint64(i)})
				if err == nil && len(got.IDs) != ids {
					err = fmt.Errorf("sampled %d ids of %d", len(got.IDs), ids)
				}
				return err
			})
		}
		return g.Wait()
	}
	first := math.Inf(1)
	for try := range 3 {
		began := time.Now()
		if err := batch(-1-try, 1); err != nil {
			return err
		}
		first = min(first, time.Since(began).Seconds())
	}
	p.first = append(p.first, first)
	seconds, err := c.measure(ctx, func(round int) error { return batch(round, c.Sampled) })
	p.sample = append(p.sample, float64(c.Sequences*c.Sampled)/seconds)
	if rest := c.Sequences * (c.Sampled - 1); rest > 0 && seconds > first {
		p.decode = append(p.decode, float64(rest)/(seconds-first))
	}
	return err
}

func (c *benchEngineCmd) train(ctx context.Context, p *enginePrecise) error {
	m, err := transformer.NewModel(c.shape(), 1, nil)
	if err != nil {
		return err
	}
	before, known := startPeak()
	l := transformer.NewLearner(m, transformer.LearnerOptions{Workers: c.Workers, Precision: p.Precision})
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
	p.train = append(p.train, float64(c.Batch*c.Length)/seconds)
	p.Memory = l.Memory()
	if after, still := resident("VmHWM"); known && still {
		p.resident = append(p.resident, float64(after-before))
	}
	return err
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
