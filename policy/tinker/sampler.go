package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"

	"skillmaster/policy"

	"golang.org/x/sync/errgroup"
)

// Sampler samples from weights on a server, and scores with them. Safe for concurrent use.
type Sampler struct {
	client  *Client
	session string // of sampling
	version int
	context int // most ids of a sequence

	mu  sync.Mutex
	seq int
}

var (
	_ policy.Sampler = (*Sampler)(nil)
	_ policy.Scorer  = (*Sampler)(nil)
)

// Base returns a sampler of the weights that a base model began with. Version is what its samples say.
func (c *Client) Base(ctx context.Context, model string, context, version int) (*Sampler, error) {
	session, n, err := c.numbered(ctx, &c.samplers)
	if err != nil {
		return nil, err
	}
	return c.sampler(ctx, createSampler{Session: session, Number: n, Base: model, Type: "create_sampling_session"}, context, version)
}

func (c *Client) sampler(ctx context.Context, r createSampler, context, version int) (*Sampler, error) {
	var made createdSampler
	if err := c.post(ctx, "create_sampling_session", r, &made); err != nil {
		return nil, err
	}
	if made.ID == "" {
		return nil, errors.New("the server made a sampler without a name")
	}
	return &Sampler{client: c, session: made.ID, version: version, context: context}, nil
}

// Version is that of the weights.
func (s *Sampler) Version() int { return s.version }

// errChoice says that a choice among given samples cannot be asked for.
var errChoice = errors.New("the Tinker API has no choice among given samples: decode freely")

// Sample implements policy.Sampler.
func (s *Sampler) Sample(ctx context.Context, prompt []int32, p policy.Sampling) (policy.Sample, error) {
	if err := errors.Join(p.Check(), checkIDs(prompt), checkIDs(p.Stop)); err != nil {
		return policy.Sample{}, err
	}
	switch {
	case len(p.Allowed) > 0:
		return policy.Sample{}, errChoice
	case len(prompt) == 0:
		return policy.Sample{}, errors.New("prompt is empty: sampling needs at least one id to follow")
	case len(prompt) >= s.context:
		return policy.Sample{Stop: policy.NoContext, Version: s.version}, nil
	}
	most, seed, all, whole := min(p.MaxTokens, s.context-len(prompt)), s.client.dialect.cut(p.Seed), p.TopK, p.TopP
	if all == 0 {
		all = -1
	}
	if whole == 0 {
		whole = 1
	}
	q := sampleRequest{Samples: 1, Prompt: text(prompt), Params: samplingParams{
		MaxTokens: &most, Seed: &seed, Temperature: &p.Temperature, TopK: &all, TopP: &whole,
	}}
	if len(p.Stop) > 0 {
		q.Params.Stop, _ = json.Marshal(p.Stop) // numbers can be
	}
	r, err := s.ask(ctx, q)
	if err != nil {
		return policy.Sample{}, err
	}
	return s.read(r, p, most)
}

// read checks what a server sampled. What it cannot have sampled is as good as no answer.
func (s *Sampler) read(r sampleResult, p policy.Sampling, most int) (policy.Sample, error) {
	broken := func(format string, a ...any) (policy.Sample, error) {
		return policy.Sample{}, fmt.Errorf("%w: it samples nonsense: "+format, append([]any{policy.ErrUnavailable}, a...)...)
	}
	if len(r.Sequences) != 1 {
		return broken("%d sequences came, 1 was asked for", len(r.Sequences))
	}
	q := r.Sequences[0]
	n := len(q.Tokens)
	if n == 0 || n > most || len(q.LogProbs) != n || checkIDs(q.Tokens) != nil {
		return broken("%d ids (at most %d were asked for) with %d log-probabilities", n, most, len(q.LogProbs))
	}
	out := policy.Sample{IDs: q.Tokens, LogProbs: make([]float32, n), Version: s.version}
	for i, v := range q.LogProbs {
		if !(v <= aboveZero && v >= -math.MaxFloat32) {
			return broken("log-probability %d is %v", i, v)
		}
		out.LogProbs[i] = float32(v)
	}
	stopped := -1
	for i, id := range q.Tokens {
		if stopped < 0 && contains(p.Stop, id) {
			stopped = i
		}
	}
	switch {
	case stopped >= 0 && stopped < n-1:
		return broken("it went on after stop id %d", q.Tokens[stopped])
	case stopped >= 0:
		out.Stop = policy.Stopped
	case n < most:
		return broken("it ended (%s) after %d of %d ids without a stop id: are they kept in the sample?", q.Stop, n, most)
	case most < p.MaxTokens:
		out.Stop = policy.NoContext
	default:
		out.Stop = policy.Length
	}
	return out, nil
}

// aboveZero is how far rounding may lift a log-probability.
const aboveZero = 1e-3

func contains(ids []int32, id int32) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}

func checkIDs(ids []int32) error {
	for i, id := range ids {
		if id < 0 {
			return fmt.Errorf("id %d at position %d is negative", id, i)
		}
	}
	return nil
}

// ask samples. A result that was lost is asked for once more, as the same sample of the same sampler.
func (s *Sampler) ask(ctx context.Context, q sampleRequest) (r sampleResult, err error) {
	if err := s.client.enter(ctx); err != nil {
		return r, err
	}
	defer s.client.leave()
	s.mu.Lock()
	seq := s.seq
	s.seq++
	s.mu.Unlock()
	q.Session, q.Seq, q.Type = s.session, &seq, "sample"
	for try := 1; ; try++ {
		var p promise
		if err := s.client.post(ctx, "asample", q, &p); err != nil {
			return r, unavailableIfLost(err)
		}
		reply, isProto, err := s.client.await(ctx, p, "Sample", true)
		switch {
		case errors.Is(err, errGone) && try < s.client.options.Limits.Tries:
			continue
		case err != nil:
			return r, fmt.Errorf("sample: %w", unavailableIfLost(err))
		case isProto:
			r, err = decodeSamples(reply)
		default:
			err = decode(reply, &r)
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", policy.ErrUnavailable, err)
		}
		return r, err
	}
}

// unavailableIfLost makes the loss of a sampler what it is to an episode: nothing that the policy said.
func unavailableIfLost(err error) error {
	if lost(err) {
		return fmt.Errorf("%w: %w: %w", policy.ErrUnavailable, ErrLost, err)
	}
	return err
}

// Score implements policy.Scorer: the sequences go as prompts, one id of the context is left unused.
func (s *Sampler) Score(ctx context.Context, seqs [][]int32) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, ids := range seqs {
		if err := checkIDs(ids); err != nil {
			return nil, fmt.Errorf("sequence %d: %w", i, err)
		}
		if len(ids) > s.context {
			return nil, fmt.Errorf("sequence %d has %d ids, the context has %d", i, len(ids), s.context)
		}
	}
	out := make([][]float32, len(seqs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.client.options.Limits.Parallel)
	for i, ids := range seqs {
		out[i] = make([]float32, len(ids))
		if len(ids) > 1 {
			g.Go(func() error { return s.score(ctx, ids, out[i]) })
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Sampler) score(ctx context.Context, ids []int32, out []float32) error {
	one, zero := 1, 0.0
	r, err := s.ask(ctx, sampleRequest{Samples: 1, Prompt: text(ids), PromptLogs: true, Params: samplingParams{MaxTokens: &one, Temperature: &zero}})
	if err != nil {
		return err
	}
	// Some servers leave the first id out, which nothing predicts.
	values := r.Prompt
	if len(values) == len(ids)-1 {
		values = append([]*float64{nil}, values...)
	}
	if len(values) != len(ids) {
		return fmt.Errorf("%w: %d log-probabilities came for a sequence of %d ids", policy.ErrUnavailable, len(r.Prompt), len(ids))
	}
	for i, v := range values[1:] {
		if v == nil || !(*v <= aboveZero && *v >= -math.MaxFloat32) {
			return fmt.Errorf("%w: log-probability %d is missing, or none", policy.ErrUnavailable, i+1)
		}
		out[i+1] = float32(*v)
	}
	return nil
}
