package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/policytest"
)

func fakeSampler(t *testing.T, h http.Handler, d Dialect, tok *chat.Tokenizer) (*Sampler, error) {
	t.Helper()
	c := client(t, Options{URL: serveHTTP(t, h), Dialect: d, Model: "tiny", Limits: Limits{Tries: 2, Parallel: 64}})
	return c.Sampler(t.Context(), Weights{Version: 5}, tok)
}

// SGLang's endpoint carries the whole contract, too.
func TestSGLangConforms(t *testing.T) {
	url := serveHTTP(t, newFake(t))
	limits := policytest.Limits{Vocab: testTokenizer(t).VocabSize(), Context: testContext - generate.room}
	policytest.RunSampler(t, limits, func(t *testing.T) policy.Sampler { return distant(t, url, SGLang) })
	policytest.RunScorer(t, limits, func(t *testing.T) policy.Scorer { return distant(t, url, SGLang) })
}

// vLLM's fields are those of our handler.
func TestVLLMFields(t *testing.T) {
	url := serveHTTP(t, offer(t, nil))
	a, b := distant(t, url, VLLM), distant(t, url, SkillMaster)
	for seed := range uint64(5) {
		p := policy.Sampling{Temperature: 1.2, TopK: 9, MaxTokens: 6, Seed: seed}
		got, err := a.Sample(t.Context(), []int32{1, 2, 3}, p)
		want, err2 := b.Sample(t.Context(), []int32{1, 2, 3}, p)
		if err != nil || err2 != nil || !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("got %+v, %v, want %+v, %v", got, err, want, err2)
		}
	}
}

// llama.cpp samples, cuts at stop ids itself, and cannot score.
func TestLlamaCPP(t *testing.T) {
	f := newFake(t)
	f.end = 9
	s, err := fakeSampler(t, f, LlamaCPP, f.tok)
	if err != nil {
		t.Fatal(err)
	}
	if s.Context() != testContext-1 || s.Version() != 5 {
		t.Errorf("context %d, version %d", s.Context(), s.Version())
	}
	prompt := []int32{4, 5, 6}
	stopped := 0
	for seed := range uint64(60) {
		stop := []int32{f.end, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}
		got, err := s.Sample(t.Context(), prompt, policy.Sampling{Temperature: 1, MaxTokens: 30, Seed: seed, Stop: stop})
		if err != nil {
			t.Fatal(err)
		}
		want, err := f.model.Sample(t.Context(), prompt, policy.Sampling{Temperature: 1, MaxTokens: 30, Seed: s.client.dialect.cut(seed), Stop: stop})
		if err != nil || !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.LogProbs, want.LogProbs) || got.Stop != want.Stop || got.Version != 5 {
			t.Fatalf("got %+v, want %+v, %v", got, want, err)
		}
		if got.Stop == policy.Stopped {
			stopped++
		}
	}
	if stopped == 0 {
		t.Error("no sample was stopped: the test shows nothing")
	}
	if _, err := s.Scorer(); !errors.Is(err, ErrNotOffered) {
		t.Errorf("scorer: got %v", err)
	}
	if _, err := s.Sample(t.Context(), prompt, policy.Sampling{MaxTokens: 3, Allowed: [][]int32{{1}}}); !errors.Is(err, ErrNotOffered) {
		t.Errorf("allowed: got %v", err)
	}
	// The check at the start has no template, and takes the model's own end for one.
	prompt = []int32{11, 7, 5, 3}
	first, err := f.model.Sample(t.Context(), prompt, policy.Sampling{MaxTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	f.end = first.IDs[0]
	if _, err := fakeSampler(t, f, LlamaCPP, f.tok); err != nil {
		t.Errorf("a model that ends at once: %v", err)
	}
	// It ends at an id of its own that the template does not name.
	for id := range int32(40) {
		f.end = id
		_, err = s.Sample(t.Context(), prompt, policy.Sampling{Temperature: 1, MaxTokens: 100, Seed: 3})
		if err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "does the template fit") {
		t.Errorf("an unknown end: got %v", err)
	}
}

// What a server says of its ids and log-probabilities is checked at the start and in every reply.
func TestLies(t *testing.T) {
	first := func(v any) map[string]any { return v.([]any)[0].(map[string]any) }
	meta := func(v any) map[string]any { return first(v)["meta_info"].(map[string]any) }
	sampled := func(v any) []any { return meta(v)["output_token_logprobs"].([]any) }
	for name, c := range map[string]struct {
		lie  func(v any)
		want string
		is   error
	}{
		"other prompt":          {func(v any) { meta(v)["prompt_tokens"] = 17 }, "read 17 ids where it was sent", nil},
		"no ids":                {func(v any) { first(v)["output_ids"] = []any{}; meta(v)["output_token_logprobs"] = []any{} }, "no ids", nil},
		"ids missing":           {func(v any) { delete(first(v), "output_ids") }, "log-probabilities came for 0 ids", nil},
		"one too few":           {func(v any) { meta(v)["output_token_logprobs"] = sampled(v)[1:] }, "log-probabilities came for", nil},
		"of another id":         {func(v any) { sampled(v)[0].([]any)[1] = 3 }, "log-probability 0 is of id 3", nil},
		"null":                  {func(v any) { sampled(v)[0].([]any)[0] = nil }, "log-probability 0 is missing", nil},
		"positive":              {func(v any) { sampled(v)[0].([]any)[0] = 0.5 }, "log-probability 0 is 0.5", nil},
		"too small for a float": {func(v any) { sampled(v)[0].([]any)[0] = -1e300 }, "log-probability 0 is -1e+300", nil},
		"a text":                {func(v any) { sampled(v)[0].([]any)[0] = "x" }, "cannot be read", nil},
		"half a pair":           {func(v any) { sampled(v)[0] = []any{1} }, "parts", nil},
		"unknown ids": {func(v any) {
			first(v)["output_ids"].([]any)[0] = 99999
			sampled(v)[0].([]any)[1] = 99999
		}, "outside the vocabulary", nil},
		"negative ids": {func(v any) {
			first(v)["output_ids"].([]any)[0] = -4
			sampled(v)[0].([]any)[1] = -4
		}, "outside the vocabulary", nil},
		"fractions of ids": {func(v any) { first(v)["output_ids"].([]any)[0] = 1.5 }, "cannot be read", nil},
		"huge ids":         {func(v any) { first(v)["output_ids"].([]any)[0] = 1e12 }, "cannot be read", nil},
		"too many ids": {func(v any) {
			first(v)["output_ids"] = append(first(v)["output_ids"].([]any), 1)
			meta(v)["output_token_logprobs"] = append(sampled(v), []any{-1, 1, nil})
		}, "asked were", nil},
		"aborted":         {func(v any) { meta(v)["finish_reason"] = map[string]any{"type": "abort", "message": "weights"} }, "broke off (abort): weights", nil},
		"no reason":       {func(v any) { delete(meta(v), "finish_reason") }, "broke off", nil},
		"stopped for no":  {func(v any) { meta(v)["finish_reason"] = map[string]any{"type": "stop"} }, "none of the stop ids", nil},
		"weights changed": {func(v any) { meta(v)["weight_version"] = "2" }, `calls them "2", they were "default"`, policy.ErrVersion},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			s, err := fakeSampler(t, f, SGLang, f.tok)
			if err != nil {
				t.Fatal(err)
			}
			f.change = func(_ string, v any) any { c.lie(v); return v }
			s.client.options.Limits.Pause = 1
			got, err := s.Sample(t.Context(), []int32{1, 2, 3}, policy.Sampling{Temperature: 1, MaxTokens: 5})
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %+v and %v, want an error that says %q", got, err, c.want)
			}
		})
	}
}

// liar changes what our handler answers to completions.
type liar struct {
	h   http.Handler
	lie func(reply, choice map[string]any)
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.lie == nil || r.URL.Path != "/v1/completions" {
		l.h.ServeHTTP(w, r)
		return
	}
	rec := httptest.NewRecorder()
	l.h.ServeHTTP(rec, r)
	var reply map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &reply); err != nil {
		panic(err)
	}
	l.lie(reply, reply["choices"].([]any)[0].(map[string]any))
	_ = json.NewEncoder(w).Encode(reply)
}

// The same for /v1/completions.
func TestCompletionLies(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(reply, choice map[string]any)
		want string
	}{
		"other prompt":     {func(_, c map[string]any) { c["prompt_token_ids"] = []int{1, 2, 4} }, "read other ids"},
		"an id before":     {func(_, c map[string]any) { c["prompt_token_ids"] = []int{0, 1, 2, 3} }, "read other ids"},
		"no prompt":        {func(_, c map[string]any) { delete(c, "prompt_token_ids") }, "return_token_ids"},
		"no ids":           {func(_, c map[string]any) { delete(c, "token_ids") }, "no ids"},
		"no numbers":       {func(_, c map[string]any) { delete(c, "logprobs") }, "0 log-probabilities for 5 ids"},
		"goes on":          {func(_, c map[string]any) { c["token_ids"].([]any)[1] = 77 }, "goes on after stop id 77"},
		"filtered":         {func(_, c map[string]any) { c["finish_reason"] = "content_filter" }, `because of "content_filter"`},
		"no reason":        {func(_, c map[string]any) { delete(c, "finish_reason") }, "why it ended"},
		"another index":    {func(_, c map[string]any) { c["index"] = 1 }, "no answer 1"},
		"two answers":      {func(r, c map[string]any) { r["choices"] = []any{c, c} }, "2 answers"},
		"another model":    {func(r, _ map[string]any) { r["model"] = "base" }, `model "base", asked was "tiny"`},
		"other weights":    {func(r, _ map[string]any) { r["system_fingerprint"] = "version-1" }, `calls them "version-1"`},
		"cut without need": {func(_, c map[string]any) { shorten(c, 2) }, "its context is shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &liar{h: offer(t, nil)}
			s := distant(t, serveHTTP(t, l), SkillMaster)
			l.lie = c.lie
			s.client.options.Limits.Pause = 1
			got, err := s.Sample(t.Context(), []int32{1, 2, 3}, policy.Sampling{Temperature: 1, MaxTokens: 5, Stop: []int32{77}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v and %v, want an error that says %q", got, err, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		lie  func(reply, choice map[string]any)
		want string
	}{
		"no scores":       {func(_, c map[string]any) { delete(c, "prompt_logprobs") }, "0 log-probabilities came for a sequence of 3"},
		"one too few":     {func(_, c map[string]any) { c["prompt_logprobs"] = c["prompt_logprobs"].([]any)[1:] }, "2 log-probabilities came for a prompt of 3"},
		"of another id":   {func(_, c map[string]any) { c["prompt_logprobs"].([]any)[1] = fields{"9": fields{"logprob": -1}} }, "log-probability 0 is missing"},
		"first not empty": {func(_, c map[string]any) { c["prompt_logprobs"].([]any)[0] = fields{"1": fields{"logprob": -1}} }, "put one before it"},
	} {
		l := &liar{h: offer(t, nil)}
		s := distant(t, serveHTTP(t, l), SkillMaster)
		l.lie = c.lie
		s.client.options.Limits.Pause = 1
		if got, err := s.Score(t.Context(), [][]int32{{1, 2, 3}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v and %v, want an error that says %q", name, got, err, c.want)
		}
	}
}

// shorten cuts a choice of completions.
func shorten(c map[string]any, n int) {
	c["token_ids"] = c["token_ids"].([]any)[:n]
	numbers := c["logprobs"].(map[string]any)
	numbers["token_logprobs"] = numbers["token_logprobs"].([]any)[:n]
}

// The start refuses what it cannot verify.
func TestSelfCheck(t *testing.T) {
	other, err := chat.Train(slices.Values([]string{"kettles and drawers", "kettles and drawers"}), chat.TrainOptions{VocabSize: 290, Special: chat.ChatML().Special(), Tags: chat.Tags()})
	if err != nil {
		t.Fatal(err)
	}
	scores := func(v any, f func(pairs []any)) any {
		if m := v.([]any)[0].(map[string]any)["meta_info"].(map[string]any); m["input_token_logprobs"] != nil {
			f(m["input_token_logprobs"].([]any))
		}
		return v
	}
	for name, c := range map[string]struct {
		change func(path string, v any) any
		tok    *chat.Tokenizer
		want   string
	}{
		"no such model": {func(path string, v any) any {
			if path == "/v1/models" {
				return fields{"data": []fields{{"id": "other", "max_model_len": 100}}}
			}
			return v
		}, nil, `no model "tiny", it lists [other]`},
		"no context": {func(path string, v any) any {
			if path == "/v1/models" {
				return fields{"data": []fields{{"id": "tiny"}}}
			}
			return v
		}, nil, "give Weights.Context"},
		"another tokenizer": {nil, other, "give the model's own tokenizer.json"},
		"other scores": {func(path string, v any) any {
			if path != "/generate" {
				return v
			}
			return scores(v, func(pairs []any) { pairs[len(pairs)-1].([]any)[0] = -0.001 })
		}, nil, "neither filters nor penalises"},
		"an id put before": {func(path string, v any) any {
			if path != "/generate" {
				return v
			}
			return scores(v, func(pairs []any) { pairs[0].([]any)[0] = -1.5 })
		}, nil, "does the server put one before it?"},
		"scores of other ids": {func(path string, v any) any {
			if path != "/generate" {
				return v
			}
			return scores(v, func(pairs []any) { pairs[1].([]any)[1] = 1 })
		}, nil, "is of id 1, not of"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.change = c.change
			if _, err := fakeSampler(t, f, SGLang, c.tok); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
	for _, d := range []Dialect{Hosted, Generic, Ollama} {
		if _, err := fakeSampler(t, newFake(t), d, nil); !errors.Is(err, ErrNotOffered) {
			t.Errorf("%s: got %v", d, err)
		}
	}
	c := client(t, Options{URL: serveHTTP(t, newFake(t)), Dialect: SGLang, Model: "tiny"})
	if _, err := c.Sampler(t.Context(), Weights{Context: testContext}, nil); err == nil || !strings.Contains(err.Error(), "has room for") {
		t.Errorf("too long a context: got %v", err)
	}
}

// Log-probabilities of the sampling temperature are noticed, and sampling that would get them is refused.
func TestTempered(t *testing.T) {
	f := newFake(t)
	f.tempered = true
	s, err := fakeSampler(t, f, SGLang, f.tok)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		p  policy.Sampling
		ok bool
	}{
		"temperature 1":   {policy.Sampling{Temperature: 1, MaxTokens: 2}, true},
		"greedy":          {policy.Sampling{MaxTokens: 2}, true},
		"temperature 0.7": {policy.Sampling{Temperature: 0.7, MaxTokens: 2}, false},
		"a filter":        {policy.Sampling{Temperature: 1, TopK: 5, MaxTokens: 2}, false},
		"a choice": { // scores have no temperature
			policy.Sampling{Temperature: 0.7, MaxTokens: 2, Allowed: [][]int32{{1}, {2}}}, true,
		},
	} {
		_, err := s.Sample(t.Context(), []int32{1, 2}, c.p)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "SGLANG_RETURN_ORIGINAL_LOGPROB") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Every way to ask for one of some replies, as the servers read it.
func TestGuided(t *testing.T) {
	replies := []string{`take "it"`, "a|b (c)", `back\slash`, "é\n"}
	for d, read := range map[Dialect]func(body fields) string{
		VLLM: func(b fields) string {
			return strings.Join(b["structured_outputs"].(fields)["choice"].([]string), ", ")
		},
		SGLang:   func(b fields) string { return b["regex"].(string) },
		LlamaCPP: func(b fields) string { return b["grammar"].(string) },
		Hosted: func(b fields) string {
			return strings.Join(b["response_format"].(fields)["json_schema"].(fields)["schema"].(fields)["properties"].(fields)["reply"].(fields)["enum"].([]string), ", ")
		},
	} {
		p := client(t, Options{URL: "http://a", Dialect: d, Model: "m"}).Policy(0)
		r := talk()
		r.Allowed = append(replies, replies[0])
		body, err := p.body(r)
		if err != nil {
			t.Fatal(err)
		}
		want := map[Dialect]string{
			VLLM: "a|b (c), back\\slash, take \"it\", é\n", Hosted: "a|b (c), back\\slash, take \"it\", é\n",
			SGLang:   `(a\|b \(c\)|back\\slash|take "it"|é` + "\n)",
			LlamaCPP: `root ::= "a|b (c)" | "back\\slash" | "take \"it\"" | "é\x0A"`,
		}[d]
		got := read(body)
		if got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
		if d == SGLang {
			for _, text := range replies {
				if !regexp.MustCompile("^" + got + "$").MatchString(text) {
					t.Errorf("%s does not match %q", got, text)
				}
			}
		}
	}
	p := client(t, Options{URL: "http://a", Dialect: Ollama, Model: "m"}).Policy(0)
	r := talk()
	r.Allowed = []string{"look", "take it"}
	say := func(content string) string {
		return `{"choices":[{"finish_reason":"stop","message":{"content":` + content + `}}]}`
	}
	if text, _, _, err := p.read([]byte(say(`"{\"reply\": \"take it\"}"`)), r); err != nil || text != "take it" {
		t.Errorf("got %q, %v", text, err)
	}
	for _, bad := range []string{`"take it"`, `"{\"reply\": \"jump\"}"`, `"{}"`} {
		if text, _, _, err := p.read([]byte(say(bad)), r); err == nil {
			t.Errorf("%s: got %q, want an error", bad, text)
		}
	}
}

// A server that does not know guided choice passes over it, and is found out.
func TestCheck(t *testing.T) {
	if err := client(t, Options{URL: serveHTTP(t, offer(t, nil)), Dialect: SkillMaster, Model: "tiny"}).Policy(0).Check(t.Context()); err != nil {
		t.Error(err)
	}
	for _, d := range []Dialect{VLLM, SGLang, LlamaCPP, Hosted, Ollama} {
		p := client(t, Options{URL: serveHTTP(t, status(200, goodChat)), Dialect: d, Model: "tiny", Limits: Limits{Tries: 1}}).Policy(0)
		if err := p.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "guided choice") {
			t.Errorf("%s: got %v", d, err)
		}
	}
	p := client(t, Options{URL: serveHTTP(t, status(200, goodChat)), Dialect: Generic, Model: "tiny"}).Policy(0)
	if err := p.Check(t.Context()); err != nil {
		t.Errorf("generic: got %v", err)
	}
	cut := strings.Replace(goodChat, `"stop"`, `"length"`, 1)
	r := talk()
	r.Allowed = []string{"look"}
	if text, stop, _, err := client(t, Options{URL: "http://a", Dialect: VLLM, Model: "tiny"}).Policy(0).read([]byte(cut), r); err != nil || text != "look" || stop != policy.Length {
		t.Errorf("cut: got %q, %v, %v", text, stop, err)
	}
	if text, _, _, err := client(t, Options{URL: "http://a", Dialect: Ollama, Model: "tiny"}).Policy(0).read([]byte(cut), r); err == nil || !strings.Contains(err.Error(), "allow more") {
		t.Errorf("cut in a schema: got %q, %v", text, err)
	}
}

// A request that a dialect cannot carry is refused, not bent.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		d      Dialect
		change func(r *policy.Request)
	}{
		"top-k of a hosted server": {Hosted, func(r *policy.Request) { r.Sampling.TopK = 3 }},
		"top-k of Ollama":          {Ollama, func(r *policy.Request) { r.Sampling.TopK = 3 }},
		"a choice of any server":   {Generic, func(r *policy.Request) { r.Allowed = []string{"a"} }},
		"stop ids":                 {VLLM, func(r *policy.Request) { r.Sampling.Stop = []int32{3} }},
		"prior ids":                {VLLM, func(r *policy.Request) { r.Prior, r.Seen = []int32{3}, 1 }},
		"no tokens":                {VLLM, func(r *policy.Request) { r.Sampling.MaxTokens = 0 }},
		"no messages":              {VLLM, func(r *policy.Request) { r.Messages = nil }},
		"its own last word":        {VLLM, func(r *policy.Request) { r.Messages[0].Role = chat.Assistant }},
		"a strange role":           {VLLM, func(r *policy.Request) { r.Messages = append([]chat.Message{{Role: "tool"}}, r.Messages...) }},
	} {
		r := talk()
		c.change(&r)
		server := inTurn(status(200, goodChat))
		if got, err := client(t, Options{URL: serveHTTP(t, server), Dialect: c.d, Model: "tiny"}).Policy(0).Complete(t.Context(), r); err == nil || server.count() > 0 {
			t.Errorf("%s: got %+v, asked %d times", name, got, server.count())
		}
	}
}

// The end of the context in the words of each server.
func TestContextFull(t *testing.T) {
	for d, reply := range map[Dialect]string{
		Hosted:   `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`,
		VLLM:     `{"object":"error","message":"This model's maximum context length is 64 tokens. However, you requested 70","type":"BadRequestError","code":400}`,
		LlamaCPP: `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":64}}`,
		SGLang:   `{"error":{"message":"The input (70 tokens) is longer than the model's context length (64 tokens)."}}`,
	} {
		p := client(t, Options{URL: serveHTTP(t, status(400, reply)), Dialect: d, Model: "tiny"}).Policy(2)
		if got, err := p.Complete(t.Context(), talk()); err != nil || got.Stop != policy.NoContext || got.Text != "" || got.Version != 2 {
			t.Errorf("%s: got %+v, %v", d, got, err)
		}
		other := client(t, Options{URL: serveHTTP(t, status(400, `{"error":{"message":"bad field"}}`)), Dialect: d, Model: "tiny"}).Policy(2)
		if got, err := other.Complete(t.Context(), talk()); err == nil {
			t.Errorf("%s: another refusal gave %+v", d, got)
		}
	}
}
