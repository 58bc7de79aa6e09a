package openai

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/remote"
)

// Sampler returns a sampler of some weights, after it has seen that the server does what the table says of its dialect:
// that the model is there; that a tokenizer here, if one is given, makes the same ids of a text as the one there; that
// ids it is sent are the ids it reads; that ids and log-probabilities come back as they should; and, where the server can
// score, that what it samples with is what it scores. What cannot be seen is refused, and so is a dialect without ids.
func (c *Client) Sampler(ctx context.Context, w Weights, tok *chat.Tokenizer) (*Sampler, error) {
	if c.dialect.wire == nil {
		return nil, fmt.Errorf("token ids: %w (dialect %s): use its Policy, for evaluation and for skills", ErrNotOffered, c.options.Dialect)
	}
	if w.Model == "" {
		w.Model = c.options.Model
	}
	s := &Sampler{client: c, wire: c.dialect.wire, weights: w}
	if err := s.limits(ctx); err != nil {
		return nil, err
	}
	if tok != nil {
		if err := s.sameTokens(ctx, tok); err != nil {
			return nil, err
		}
		if s.weights.Vocab == 0 {
			s.weights.Vocab = tok.VocabSize()
		}
	}
	if err := s.probe(ctx); err != nil {
		return nil, fmt.Errorf("checking the server: %w", err)
	}
	return s, nil
}

// Model is one that a server lists.
type Model struct {
	ID      string
	Context int // most ids of a sequence; 0: the server does not say
}

// Models returns what the server lists.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	var r struct {
		Data []struct {
			ID     string `json:"id"`
			Length int    `json:"max_model_len"`
		} `json:"data"`
	}
	var out []Model
	err := c.call(ctx, request{method: http.MethodGet, path: "/v1/models", read: func(reply []byte) (usage, error) {
		if err := decode(reply, &r); err != nil {
			return usage{}, err
		}
		out = nil
		for _, m := range r.Data {
			out = append(out, Model{m.ID, m.Length})
		}
		return usage{}, nil
	}})
	return out, err
}

// limits sees that the model is there, and how long sequences can be.
func (s *Sampler) limits(ctx context.Context) error {
	most := 0
	if s.client.dialect.context != "" {
		var props struct {
			Defaults struct {
				Context int `json:"n_ctx"`
			} `json:"default_generation_settings"`
		}
		if err := s.client.call(ctx, request{method: http.MethodGet, path: s.client.dialect.context, read: func(reply []byte) (usage, error) {
			return usage{}, decode(reply, &props)
		}}); err != nil {
			return err
		}
		most = props.Defaults.Context
	} else {
		models, err := s.client.Models(ctx)
		if err != nil {
			return err
		}
		want := s.weights.name()
		if s.client.options.Dialect == SGLang {
			want = s.weights.Model // its adapters are not always listed
		}
		i := slices.IndexFunc(models, func(m Model) bool { return m.ID == want })
		if i < 0 {
			return fmt.Errorf("the server has no model %q, it lists %s", want, remote.Printable(fmt.Sprint(names(models))))
		}
		most = models[i].Context
	}
	if s.weights.Context == 0 {
		s.weights.Context = most - s.wire.room
	}
	if s.weights.Context < 1 {
		return errors.New("the server does not say how many ids its context has: give Weights.Context")
	}
	if most > 0 && s.weights.Context > most-s.wire.room {
		return fmt.Errorf("sequences of %d ids are wanted, the server has room for %d", s.weights.Context, most-s.wire.room)
	}
	return nil
}

func names(models []Model) []string {
	var out []string
	for _, m := range models {
		out = append(out, m.ID)
	}
	return out
}

// told is a text that tokenizers differ on. It has none of the tags that are tokens of their own: servers always take them
// for those, a tokenizer here only where a policy speaks.
const told = "Take the 12 kettles, then GO to drawer 3…\n\n  it's 4,500.75 {x} naïve 日本"

// sameTokens compares the tokenizers.
func (s *Sampler) sameTokens(ctx context.Context, tok *chat.Tokenizer) error {
	want := tok.Encode(told)
	body := fields{s.client.dialect.text: told, "add_special_tokens": false, "model": s.weights.Model}
	if s.client.options.Dialect == LlamaCPP {
		body = fields{s.client.dialect.text: told, "add_special": false, "parse_special": false}
	}
	return s.client.call(ctx, request{method: http.MethodPost, path: s.client.dialect.tokenize, body: body, read: func(reply []byte) (usage, error) {
		var r struct {
			Tokens []int32 `json:"tokens"`
		}
		if err := decode(reply, &r); err != nil {
			return usage{}, err
		}
		if !slices.Equal(r.Tokens, want) {
			return usage{}, remote.Final(fmt.Errorf("the server's tokenizer makes %v of a text, the one given here makes %v: give the model's own tokenizer.json",
				r.Tokens, want))
		}
		return usage{}, nil
	}})
}

const (
	// agreement is how far a log-probability that was sampled with may be from the one that is scored: servers compute in
	// bfloat16, and in another order for every batch.
	agreement = 0.2
	// telling is the sum of log-probabilities, without its sign, from which on a temperature would show.
	telling = 0.05
	probed  = 6 // ids sampled for a look
)

// probe looks at what the server does.
func (s *Sampler) probe(ctx context.Context) error {
	if s.weights.Context < 2*probed+2 {
		return fmt.Errorf("a context of %d ids is too short for anything", s.weights.Context)
	}
	prompt := []int32{11, 7, 5, 3}
	if s.weights.Vocab > 0 {
		for i := range prompt {
			prompt[i] %= int32(s.weights.Vocab)
		}
	}
	s.plainGreedy, s.plainHeat = true, true
	look := func(p policy.Sampling) (policy.Sample, error) {
		p.MaxTokens = probed
		return s.sample(ctx, prompt, p, s.sampled) // a server that knows no stop ids may end with the model's own
	}
	if err := s.remember(ctx, prompt); err != nil {
		return err
	}
	free, err := look(policy.Sampling{Temperature: 1, Seed: 1})
	if err != nil {
		return err
	}
	greedy, err := look(policy.Sampling{})
	if err != nil {
		return err
	}
	hot, err := look(policy.Sampling{Temperature: 2, TopK: 1})
	if err != nil {
		return err
	}
	if s.wire.score == nil {
		s.plainGreedy = agree(greedy, hot)
		s.plainHeat = s.plainGreedy
		return nil
	}
	scores, err := s.score(ctx, [][]int32{
		slices.Concat(prompt, free.IDs), slices.Concat(prompt, greedy.IDs), slices.Concat(prompt, hot.IDs),
	})
	if err != nil {
		return err
	}
	scored := func(i int, sample policy.Sample) policy.Sample {
		return policy.Sample{IDs: sample.IDs, LogProbs: scores[i][len(prompt):]}
	}
	if d := distance(scored(0, free), free); d > agreement {
		return fmt.Errorf("ids that were sampled at temperature 1 with log-probabilities %v are scored with %v: "+
			"start the server so that it neither filters nor penalises (vLLM: --generation-config vllm)", free.LogProbs, scored(0, free).LogProbs)
	}
	s.plainGreedy, s.plainHeat = agree(scored(1, greedy), greedy), agree(scored(2, hot), hot)
	return nil
}

// remember asks for one id, and keeps what the server calls its weights.
func (s *Sampler) remember(ctx context.Context, prompt []int32) error {
	p := policy.Sampling{MaxTokens: 1}
	return s.client.call(ctx, request{
		method: http.MethodPost, path: s.wire.path, body: s.wire.sample(s.weights, prompt, p, 0), most: usage{int64(len(prompt)), 1},
		read: func(reply []byte) (usage, error) {
			answers, spent, err := s.answers(reply, [][]int32{prompt})
			if err == nil {
				s.named = answers[0].weights
			}
			return spent, err
		},
	})
}

// agree says whether two samples show the same log-probabilities, none of them so sure that nothing would show.
func agree(plain, other policy.Sample) bool {
	sum := 0.0
	for _, v := range plain.LogProbs {
		sum -= float64(v)
	}
	return sum >= telling && distance(plain, other) <= agreement
}

// distance is the largest difference of log-probabilities, as far as the ids are the same; of different first ids, it is
// infinite.
func distance(a, b policy.Sample) float64 {
	most := 0.0
	for i := range min(len(a.IDs), len(b.IDs)) {
		if a.IDs[i] != b.IDs[i] {
			if i == 0 {
				return math.Inf(1)
			}
			break
		}
		most = max(most, math.Abs(float64(a.LogProbs[i]-b.LogProbs[i])))
	}
	return most
}
