package transformer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"skillmaster/policy"
)

// SamplerOptions say how a Sampler uses the machine; none but Precision changes what it samples. The zero value is useful.
type SamplerOptions struct {
	Workers    int       // goroutines that sample; 0: GOMAXPROCS
	Slots      int       // most sequences a worker samples at a time; 0: 24
	CacheBytes int64     // of the keys and values of ended sequences that are remembered; 0: 1 GiB, below 0: none
	Precision  Precision // of the products with weights
}

// stepRows is the most positions a worker computes at a time, prompts and sampled ids together.
const stepRows = 256

func (o SamplerOptions) complete() SamplerOptions {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Slots <= 0 {
		o.Slots = 24
	}
	o.Slots = min(o.Slots, stepRows)
	switch {
	case o.CacheBytes == 0:
		o.CacheBytes = 1 << 30
	case o.CacheBytes < 0:
		o.CacheBytes = 0
	}
	return o
}

// Counters say what a sampler has done. Positions are ids whose keys and values were computed or found.
type Counters struct {
	Samples   int // that ended
	Prefilled int // positions of prompts that were computed
	Decoded   int // ids that were sampled
	Cached    int // positions of prompts that were found in the cache
	Steps     int // of all workers
}

// Sampler samples from one set of weights, which does not change. It implements policy.Sampler and policy.Scorer and is
// safe for concurrent use.
//
// Calls made at the same time are sampled together: a call joins its worker's batch at the next step. The keys and values
// of a prompt are looked up in what earlier calls left, so that a conversation that only grows is never read twice, and
// sequences that begin alike read their common part once. Workers exist only while there is something to sample.
type Sampler struct {
	weights *weights
	version int
	options SamplerOptions
	cache   *cache

	mu       sync.Mutex
	pending  []*request
	reading  []*request // being sampled, their prompt not yet read to the end
	active   int        // being sampled
	running  int        // workers
	closed   bool
	counters Counters
	workers  []*worker // workspaces at rest
	passes   []*pass   // likewise, for scoring
	ended    sync.WaitGroup
}

var (
	_ policy.Sampler = (*Sampler)(nil)
	_ policy.Scorer  = (*Sampler)(nil)
)

// Sampler returns a sampler of a copy of the model's weights.
func (m *Model) Sampler(o SamplerOptions) *Sampler {
	o = o.complete()
	return &Sampler{
		weights: m.snapshot(o.Precision, o.Workers), version: m.version, options: o, cache: newCache(m.config, o.CacheBytes),
	}
}

// Version is that of the weights.
func (s *Sampler) Version() int { return s.version }

// ErrClosed is returned by calls to a closed sampler.
var ErrClosed = errors.New("sampler is closed")

// request is one call of Sample.
type request struct {
	ctx    context.Context
	p      policy.Sampling
	left   choices
	random *rand.Rand
	ids    []int32 // prompt, then what was sampled
	prompt int     // length of the prompt
	path   []*node
	fed    int // ids whose keys and values are in path
	sample policy.Sample
	err    error
	done   chan struct{} // closed when sample and err are set

	shown   []int32 // the prompt, never written to
	reading bool    // is among the sampler's reading
}

// Sample implements policy.Sampler. The prompt must hold at least one id. What is sampled depends on the weights, the
// prompt and p alone.
func (s *Sampler) Sample(ctx context.Context, prompt []int32, p policy.Sampling) (policy.Sample, error) {
	c := s.weights.config
	if err := checkSampling(p, c.Vocab); err != nil {
		return policy.Sample{}, err
	}
	left, err := newChoices(p, c.Vocab)
	if err != nil {
		return policy.Sample{}, err
	}
	if len(prompt) == 0 {
		return policy.Sample{}, errors.New("prompt is empty: sampling needs at least one id to follow")
	}
	if len(prompt) >= c.Context {
		return policy.Sample{Stop: policy.NoContext, Version: s.version}, nil
	}
	if err := c.checkIDs(prompt); err != nil {
		return policy.Sample{}, fmt.Errorf("prompt: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return policy.Sample{}, err
	}
	r := &request{
		ctx: ctx, p: p, left: left, prompt: len(prompt), done: make(chan struct{}), sample: policy.Sample{Version: s.version},
		ids:    append(make([]int32, 0, min(len(prompt)+p.MaxTokens, c.Context)), prompt...),
		random: rand.New(rand.NewPCG(p.Seed, sampleStream)),
	}
	r.p.Stop, r.shown = slices.Clone(p.Stop), r.ids[:r.prompt]
	if err := s.submit(r); err != nil {
		return policy.Sample{}, err
	}
	select {
	case <-r.done:
		return r.sample, r.err
	case <-ctx.Done():
		return policy.Sample{}, ctx.Err()
	}
}

// sampleStream tells the generators of samples from those that others make of the same seed.
const sampleStream = 0x5a4d504c45

func (s *Sampler) submit(r *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.pending = append(s.pending, r)
	s.employ()
	return nil
}

// employ starts a worker if there is something to do and one is free.
func (s *Sampler) employ() {
	if len(s.pending) == 0 || s.running == s.options.Workers {
		return
	}
	var w *worker
	if n := len(s.workers); n > 0 {
		w, s.workers = s.workers[n-1], s.workers[:n-1]
	} else {
		w = newWorker(s)
	}
	s.running++
	s.ended.Add(1)
	go w.run()
}

// Counters returns what was done so far.
func (s *Sampler) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters
}

// Close ends the samples in progress with ErrClosed, waits for the workers and frees the caches. It may be called more
// than once; Score still works after it. A sampler that is not closed holds memory until it is collected, and nothing
// else.
func (s *Sampler) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.ended.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers, s.passes = nil, nil
	s.cache = newCache(s.weights.config, 0)
	return nil
}

// admit moves pending requests into a worker's slots, as many as keep the workers evenly busy. It reports whether the
// worker has anything to do; if not, the worker has ended.
func (s *Sampler) admit(w *worker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.pending[:0]
	share := (s.active + len(s.pending) + s.options.Workers - 1) / s.options.Workers
	for _, r := range s.pending {
		switch {
		case s.closed:
			r.end(ErrClosed)
		case r.ctx.Err() != nil:
			r.end(r.ctx.Err())
		case len(w.slots) >= min(share, s.options.Slots) || s.worthWaiting(r):
			kept = append(kept, r)
		default:
			s.start(w, r)
		}
	}
	clear(s.pending[len(kept):])
	s.pending = kept
	if len(w.slots) > 0 {
		s.employ()
		return true
	}
	s.running--
	s.workers = append(s.workers, w)
	s.ended.Done()
	return false
}

// start puts a request into a slot, with what the cache knows of its prompt. The last id of a prompt is always computed,
// for the logits that follow it.
func (s *Sampler) start(w *worker, r *request) {
	r.path, r.fed = s.cache.open(r.shown[:r.prompt-1])
	s.counters.Cached += r.fed
	s.active++
	s.reading, r.reading = append(s.reading, r), true
	w.slots = append(w.slots, r)
}

// worthWaiting reports whether a prompt that is being read now will leave much of r's prompt in the cache. The reader is
// in progress, so the wait ends.
func (s *Sampler) worthWaiting(r *request) bool {
	const least = 16 // positions; fewer are computed again
	shared := 0
	for _, o := range s.reading {
		shared = max(shared, common(o.shown, r.shown[:r.prompt-1]))
	}
	return shared >= least && shared-s.cache.known(r.shown[:r.prompt-1]) >= least
}

// end hands a result to the caller.
func (r *request) end(err error) {
	r.err = err
	if err != nil {
		r.sample = policy.Sample{}
	}
	close(r.done)
}

// Score implements policy.Scorer; sequences may have any length from 0 to the context. The numbers are those
// of sampling and training, to the last bit.
func (s *Sampler) Score(ctx context.Context, seqs [][]int32) ([][]float32, error) {
	for i, ids := range seqs {
		if err := s.weights.config.checkIDs(ids); err != nil {
			return nil, fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	out, errs := make([][]float32, len(seqs)), make([]error, len(seqs))
	parallel(s.options.Workers, len(seqs), func(_, i int) {
		out[i], errs[i] = s.score(ctx, seqs[i])
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	return out, nil
}

func (s *Sampler) score(ctx context.Context, ids []int32) ([]float32, error) {
	out := make([]float32, len(ids))
	if err := ctx.Err(); err != nil || len(ids) < 2 {
		return out, err
	}
	p := s.borrowPass()
	defer s.returnPass(p)
	p.forward(ids[:len(ids)-1])
	return out, p.logProbs(ctx, ids, out)
}

func (s *Sampler) borrowPass() *pass {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.passes); n > 0 {
		p := s.passes[n-1]
		s.passes = s.passes[:n-1]
		return p
	}
	return newScoringPass(s.weights)
}

func (s *Sampler) returnPass(p *pass) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes = append(s.passes, p)
}
