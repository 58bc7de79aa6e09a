package tinker

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// What travels as JSON, in the fields of the Python SDK 0.38 and of the servers named in dialect.go.

type capabilities struct {
	Models []supported `json:"supported_models"`
}

type supported struct {
	Name       string `json:"model_name"`
	Context    int    `json:"max_context_length,omitempty"`
	Trainable  bool   `json:"trainable"`
	Sampleable bool   `json:"sampleable"`
}

type createSession struct {
	Tags     []string       `json:"tags"`
	Metadata map[string]any `json:"user_metadata"`
	SDK      string         `json:"sdk_version"`
	Project  *string        `json:"project_id,omitempty"`
	Display  *string        `json:"display_name,omitempty"`
	Type     string         `json:"type,omitempty"`
}

type createdSession struct {
	ID      string `json:"session_id"`
	Info    string `json:"info_message,omitempty"`
	Warning string `json:"warning_message,omitempty"`
	Error   string `json:"error_message,omitempty"`
	Type    string `json:"type"`
}

type heartbeat struct {
	Session string `json:"session_id"`
	Type    string `json:"type,omitempty"`
}

type createModel struct {
	Session   string         `json:"session_id"`
	Number    int            `json:"model_seq_id"`
	Base      string         `json:"base_model"`
	Metadata  map[string]any `json:"user_metadata,omitempty"`
	LoRA      *loraConfig    `json:"lora_config,omitempty"`
	Optimiser *optimiserKind `json:"optimizer_config,omitempty"`
	Type      string         `json:"type,omitempty"`
}

type loraConfig struct {
	Rank      int     `json:"rank"`
	Seed      *uint64 `json:"seed,omitempty"`
	Unembed   bool    `json:"train_unembed"`
	MLP       bool    `json:"train_mlp"`
	Attention bool    `json:"train_attn"`
}

type optimiserKind struct {
	Type string `json:"type"`
}

// named is a result that names a model.
type named struct {
	Model string `json:"model_id"`
	Type  string `json:"type,omitempty"`
}

type modelInput struct {
	Chunks []chunk `json:"chunks"`
}

type chunk struct {
	Type   string  `json:"type,omitempty"`
	Tokens []int32 `json:"tokens"`
}

func text(ids []int32) modelInput {
	return modelInput{[]chunk{{"encoded_text", append([]int32{}, ids...)}}}
}

// ids are those of all chunks; other chunks than text are an error.
func (m modelInput) ids() ([]int32, error) {
	var all []int32
	for _, c := range m.Chunks {
		if c.Type != "encoded_text" && c.Type != "" {
			return nil, fmt.Errorf("a chunk of type %q: there is text only here", c.Type)
		}
		all = append(all, c.Tokens...)
	}
	return all, nil
}

// tensor is a list of numbers with a shape; dense ones travel, sparse ones do not.
type tensor struct {
	Data  []float64 `json:"data"`
	DType string    `json:"dtype,omitempty"` // float32 or int64
	Shape []int64   `json:"shape,omitempty"`
	Rows  []int64   `json:"sparse_crow_indices,omitempty"`
	Cols  []int64   `json:"sparse_col_indices,omitempty"`
}

// floats and integers are lists as they travel. float32 and int32 are exact in float64.
func floats(values []float32) tensor {
	t := tensor{DType: "float32", Shape: []int64{int64(len(values))}, Data: make([]float64, len(values))}
	for i, v := range values {
		t.Data[i] = float64(v)
	}
	return t
}

func integers(ids []int32) tensor {
	t := tensor{DType: "int64", Shape: []int64{int64(len(ids))}, Data: make([]float64, len(ids))}
	for i, v := range ids {
		t.Data[i] = float64(v)
	}
	return t
}

// list checks that a tensor is a plain list of n numbers.
func (t tensor) list(n int) error {
	switch {
	case t.Rows != nil || t.Cols != nil:
		return errors.New("it is sparse: dense lists are read here")
	case len(t.Data) != n:
		return fmt.Errorf("it has %d numbers for %d ids", len(t.Data), n)
	case t.Shape != nil && (len(t.Shape) != 1 || t.Shape[0] != int64(n)):
		return fmt.Errorf("its shape is %v, [%d] is read here", t.Shape, n)
	}
	return nil
}

// singles are the numbers as float32.
func (t tensor) singles() ([]float32, error) {
	out := make([]float32, len(t.Data))
	for i, v := range t.Data {
		out[i] = float32(v)
		if math.IsNaN(v) || math.IsInf(float64(out[i]), 0) {
			return nil, fmt.Errorf("number %d is %v", i, v)
		}
	}
	return out, nil
}

// ints are the numbers as ids.
func (t tensor) ints() ([]int32, error) {
	out := make([]int32, len(t.Data))
	for i, v := range t.Data {
		out[i] = int32(v)
		if float64(out[i]) != v {
			return nil, fmt.Errorf("number %d is %v, which is no id", i, v)
		}
	}
	return out, nil
}

// datum is one sequence: position i of every input speaks of predicting the i-th target after the first i+1 ids.
type datum struct {
	Input  modelInput        `json:"model_input"`
	Inputs map[string]tensor `json:"loss_fn_inputs"`
}

type lossInput struct {
	Data   []datum            `json:"data"`
	Loss   string             `json:"loss_fn"`
	Config map[string]float64 `json:"loss_fn_config,omitempty"`
}

// passRequest is a forward pass, with or without a backward one; JSON names the two differently.
type passRequest struct {
	Model    string     `json:"model_id"`
	Seq      int        `json:"seq_id"`
	Backward *lossInput `json:"forward_backward_input,omitempty"`
	Forward  *lossInput `json:"forward_input,omitempty"`
}

// passResult is what a pass gives.
type passResult struct {
	Kind    string              `json:"loss_fn_output_type"`
	Outputs []map[string]tensor `json:"loss_fn_outputs"`
	Metrics map[string]float64  `json:"metrics"`
}

// adam are the settings of one optimiser step. The clip, if 0, is left out: some servers do not know it.
type adam struct {
	Rate  float64 `json:"learning_rate"`
	Beta1 float64 `json:"beta1"`
	Beta2 float64 `json:"beta2"`
	Eps   float64 `json:"eps"`
	Decay float64 `json:"weight_decay"`
	Clip  float64 `json:"grad_clip_norm,omitempty"`
}

type optimStep struct {
	Model string `json:"model_id"`
	Seq   int    `json:"seq_id"`
	Adam  adam   `json:"adam_params"`
	Type  string `json:"type,omitempty"`
}

type optimResult struct {
	Metrics map[string]float64 `json:"metrics"`
}

type saveWeights struct {
	Model     string            `json:"model_id"`
	Path      string            `json:"path,omitempty"`
	Session   *int              `json:"sampling_session_seq_id,omitempty"`
	Seq       int               `json:"seq_id"`
	Kind      string            `json:"kind,omitempty"`
	TTL       *int              `json:"ttl_seconds,omitempty"`
	Overwrite bool              `json:"overwrite,omitempty"`
	Metadata  map[string]string `json:"user_metadata,omitempty"`
	Type      string            `json:"type,omitempty"`
}

type savedWeights struct {
	Path    string `json:"path,omitempty"`
	Session string `json:"sampling_session_id,omitempty"`
	Type    string `json:"type,omitempty"`
}

type loadWeights struct {
	Model     string         `json:"model_id,omitempty"`
	Seq       int            `json:"seq_id,omitempty"`
	Session   string         `json:"session_id,omitempty"`
	Number    *int           `json:"model_seq_id,omitempty"`
	Base      string         `json:"base_model,omitempty"`
	Metadata  map[string]any `json:"user_metadata,omitempty"`
	Path      string         `json:"path"`
	Moments   bool           `json:"optimizer"`
	Optimiser *optimiserKind `json:"optimizer_config,omitempty"`
	Access    *string        `json:"weights_access_token,omitempty"`
	Type      string         `json:"type,omitempty"`
}

type loadedWeights struct {
	Path  string `json:"path"`
	Model string `json:"model_id"`
	Type  string `json:"type"`
}

type createSampler struct {
	Session string `json:"session_id"`
	Number  int    `json:"sampling_session_seq_id"`
	Base    string `json:"base_model,omitempty"`
	Path    string `json:"model_path,omitempty"`
	Type    string `json:"type,omitempty"`
}

type createdSampler struct {
	ID   string `json:"sampling_session_id"`
	Type string `json:"type"`
}

type sampleRequest struct {
	Samples     int             `json:"num_samples"`
	Prompt      modelInput      `json:"prompt"`
	Params      samplingParams  `json:"sampling_params"`
	Session     string          `json:"sampling_session_id,omitempty"`
	Seq         *int            `json:"seq_id,omitempty"`
	Base        string          `json:"base_model,omitempty"`
	Path        string          `json:"model_path,omitempty"`
	PromptLogs  bool            `json:"prompt_logprobs,omitempty"`
	TopPrompt   int             `json:"topk_prompt_logprobs"`
	TopSample   int             `json:"topk_sample_logprobs,omitempty"`
	Target      json.RawMessage `json:"target_prompt_logprobs,omitempty"`
	Alternative int             `json:"prompt_alt_tokens_k,omitempty"`
	LastN       *int            `json:"prompt_logprobs_last_n,omitempty"`
	Stability   bool            `json:"record_stability_info,omitempty"`
	Type        string          `json:"type,omitempty"`
}

type samplingParams struct {
	MaxTokens   *int            `json:"max_tokens"`
	Seed        *uint64         `json:"seed,omitempty"`
	Stop        json.RawMessage `json:"stop,omitempty"` // a text, texts, or ids
	Temperature *float64        `json:"temperature,omitempty"`
	TopK        *int            `json:"top_k,omitempty"`
	TopP        *float64        `json:"top_p,omitempty"`
}

type sampleResult struct {
	Sequences []sequence `json:"sequences"`
	Prompt    []*float64 `json:"prompt_logprobs,omitempty"`
	Type      string     `json:"type,omitempty"`
}

type sequence struct {
	Stop     string    `json:"stop_reason"`
	Tokens   []int32   `json:"tokens"`
	LogProbs []float64 `json:"logprobs"`
}

// promise is the answer to a request whose result is still to come.
type promise struct {
	Request   string   `json:"request_id"`
	Model     string   `json:"model_id,omitempty"`
	Sequences []string `json:"sample_sequence_ids,omitempty"`
}

type retrieve struct {
	Request  string `json:"request_id"`
	Metadata bool   `json:"allow_metadata_only"`
}
