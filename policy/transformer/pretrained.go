package transformer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A pretrained model is a directory as Hugging Face's libraries write it: config.json, and the weights in
// model.safetensors or in the shards that model.safetensors.index.json lists.
const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
)

// PretrainedOptions say how a pretrained model is read. The zero value is useful.
type PretrainedOptions struct {
	Context int // most ids of a sequence, if fewer than the model allows; 0: as many as that
}

// pretrainedConfig are the fields of config.json that decide what the numbers mean. Newer writers keep the rotary ones
// in rope_parameters, older ones in rope_theta and rope_scaling.
type pretrainedConfig struct {
	Type          string            `json:"model_type"`
	Architectures []string          `json:"architectures,omitempty"`
	DType         string            `json:"torch_dtype,omitempty"`
	Vocab         int               `json:"vocab_size"`
	Width         int               `json:"hidden_size"`
	Layers        int               `json:"num_hidden_layers"`
	Heads         int               `json:"num_attention_heads"`
	KVHeads       int               `json:"num_key_value_heads"`
	HeadDim       int               `json:"head_dim,omitempty"`
	Hidden        int               `json:"intermediate_size"`
	Context       int               `json:"max_position_embeddings"`
	Activation    string            `json:"hidden_act"`
	NormEps       float64           `json:"rms_norm_eps"`
	RopeTheta     float64           `json:"rope_theta,omitempty"`
	RopeScaling   *pretrainedRotary `json:"rope_scaling,omitempty"`
	Rope          *pretrainedRotary `json:"rope_parameters,omitempty"`
	Tied          bool              `json:"tie_word_embeddings"`
	AttentionBias bool              `json:"attention_bias,omitempty"`
	MLPBias       bool              `json:"mlp_bias,omitempty"`
	Window        bool              `json:"use_sliding_window,omitempty"`
	Quantised     json.RawMessage   `json:"quantization_config,omitempty"`
}

type pretrainedRotary struct {
	Type       string  `json:"rope_type,omitempty"`
	OldType    string  `json:"type,omitempty"`
	Theta      float64 `json:"rope_theta,omitempty"`
	Factor     float64 `json:"factor,omitempty"`
	LowFactor  float64 `json:"low_freq_factor,omitempty"`
	HighFactor float64 `json:"high_freq_factor,omitempty"`
	Original   int     `json:"original_max_position_embeddings,omitempty"`
}

// pretrainedFamilies are the values of model_type that can be read: how their layers differ from plain Llama's.
var pretrainedFamilies = map[string]struct {
	architecture string
	bias, qkNorm bool
}{
	"llama": {"LlamaForCausalLM", false, false},
	"qwen2": {"Qwen2ForCausalLM", true, false},
	"qwen3": {"Qwen3ForCausalLM", false, true},
}

// config turns the fields into a Config, or says which of them it cannot be.
func (p pretrainedConfig) config() (Config, error) {
	family, known := pretrainedFamilies[p.Type]
	c := Config{
		Vocab: p.Vocab, Width: p.Width, Layers: p.Layers, Heads: p.Heads, KVHeads: p.KVHeads, HeadDim: p.HeadDim, Hidden: p.Hidden,
		Context: p.Context, RopeBase: p.RopeTheta, NormEps: p.NormEps, Tied: p.Tied, Bias: family.bias, QKNorm: family.qkNorm,
	}
	switch {
	case !known:
		return c, fmt.Errorf("model_type is %q: models of %s can be read", p.Type, strings.Join(slices.Sorted(maps.Keys(pretrainedFamilies)), ", "))
	case len(p.Quantised) > 0 && string(p.Quantised) != "null":
		return c, errors.New("its weights are quantised (quantization_config): take the release in bfloat16")
	case p.Activation != "silu":
		return c, fmt.Errorf("hidden_act is %q, only silu can be computed", p.Activation)
	case p.AttentionBias || p.MLPBias:
		return c, errors.New("attention_bias or mlp_bias is set: such biases cannot be computed")
	case p.Window:
		return c, errors.New("use_sliding_window is set: attention over a window cannot be computed")
	}
	return c, p.rotary(&c)
}

func (p pretrainedConfig) rotary(c *Config) error {
	r := p.Rope
	if r == nil {
		r = p.RopeScaling
	}
	if r == nil {
		return nil
	}
	if r.Theta != 0 {
		c.RopeBase = r.Theta
	}
	kind := r.Type
	if kind == "" {
		kind = r.OldType
	}
	switch kind {
	case "", "default":
	case "llama3":
		c.RopeScaling = RopeScaling{r.Factor, r.LowFactor, r.HighFactor, r.Original}
		if c.RopeScaling == (RopeScaling{}) {
			return errors.New("its rotary scaling says llama3 and nothing more")
		}
	default:
		return fmt.Errorf("its rotary scaling is of type %q: default and llama3 can be computed", kind)
	}
	return nil
}

// ReadPretrained opens a model of the families Llama, Qwen2 or Qwen3 from a directory. Weights may be of type F32, BF16 and
// F16; each must be there once, with the shape that config.json says, and finite. They stay in their files, which are mapped
// into memory and must not change: samplers and a learner of an adapter read them from there. A learner of the model itself
// takes them into memory, as float32.
func ReadPretrained(ctx context.Context, dir string, o PretrainedOptions) (*Model, error) {
	m, err := readPretrained(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("read model %s: %w", dir, err)
	}
	return m, nil
}

func readPretrained(ctx context.Context, dir string, o PretrainedOptions) (*Model, error) {
	var p pretrainedConfig
	if err := readJSON(filepath.Join(dir, configFile), &p); err != nil {
		return nil, err
	}
	c, err := p.config()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	if o.Context > c.Context && c.Context > 0 {
		return nil, fmt.Errorf("a context of %d is asked for, the model was made for %d", o.Context, c.Context)
	}
	if o.Context > 0 {
		c.Context = o.Context
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	shards, err := shardsOf(dir)
	if err != nil {
		return nil, err
	}
	c = c.Complete()
	m := &Model{config: c, layout: newLayout(c)}
	m.files = make([]numbers, len(m.layout.tensors))
	for _, file := range shards {
		if err := m.openShard(ctx, filepath.Join(dir, file)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	for i, t := range m.layout.tensors {
		if m.files[i].file == nil {
			return nil, fmt.Errorf("tensor %q is in none of %s", t.name, strings.Join(shards, ", "))
		}
	}
	return m, nil
}

// readJSON reads a file of bounded size.
func readJSON(path string, to any) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: give a directory with config.json, tokenizer.json and model.safetensors", filepath.Base(path))
	}
	if err != nil {
		return err
	}
	if info.Size() > maxHeader {
		return fmt.Errorf("%s has %d bytes, at most %d are possible", filepath.Base(path), info.Size(), maxHeader)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// shardsOf lists the files of the weights, by name.
func shardsOf(dir string) ([]string, error) {
	_, err := os.Stat(filepath.Join(dir, indexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{weightsFile}, nil
	}
	if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"` // of each tensor
	}
	if err := readJSON(filepath.Join(dir, indexFile), &index); err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for tensor, file := range index.Files {
		if file != filepath.Base(file) || !filepath.IsLocal(file) {
			return nil, fmt.Errorf("%s: tensor %q is in %q, which is not a file beside it", indexFile, tensor, file)
		}
		files[file] = true
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: weight_map lists no file", indexFile)
	}
	return slices.Sorted(maps.Keys(files)), nil
}

// openShard finds the model's tensors that are in a file.
func (m *Model) openShard(ctx context.Context, path string) error {
	entries, all, err := openTensors(path)
	if err != nil {
		return err
	}
	for i, t := range m.layout.tensors {
		e, there := entries[t.name]
		if !there {
			continue
		}
		delete(entries, t.name)
		if m.files[i].file != nil {
			return fmt.Errorf("tensor %q is in another file already", t.name)
		}
		if err := errors.Join(ctx.Err(), checkEntry(e, store{name: t.name, shape: t.shape})); err != nil {
			return err
		}
		m.files[i] = all[t.name]
		if err := m.files[i].check(); err != nil {
			return fmt.Errorf("tensor %q: %w", t.name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !m.mayIgnore(name) {
			return fmt.Errorf("tensor %q does not belong to the model", name)
		}
	}
	return nil
}

// mayIgnore tells tensors that follow from others.
func (m *Model) mayIgnore(name string) bool {
	return name == "lm_head.weight" && m.config.Tied || strings.HasSuffix(name, ".rotary_emb.inv_freq")
}

// WritePretrained writes the model as a new directory that ReadPretrained and Hugging Face's libraries read, weights in
// F32, what an adapter learnt added to them. The tokenizer is not part of it. A directory that holds a model already is an
// error.
func (m *Model) WritePretrained(ctx context.Context, dir string) error {
	about, err := m.config.pretrained()
	if err == nil {
		err = writeFolder(ctx, dir, configFile, about, weightsFile, m.stores())
	}
	if err != nil {
		return fmt.Errorf("write model %s: %w", dir, err)
	}
	return nil
}

// pretrained is the config in Hugging Face's words, or what about it they have no word for.
func (c Config) pretrained() (pretrainedConfig, error) {
	p := pretrainedConfig{
		DType: "float32", Vocab: c.Vocab, Width: c.Width, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		Hidden: c.Hidden, Context: c.Context, Activation: "silu", NormEps: c.NormEps, RopeTheta: c.RopeBase, Tied: c.Tied,
	}
	for name, family := range pretrainedFamilies {
		if family.bias == c.Bias && family.qkNorm == c.QKNorm {
			p.Type, p.Architectures = name, []string{family.architecture}
		}
	}
	if p.Type == "" {
		return p, errors.New("no family of models has both biases and norms of queries and keys")
	}
	if s := c.RopeScaling; s != (RopeScaling{}) {
		p.RopeScaling = &pretrainedRotary{Type: "llama3", Factor: s.Factor, LowFactor: s.LowFactor, HighFactor: s.HighFactor, Original: s.Original}
	}
	return p, nil
}

// An adapter is a directory as PEFT writes it: adapter_config.json and adapter_model.safetensors, whose tensors are those
// of the model with a prefix.
const (
	adapterConfigFile  = "adapter_config.json"
	adapterWeightsFile = "adapter_model.safetensors"
	adapterPrefix      = "base_model.model."
)

// pretrainedAdapter are the fields of adapter_config.json that decide what the numbers mean.
type pretrainedAdapter struct {
	Type         string          `json:"peft_type"`
	Task         string          `json:"task_type"`
	Base         string          `json:"base_model_name_or_path"`
	Rank         int             `json:"r"`
	Alpha        float64         `json:"lora_alpha"`
	Dropout      float64         `json:"lora_dropout"`
	Targets      targetModules   `json:"target_modules"`
	Bias         string          `json:"bias"`
	Stabilised   bool            `json:"use_rslora"`
	Decomposed   bool            `json:"use_dora"`
	Transposed   bool            `json:"fan_in_fan_out"`
	Whole        []string        `json:"modules_to_save,omitempty"`
	RankPattern  map[string]int  `json:"rank_pattern,omitempty"` // PEFT cannot read null
	AlphaPattern map[string]any  `json:"alpha_pattern,omitempty"`
	Layers       json.RawMessage `json:"layers_to_transform,omitempty"`
}

// targetModules is a list of names; PEFT also knows "all-linear".
type targetModules []string

// UnmarshalJSON reads either form.
func (t *targetModules) UnmarshalJSON(b []byte) error {
	var word string
	if json.Unmarshal(b, &word) == nil && word == "all-linear" {
		*t = Projections()
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

func (p pretrainedAdapter) config() (AdapterConfig, error) {
	c := AdapterConfig{Rank: p.Rank, Scale: p.Alpha / float64(max(1, p.Rank)), Targets: p.Targets}
	if p.Stabilised {
		c.Scale = p.Alpha / math.Sqrt(float64(max(1, p.Rank)))
	}
	switch {
	case p.Type != "LORA":
		return c, fmt.Errorf("peft_type is %q, only LORA can be computed", p.Type)
	case p.Decomposed || p.Transposed || p.Bias != "" && p.Bias != "none":
		return c, errors.New("use_dora, fan_in_fan_out or bias is set: such adapters cannot be computed")
	case len(p.Whole) > 0 || len(p.RankPattern) > 0 || len(p.AlphaPattern) > 0 || len(p.Layers) > 0 && string(p.Layers) != "null":
		return c, errors.New("modules_to_save, rank_pattern, alpha_pattern or layers_to_transform is set: every layer must be adapted alike, and nothing else")
	case c.Scale == 0:
		return c, errors.New("lora_alpha is 0: the adapter does nothing")
	}
	return c, c.Validate()
}

// ReadAdapter gives the model the adapter of a PEFT directory. After an error the model is as it was.
func (m *Model) ReadAdapter(ctx context.Context, dir string) error {
	if err := m.readAdapter(ctx, dir); err != nil {
		return fmt.Errorf("read adapter %s: %w", dir, err)
	}
	return nil
}

func (m *Model) readAdapter(ctx context.Context, dir string) (err error) {
	var p pretrainedAdapter
	if err := readJSON(filepath.Join(dir, adapterConfigFile), &p); err != nil {
		return err
	}
	c, err := p.config()
	if err != nil {
		return fmt.Errorf("%s: %w", adapterConfigFile, err)
	}
	f, err := os.Open(filepath.Join(dir, adapterWeightsFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	entries, _, err := readEntries(f)
	if err != nil {
		return fmt.Errorf("%s: %w", adapterWeightsFile, err)
	}
	y := newAdapterLayout(m.config, c.Complete())
	if err := checkEntries(entries, y.stores(adapterPrefix, nil)); err != nil {
		return fmt.Errorf("%s: %w", adapterWeightsFile, err)
	}
	values := make([]float32, y.size)
	if err := readTensors(ctx, f, entries, y.stores(adapterPrefix, values)); err != nil {
		return fmt.Errorf("%s: %w", adapterWeightsFile, err)
	}
	if err := m.Adapt(c, 0); err != nil {
		return err
	}
	m.retrain(values)
	return nil
}

// WriteAdapter writes the model's adapter as a new PEFT directory. base is the name or the directory of the model it
// adapts, which readers may load.
func (m *Model) WriteAdapter(ctx context.Context, dir, base string) error {
	if m.adapter == nil {
		return fmt.Errorf("write adapter %s: the model has none", dir)
	}
	a := m.adapter.config
	about := pretrainedAdapter{
		Type: "LORA", Task: "CAUSAL_LM", Base: base, Rank: a.Rank, Alpha: a.Scale * float64(a.Rank), Targets: a.Targets, Bias: "none",
	}
	stores := m.adapter.layout.stores(adapterPrefix, m.adapter.values)
	if err := writeFolder(ctx, dir, adapterConfigFile, about, adapterWeightsFile, stores); err != nil {
		return fmt.Errorf("write adapter %s: %w", dir, err)
	}
	return nil
}

// writeFolder writes a JSON file and one of weights; neither may be there already.
func writeFolder(ctx context.Context, dir, aboutFile string, about any, weights string, stores []store) (err error) {
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{aboutFile, weights, weights + ".index.json"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s is there already: choose another directory", name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	part := filepath.Join(dir, weights+".part")
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	if err := errors.Join(writeEntries(ctx, f, map[string]string{"format": "pt"}, stores), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, aboutFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(dir, weights)) // last: without it there is nothing
}
