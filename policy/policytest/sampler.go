package policytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"skillmaster/policy"
)

// Limits say what ids a model takes.
type Limits struct {
	Vocab   int // ids are 0…Vocab−1
	Context int // most ids of a sequence; at least 64, so that the suites have room
}

// agreement is how far the log-probability of a sampled id may be from its score.
const agreement = 1e-4

// RunSampler checks that samplers keep the contract of policy.Sampler. open returns a new sampler, of the same weights every
// time, whose ids are not all but certain; if it is an io.Closer it is closed. If it is a policy.Scorer too, the two must
// agree.
func RunSampler(t *testing.T, l Limits, open func(t *testing.T) policy.Sampler) {
	s := samplerSuite{l, func(t *testing.T) policy.Sampler {
		s := open(t)
		closeAfter(t, s)
		return s
	}}
	t.Run("seeds", s.seeds)
	t.Run("greedy", s.greedy)
	t.Run("company", s.company)
	t.Run("conversation", s.conversation)
	t.Run("score", s.score)
	t.Run("stop", s.stop)
	t.Run("allowed", s.allowed)
	t.Run("limits", s.limits)
	t.Run("refusals", s.refusals)
	t.Run("cancellation", s.cancellation)
	t.Run("ownership", s.ownership)
}

func closeAfter(t *testing.T, s any) {
	if c, ok := s.(io.Closer); ok {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

type samplerSuite struct {
	Limits
	open func(t *testing.T) policy.Sampler
}

// prompt returns n ids that depend on n and the seed.
func (l Limits) prompt(seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(l.Vocab))
	}
	return ids
}

func sample(t *testing.T, s policy.Sampler, prompt []int32, p policy.Sampling) policy.Sample {
	t.Helper()
	got, err := s.Sample(t.Context(), prompt, p)
	if err != nil {
		t.Fatalf("sample after %d ids with %+v: %v", len(prompt), p, err)
	}
	if len(got.LogProbs) != len(got.IDs) {
		t.Fatalf("got %d ids and %d log-probabilities", len(got.IDs), len(got.LogProbs))
	}
	return got
}

// different describes the first difference between two samples; "" if there is none.
func different(got, want policy.Sample) string {
	switch {
	case !slices.Equal(got.IDs, want.IDs):
		return fmt.Sprintf("got ids %v, want %v", got.IDs, want.IDs)
	case !slices.Equal(got.LogProbs, want.LogProbs):
		return fmt.Sprintf("got log-probabilities %v, want %v", got.LogProbs, want.LogProbs)
	case got.Stop != want.Stop || got.Version != want.Version:
		return fmt.Sprintf("got stop %d of version %d, want %d of %d", got.Stop, got.Version, want.Stop, want.Version)
	}
	return ""
}

func (s samplerSuite) seeds(t *testing.T) {
	sampler := s.open(t)
	prompt := s.prompt(1, 5)
	texts := map[string]bool{}
	for seed := range uint64(8) {
		p := policy.Sampling{Temperature: 1, MaxTokens: 12, Seed: seed}
		first := sample(t, sampler, prompt, p)
		if d := different(sample(t, sampler, prompt, p), first); d != "" {
			t.Errorf("seed %d again: %s", seed, d)
		}
		texts[fmt.Sprint(first.IDs)] = true
	}
	if len(texts) < 2 {
		t.Errorf("8 seeds gave %d different samples", len(texts))
	}
}

func (s samplerSuite) greedy(t *testing.T) {
	sampler := s.open(t)
	prompt := s.prompt(2, 6)
	want := sample(t, sampler, prompt, policy.Sampling{MaxTokens: 10, Seed: 1})
	for name, p := range map[string]policy.Sampling{
		"another seed":     {Seed: 2},
		"the best one":     {Seed: 3, Temperature: 1, TopK: 1},
		"a tiny nucleus":   {Seed: 4, Temperature: 1, TopP: 1e-6},
		"hardly any heat":  {Seed: 5, Temperature: 1e-4},
		"best and nucleus": {Seed: 6, Temperature: 2, TopK: 1, TopP: 0.5},
	} {
		p.MaxTokens = 10
		if d := different(sample(t, sampler, prompt, p), want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// job is one request of a crowd.
type job struct {
	prompt []int32
	p      policy.Sampling
}

func (s samplerSuite) crowd() []job {
	var jobs []job
	for i := range 40 {
		n := 1 + (i*7)%(s.Context/2)
		prompt := s.prompt(uint64(i/8), n) // some begin alike
		if i%8 > 0 {
			prompt = append(s.prompt(uint64(i/8), s.Context/4), s.prompt(uint64(i), 1+i%3)...)
		}
		jobs = append(jobs, job{prompt, policy.Sampling{
			Temperature: []float64{1, 0.7, 0, 1.3}[i%4], TopK: []int{0, 0, 3}[i%3], TopP: []float64{0, 0, 0, 0, 0.8}[i%5],
			MaxTokens: 1 + i%17, Seed: uint64(i), Stop: []int32{int32(i % s.Vocab)},
		}})
	}
	return jobs
}

// company checks that a sample does not depend on what else is sampled at the time, or was before.
func (s samplerSuite) company(t *testing.T) {
	jobs := s.crowd()
	want := make([]policy.Sample, len(jobs))
	alone := s.open(t)
	for i, j := range jobs {
		want[i] = sample(t, alone, j.prompt, j.p)
	}
	together := s.open(t)
	for round := range 2 {
		var wg sync.WaitGroup
		got, errs := make([]policy.Sample, len(jobs)), make([]error, len(jobs))
		for i, j := range jobs {
			wg.Go(func() { got[i], errs[i] = together.Sample(t.Context(), j.prompt, j.p) })
		}
		wg.Wait()
		for i := range jobs {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if d := different(got[i], want[i]); d != "" {
				t.Errorf("round %d, request %d: %s", round, i, d)
			}
		}
	}
}

// conversation checks that a prompt that goes on from an earlier sample gives what it gives to a sampler that sees it for
// the first time.
func (s samplerSuite) conversation(t *testing.T) {
	sampler := s.open(t)
	prompt := s.prompt(3, 7)
	for turn := uint64(0); len(prompt)+12 < s.Context && turn < 12; turn++ {
		p := policy.Sampling{Temperature: 1, MaxTokens: 5, Seed: turn}
		got := sample(t, sampler, prompt, p)
		if d := different(got, sample(t, s.open(t), prompt, p)); d != "" {
			t.Fatalf("turn %d: %s", turn, d)
		}
		prompt = append(append(prompt, got.IDs...), s.prompt(turn, 6)...)
	}
}

func (s samplerSuite) score(t *testing.T) {
	sampler := s.open(t)
	scorer, ok := sampler.(policy.Scorer)
	if !ok {
		t.Skip("the sampler is no scorer")
	}
	for i, temperature := range []float64{0, 0.5, 1, 2} {
		prompt := s.prompt(4, 9)
		got := sample(t, sampler, prompt, policy.Sampling{Temperature: temperature, MaxTokens: 20, Seed: uint64(i)})
		scores, err := scorer.Score(t.Context(), [][]int32{append(prompt, got.IDs...)})
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range got.LogProbs {
			if want := scores[0][9+k]; !(math.Abs(float64(v-want)) <= agreement) {
				t.Errorf("temperature %v, id %d: sampled with log-probability %v, scored %v", temperature, k, v, want)
			}
		}
	}
}

func (s samplerSuite) stop(t *testing.T) {
	sampler := s.open(t)
	prompt := s.prompt(5, 4)
	p := policy.Sampling{Temperature: 1, MaxTokens: 20, Seed: 3}
	free := sample(t, sampler, prompt, p)
	p.Stop = []int32{free.IDs[len(free.IDs)/2]}
	end := slices.Index(free.IDs, p.Stop[0]) + 1
	got := sample(t, sampler, prompt, p)
	want := policy.Sample{IDs: free.IDs[:end], LogProbs: free.LogProbs[:end], Stop: policy.Stopped, Version: free.Version}
	if d := different(got, want); d != "" {
		t.Error(d)
	}
	// The last id allowed may be a stop id; then the sample was stopped, not cut off.
	p.MaxTokens = end
	if d := different(sample(t, sampler, prompt, p), want); d != "" {
		t.Errorf("with as many ids as it takes: %s", d)
	}
}

// allowed: every sample is one of the allowed ones, drawn in proportion to what the scores say.
func (s samplerSuite) allowed(t *testing.T) {
	sampler := s.open(t)
	prompt := s.prompt(11, 6)
	all := [][]int32{{3, 1, 2}, {3, 1, 0, 1}, {2}, {1, 1}, {3, 0}}
	p := policy.Sampling{Temperature: 1, MaxTokens: 8, Allowed: all}
	const draws = 400
	count, chance := make([]int, len(all)), make([]float64, len(all))
	for p.Seed = range draws {
		got := sample(t, sampler, prompt, p)
		i := slices.IndexFunc(all, func(ids []int32) bool { return slices.Equal(ids, got.IDs) })
		if i < 0 || got.Stop != policy.Stopped || len(got.Among) != len(got.IDs) {
			t.Fatalf("seed %d: got %+v, want one of %v, stopped, with a log-probability among them for each id", p.Seed, got, all)
		}
		count[i]++
		sum := 0.0
		for k, v := range got.Among {
			if v < got.LogProbs[k] {
				t.Fatalf("seed %d: id %d has log-probability %v among some and %v among all", p.Seed, k, v, got.LogProbs[k])
			}
			sum += float64(v)
		}
		chance[i] = math.Exp(sum)
		if scorer, ok := sampler.(policy.Scorer); ok && count[i] == 1 {
			s.agree(t, scorer, prompt, got)
		}
	}
	total := 0.0
	for i, p := range chance {
		if count[i] == 0 {
			t.Fatalf("%v was not drawn in %d draws: the test needs a model that finds it possible", all[i], draws)
		}
		total += p
		if d := math.Sqrt(p * (1 - p) / draws); math.Abs(float64(count[i])/draws-p) > 4.5*d+1e-9 {
			t.Errorf("%v was drawn %d times of %d, its probability is %v", all[i], count[i], draws, p)
		}
	}
	if math.Abs(total-1) > 1e-4 {
		t.Errorf("the probabilities of all allowed samples sum to %v", total)
	}
	p.Temperature = 0
	if got, want := sample(t, sampler, prompt, p), sample(t, sampler, prompt, policy.Sampling{
		Temperature: 1, TopK: 1, MaxTokens: 8, Allowed: all,
	}); different(got, want) != "" {
		t.Errorf("greedy among the allowed: %s", different(got, want))
	}
	p.MaxTokens, p.Allowed = 2, all[:1]
	if got := sample(t, sampler, prompt, p); got.Stop != policy.Length || !slices.Equal(got.IDs, all[0][:2]) {
		t.Errorf("cut after 2 ids: got %+v", got)
	}
}

// agree checks a sample's log-probabilities against a scorer.
func (s samplerSuite) agree(t *testing.T, scorer policy.Scorer, prompt []int32, got policy.Sample) {
	t.Helper()
	scores, err := scorer.Score(t.Context(), [][]int32{slices.Concat(prompt, got.IDs)})
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range scores[0][len(prompt):] {
		if !(math.Abs(float64(v-got.LogProbs[k])) <= agreement) {
			t.Errorf("%v: id %d was sampled with log-probability %v and scored %v", got.IDs, k, got.LogProbs[k], v)
		}
	}
}

func (s samplerSuite) limits(t *testing.T) {
	sampler := s.open(t)
	if got := sample(t, sampler, s.prompt(6, 3), policy.Sampling{Temperature: 1, MaxTokens: 4}); got.Stop != policy.Length || len(got.IDs) != 4 {
		t.Errorf("got %d ids and stop %d, want 4 and %d", len(got.IDs), got.Stop, policy.Length)
	}
	for _, n := range []int{s.Context, s.Context + 1, 2 * s.Context} {
		if got := sample(t, sampler, s.prompt(7, n), policy.Sampling{MaxTokens: 4}); got.Stop != policy.NoContext || len(got.IDs) != 0 {
			t.Errorf("a prompt of %d ids: got %d ids and stop %d, want none and %d", n, len(got.IDs), got.Stop, policy.NoContext)
		}
	}
	got := sample(t, sampler, s.prompt(8, s.Context-3), policy.Sampling{Temperature: 1, MaxTokens: 10})
	if got.Stop != policy.NoContext || len(got.IDs) < 1 || len(got.IDs) > 3 {
		t.Errorf("with room for 3 ids: got %d and stop %d, want 1…3 and %d", len(got.IDs), got.Stop, policy.NoContext)
	}
}

func (s samplerSuite) refusals(t *testing.T) {
	sampler := s.open(t)
	good := s.prompt(9, 3)
	for name, j := range map[string]job{
		"no tokens":                    {good, policy.Sampling{}},
		"negative tokens":              {good, policy.Sampling{MaxTokens: -1}},
		"negative temperature":         {good, policy.Sampling{MaxTokens: 1, Temperature: -1}},
		"temperature of NaN":           {good, policy.Sampling{MaxTokens: 1, Temperature: math.NaN()}},
		"top-p above 1":                {good, policy.Sampling{MaxTokens: 1, TopP: 1.5}},
		"negative top-k":               {good, policy.Sampling{MaxTokens: 1, TopK: -1}},
		"unknown id":                   {[]int32{0, int32(s.Vocab)}, policy.Sampling{MaxTokens: 1}},
		"negative id":                  {[]int32{-1}, policy.Sampling{MaxTokens: 1}},
		"an empty choice":              {good, policy.Sampling{MaxTokens: 1, Allowed: [][]int32{{1}, {}}}},
		"an unknown choice":            {good, policy.Sampling{MaxTokens: 1, Allowed: [][]int32{{int32(s.Vocab)}}}},
		"a choice that begins another": {good, policy.Sampling{MaxTokens: 1, Allowed: [][]int32{{1}, {1, 2}}}},
	} {
		if got, err := sampler.Sample(t.Context(), j.prompt, j.p); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

func (s samplerSuite) cancellation(t *testing.T) {
	sampler := s.open(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sampler.Sample(ended, s.prompt(10, 3), policy.Sampling{MaxTokens: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v, want %v", err, context.Canceled)
	}
	p := policy.Sampling{Temperature: 1, MaxTokens: s.Context, Seed: 5}
	want := sample(t, sampler, s.prompt(11, 3), p)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range uint64(20) {
		wg.Go(func() {
			_, err := sampler.Sample(ctx, s.prompt(i, 5), policy.Sampling{Temperature: 1, MaxTokens: s.Context, Seed: i})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
	}
	cancel()
	wg.Wait()
	if d := different(sample(t, sampler, s.prompt(11, 3), p), want); d != "" {
		t.Errorf("after others were cancelled: %s", d)
	}
}

// ownership checks that a sampler neither keeps nor changes what it is given.
func (s samplerSuite) ownership(t *testing.T) {
	sampler := s.open(t)
	prompt := s.prompt(12, 8)
	p := policy.Sampling{Temperature: 1, MaxTokens: 6, Stop: []int32{1}}
	want := sample(t, sampler, prompt, p)
	if !slices.Equal(prompt, s.prompt(12, 8)) || p.Stop[0] != 1 {
		t.Error("the sampler changed its arguments")
	}
	clear(prompt)
	sample(t, sampler, prompt, p)
	if d := different(sample(t, sampler, s.prompt(12, 8), p), want); d != "" {
		t.Errorf("after the caller reused its prompt: %s", d)
	}
}

// RunScorer checks that scorers keep the contract of policy.Scorer. open is as for RunSampler.
func RunScorer(t *testing.T, l Limits, open func(t *testing.T) policy.Scorer) {
	score := func(t *testing.T, seqs ...[]int32) [][]float32 {
		t.Helper()
		s := open(t)
		closeAfter(t, s)
		got, err := s.Score(t.Context(), seqs)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(seqs) {
			t.Fatalf("got %d results for %d sequences", len(got), len(seqs))
		}
		return got
	}
	t.Run("shapes", func(t *testing.T) {
		seqs := [][]int32{l.prompt(1, 3), l.prompt(1, 1), {}, l.prompt(2, l.Context)}
		for i, row := range score(t, seqs...) {
			if len(row) != len(seqs[i]) {
				t.Errorf("sequence %d: got %d scores for %d ids", i, len(row), len(seqs[i]))
			}
			for p, v := range row {
				if p == 0 && v != 0 || p > 0 && !(v <= 0 && v > -1e6) {
					t.Errorf("sequence %d position %d: got %v", i, p, v)
				}
			}
		}
		score(t)
	})
	t.Run("company", func(t *testing.T) {
		a, b, c := l.prompt(3, 50), l.prompt(4, 7), l.prompt(5, 33)
		together := score(t, a, b, c)
		for i, ids := range [][]int32{a, b, c} {
			if alone := score(t, ids)[0]; !slices.Equal(together[i], alone) {
				t.Errorf("sequence %d: got %v in company, %v alone", i, together[i], alone)
			}
		}
	})
	t.Run("prefix", func(t *testing.T) {
		ids := l.prompt(6, 60)
		rows := score(t, ids, ids[:31])
		if !slices.Equal(rows[0][:31], rows[1]) {
			t.Errorf("got %v, and %v with more ids after", rows[1], rows[0][:31])
		}
	})
	t.Run("distribution", func(t *testing.T) {
		if l.Vocab > 1000 {
			t.Skip("too many ids to try them all")
		}
		var seqs [][]int32
		for id := range l.Vocab {
			seqs = append(seqs, append(l.prompt(7, 4), int32(id)))
		}
		var sum float64
		for _, row := range score(t, seqs...) {
			sum += math.Exp(float64(row[4]))
		}
		if !(math.Abs(sum-1) <= agreement) {
			t.Errorf("the probabilities of all ids add up to %v", sum)
		}
	})
	t.Run("refusals", func(t *testing.T) { refuseScores(t, l, open(t)) })
}

func refuseScores(t *testing.T, l Limits, s policy.Scorer) {
	closeAfter(t, s)
	for name, ids := range map[string][]int32{
		"too long": l.prompt(8, l.Context+1), "unknown id": {0, int32(l.Vocab)}, "negative id": {-1, 0},
	} {
		if got, err := s.Score(t.Context(), [][]int32{ids}); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Score(ended, [][]int32{l.prompt(9, 4)}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: got %v, want %v", err, context.Canceled)
	}
}
