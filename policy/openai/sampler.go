package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"skillmaster/policy"
	"skillmaster/policy/remote"

	"golang.org/x/sync/errgroup"
)

// Weights name what a Sampler samples from.
type Weights struct {
	Model   string // as the server names it; "": the client's
	Adapter string // name of a loaded adapter; "": none
	Version int    // the tag that samples carry
	Context int    // most ids of a sequence; 0: as the server says
	Vocab   int    // number of ids; 0: as a tokenizer says, or not checked
}

// name is what the OpenAI protocol calls a model.
func (w Weights) name() string {
	if w.Adapter != "" {
		return w.Adapter
	}
	return w.Model
}

// Sampler samples token ids on a server. It implements policy.Sampler and is safe for concurrent use. What is sampled is
// as repeatable as the server: the same seed is sent at every try, but most servers' numbers depend on what else they
// compute at the time.
//
// Sampling.Allowed needs a Scorer: the server scores all of them, and the choice among them is made here, exactly as the
// contract says.
type Sampler struct {
	client  *Client
	wire    *wire
	weights Weights
	named   string // what the server called its weights when they were checked
	// Log-probabilities are those at temperature 1 among all ids: of greedy samples, and at other temperatures or with
	// filters.
	plainGreedy, plainHeat bool
}

// Scorer is a Sampler on a server that also tells the log-probabilities of given ids. It implements policy.Scorer.
type Scorer struct{ *Sampler }

var (
	_ policy.Sampler = (*Sampler)(nil)
	_ policy.Scorer  = (*Scorer)(nil)
)

// Version is the tag of the weights.
func (s *Sampler) Version() int { return s.weights.Version }

// Context is the most ids of a sequence.
func (s *Sampler) Context() int { return s.weights.Context }

// Scorer returns the sampler as a scorer, or ErrNotOffered.
func (s *Sampler) Scorer() (*Scorer, error) {
	if s.wire.score == nil {
		return nil, fmt.Errorf("log-probabilities of given ids: %w (dialect %s)", ErrNotOffered, s.client.options.Dialect)
	}
	return &Scorer{s}, nil
}

// Sample implements policy.Sampler.
func (s *Sampler) Sample(ctx context.Context, prompt []int32, p policy.Sampling) (policy.Sample, error) {
	if err := s.check(prompt, p); err != nil {
		return policy.Sample{}, err
	}
	if err := ctx.Err(); err != nil {
		return policy.Sample{}, err
	}
	room := s.weights.Context - len(prompt)
	if room <= 0 {
		return policy.Sample{Stop: policy.NoContext, Version: s.weights.Version}, nil
	}
	if err := s.checkIDs(prompt); err != nil {
		return policy.Sample{}, fmt.Errorf("prompt: %w", err)
	}
	cutOff := policy.Length
	if p.MaxTokens > room {
		p.MaxTokens, cutOff = room, policy.NoContext
	}
	var out policy.Sample
	var err error
	if len(p.Allowed) > 0 {
		out, err = s.choose(ctx, prompt, p)
	} else {
		out, err = s.sample(ctx, prompt, p, s.finish)
	}
	if err != nil {
		return policy.Sample{}, err
	}
	if out.Stop == policy.Length {
		out.Stop = cutOff
	}
	out.Version = s.weights.Version
	return out, nil
}

// sample asks for a sample, which take makes of the answer.
func (s *Sampler) sample(ctx context.Context, prompt []int32, p policy.Sampling, take func(answer, policy.Sampling) (policy.Sample, error)) (out policy.Sample, err error) {
	err = s.client.call(ctx, request{
		method: http.MethodPost, path: s.wire.path, body: s.wire.sample(s.weights, prompt, p, s.client.dialect.cut(p.Seed)),
		most: usage{int64(len(prompt)), int64(p.MaxTokens)},
		read: func(reply []byte) (usage, error) {
			answers, spent, err := s.answers(reply, [][]int32{prompt})
			if err != nil {
				return spent, err
			}
			out, err = take(answers[0], p)
			return spent, err
		},
	})
	return out, err
}

// answers reads a reply and checks whose it is.
func (s *Sampler) answers(reply []byte, prompts [][]int32) ([]answer, usage, error) {
	answers, spent, err := s.wire.read(reply, prompts)
	if err != nil {
		return nil, spent, err
	}
	for i, a := range answers {
		switch {
		case a.read != nil && !slices.Equal(a.read, prompts[i]):
			return nil, spent, fmt.Errorf("the server read other ids than the %d it was sent", len(prompts[i]))
		case a.length >= 0 && a.length != len(prompts[i]):
			return nil, spent, fmt.Errorf("the server read %d ids where it was sent %d", a.length, len(prompts[i]))
		case s.client.dialect.echoes && a.model != s.weights.name():
			return nil, spent, fmt.Errorf("%w: model %q, asked was %q", policy.ErrVersion, remote.Printable(a.model), s.weights.name())
		case s.named != "" && a.weights != s.named:
			return nil, spent, fmt.Errorf("%w: the server calls them %q, they were %q when sampling began; make a new sampler for new weights",
				policy.ErrVersion, remote.Printable(a.weights), s.named)
		}
	}
	return answers, spent, nil
}

// sampled are the ids of an answer, wherever it ended.
func (s *Sampler) sampled(a answer, p policy.Sampling) (policy.Sample, error) {
	switch {
	case len(a.ids) == 0:
		return policy.Sample{}, errors.New("the reply has no ids")
	case len(a.ids) > p.MaxTokens:
		return policy.Sample{}, fmt.Errorf("the reply has %d ids, asked were %d at most", len(a.ids), p.MaxTokens)
	case len(a.logProbs) != len(a.ids):
		return policy.Sample{}, fmt.Errorf("the reply has %d log-probabilities for %d ids", len(a.logProbs), len(a.ids))
	}
	return policy.Sample{IDs: a.ids, LogProbs: a.logProbs, Stop: policy.Length}, s.checkIDs(a.ids)
}

// finish makes a sample of an answer.
func (s *Sampler) finish(a answer, p policy.Sampling) (policy.Sample, error) {
	out, err := s.sampled(a, p)
	if err != nil {
		return policy.Sample{}, err
	}
	if i := slices.IndexFunc(a.ids, func(id int32) bool { return slices.Contains(p.Stop, id) }); i >= 0 {
		if i+1 < len(a.ids) && !s.wire.cuts {
			return policy.Sample{}, fmt.Errorf("the reply goes on after stop id %d", a.ids[i])
		}
		return policy.Sample{IDs: a.ids[:i+1], LogProbs: a.logProbs[:i+1], Stop: policy.Stopped}, nil
	}
	switch {
	case a.stop == "stop":
		return policy.Sample{}, remote.Final(fmt.Errorf("the server ended with id %d, which is none of the stop ids %v: does the template fit the model?",
			a.ids[len(a.ids)-1], p.Stop))
	case a.stop != "length":
		return policy.Sample{}, fmt.Errorf("the server ended because of %q", remote.Printable(a.stop))
	case len(a.ids) < p.MaxTokens:
		return policy.Sample{}, remote.Final(fmt.Errorf("the server cut the reply after %d of %d ids: its context is shorter than %d, give the right one",
			len(a.ids), p.MaxTokens, s.weights.Context))
	}
	return out, nil
}

func (s *Sampler) checkIDs(ids []int32) error {
	for _, id := range ids {
		if id < 0 || s.weights.Vocab > 0 && int(id) >= s.weights.Vocab {
			return fmt.Errorf("id %d is outside the vocabulary of %d", id, s.weights.Vocab)
		}
	}
	return nil
}

func (s *Sampler) check(prompt []int32, p policy.Sampling) error {
	if len(prompt) == 0 {
		return errors.New("prompt is empty: sampling needs at least one id to follow")
	}
	if err := p.Check(); err != nil {
		return err
	}
	if len(p.Allowed) == 0 && !s.plain(p) {
		return fmt.Errorf("the server's log-probabilities are not those at temperature 1 among all ids when it samples with temperature %v, top-k %d, top-p %v: "+
			"sample with temperature 1 and without filters, or start it so that they are (vLLM: --logprobs-mode raw_logprobs; SGLang: SGLANG_RETURN_ORIGINAL_LOGPROB=1)",
			p.Temperature, p.TopK, p.TopP)
	}
	return s.checkIDs(p.Stop)
}

// plain says whether the log-probabilities of samples are what the contract wants.
func (s *Sampler) plain(p policy.Sampling) bool {
	switch {
	case p.Temperature == 0:
		return s.plainGreedy
	case p.Temperature == 1 && p.TopK == 0 && orOne(p.TopP) == 1:
		return true
	default:
		return s.plainHeat
	}
}

// Most of a request for scores.
const (
	scoreSequences = 64
	scoreIDs       = 1 << 16
)

// Score implements policy.Scorer. Sequences are sent a few at a time.
func (s *Scorer) Score(ctx context.Context, seqs [][]int32) ([][]float32, error) {
	return s.score(ctx, seqs)
}

func (s *Sampler) score(ctx context.Context, seqs [][]int32) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([][]float32, len(seqs))
	var asked []int // those that need a server
	for i, ids := range seqs {
		if err := s.checkIDs(ids); err != nil {
			return nil, fmt.Errorf("sequence %d: %w", i, err)
		}
		if len(ids) > s.weights.Context {
			return nil, fmt.Errorf("sequence %d has %d ids, the context has %d", i, len(ids), s.weights.Context)
		}
		out[i] = make([]float32, len(ids))
		if len(ids) > 1 {
			asked = append(asked, i)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.client.options.Limits.Parallel)
	for len(asked) > 0 {
		n, ids := 0, 0
		for n < len(asked) && n < scoreSequences && (n == 0 || ids+len(seqs[asked[n]]) <= scoreIDs) {
			ids += len(seqs[asked[n]])
			n++
		}
		part := asked[:n]
		asked = asked[n:]
		g.Go(func() error { return s.scorePart(ctx, seqs, part, out) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// scorePart scores the sequences of part in one request.
func (s *Sampler) scorePart(ctx context.Context, seqs [][]int32, part []int, out [][]float32) error {
	prompts := make([][]int32, len(part))
	most := usage{reply: int64(len(part))}
	for k, i := range part {
		prompts[k] = seqs[i]
		most.prompt += int64(len(seqs[i]))
	}
	return s.client.call(ctx, request{
		method: http.MethodPost, path: s.wire.path, body: s.wire.score(s.weights, prompts), most: most,
		read: func(reply []byte) (usage, error) {
			answers, spent, err := s.answers(reply, prompts)
			if err != nil {
				return spent, err
			}
			for k, a := range answers {
				if len(a.scores) != len(prompts[k]) {
					return spent, fmt.Errorf("%d log-probabilities came for a sequence of %d ids", len(a.scores), len(prompts[k]))
				}
				out[part[k]] = a.scores
			}
			return spent, nil
		},
	})
}
