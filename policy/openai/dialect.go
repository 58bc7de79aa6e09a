package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skillmaster/policy"
	"skillmaster/policy/remote"
)

// Dialect names a kind of server.
type Dialect string

// The dialects. Hosted is api.openai.com and what takes the same fields; Generic is any server with /v1/chat/completions,
// and asks for nothing beyond it; SkillMaster is this package's own handler.
const (
	Hosted      Dialect = "openai"
	Generic     Dialect = "generic"
	VLLM        Dialect = "vllm"
	SGLang      Dialect = "sglang"
	LlamaCPP    Dialect = "llamacpp"
	Ollama      Dialect = "ollama"
	SkillMaster Dialect = "skillmaster"
)

// Dialects are the names of all dialects, in order.
func Dialects() []string {
	var names []string
	for name := range maps.Keys(dialects) {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// fields are those of a request.
type fields = map[string]any

// dialect is what one kind of server takes and returns. Paths under /v1/ stand under the API's address, others beside it.
// What is not here is not asked for: a field that a server would pass over in silence is an error of ours.
type dialect struct {
	wire    *wire  // of token ids; nil: messages only
	most    string // the field of chat completions that holds the most ids of a reply
	topK    bool   // chat completions take top_k
	guided  guided
	seed    int    // bits of a seed it takes; 0: none
	echoes  bool   // replies name the model as the request did
	full    string // found in a refusal's code or words, it says that the context is full
	context string // path that tells the length of the context; empty: /v1/models does
	// Adapters.
	load, unload string // paths; empty: none can be loaded while it runs
	// tokenize is the path that makes ids of a text; text is the field that holds it.
	tokenize, text string
}

// dialects is the table. Its facts were read in the servers' documentation and sources (vLLM, SGLang 0.5, llama.cpp
// b11434); tried on running ones were llama.cpp, transformers' as a generic one, and our own handler (docs/integration.md).
// Those that ids, log-probabilities and guided choice depend on are seen to at the start by Client.Sampler and Policy.Check.
var dialects = map[Dialect]dialect{
	Hosted:  {most: "max_completion_tokens", seed: 63, guided: bySchema, full: "context_length_exceeded"},
	Generic: {most: "max_tokens", seed: 63, full: "context_length_exceeded"},
	VLLM: {
		wire: &completions, most: "max_tokens", topK: true, seed: 63, guided: byChoice, echoes: true, full: "maximum context length",
		load: "/v1/load_lora_adapter", unload: "/v1/unload_lora_adapter", tokenize: "/tokenize", text: "prompt",
	},
	SGLang: {
		wire: &generate, most: "max_tokens", topK: true, seed: 31, guided: byRegex, full: "context length",
		load: "/load_lora_adapter", unload: "/unload_lora_adapter", tokenize: "/tokenize", text: "prompt",
	},
	LlamaCPP: {
		wire: &completion, most: "max_tokens", topK: true, seed: 31, guided: byGrammar, full: "exceed_context_size_error",
		context: "/props", tokenize: "/tokenize", text: "content",
	},
	// Ollama cuts a conversation that is too long and does not say so: start it with a context that suffices.
	Ollama:      {most: "max_tokens", seed: 31, guided: bySchema},
	SkillMaster: {wire: &completions, most: "max_tokens", topK: true, seed: 64, guided: byChoice, echoes: true, full: "context_length_exceeded", tokenize: "/tokenize", text: "prompt"},
}

// cut is a seed of so many bits as the server takes.
func (d dialect) cut(seed uint64) uint64 {
	if d.seed >= 64 {
		return seed
	}
	return (seed ^ seed>>32) & (1<<d.seed - 1)
}

// guided asks a chat completion for one of some replies, and finds the reply in what comes.
type guided struct {
	ask  func(body fields, replies []string)
	read func(text string) (string, error) // nil: the text is the reply
}

var (
	byChoice = guided{ask: func(body fields, replies []string) { body["structured_outputs"] = fields{"choice": replies} }}
	byRegex  = guided{ask: func(body fields, replies []string) {
		var all []string
		for _, r := range replies {
			all = append(all, regexp.QuoteMeta(r))
		}
		body["regex"] = "(" + strings.Join(all, "|") + ")"
	}}
	byGrammar = guided{ask: func(body fields, replies []string) {
		var all []string
		for _, r := range replies {
			all = append(all, terminal(r))
		}
		body["grammar"] = "root ::= " + strings.Join(all, " | ")
	}}
	// bySchema wraps the reply: a schema's root must be an object.
	bySchema = guided{
		ask: func(body fields, replies []string) {
			body["response_format"] = fields{"type": "json_schema", "json_schema": fields{
				"name": "reply", "strict": true, "schema": fields{
					"type": "object", "required": []string{"reply"}, "additionalProperties": false,
					"properties": fields{"reply": fields{"type": "string", "enum": replies}},
				},
			}}
		},
		read: func(text string) (string, error) {
			var r struct {
				Reply *string `json:"reply"`
			}
			if err := json.Unmarshal([]byte(text), &r); err != nil || r.Reply == nil {
				return "", fmt.Errorf("the reply is not of the schema that was asked for: %q", remote.Printable(text))
			}
			return *r.Reply, nil
		},
	}
)

// terminal is a text as a terminal of llama.cpp's grammars.
func terminal(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// wire is one way to ask for token ids.
type wire struct {
	path string
	room int // ids of the context that it leaves unused
	// sample continues a prompt; seed is cut already.
	sample func(w Weights, prompt []int32, p policy.Sampling, seed uint64) fields
	score  func(w Weights, seqs [][]int32) fields // nil: it has no log-probabilities of prompts
	// read returns an answer for each prompt, in order.
	read func(reply []byte, prompts [][]int32) ([]answer, usage, error)
	cuts bool // it knows no stop ids: what comes after one is cut away
}

// answer is what a server made of one prompt, not yet checked.
type answer struct {
	ids      []int32
	logProbs []float32 // of ids
	scores   []float32 // of the prompt, position 0 is 0; nil: not asked for
	read     []int32   // the prompt as the server read it; nil: it does not say
	length   int       // of the prompt as the server read it; -1: it does not say
	stop     string    // stop or length
	model    string    // that answered; "": it does not say
	weights  string    // the server's name for their version; "": it has none
}

// completions is /v1/completions with vLLM's additions.
var completions = wire{
	path: "/v1/completions", room: 1,
	sample: func(w Weights, prompt []int32, p policy.Sampling, seed uint64) fields {
		return fields{
			"model": w.name(), "prompt": [][]int32{prompt}, "max_tokens": p.MaxTokens, "temperature": p.Temperature,
			"top_p": orOne(p.TopP), "top_k": orAll(p.TopK), "seed": seed, "logprobs": 0, "return_token_ids": true,
			"stop_token_ids": list(p.Stop), "ignore_eos": true, "repetition_penalty": 1, "min_p": 0,
		}
	},
	score: func(w Weights, seqs [][]int32) fields {
		return fields{
			"model": w.name(), "prompt": seqs, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0, "logprobs": 0,
			"return_token_ids": true, "ignore_eos": true,
		}
	},
	read: readCompletions,
}

// generate is SGLang's own endpoint.
var generate = wire{
	path: "/generate", room: 7,
	sample: func(w Weights, prompt []int32, p policy.Sampling, seed uint64) fields {
		return w.adapted(fields{
			"input_ids": [][]int32{prompt}, "return_logprob": true, "logprob_start_len": -1, "sampling_params": fields{
				"max_new_tokens": p.MaxTokens, "temperature": p.Temperature, "top_p": orOne(p.TopP), "top_k": orAll(p.TopK),
				"sampling_seed": seed, "stop_token_ids": list(p.Stop), "ignore_eos": true, "no_stop_trim": true,
				"min_p": 0, "repetition_penalty": 1,
			},
		})
	},
	score: func(w Weights, seqs [][]int32) fields {
		return w.adapted(fields{
			"input_ids": seqs, "return_logprob": true, "logprob_start_len": 0,
			"sampling_params": fields{"max_new_tokens": 1, "temperature": 0, "ignore_eos": true},
		})
	},
	read: readGenerate,
}

// completion is llama.cpp's own endpoint. Its defaults are far from neutral.
var completion = wire{
	path: "/completion", room: 1, cuts: true,
	sample: func(_ Weights, prompt []int32, p policy.Sampling, seed uint64) fields {
		return fields{
			"prompt": prompt, "n_predict": p.MaxTokens, "temperature": p.Temperature, "top_p": orOne(p.TopP), "top_k": p.TopK,
			"seed": seed, "n_probs": 1, "return_tokens": true, "cache_prompt": true, "min_p": 0, "typical_p": 1,
			"repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "dry_multiplier": 0, "xtc_probability": 0,
			"samplers": []string{"temperature", "top_k", "top_p"},
		}
	},
	read: readCompletion,
}

// adapted adds SGLang's field of adapters.
func (w Weights) adapted(body fields) fields {
	if w.Adapter != "" {
		body["lora_path"] = w.Adapter
	}
	return body
}

// list is ids, an empty list where there are none.
func list(ids []int32) []int32 { return append([]int32{}, ids...) }

// orOne is top-p as servers take it.
func orOne(p float64) float64 {
	if p == 0 {
		return 1
	}
	return p
}

// orAll is top-k as Python's servers take it.
func orAll(k int) int {
	if k == 0 {
		return -1
	}
	return k
}

// counted is the usage of OpenAI's replies.
type counted struct {
	Prompt int64 `json:"prompt_tokens"`
	Reply  int64 `json:"completion_tokens"`
}

func (c counted) usage() usage { return usage{max(0, c.Prompt), max(0, c.Reply)} }

func readCompletions(reply []byte, prompts [][]int32) ([]answer, usage, error) {
	var r struct {
		Model       string `json:"model"`
		Fingerprint string `json:"system_fingerprint"`
		Choices     []struct {
			Index    int     `json:"index"`
			Finish   string  `json:"finish_reason"`
			IDs      []int32 `json:"token_ids"`
			Prompt   []int32 `json:"prompt_token_ids"`
			LogProbs *struct {
				Tokens []*float64 `json:"token_logprobs"`
			} `json:"logprobs"`
			Scores []map[string]struct {
				LogProb *float64 `json:"logprob"`
			} `json:"prompt_logprobs"`
		} `json:"choices"`
		Usage counted `json:"usage"`
	}
	if err := decode(reply, &r); err != nil {
		return nil, usage{}, err
	}
	out := make([]answer, len(prompts))
	if len(r.Choices) != len(prompts) {
		return nil, r.Usage.usage(), fmt.Errorf("%d answers came for %d prompts", len(r.Choices), len(prompts))
	}
	for _, c := range r.Choices {
		if c.Index < 0 || c.Index >= len(out) || out[c.Index].stop != "" {
			return nil, r.Usage.usage(), fmt.Errorf("there is no answer %d, or it came twice", c.Index)
		}
		if c.Finish == "" {
			return nil, r.Usage.usage(), fmt.Errorf("answer %d does not say why it ended", c.Index)
		}
		a := answer{ids: c.IDs, read: c.Prompt, length: -1, stop: c.Finish, model: r.Model, weights: r.Fingerprint}
		if a.read == nil {
			return nil, r.Usage.usage(), fmt.Errorf("answer %d lacks the ids of the prompt: does the server know return_token_ids?", c.Index)
		}
		if c.LogProbs != nil {
			var err error
			if a.logProbs, err = numbers(c.LogProbs.Tokens); err != nil {
				return nil, r.Usage.usage(), err
			}
		}
		if c.Scores != nil {
			ids := prompts[c.Index]
			if len(c.Scores) != len(ids) {
				return nil, r.Usage.usage(), fmt.Errorf("%d log-probabilities came for a prompt of %d ids", len(c.Scores), len(ids))
			}
			values := make([]*float64, len(ids))
			for i, id := range ids {
				values[i] = c.Scores[i][strconv.Itoa(int(id))].LogProb
			}
			var err error
			if a.scores, err = promptNumbers(values); err != nil {
				return nil, r.Usage.usage(), err
			}
		}
		out[c.Index] = a
	}
	return out, r.Usage.usage(), nil
}

func readGenerate(reply []byte, prompts [][]int32) ([]answer, usage, error) {
	var rs []struct {
		IDs  []int32 `json:"output_ids"`
		Meta struct {
			Prompt int `json:"prompt_tokens"`
			Finish struct {
				Type    string `json:"type"`
				Message string `json:"message"`
			} `json:"finish_reason"`
			Tokens  []pair `json:"output_token_logprobs"`
			Scores  []pair `json:"input_token_logprobs"`
			Weights string `json:"weight_version"`
		} `json:"meta_info"`
	}
	if err := decode(reply, &rs); err != nil {
		return nil, usage{}, err
	}
	if len(rs) != len(prompts) {
		return nil, usage{}, fmt.Errorf("%d answers came for %d prompts", len(rs), len(prompts))
	}
	var all usage
	var out []answer
	for i, r := range rs {
		all = usage{all.prompt + int64(max(0, r.Meta.Prompt)), all.reply + int64(len(r.IDs))}
		if r.Meta.Finish.Type != "stop" && r.Meta.Finish.Type != "length" {
			return nil, usage{}, fmt.Errorf("the server broke off (%s): %s", remote.Printable(r.Meta.Finish.Type), remote.Printable(r.Meta.Finish.Message))
		}
		a := answer{ids: r.IDs, length: r.Meta.Prompt, stop: r.Meta.Finish.Type, weights: r.Meta.Weights}
		var err error
		if a.logProbs, err = pairs(r.Meta.Tokens, r.IDs, numbers); err != nil {
			return nil, all, err
		}
		if r.Meta.Scores != nil {
			if a.scores, err = pairs(r.Meta.Scores, prompts[i], promptNumbers); err != nil {
				return nil, all, err
			}
		}
		out = append(out, a)
	}
	return out, all, nil
}

// pair is SGLang's [log-probability or null, id, text or null].
type pair struct {
	logProb *float64
	id      int32
}

func (p *pair) UnmarshalJSON(data []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw) < 2 {
		return fmt.Errorf("a log-probability has %d parts, want 2 or 3", len(raw))
	}
	if err := json.Unmarshal(raw[0], &p.logProb); err != nil {
		return err
	}
	return json.Unmarshal(raw[1], &p.id)
}

// pairs are the log-probabilities of ids.
func pairs(all []pair, ids []int32, read func([]*float64) ([]float32, error)) ([]float32, error) {
	if len(all) != len(ids) {
		return nil, fmt.Errorf("%d log-probabilities came for %d ids", len(all), len(ids))
	}
	values := make([]*float64, len(all))
	for i, p := range all {
		if p.id != ids[i] {
			return nil, fmt.Errorf("log-probability %d is of id %d, not of %d", i, p.id, ids[i])
		}
		values[i] = p.logProb
	}
	return read(values)
}

func readCompletion(reply []byte, _ [][]int32) ([]answer, usage, error) {
	var r struct {
		IDs       []int32 `json:"tokens"`
		Evaluated int     `json:"tokens_evaluated"`
		Truncated bool    `json:"truncated"`
		Stop      string  `json:"stop_type"`
		Probs     []struct {
			ID      int32    `json:"id"`
			LogProb *float64 `json:"logprob"`
		} `json:"completion_probabilities"`
	}
	if err := decode(reply, &r); err != nil {
		return nil, usage{}, err
	}
	all := usage{int64(max(0, r.Evaluated)), int64(len(r.IDs))}
	stop := map[string]string{"eos": "stop", "limit": "length"}[r.Stop]
	switch {
	case stop == "":
		return nil, all, fmt.Errorf("the reply does not say why it ended, but %q", remote.Printable(r.Stop))
	case len(r.IDs) > 0 && len(r.Probs) < len(r.IDs):
		return nil, all, remote.Final(fmt.Errorf("%d log-probabilities came for %d ids: llama.cpp leaves them out where a character is made of several ids; "+
			"evaluate with messages there, and learn with another server", len(r.Probs), len(r.IDs)))
	}
	var ps []pair
	for _, p := range r.Probs {
		ps = append(ps, pair{p.LogProb, p.ID})
	}
	logProbs, err := pairs(ps, r.IDs, numbers)
	return []answer{{ids: r.IDs, logProbs: logProbs, length: r.Evaluated, stop: stop}}, all, err
}
