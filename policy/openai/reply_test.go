package openai

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/policy"
)

func TestEmbed(t *testing.T) {
	ask := func(reply string) ([][]float32, error) {
		var sent struct {
			Model string
			Input []string
		}
		url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&sent) != nil || sent.Model != "e" || !slices.Equal(sent.Input, []string{"a", "b"}) {
				t.Errorf("%s got %+v", r.URL.Path, sent)
			}
			status(200, reply)(w, r)
		}))
		return client(t, Options{URL: url, Dialect: Generic, Model: "e", Limits: Limits{Tries: 1}}).Embed(t.Context(), []string{"a", "b"})
	}
	got, err := ask(`{"data":[{"index":1,"embedding":[0,-2]},{"index":0,"embedding":[0.5,1]}],"usage":{"prompt_tokens":4}}`)
	if err != nil || !slices.Equal(got[0], []float32{0.5, 1}) || !slices.Equal(got[1], []float32{0, -2}) {
		t.Errorf("got %v, %v", got, err)
	}
	for reply, want := range map[string]string{
		`{"data":[{"index":0,"embedding":[1]}]}`:                                "1 vectors came for 2 texts",
		`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`:    "came twice",
		`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`:    "no text 2",
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`:  "vectors of 1 and 2",
		`{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`:      "vectors of 0",
		`{"data":[{"index":0,"embedding":[0]},{"index":1,"embedding":[1]}]}`:    "is zero",
		`{"data":[{"index":0,"embedding":[1e99]},{"index":1,"embedding":[1]}]}`: "cannot be read",
		`{"data":[{"index":0,"embedding":[NaN]},{"index":1,"embedding":[1]}]}`:  "cannot be read",
		`{"data":"AAAA"}`: "cannot be read",
	} {
		if got, err := ask(reply); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want an error that says %q", reply, got, err, want)
		}
	}
	if got, err := client(t, Options{URL: "http://a", Dialect: Generic, Model: "e"}).Embed(t.Context(), nil); got != nil || err != nil {
		t.Errorf("no texts: got %v, %v", got, err)
	}
}

// shelf is a server that loads adapters.
type shelf struct {
	names []string
	lose  bool // the next answer, after the work is done
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Name   string `json:"lora_name"`
		Folder string `json:"lora_path"`
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	switch r.URL.Path {
	case "/v1/models":
		data := []fields{{"id": "tiny"}}
		for _, n := range s.names {
			data = append(data, fields{"id": n})
		}
		_ = json.NewEncoder(w).Encode(fields{"data": data})
	case "/v1/load_lora_adapter":
		if slices.Contains(s.names, q.Name) || q.Folder != "/adapters/5" {
			status(400, `{"object":"error","message":"already loaded, or not there"}`)(w, r)
			return
		}
		s.names = append(s.names, q.Name)
		if s.lose {
			s.lose = false
			reset("HT")(w, r)
			return
		}
		status(200, "Success: LoRA adapter added")(w, r)
	case "/v1/unload_lora_adapter":
		s.names = slices.DeleteFunc(s.names, func(n string) bool { return n == q.Name })
		status(200, "Success")(w, r)
	}
}

func TestAdapters(t *testing.T) {
	for _, lose := range []bool{false, true} {
		s := &shelf{lose: lose}
		c := client(t, Options{URL: serveHTTP(t, s), Dialect: VLLM, Model: "tiny", Limits: Limits{Pause: 1e6}})
		if err := c.LoadAdapter(t.Context(), "run-000005", "/adapters/5"); err != nil {
			t.Errorf("an answer lost: %v: %v", lose, err)
		}
		if err := c.LoadAdapter(t.Context(), "run-000005", "/adapters/5"); err == nil || !strings.Contains(err.Error(), "needs its own name") {
			t.Errorf("again: got %v", err)
		}
		if err := c.LoadAdapter(t.Context(), "run-000006", "/adapters/none"); err == nil || !strings.Contains(err.Error(), "VLLM_ALLOW") {
			t.Errorf("no such adapter: got %v", err)
		}
		if err := c.UnloadAdapter(t.Context(), "run-000005"); err != nil || len(s.names) != 0 {
			t.Errorf("got %v, %v left", err, s.names)
		}
	}
	c := client(t, Options{URL: "http://a", Dialect: LlamaCPP, Model: "tiny"})
	if err := errors.Join(c.LoadAdapter(t.Context(), "a", "b"), c.UnloadAdapter(t.Context(), "a")); !errors.Is(err, ErrNotOffered) {
		t.Errorf("got %v", err)
	}
	if w := (Weights{Model: "base", Adapter: "run-000005"}); w.name() != "run-000005" || w.adapted(fields{})["lora_path"] != "run-000005" {
		t.Errorf("an adapter is asked for as %q", w.name())
	}
}

// The choice among sequences by hand: a trie, its temperature and its filters.
func TestWalk(t *testing.T) {
	log := func(p float64) float32 { return float32(math.Log(p)) }
	left := [][]int32{{1, 5}, {1, 6}, {2}}
	scores := [][]float32{{log(0.2), log(0.1)}, {log(0.2), log(0.3)}, {log(0.6)}}
	if got := walk(left, scores, policy.Sampling{MaxTokens: 5}); !slices.Equal(got.IDs, []int32{2}) || got.Stop != policy.Stopped ||
		math.Abs(float64(got.Among[0])-math.Log(0.75)) > 1e-6 || got.LogProbs[0] != log(0.6) {
		t.Errorf("greedy: got %+v", got)
	}
	const draws = 20000
	for name, c := range map[string]struct {
		p    policy.Sampling
		want map[int32]float64 // chance of the last id
	}{
		"as it is":  {policy.Sampling{Temperature: 1}, map[int32]float64{2: 0.75, 5: 0.0625, 6: 0.1875}},
		"hot":       {policy.Sampling{Temperature: 2}, map[int32]float64{2: 0.6340, 5: 0.1340, 6: 0.2320}}, // √: 0.6→0.7746, 0.2→0.4472; 0.1→0.3162, 0.3→0.5477
		"top-k":     {policy.Sampling{Temperature: 1, TopK: 1}, map[int32]float64{2: 1}},
		"a nucleus": {policy.Sampling{Temperature: 1, TopP: 0.74}, map[int32]float64{2: 1}},
	} {
		count := map[int32]int{}
		c.p.MaxTokens = 5
		for c.p.Seed = range draws {
			s := walk(left, scores, c.p)
			count[s.IDs[len(s.IDs)-1]]++
		}
		for _, id := range []int32{2, 5, 6} {
			if p := c.want[id]; math.Abs(float64(count[id])/draws-p) > 4.5*math.Sqrt(p*(1-p)/draws)+1e-4 {
				t.Errorf("%s: id %d came %d times of %d, its chance is %v", name, id, count[id], draws, p)
			}
		}
	}
	if got := walk([][]int32{{1, 5, 7}}, [][]float32{{-1, -2}}, policy.Sampling{MaxTokens: 2}); got.Stop != policy.Length || !slices.Equal(got.Among, []float32{0, 0}) {
		t.Errorf("cut: got %+v", got)
	}
}

// Whatever a server sends: what is taken for a sample, scores, a text or vectors is one.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		goodChat, `{"model":"tiny","choices":[{"index":0,"finish_reason":"length","token_ids":[1,2],"prompt_token_ids":[7,8,9],"logprobs":{"token_logprobs":[-1,-2]},"prompt_logprobs":[null,{"8":{"logprob":-1}},{"9":{"logprob":-3}}]}]}`,
		`[{"output_ids":[1,2],"meta_info":{"prompt_tokens":3,"finish_reason":{"type":"length"},"output_token_logprobs":[[-1,1,null],[-2,2,"x"]],"input_token_logprobs":[[null,7],[-1,8],[-2,9]]}}]`,
		`{"tokens":[1,2],"tokens_evaluated":3,"stop_type":"limit","completion_probabilities":[{"id":1,"logprob":-1},{"id":2,"logprob":-2}]}`,
		`{"data":[{"index":0,"embedding":[1,2]}]}`, `{"choices":[{"finish_reason":"stop","message":{"content":"{\"reply\":\"a\"}"}}]}`,
		`{"error":{"message":"no","code":3}}`, `{"detail":[{"msg":"x"}]}`, `[null]`, `{"choices":[null]}`, "",
	} {
		f.Add([]byte(seed))
	}
	prompt := []int32{7, 8, 9}
	p := policy.Sampling{Temperature: 1, MaxTokens: 2, Stop: []int32{2}}
	f.Fuzz(func(t *testing.T, reply []byte) {
		for _, d := range []Dialect{VLLM, SGLang, LlamaCPP} {
			c := client(t, Options{URL: "http://a", Dialect: d, Model: "tiny"})
			s := &Sampler{client: c, wire: c.dialect.wire, weights: Weights{Model: "tiny", Vocab: 50, Context: 100}}
			answers, spent, err := s.answers(reply, [][]int32{prompt})
			if spent.prompt < 0 || spent.reply < 0 {
				t.Fatalf("spent %+v", spent)
			}
			if err != nil {
				continue
			}
			if a := answers[0]; a.scores != nil && (len(a.scores) != len(prompt) || a.scores[0] != 0 || !finite(a.scores)) {
				t.Fatalf("scores %v", a.scores)
			}
			got, err := s.finish(answers[0], p)
			if err == nil && (len(got.IDs) == 0 || len(got.IDs) > 2 || len(got.IDs) != len(got.LogProbs) || !finite(got.LogProbs) ||
				slices.ContainsFunc(got.IDs, func(id int32) bool { return id < 0 || id >= 50 }) || (got.Stop == policy.Stopped) != (got.IDs[len(got.IDs)-1] == 2)) {
				t.Fatalf("got %+v of %s", got, reply)
			}
		}
		for _, d := range []Dialect{VLLM, Ollama} {
			c := client(t, Options{URL: "http://a", Dialect: d, Model: "tiny"})
			for _, allowed := range [][]string{nil, {"a", "b"}} {
				r := policy.Request{Messages: []chat.Message{{Role: chat.User}}, Allowed: allowed, Sampling: policy.Sampling{MaxTokens: 3}}
				text, stop, _, err := c.Policy(0).read(reply, r)
				if err == nil && (text == "" || stop == policy.NoContext || stop == policy.Stopped && allowed != nil && !slices.Contains(allowed, text)) {
					t.Fatalf("got %q, %v of %s", text, stop, reply)
				}
			}
		}
		if vectors, _, err := readEmbeddings(reply, 1); err == nil && (len(vectors) != 1 || len(vectors[0]) == 0) {
			t.Fatalf("got %v", vectors)
		}
		if replay, err := NewReplay(strings.NewReader(string(reply))); err == nil && replay.Left() > 0 && len(reply) < 10 {
			t.Fatalf("a recording in %q", reply)
		}
	})
}

// Whatever a client sends, the handler answers in JSON and does not break.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"model":"tiny","prompt":[[1,2],[3]],"max_tokens":2,"logprobs":0,"prompt_logprobs":0,"return_token_ids":true}`,
		`{"model":"tiny","messages":[{"role":"user","content":"a"}],"max_tokens":2,"structured_outputs":{"choice":["a","a"]}}`,
		`{"model":"tiny","messages":[{"role":"user","content":"a"}],"max_tokens":2,"structured_outputs":{"choice":["","<|im_end|>"]},"logprobs":true}`,
		`{"model":"tiny","prompt":"x","temperature":1e-300,"top_k":-1}`, `{"prompt":"x"}`, `null`, `{"model":"tiny","prompt":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	h := offer(f, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/v1/completions", "/v1/chat/completions", "/tokenize"} {
			code, reply := post(t, h, path, string(body), nil)
			if code >= 500 || !json.Valid([]byte(reply)) {
				t.Fatalf("%s %s: got %d %s", path, body, code, reply)
			}
		}
	})
}

// A server that takes calls out of the text, unasked, gives them back to whoever was told to write them.
func TestCallsAreGivenBack(t *testing.T) {
	for name, c := range map[string]struct{ message, want string }{
		"a call alone":     {`{"content":null,"tool_calls":[{"type":"function","function":{"name":"keep_skill","arguments":"{\"reason\":\"é\"}"}}]}`, `<tool_call>{"name":"keep_skill","arguments":{"reason":"é"}}</tool_call>`},
		"after text":       {`{"content":"So: ","tool_calls":[{"function":{"name":"a\"b","arguments":"{}"}}]}`, `So: <tool_call>{"name":"a\"b","arguments":{}}</tool_call>`},
		"two":              {`{"content":"","tool_calls":[{"function":{"name":"a","arguments":"{}"}},{"function":{"name":"b","arguments":"[1"}}]}`, `<tool_call>{"name":"a","arguments":{}}</tool_call><tool_call>{"name":"b","arguments":[1}</tool_call>`},
		"no call is meant": {`{"content":"look","tool_calls":null}`, "look"},
	} {
		t.Run(name, func(t *testing.T) {
			finish := "tool_calls"
			if name == "no call is meant" {
				finish = "stop"
			}
			url := serveHTTP(t, status(http.StatusOK, `{"model":"tiny","choices":[{"finish_reason":"`+finish+`","message":`+c.message+`}]}`))
			p := client(t, Options{URL: url, Dialect: Generic, Model: "tiny"}).Policy(0)
			got, err := p.Complete(t.Context(), policy.Request{Messages: []chat.Message{{Role: chat.User, Text: "go"}}, Sampling: policy.Sampling{Temperature: 1, MaxTokens: 9}})
			if err != nil || got.Text != c.want || got.Stop != policy.Stopped {
				t.Errorf("got %+v, %v, want %s", got, err, c.want)
			}
		})
	}
}
