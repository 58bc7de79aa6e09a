package tinker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"skillmaster/policy"

	"golang.org/x/sync/errgroup"
)

// offer lets clients ask a sampler, under the name that is returned. Where a session has too many, the one that was not
// asked for the longest time goes.
func (v *Server) offer(o *offered) (string, error) {
	if err := v.alive(o.session); err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	mine, oldest := 0, ""
	for id, s := range v.samplers {
		if s.session == o.session {
			mine++
			if oldest == "" || s.last.Before(v.samplers[oldest].last) {
				oldest = id
			}
		}
	}
	if mine >= mostSamplers {
		delete(v.samplers, oldest)
	}
	o.last = v.served.Now()
	o.asked = map[int]*promised{}
	id := "sampler-" + random()
	v.samplers[id] = o
	return id, nil
}

func (v *Server) createSampler(r *http.Request, q createSampler) (any, error) {
	if err := v.alive(q.Session); err != nil {
		return nil, err
	}
	o := &offered{session: q.Session, path: q.Path}
	var err error
	switch {
	case (q.Base == "") == (q.Path == ""):
		return nil, wrong("give either base_model or model_path")
	case q.Base != "" && q.Base != v.served.Model:
		return nil, refused{http.StatusNotFound, fmt.Sprintf("there is no model %q, but %q", q.Base, v.served.Model)}
	case q.Base != "":
		o.sampler, err = v.open(r.Context(), 0, nil)
	default:
		o.sampler, err = v.read(r.Context(), q.Path)
	}
	if err != nil {
		return nil, err
	}
	id, err := v.offer(o)
	return createdSampler{id, "create_sampling_session"}, err
}

// open makes a sampler of the model as it is offered, or as it was saved.
func (v *Server) open(ctx context.Context, rank int, load func(policy.Learner) error) (policy.Sampler, error) {
	l, err := v.served.Open(ctx, rank, 0)
	if err == nil && load != nil {
		err = load(l)
	}
	if err != nil {
		return nil, err
	}
	return l.Sampler(ctx)
}

func (v *Server) read(ctx context.Context, text string) (policy.Sampler, error) {
	p, err := readPlace(text)
	if err != nil {
		return nil, err
	}
	a, err := v.note(p)
	if err != nil {
		return nil, err
	}
	return v.open(ctx, a.Rank, func(l policy.Learner) error {
		f, err := v.root.Open(p.file())
		if err != nil {
			return err
		}
		defer f.Close()
		return l.Load(ctx, f)
	})
}

func (v *Server) samplerInfo(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	v.mu.Lock()
	o := v.samplers[id]
	v.mu.Unlock()
	if o == nil {
		v.fail(w, r, unknown("sampler", id))
		return
	}
	reply := map[string]any{"sampler_id": id, "base_model": v.served.Model}
	if o.path != "" {
		reply["model_path"] = o.path
	}
	respond(w, http.StatusOK, reply)
}

// sampling reads what a client wants sampled.
func (v *Server) sampling(q samplingParams) (policy.Sampling, error) {
	p := policy.Sampling{Temperature: 1, TopP: 1, MaxTokens: v.served.Context}
	if q.Temperature != nil {
		p.Temperature = *q.Temperature
	}
	if q.TopP != nil {
		p.TopP = *q.TopP
	}
	if q.TopK != nil {
		p.TopK = max(0, *q.TopK)
	}
	if q.MaxTokens != nil {
		p.MaxTokens = *q.MaxTokens
	}
	if q.Seed != nil {
		p.Seed = *q.Seed
	}
	if len(q.Stop) > 0 && string(q.Stop) != "null" && json.Unmarshal(q.Stop, &p.Stop) != nil {
		return p, wrong("stop: ids end a sample here, not texts (the server has no tokenizer)")
	}
	if err := v.fits(p.Stop); err != nil {
		return p, wrong("stop: %v", err)
	}
	if err := p.Check(); err != nil {
		return p, wrong("%v", err)
	}
	return p, nil
}

func (v *Server) sample(_ *http.Request, q sampleRequest) (any, error) {
	ids, err := q.Prompt.ids()
	if err != nil {
		return nil, wrong("prompt: %v", err)
	}
	p, err := v.sampling(q.Params)
	if err != nil {
		return nil, err
	}
	switch {
	case q.Session == "" || q.Seq == nil:
		return nil, wrong("give sampling_session_id and seq_id: make a sampling session first")
	case q.TopPrompt > 0 || q.TopSample > 0 || q.Alternative > 0 || q.LastN != nil || q.Stability || len(q.Target) > 0 && string(q.Target) != "null":
		return nil, wrong("of log-probabilities there are those of the sample and of the whole prompt here, and nothing else")
	case q.Samples < 1 || q.Samples > 1024:
		return nil, wrong("num_samples is %d", q.Samples)
	case len(ids) == 0:
		return nil, wrong("the prompt is empty")
	}
	if err := v.fits(ids); err != nil {
		return nil, wrong("prompt: %v", err)
	}
	if len(ids) == v.served.Context && !q.PromptLogs {
		return nil, wrong("the prompt fills the context of %d ids", v.served.Context)
	}
	seen, err := sight(q)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.samplers[q.Session]
	if o == nil {
		return nil, unknown("sampler", q.Session)
	}
	o.last = v.served.Now()
	made := o.asked[*q.Seq]
	switch {
	case made != nil && made.seen != seen:
		return nil, refused{http.StatusConflict, fmt.Sprintf("sample %d was another one", *q.Seq)}
	case made == nil:
		if made, err = v.start(o.sampler, q, ids, p); err != nil {
			return nil, err
		}
		made.seen = seen
		o.asked[*q.Seq] = made
	}
	r := promise{Request: made.id}
	for i := range q.Samples {
		r.Sequences = append(r.Sequences, fmt.Sprintf("%s-%d-%d", q.Session, *q.Seq, i))
	}
	return r, nil
}

// start samples in the background. The caller holds the lock.
func (v *Server) start(s policy.Sampler, q sampleRequest, ids []int32, p policy.Sampling) (*promised, error) {
	select {
	case v.slots <- struct{}{}:
	default:
		return nil, refused{http.StatusTooManyRequests, "too many samples at a time"}
	}
	made, err := v.promise([32]byte{})
	if err != nil {
		<-v.slots
		return nil, err
	}
	v.work.Go(func() {
		defer func() { <-v.slots }()
		r, err := samples(v.ctx, s, q, ids, p)
		made.keep(v.served.Now(), r, func() []byte { return encodeSamples(r) }, err)
	})
	return made, nil
}

// samples are as many as were asked for, the first with the seed itself, further ones with those that follow.
func samples(ctx context.Context, s policy.Sampler, q sampleRequest, ids []int32, p policy.Sampling) (sampleResult, error) {
	r := sampleResult{Sequences: make([]sequence, q.Samples), Type: "sample"}
	g, ctx := errgroup.WithContext(ctx)
	if q.PromptLogs {
		g.Go(func() error {
			rows, err := s.(policy.Scorer).Score(ctx, [][]int32{ids})
			if err != nil {
				return err
			}
			r.Prompt = make([]*float64, len(ids))
			for i, f := range rows[0][1:] {
				f := float64(f)
				r.Prompt[i+1] = &f
			}
			return nil
		})
	}
	for i := range r.Sequences {
		one := p
		one.Seed += uint64(i)
		g.Go(func() error {
			got, err := s.Sample(ctx, ids, one)
			if err != nil {
				return err
			}
			r.Sequences[i] = sequence{Stop: "length", Tokens: append([]int32{}, got.IDs...), LogProbs: floats(got.LogProbs).Data}
			if got.Stop == policy.Stopped {
				r.Sequences[i].Stop = "stop"
			}
			return nil
		})
	}
	return r, g.Wait()
}
