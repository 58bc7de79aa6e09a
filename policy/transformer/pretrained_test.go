package transformer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const pretrainedModels = "testdata/pretrained"

// logits are those of the model at some positions of a sequence.
func (m *Model) logits(ids []int32, every int) [][]float32 {
	p := newScoringPass(m.snapshot(Float32, 1))
	p.forward(ids)
	var out [][]float32
	for t := 0; t < len(ids); t += every {
		p.predict([]int{t + 1})
		out = append(out, slices.Clone(p.head.logits.row(0)))
	}
	return out
}

// TestPretrained: models of every family give the logits that testdata/make_pretrained.py had from transformers.
func TestPretrained(t *testing.T) {
	var values struct {
		IDs     []int32
		Logits  map[string][][]float32
		Adapted [][]float32
	}
	if err := readJSON(filepath.Join(pretrainedModels, "values.json"), &values); err != nil {
		t.Fatal(err)
	}
	if len(values.Logits) != 4 {
		t.Fatalf("values of %d models, want 4", len(values.Logits))
	}
	compare := func(t *testing.T, m *Model, want [][]float32) {
		t.Helper()
		for i, row := range m.logits(values.IDs, 23) {
			for id, z := range row {
				if !(math.Abs(float64(z-want[i][id])) <= 1e-4) {
					t.Fatalf("position %d, id %d: logit %v, want %v", 23*i, id, z, want[i][id])
				}
			}
		}
	}
	t.Run("adapter", func(t *testing.T) {
		read := func(dir string) *Model {
			m := pretrained(t, "qwen2")
			if err := m.ReadAdapter(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := read(filepath.Join(pretrainedModels, "qwen2-lora"))
		compare(t, m, values.Adapted)
		compare(t, again(t, m), values.Adapted)
		dir := filepath.Join(t.TempDir(), "again")
		if err := m.WriteAdapter(t.Context(), dir, "qwen2"); err != nil {
			t.Fatal(err)
		}
		if again := read(dir); !again.adapterConfig().equal(m.adapterConfig()) || !slices.Equal(again.adapter.values, m.adapter.values) {
			t.Errorf("written and read again it is another adapter: %v, was %v", again.adapterConfig(), m.adapterConfig())
		}
	})
	for name, want := range values.Logits {
		t.Run(name, func(t *testing.T) {
			m := pretrained(t, name)
			compare(t, m, want)
			dir := filepath.Join(t.TempDir(), "again")
			if err := m.WritePretrained(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			same, err := ReadPretrained(t.Context(), dir, PretrainedOptions{})
			if err != nil {
				t.Fatal(err)
			}
			m.thaw()
			same.thaw()
			if same.config != m.config || !slices.Equal(same.values, m.values) {
				t.Errorf("written and read again it is another model: %+v, was %+v", same.config, m.config)
			}
			compare(t, m, want) // from memory, not from the files
			if err := m.WritePretrained(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("written over a model: %v", err)
			}
		})
	}
}

// again is the model written and read, its adapter a part of it.
func again(t *testing.T, m *Model) *Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "again")
	if err := m.WritePretrained(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	m, err := ReadPretrained(t.Context(), dir, PretrainedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func pretrained(t *testing.T, name string) *Model {
	t.Helper()
	m, err := ReadPretrained(t.Context(), filepath.Join(pretrainedModels, name), PretrainedOptions{Context: 100})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// copyModel copies a pretrained model so that a test can spoil it.
func copyModel(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(pretrainedModels, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// setting changes a field of a JSON file.
func setting(file, key string, value any) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, file)
		fields := map[string]any{}
		if err := readJSON(path, &fields); err != nil {
			return err
		}
		fields[key] = value
		b, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o600)
	}
}

func TestAdapterRefuses(t *testing.T) {
	set := func(key string, value any) func(dir string) error { return setting(adapterConfigFile, key, value) }
	for want, spoil := range map[string]func(dir string) error{
		"there is no adapter_config": func(dir string) error { return os.Remove(filepath.Join(dir, adapterConfigFile)) },
		"no such file":               func(dir string) error { return os.Remove(filepath.Join(dir, adapterWeightsFile)) },
		`peft_type is "IA3"`:         set("peft_type", "IA3"),
		"use_dora":                   set("use_dora", true),
		"modules_to_save":            set("modules_to_save", []string{"lm_head"}),
		"rank_pattern":               set("rank_pattern", map[string]int{"q_proj": 1}),
		"lora_alpha is 0":            set("lora_alpha", 0),
		"rank is 0":                  set("r", 0),
		"want [4 24]":                set("r", 4),
		"is missing":                 set("target_modules", "all-linear"),
		`no projection "c_attn"`:     set("target_modules", []string{"c_attn"}),
		"does not belong":            set("target_modules", []string{"q_proj"}),
	} {
		dir := copyModel(t, "qwen2-lora")
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		m := pretrained(t, "qwen2")
		if err := m.ReadAdapter(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) || m.adapter != nil {
			t.Errorf("got %v, want an error that says %q and no adapter", err, want)
		}
	}
	m := pretrained(t, "llama")
	if err := m.ReadAdapter(t.Context(), filepath.Join(pretrainedModels, "qwen2-lora")); err == nil {
		t.Error("an adapter of another model was accepted")
	}
}

func TestPretrainedRefuses(t *testing.T) {
	set := func(key string, value any, more ...any) func(dir string) error {
		return func(dir string) error {
			err := setting(configFile, key, value)(dir)
			for ; len(more) > 0; more = more[2:] {
				err = errors.Join(err, setting(configFile, more[0].(string), more[1])(dir))
			}
			return err
		}
	}
	const last = "model-00002-of-00002.safetensors"
	spoiled := func(name string, change func([]byte) []byte) func(dir string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, last))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), change(b), 0o600)
		}
	}
	longer := spoiled(last, func(b []byte) []byte { return append(b, 0) })
	notANumber := spoiled(last, func(b []byte) []byte { return append(b[:len(b)-4], 0, 0, 0xc0, 0x7f) })
	twice := func(dir string) error {
		same := func(b []byte) []byte { return b }
		return errors.Join(spoiled("again.safetensors", same)(dir), addShard(dir, "again.safetensors"))
	}
	write := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	for want, spoil := range map[string]func(dir string) error{
		"there is no config.json":     func(dir string) error { return os.Remove(filepath.Join(dir, configFile)) },
		`model_type is "mixtral"`:     set("model_type", "mixtral"),
		"quantised":                   set("quantization_config", map[string]int{"bits": 4}),
		`hidden_act is "gelu"`:        set("hidden_act", "gelu"),
		"attention_bias":              set("attention_bias", true),
		"use_sliding_window":          set("use_sliding_window", true),
		`of type "yarn"`:              set("rope_parameters", map[string]any{"rope_type": "yarn", "factor": 4}),
		"llama3 and nothing more":     set("rope_parameters", map[string]any{"rope_type": "llama3"}),
		"rope_scaling is":             set("rope_parameters", map[string]any{"rope_type": "llama3", "factor": 0.5}),
		"want [48 25]":                set("hidden_size", 25),
		"heads is 5":                  set("num_attention_heads", 5),
		`"model.layers.2.`:            set("num_hidden_layers", 3),
		"does not belong":             set("num_hidden_layers", 1),
		"vocab is 0":                  set("vocab_size", 0),
		"layers is 1000000000":        set("num_hidden_layers", 1_000_000_000),
		"vocab is 4000000000000":      set("vocab_size", 4_000_000_000_000),
		"cannot unmarshal number 1e":  set("hidden_size", 1e300),
		"angles":                      set("max_position_embeddings", 1<<22, "head_dim", 1<<10),
		"parameters":                  set("hidden_size", 1<<20, "num_attention_heads", 1<<10, "num_key_value_heads", 1<<10, "intermediate_size", 1<<20),
		"in another file already":     twice,
		"complete?":                   longer,
		"it holds NaN":                notANumber,
		"config.json: unexpected end": write(configFile, "{"),
		"no such file":                func(dir string) error { return os.Remove(filepath.Join(dir, "model-00002-of-00002.safetensors")) },
		"not a file beside it":        write(indexFile, `{"weight_map": {"a": "../x.safetensors"}}`),
		"lists no file":               write(indexFile, `{}`),
		"model-00001-of-00002.safetensors: length of the header": write("model-00001-of-00002.safetensors", "short"),
		"a context of 300": nil,
	} {
		dir, o := copyModel(t, "llama"), PretrainedOptions{}
		if spoil == nil {
			o.Context = 300
		} else if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPretrained(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
}

// addShard lists one more file in the index of a model.
func addShard(dir, file string) error {
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	path := filepath.Join(dir, indexFile)
	if err := readJSON(path, &index); err != nil {
		return err
	}
	index.Files["more"] = file
	b, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// TestPretrainedCut: a file that ends early anywhere is an error, never a model.
func TestPretrainedCut(t *testing.T) {
	dir := copyModel(t, "smollm")
	path := filepath.Join(dir, weightsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(whole); n += 1 + n/7 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPretrained(t.Context(), dir, PretrainedOptions{}); err == nil {
			t.Fatalf("cut after %d of %d bytes: no error", n, len(whole))
		}
	}
}

func TestHalf(t *testing.T) {
	for h, want := range map[uint16]float64{
		0: 0, 1: 0x1p-24, 0x3ff: 0x3ffp-24, 0x400: 0x1p-14, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x3555: 0x555p-12,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1), 0x8001: -0x1p-24,
	} {
		if got := float64(fromHalf(h)); got != want {
			t.Errorf("%#04x is %v, want %v", h, got, want)
		}
	}
	if v := fromHalf(0x7e00); v == v {
		t.Errorf("0x7e00 is %v, want NaN", v)
	}
}

// FuzzReadEntries: whatever a file says of itself, reading it ends with entries that fit the data, or an error, and takes
// no more memory than the file has bytes.
func FuzzReadEntries(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(pretrainedFamilies)) {
		paths, err := filepath.Glob(filepath.Join(pretrainedModels, name, "*.safetensors"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b[:8+binary.LittleEndian.Uint64(b)])
		}
	}
	f.Add(append(binary.LittleEndian.AppendUint64(nil, 1<<60), '{'))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, _, err := readEntries(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		names, err := inOrder(entries)
		if err != nil {
			t.Fatalf("accepted, but %v", err)
		}
		var at int64
		for _, name := range names {
			if o := entries[name].Offsets; o[0] != at || o[1] <= at {
				t.Fatalf("%s has the offsets %v after %d", name, o, at)
			} else {
				at = o[1]
			}
		}
	})
}

// FuzzReadPretrained: whatever a directory holds, reading it ends with an error, or with a model that can be asked.
func FuzzReadPretrained(f *testing.F) {
	for _, name := range []string{"smollm", "qwen2", "qwen3"} {
		config, err := os.ReadFile(filepath.Join(pretrainedModels, name, configFile))
		if err != nil {
			f.Fatal(err)
		}
		weights, err := os.ReadFile(filepath.Join(pretrainedModels, name, weightsFile))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(config, weights)
	}
	f.Add([]byte(`{"model_type":"llama","hidden_act":"silu","num_hidden_layers":1e9}`), []byte{})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, configFile), config, 0o600), replace(filepath.Join(dir, weightsFile), weights)); err != nil {
			t.Fatal(err)
		}
		m, err := ReadPretrained(t.Context(), dir, PretrainedOptions{Context: 8})
		if err != nil {
			return
		}
		s := m.Sampler(SamplerOptions{Workers: 1})
		if _, err := s.Score(t.Context(), [][]int32{{0, 0, 0}}); err != nil && !strings.Contains(err.Error(), "log-probability") {
			t.Error(err)
		}
	})
}

// replace writes a file in the place of one that may be mapped.
func replace(path string, b []byte) error {
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
