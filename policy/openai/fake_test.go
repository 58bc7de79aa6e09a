package openai

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"testing"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/transformer"
)

// fake speaks as SGLang or llama.cpp do, with the tiny model behind it.
type fake struct {
	model *transformer.Sampler
	tok   *chat.Tokenizer
	end   int32 // the model's own end of a reply, for llama.cpp
	// tempered makes log-probabilities those of the sampling temperature, as SGLang's are by default.
	tempered bool
	version  string
	change   func(path string, reply any) any // of what is sent; nil: nothing
}

func newFake(t testing.TB) *fake {
	return &fake{model: tiny(t), tok: testTokenizer(t), end: -1, version: "default"}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var reply any
	var err error
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		reply = fields{"data": []fields{{"id": "tiny", "max_model_len": testContext}}}
	case "GET /props":
		reply = fields{"default_generation_settings": fields{"n_ctx": testContext}}
	case "POST /tokenize":
		var q struct{ Prompt, Content string }
		err = json.NewDecoder(r.Body).Decode(&q)
		reply = fields{"tokens": f.tok.Encode(q.Prompt + q.Content)}
	case "POST /generate":
		reply, err = f.generate(r)
	case "POST /completion":
		reply, err = f.completion(r)
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if f.change != nil {
		data, _ := json.Marshal(reply)
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			panic(err)
		}
		reply = f.change(r.URL.Path, v)
	}
	_ = json.NewEncoder(w).Encode(reply)
}

// params are the fields of a request for ids; a field that is not here is one that the real server does not know.
type generateRequest struct {
	IDs    [][]int32 `json:"input_ids"`
	Return bool      `json:"return_logprob"`
	From   int       `json:"logprob_start_len"`
	Params struct {
		Max         int     `json:"max_new_tokens"`
		Temperature float64 `json:"temperature"`
		TopP        float64 `json:"top_p"`
		TopK        int     `json:"top_k"`
		Seed        uint64  `json:"sampling_seed"`
		Stop        []int32 `json:"stop_token_ids"`
		IgnoreEOS   bool    `json:"ignore_eos"`
		NoTrim      bool    `json:"no_stop_trim"`
		MinP        float64 `json:"min_p"`
		Penalty     float64 `json:"repetition_penalty"`
	} `json:"sampling_params"`
}

func strictly(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

func (f *fake) generate(r *http.Request) (any, error) {
	var q generateRequest
	if err := strictly(r, &q); err != nil {
		return nil, err
	}
	var out []fields
	for _, ids := range q.IDs {
		s, err := f.model.Sample(r.Context(), ids, policy.Sampling{
			Temperature: q.Params.Temperature, TopP: q.Params.TopP, TopK: max(q.Params.TopK, 0), MaxTokens: q.Params.Max,
			Stop: q.Params.Stop, Seed: q.Params.Seed,
		})
		if err != nil {
			return nil, err
		}
		pairs := [][]any{}
		for i, id := range s.IDs {
			v := s.LogProbs[i]
			if f.tempered && q.Params.Temperature != 0 {
				v /= float32(q.Params.Temperature)
			}
			pairs = append(pairs, []any{v, id, nil})
		}
		finish := fields{"type": "length", "length": q.Params.Max}
		if s.Stop == policy.Stopped {
			finish = fields{"type": "stop", "matched": s.IDs[len(s.IDs)-1]}
		}
		meta := fields{
			"prompt_tokens": len(ids), "completion_tokens": len(s.IDs), "finish_reason": finish, "output_token_logprobs": pairs,
			"weight_version": f.version,
		}
		if q.From == 0 {
			scores, err := f.model.Score(r.Context(), [][]int32{ids})
			if err != nil {
				return nil, err
			}
			prompt := [][]any{{nil, ids[0], nil}}
			for i, v := range scores[0][1:] {
				prompt = append(prompt, []any{v, ids[i+1], nil})
			}
			meta["input_token_logprobs"] = prompt
		}
		out = append(out, fields{"text": "", "output_ids": s.IDs, "meta_info": meta})
	}
	return out, nil
}

func (f *fake) completion(r *http.Request) (any, error) {
	var q struct {
		Prompt      []int32  `json:"prompt"`
		Predict     int      `json:"n_predict"`
		Temperature float64  `json:"temperature"`
		TopP        float64  `json:"top_p"`
		TopK        int      `json:"top_k"`
		Seed        uint32   `json:"seed"`
		Probs       int      `json:"n_probs"`
		Tokens      bool     `json:"return_tokens"`
		Cache       bool     `json:"cache_prompt"`
		MinP        float64  `json:"min_p"`
		Typical     float64  `json:"typical_p"`
		Repeat      float64  `json:"repeat_penalty"`
		Presence    float64  `json:"presence_penalty"`
		Frequency   float64  `json:"frequency_penalty"`
		Dry         float64  `json:"dry_multiplier"`
		XTC         float64  `json:"xtc_probability"`
		Samplers    []string `json:"samplers"`
	}
	if err := strictly(r, &q); err != nil {
		return nil, err
	}
	s, err := f.model.Sample(r.Context(), q.Prompt, policy.Sampling{
		Temperature: q.Temperature, TopP: q.TopP, TopK: q.TopK, MaxTokens: q.Predict, Seed: uint64(q.Seed), Stop: []int32{max(f.end, 0)},
	})
	if err != nil {
		return nil, err
	}
	probs := []fields{}
	for i, id := range s.IDs {
		probs = append(probs, fields{"id": id, "logprob": s.LogProbs[i], "token": "", "top_logprobs": []any{}})
	}
	stop := "limit"
	if s.Stop == policy.Stopped {
		stop = "eos"
	}
	return fields{
		"content": "", "tokens": s.IDs, "tokens_evaluated": len(q.Prompt), "tokens_predicted": len(s.IDs), "truncated": false,
		"stop_type": stop, "completion_probabilities": probs,
	}, nil
}

// finite says whether log-probabilities are numbers.
func finite(values []float32) bool {
	return !slices.ContainsFunc(values, func(v float32) bool {
		return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) || v > aboveZero
	})
}
