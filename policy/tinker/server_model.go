package tinker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"sync"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// trained is a model of a client. Its work is done one after the other, in the order in which it came.
type trained struct {
	id      string
	session string
	rank    int

	mu     sync.Mutex
	closed bool
	queue  chan func()
	asked  map[int]*promised // by number

	// What follows belongs to the one who works.
	learner policy.Learner
	scorer  policy.Sampler // of the weights as they are; nil: to be made
	pending []grpo.Datum   // what the next step learns from
	forget  bool           // the next step forgets the moments
}

// mostQueued is how much work of a model may wait.
const mostQueued = 4096

func (m *trained) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.queue)
	}
}

// add makes a model and its worker, or finds the one that was made by the same request. Models are named as the Python SDK
// expects it. The caller holds no lock.
func (v *Server) add(session string, number, rank int) (*trained, error) {
	if number < 0 || number > 1e9 {
		return nil, wrong("model_seq_id is %d", number)
	}
	if err := v.alive(session); err != nil {
		return nil, err
	}
	v.sweep()
	v.mu.Lock()
	defer v.mu.Unlock()
	id := fmt.Sprintf("%s:train:%d", session, number)
	if m := v.models[id]; m != nil {
		return m, nil
	}
	if len(v.models) >= v.served.Models {
		return nil, refused{http.StatusTooManyRequests, fmt.Sprintf("there are %d models already, no more fit: unload one", len(v.models))}
	}
	m := &trained{id: id, session: session, rank: rank, queue: make(chan func(), mostQueued), asked: map[int]*promised{}}
	v.models[m.id] = m
	v.work.Go(func() {
		for work := range m.queue {
			work()
		}
	})
	return m, nil
}

func (v *Server) model(id string) (*trained, error) {
	v.mu.Lock()
	m := v.models[id]
	v.mu.Unlock()
	if m == nil {
		return nil, unknown("model", id)
	}
	return m, v.alive(m.session)
}

// queue has work done after what came before, and promises its result. The same request with the same number gets the
// same promise; a negative number is none.
func (v *Server) queue(m *trained, seq int, asked any, work func(ctx context.Context) (any, func() []byte, error)) (any, error) {
	seen, err := sight(asked)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.asked[seq]; before != nil {
		if before.seen != seen {
			return nil, refused{http.StatusConflict, fmt.Sprintf("request %d of %s was another one", seq, m.id)}
		}
		return promise{Request: before.id, Model: m.id}, nil
	}
	if m.closed {
		return nil, unknown("model", m.id)
	}
	v.mu.Lock()
	p, err := v.promise(seen)
	v.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m.queue <- func() {
		value, wire, err := work(v.ctx)
		p.keep(v.served.Now(), value, wire, err)
	}:
	default:
		return nil, refused{http.StatusTooManyRequests, "too much work waits"}
	}
	if seq >= 0 {
		m.asked[seq] = p
	}
	return promise{Request: p.id, Model: m.id}, nil
}

func sight(v any) ([sha256.Size]byte, error) {
	data, err := json.Marshal(v)
	return sha256.Sum256(data), err
}

func (v *Server) createModel(_ *http.Request, q createModel) (any, error) {
	rank := 0
	var seed uint64
	if l := q.LoRA; l != nil {
		rank = l.Rank
		if l.Seed != nil {
			seed = *l.Seed
		}
		if rank > 0 && !(l.MLP && l.Attention) {
			return nil, wrong("adapters here are of attention and feed-forward together")
		}
	}
	switch {
	case q.Base != v.served.Model:
		return nil, refused{http.StatusNotFound, fmt.Sprintf("there is no model %q, but %q", q.Base, v.served.Model)}
	case rank < 0 || rank > 1024:
		return nil, wrong("rank is %d", rank)
	case q.Optimiser != nil && q.Optimiser.Type != "adamw":
		return nil, wrong("there is no optimiser %q here, but adamw", q.Optimiser.Type)
	}
	m, err := v.add(q.Session, q.Number, rank)
	if err != nil {
		return nil, err
	}
	return v.queue(m, 0, q, func(ctx context.Context) (any, func() []byte, error) {
		l, err := v.served.Open(ctx, rank, seed)
		m.learner = l
		return named{m.id, "create_model"}, nil, err
	})
}

func (v *Server) unloadModel(_ *http.Request, q named) (any, error) {
	m, err := v.model(q.Model)
	if err != nil {
		return nil, err
	}
	reply, err := v.queue(m, -1, q, func(context.Context) (any, func() []byte, error) {
		return named{q.Model, "unload_model"}, nil, nil
	})
	v.mu.Lock()
	delete(v.models, q.Model)
	v.mu.Unlock()
	m.close()
	return reply, err
}

func (v *Server) info(_ *http.Request, q named) (any, error) {
	m, err := v.model(q.Model)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"type": "get_info", "model_id": m.id, "model_name": v.served.Model, "is_lora": m.rank > 0, "lora_rank": m.rank,
		"model_data": map[string]any{"arch": "transformer", "model_name": v.served.Model, "tokenizer_id": v.served.Model},
	}, nil
}

// passes takes forward passes with and without a backward one, in either form.
func (v *Server) passes(forward bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := v.body(w, r)
		var q passRequest
		only := forward
		if err == nil {
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == protobuf {
				var flag bool
				q, flag, err = decodePass(data)
				only = only || flag
				if err != nil {
					err = wrong("the request cannot be read: %v", err)
				}
			} else {
				err = strictly(data, &q)
			}
		}
		var reply any
		if err == nil {
			reply, err = v.pass(q, only)
		}
		if err != nil {
			v.fail(w, r, err)
			return
		}
		respond(w, http.StatusOK, reply)
	}
}

func (v *Server) pass(q passRequest, forward bool) (any, error) {
	in := q.Backward
	if in == nil {
		in = q.Forward
	}
	if in == nil || len(in.Data) == 0 {
		return nil, wrong("there is nothing to pass over")
	}
	m, err := v.model(q.Model)
	if err != nil {
		return nil, err
	}
	l, err := newLoss(in.Loss, in.Config)
	if err != nil {
		return nil, wrong("%v", err)
	}
	rows := make([]row, len(in.Data))
	for i, d := range in.Data {
		if rows[i], err = readRow(d, l); err == nil {
			err = v.fits(rows[i].ids)
		}
		if err != nil {
			return nil, wrong("sequence %d: %v", i, err)
		}
	}
	if v.reduce != nil && !forward {
		v.reduce(rows)
	}
	return v.queue(m, q.Seq, []any{q, forward}, func(ctx context.Context) (any, func() []byte, error) {
		r, err := m.pass(ctx, rows, l, forward)
		return r, func() []byte { return encodeResult(r) }, err
	})
}

// fits refuses sequences that the model cannot take.
func (v *Server) fits(ids []int32) error {
	if len(ids) > v.served.Context {
		return fmt.Errorf("%d ids, the context has %d", len(ids), v.served.Context)
	}
	for _, id := range ids {
		if id < 0 || int(id) >= v.served.Vocab {
			return fmt.Errorf("id %d is outside the vocabulary of %d", id, v.served.Vocab)
		}
	}
	return nil
}

// ready says that there is a model.
func (m *trained) ready() error {
	if m.learner == nil {
		return wrong("the model was not made")
	}
	return nil
}

// now is a sampler of the weights as they are.
func (m *trained) now(ctx context.Context) (policy.Sampler, error) {
	if err := m.ready(); err != nil {
		return nil, err
	}
	if m.scorer == nil {
		s, err := m.learner.Sampler(ctx)
		if err != nil {
			return nil, err
		}
		m.scorer = s
	}
	return m.scorer, nil
}

// changed lets go of a sampler of weights that are no more.
func (m *trained) changed() { m.scorer = nil }

// pass computes log-probabilities, and remembers what the next step is to learn.
func (m *trained) pass(ctx context.Context, rows []row, l loss, forward bool) (passResult, error) {
	r := passResult{Kind: "TorchLossReturn", Metrics: map[string]float64{}}
	s, err := m.now(ctx)
	if err != nil {
		return r, err
	}
	seqs := make([][]int32, len(rows))
	for i := range rows {
		seqs[i] = rows[i].ids
	}
	logProbs, err := s.(policy.Scorer).Score(ctx, seqs)
	if err != nil {
		return r, err
	}
	total := 0.0
	var learnt []grpo.Datum
	for i, row := range rows {
		d, value, err := row.learn(l, logProbs[i])
		if err != nil && !forward {
			return r, wrong("sequence %d: %v", i, err)
		}
		total += value
		learnt = append(learnt, d)
		r.Outputs = append(r.Outputs, map[string]tensor{"logprobs": floats(logProbs[i][1:])})
	}
	r.Metrics["loss:sum"] = total
	if !forward {
		m.pending = append(m.pending, learnt...)
	}
	return r, nil
}

func (v *Server) optimStep(_ *http.Request, q optimStep) (any, error) {
	m, err := v.model(q.Model)
	if err != nil {
		return nil, err
	}
	return v.queue(m, q.Seq, q, func(ctx context.Context) (any, func() []byte, error) {
		r, err := m.step(ctx, q.Adam)
		return r, nil, err
	})
}

// step learns from what was passed over since the last step: the gradient of all of it, at once.
func (m *trained) step(ctx context.Context, a adam) (optimResult, error) {
	if err := m.ready(); err != nil {
		return optimResult{}, err
	}
	batch := m.pending
	if len(batch) == 0 {
		return optimResult{}, wrong("there is no gradient: forward_backward comes first")
	}
	m.pending = nil
	some := false
	for _, d := range batch {
		for _, w := range d.Weight {
			some = some || w != 0
		}
	}
	if !some {
		batch[0].Weight[1] = 1 // a step with a gradient of 0 is a step
	}
	s, err := m.learner.Update(ctx, batch, policy.Optim{
		Loss: grpo.Loss{Kind: grpo.PolicyGradient}, Rate: a.Rate, Beta1: a.Beta1, Beta2: a.Beta2, Epsilon: a.Eps,
		WeightDecay: a.Decay, Clip: a.Clip, Restart: m.forget,
	})
	if err != nil {
		return optimResult{}, err
	}
	m.forget = false
	m.changed()
	return optimResult{map[string]float64{"grad_norm": s.GradNorm}}, nil
}
