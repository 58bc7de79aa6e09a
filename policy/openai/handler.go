package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/remote"

	"golang.org/x/sync/errgroup"
)

// Served is what a Handler offers to others.
type Served struct {
	Model     string // its name
	Sampler   policy.Sampler
	Scorer    policy.Scorer   // nil: no log-probabilities of prompts
	Tokenizer *chat.Tokenizer // of the messages
	Template  chat.Template
	Vocab     int          // number of ids
	Context   int          // most ids of a sequence
	Token     string       // that clients must show; "": none is asked for, and only this machine may ask
	Parallel  int          // most requests at a time, further ones are sent away with 429; 0: 256
	Body      int64        // most bytes of a request; 0: 8 MiB
	Prompts   int          // most prompts of a request; 0: 256
	Log       *slog.Logger // of what fails here; nil: nobody
}

// Handler speaks the OpenAI protocol for a policy: /v1/models, /v1/chat/completions, /v1/completions (prompts of token
// ids or text), /tokenize and /health. It takes what dialect SkillMaster sends, fields as vLLM names them, and refuses
// every field it would not heed. No streams, no tools, no several answers to one prompt.
type Handler struct {
	served Served
	chat   *policy.Chat
	mux    http.ServeMux
	slots  chan struct{}
}

// NewHandler returns a handler. Without a token it answers requests of this machine alone, and none that a web page
// sends.
func NewHandler(s Served) (*Handler, error) {
	switch {
	case s.Sampler == nil || s.Tokenizer == nil || s.Model == "":
		return nil, errors.New("a handler needs a sampler, a tokenizer and the model's name")
	case s.Vocab < 1 || s.Context < 1:
		return nil, fmt.Errorf("a handler needs the size of vocabulary and context, not %d and %d", s.Vocab, s.Context)
	}
	if err := remote.CheckToken(s.Token); err != nil {
		return nil, err
	}
	if err := s.Template.Check(s.Tokenizer); err != nil {
		return nil, err
	}
	s.Parallel, s.Body, s.Prompts = positive(s.Parallel, 256), positive(s.Body, 8<<20), positive(s.Prompts, 256)
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{served: s, chat: policy.NewChat(s.Sampler, s.Tokenizer, s.Template), slots: make(chan struct{}, s.Parallel)}
	h.mux.HandleFunc("GET /health", tell(fields{"status": "ok"}))
	h.mux.HandleFunc("GET /v1/models", tell(fields{"object": "list", "data": []fields{{
		"id": s.Model, "object": "model", "owned_by": "skillmaster", "max_model_len": s.Context,
	}}}))
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, refused{http.StatusNotFound, "not_found", "there is no such endpoint here"})
	})
	h.mux.HandleFunc("POST /v1/chat/completions", serve(h, h.chatCompletion))
	h.mux.HandleFunc("POST /v1/completions", serve(h, h.completion))
	h.mux.HandleFunc("POST /tokenize", serve(h, h.tokenize))
	return h, nil
}

// refused is an error of the protocol.
type refused struct {
	status int
	code   string
	text   string
}

func (r refused) Error() string { return r.text }

func wrong(format string, a ...any) error {
	return refused{http.StatusBadRequest, "invalid_request_error", fmt.Sprintf(format, a...)}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.admit(r); err != nil {
		h.fail(w, r, err)
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		h.fail(w, r, refused{http.StatusTooManyRequests, "rate_limit_exceeded", "too many requests at a time"})
		return
	}
	h.mux.ServeHTTP(w, r)
}

// admit refuses who may not ask.
func (h *Handler) admit(r *http.Request) error {
	status, err := remote.May(r, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), h.served.Token)
	switch {
	case err == nil:
		return nil
	case status == http.StatusUnauthorized:
		return refused{status, "invalid_api_key", err.Error()}
	default:
		return refused{status, "forbidden", err.Error()}
	}
}

// Serve answers on l; see remote.Serve.
func (h *Handler) Serve(ctx context.Context, l net.Listener, connections int) error {
	return remote.Serve(ctx, l, h, h.served.Token, connections, h.served.Log)
}

func respond(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // who hung up needs no answer
	return nil
}

// fail answers with an error in the protocol's form. What went wrong inside is for the log.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e refused
	switch {
	case errors.As(err, &e):
	case r.Context().Err() != nil:
		return // nobody waits for it
	default:
		h.served.Log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		e = refused{http.StatusInternalServerError, "internal_error", "the server failed; its log says why"}
	}
	_ = respond(w, e.status, fields{"error": fields{"message": e.text, "type": e.code, "code": e.code}}) // strings can be written
}

// serve decodes a request strictly, and answers it.
func serve[T any](h *Handler, answer func(ctx context.Context, asked T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		relax := remote.Hurry(w)
		defer relax()
		var asked T
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, h.served.Body))
		dec.DisallowUnknownFields()
		err := dec.Decode(&asked)
		if err == nil && dec.More() {
			err = errors.New("more than one JSON value")
		}
		relax()
		if err != nil {
			h.fail(w, r, badBody(err))
			return
		}
		reply, err := answer(r.Context(), asked)
		if err == nil {
			err = respond(w, http.StatusOK, reply)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
}

func badBody(err error) error {
	if m := (*http.MaxBytesError)(nil); errors.As(err, &m) {
		return refused{http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("the request has more than %d bytes", m.Limit)}
	}
	return wrong("the request cannot be read: %v", err)
}

// tell answers always the same.
func tell(v fields) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = respond(w, http.StatusOK, v) } // it can be written as JSON
}

type tokenizeRequest struct {
	Model   string `json:"model"`
	Prompt  string `json:"prompt"`
	Special bool   `json:"add_special_tokens"` // there are none to add
}

func (h *Handler) tokenize(_ context.Context, q tokenizeRequest) (any, error) {
	ids := h.served.Tokenizer.Encode(q.Prompt)
	return fields{"tokens": list(ids), "count": len(ids), "max_model_len": h.served.Context}, nil
}

// asked are the fields that completions and chat completions share. The defaults are the protocol's.
type asked struct {
	Model       string   `json:"model"`
	MaxTokens   *int     `json:"max_tokens"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	TopK        int      `json:"top_k"`
	Seed        uint64   `json:"seed"`
	Stop        []int32  `json:"stop_token_ids"`
	ReturnIDs   bool     `json:"return_token_ids"`
	User        string   `json:"user"`
	// What follows may be sent with the value that changes nothing.
	N          *int     `json:"n"`
	Stream     bool     `json:"stream"`
	MinP       float64  `json:"min_p"`
	Repetition *float64 `json:"repetition_penalty"`
	Presence   float64  `json:"presence_penalty"`
	Frequency  float64  `json:"frequency_penalty"`
}

// sampling checks the fields and returns what they ask for.
func (h *Handler) sampling(a asked) (policy.Sampling, error) {
	p := policy.Sampling{Temperature: 1, TopP: 1, TopK: max(a.TopK, 0), MaxTokens: 16, Seed: a.Seed, Stop: a.Stop}
	if a.Temperature != nil {
		p.Temperature = *a.Temperature
	}
	if a.TopP != nil {
		p.TopP = *a.TopP
	}
	if a.MaxTokens != nil {
		p.MaxTokens = *a.MaxTokens
	}
	switch {
	case a.Model != h.served.Model:
		return p, refused{http.StatusNotFound, "model_not_found", fmt.Sprintf("there is no model %q, but %q", a.Model, h.served.Model)}
	case a.Stream:
		return p, wrong("stream: replies come whole here")
	case a.N != nil && *a.N != 1:
		return p, wrong("n is %d: there is one answer to a prompt here", *a.N)
	case a.MinP != 0 || a.Presence != 0 || a.Frequency != 0 || a.Repetition != nil && *a.Repetition != 1:
		return p, wrong("min_p and penalties are not offered here: leave them out")
	case !(p.Temperature >= 0 && p.Temperature <= 1e6):
		return p, wrong("temperature is %v, it must be at least 0", p.Temperature)
	case !(p.TopP > 0 && p.TopP <= 1):
		return p, wrong("top_p is %v, it must be above 0 and at most 1", p.TopP)
	case p.MaxTokens < 1:
		return p, wrong("max_tokens is %d, it must be at least 1", p.MaxTokens)
	}
	return p, h.known("stop_token_ids", a.Stop)
}

// known refuses ids that there are not.
func (h *Handler) known(where string, ids []int32) error {
	if i := slices.IndexFunc(ids, func(id int32) bool { return id < 0 || int(id) >= h.served.Vocab }); i >= 0 {
		return wrong("%s: id %d is outside the vocabulary of %d", where, ids[i], h.served.Vocab)
	}
	return nil
}

func (h *Handler) tooLong(n int) error {
	text := fmt.Sprintf("the maximum context length is %d, the prompt has %d ids", h.served.Context, n)
	return refused{http.StatusBadRequest, "context_length_exceeded", text}
}

// fingerprint names the weights that answered.
func fingerprint(version int) string { return "version-" + strconv.Itoa(version) }

// finishReason is the protocol's name of a stop.
func finishReason(k policy.StopKind) string {
	switch k {
	case policy.Stopped:
		return "stop"
	case policy.Length, policy.NoContext:
		return "length"
	default:
		panic(fmt.Sprintf("openai: stop kind %d", k))
	}
}

// choices of structured_outputs; other kinds are not offered.
type structured struct {
	Choice []string `json:"choice"`
}

type chatRequest struct {
	asked
	Messages []struct {
		Role    chat.Role `json:"role"`
		Content string    `json:"content"`
	} `json:"messages"`
	MaxCompletion *int        `json:"max_completion_tokens"`
	LogProbs      bool        `json:"logprobs"`
	Structured    *structured `json:"structured_outputs"`
}

func (h *Handler) chatCompletion(ctx context.Context, q chatRequest) (any, error) {
	if q.MaxTokens == nil {
		q.MaxTokens = q.MaxCompletion
	}
	if q.MaxTokens == nil {
		q.MaxTokens = &h.served.Context
	}
	p, err := h.sampling(q.asked)
	if err != nil {
		return nil, err
	}
	r := policy.Request{Sampling: p}
	for _, m := range q.Messages {
		r.Messages = append(r.Messages, chat.Message{Role: m.Role, Text: m.Content})
	}
	if q.Structured != nil {
		r.Allowed = q.Structured.Choice
	}
	for _, text := range r.Allowed {
		if h.chat.Text(h.chat.Encode(text)) != text {
			return nil, wrong("structured_outputs: the tokenizer cannot say %q", text)
		}
	}
	shown, err := h.chat.Prompt(r)
	if err != nil {
		return nil, wrong("messages: %v", err)
	}
	if len(shown) >= h.served.Context {
		return nil, h.tooLong(len(shown))
	}
	c, err := h.chat.Complete(ctx, r)
	if err != nil {
		return nil, err
	}
	choice := fields{"index": 0, "finish_reason": finishReason(c.Stop), "message": fields{"role": chat.Assistant, "content": c.Text}}
	reply := h.reply("chat.completion", c.Version, []fields{choice}, usage{int64(len(c.Prompt)), int64(len(c.IDs))})
	if q.LogProbs && len(c.LogProbs) == len(c.IDs) {
		choice["logprobs"] = fields{"content": h.spelled(c.IDs, c.LogProbs)}
	}
	if q.ReturnIDs {
		choice["token_ids"], reply["prompt_token_ids"] = list(c.IDs), c.Prompt
	}
	return reply, nil
}

func (h *Handler) reply(object string, version int, choices []fields, u usage) fields {
	return fields{
		"object": object, "model": h.served.Model, "system_fingerprint": fingerprint(version), "choices": choices,
		"usage": fields{"prompt_tokens": u.prompt, "completion_tokens": u.reply, "total_tokens": u.sum()},
	}
}

// spelled are ids with their texts and log-probabilities.
func (h *Handler) spelled(ids []int32, logProbs []float32) []fields {
	out := []fields{}
	for i, id := range ids {
		text := h.served.Tokenizer.Decode(ids[i : i+1])
		bytes := []int{}
		for _, b := range []byte(text) {
			bytes = append(bytes, int(b))
		}
		out = append(out, fields{"token": strings.ToValidUTF8(text, "\uFFFD"), "bytes": bytes, "logprob": logProbs[i], "token_id": id})
	}
	return out
}

// prompts are what /v1/completions is asked to continue: ids, several lists of ids, a text or several texts.
type prompts struct {
	ids   [][]int32
	texts []string
}

func (p *prompts) UnmarshalJSON(data []byte) error {
	var text string
	var one []int32
	for _, try := range []struct {
		into any
		set  func()
	}{
		{&text, func() { p.texts = []string{text} }},
		{&p.texts, func() {}},
		{&one, func() { p.ids = [][]int32{one} }},
		{&p.ids, func() {}},
	} {
		*p, one = prompts{}, nil
		if json.Unmarshal(data, try.into) == nil {
			try.set()
			return nil
		}
	}
	*p = prompts{}
	return errors.New("prompt: want token ids, a list of them, a text or a list of texts")
}

type completionRequest struct {
	asked
	Prompt    prompts `json:"prompt"`
	LogProbs  *int    `json:"logprobs"`        // 0 or 1: those of what is sampled
	Prompted  *int    `json:"prompt_logprobs"` // likewise, of the prompt
	IgnoreEOS bool    `json:"ignore_eos"`      // always: stop_token_ids alone end a reply
	Echo      bool    `json:"echo"`
}

func (h *Handler) completion(ctx context.Context, q completionRequest) (any, error) {
	p, err := h.sampling(q.asked)
	if err != nil {
		return nil, err
	}
	all := q.Prompt.ids
	for _, text := range q.Prompt.texts {
		all = append(all, h.served.Tokenizer.Encode(text))
	}
	switch {
	case len(all) == 0 || len(all) > h.served.Prompts:
		return nil, wrong("%d prompts: want 1…%d", len(all), h.served.Prompts)
	case q.Echo:
		return nil, wrong("echo is not offered here")
	case q.LogProbs != nil && (*q.LogProbs < 0 || *q.LogProbs > 1), q.Prompted != nil && (*q.Prompted < 0 || *q.Prompted > 1):
		return nil, wrong("logprobs and prompt_logprobs: only 0 and 1 are offered here")
	case q.Prompted != nil && h.served.Scorer == nil:
		return nil, wrong("prompt_logprobs are not offered here")
	}
	for i, ids := range all {
		switch {
		case len(ids) == 0:
			return nil, wrong("prompt %d is empty", i)
		case len(ids) >= h.served.Context:
			return nil, h.tooLong(len(ids))
		}
		if err := h.known("prompt", ids); err != nil {
			return nil, err
		}
	}
	return h.complete(ctx, q, all, p)
}

// complete continues prompts, the first with the seed itself, further ones with those that follow.
func (h *Handler) complete(ctx context.Context, q completionRequest, all [][]int32, p policy.Sampling) (any, error) {
	scores, samples := make([][]float32, len(all)), make([]policy.Sample, len(all))
	g, ctx := errgroup.WithContext(ctx)
	if q.Prompted != nil {
		g.Go(func() (err error) {
			scores, err = h.served.Scorer.Score(ctx, all)
			return err
		})
	}
	for i, ids := range all {
		one := p
		one.Seed += uint64(i)
		g.Go(func() (err error) {
			samples[i], err = h.served.Sampler.Sample(ctx, ids, one)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var choices []fields
	var u usage
	for i, s := range samples {
		if s.Version != samples[0].Version {
			return nil, refused{http.StatusServiceUnavailable, "weights_changed", "the weights changed meanwhile: ask again"}
		}
		u = usage{u.prompt + int64(len(all[i])), u.reply + int64(len(s.IDs))}
		choices = append(choices, h.choice(q, i, all[i], s, scores[i]))
	}
	return h.reply("text_completion", samples[0].Version, choices, u), nil
}

// choice is the answer to prompt i.
func (h *Handler) choice(q completionRequest, i int, prompt []int32, s policy.Sample, scores []float32) fields {
	c := fields{"index": i, "finish_reason": finishReason(s.Stop), "text": strings.ToValidUTF8(h.served.Tokenizer.Decode(s.IDs), "\uFFFD")}
	if q.ReturnIDs {
		c["token_ids"], c["prompt_token_ids"] = list(s.IDs), prompt
	}
	if q.LogProbs != nil {
		c["logprobs"] = h.tokenLogProbs(s)
	}
	if q.Prompted != nil {
		c["prompt_logprobs"] = promptLogProbs(prompt, scores)
	}
	return c
}

func (h *Handler) tokenLogProbs(s policy.Sample) fields {
	tokens := []string{}
	for i := range s.IDs {
		tokens = append(tokens, strings.ToValidUTF8(h.served.Tokenizer.Decode(s.IDs[i:i+1]), "\uFFFD"))
	}
	return fields{"tokens": tokens, "token_logprobs": s.LogProbs}
}

// promptLogProbs are in vLLM's form: an object for each id, null for the first.
func promptLogProbs(ids []int32, scores []float32) []any {
	out := []any{nil}
	for i, v := range scores[1:] {
		out = append(out, fields{strconv.Itoa(int(ids[i+1])): fields{"logprob": v}})
	}
	return out
}
