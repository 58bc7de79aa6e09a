package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"

	"skillmaster/chat"
	"skillmaster/policy/transformer"
	"skillmaster/store"
)

// modelCmd looks at models and writes them for other programs.
type modelCmd struct {
	Info   modelInfoCmd   `cmd:"" help:"Check a model and say what it is."`
	Export modelExportCmd `cmd:"" help:"Write a run's policy for other programs: as a model, or as an adapter."`
	Merge  modelMergeCmd  `cmd:"" help:"Write a model that has what an adapter learnt in its weights."`
}

// Help is shown under --help.
func (modelCmd) Help() string {
	return `Examples:
  skillmaster model info models/Qwen2.5-0.5B-Instruct
  skillmaster model export --run runs/first --to models/first`
}

type modelInfoCmd struct {
	Dir  string `arg:"" help:"Directory with config.json, tokenizer.json and *.safetensors." placeholder:"DIR"`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (modelInfoCmd) Help() string {
	return `Reads every weight, and reports the first that is missing, of another shape or not finite.

Example:
  skillmaster model info models/Qwen2.5-0.5B-Instruct`
}

// modelInfo is what can be said of a model.
type modelInfo struct {
	Parameters int                `json:"parameters"`
	FileBytes  int64              `json:"file_bytes"` // of its weights
	Tokens     int                `json:"tokens"`     // of its tokenizer
	Template   string             `json:"template"`
	Shape      transformer.Config `json:"shape"`
}

func (c *modelInfoCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	m, tok, template, err := openPretrained(ctx, c.Dir)
	if err != nil {
		return err
	}
	info := modelInfo{Parameters: m.Parameters(), Tokens: tok.VocabSize(), Template: template.Name(), Shape: m.Config()}
	weights, err := filepath.Glob(filepath.Join(c.Dir, "*.safetensors"))
	if err != nil {
		return err
	}
	for _, path := range weights {
		file, err := os.Stat(path)
		if err != nil {
			return err
		}
		info.FileBytes += file.Size()
	}
	if c.JSON {
		return printJSON(stdout, info)
	}
	s := info.Shape
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "parameters\t%d\nweights\t%.1f MB, all finite\n", info.Parameters, float64(info.FileBytes)/1e6)
	fmt.Fprintf(w, "layers\t%d of width %d, feed-forward %d\n", s.Layers, s.Width, s.Hidden)
	fmt.Fprintf(w, "attention\t%d heads of %d, %d for keys and values\n", s.Heads, s.HeadDim, s.KVHeads)
	fmt.Fprintf(w, "context\t%d\nvocabulary\t%d, %d in the tokenizer\nchat template\t%s\n", s.Context, s.Vocab, info.Tokens, info.Template)
	return w.Flush()
}

// openPretrained opens a model, at its own context, with its tokenizer and its chat template.
func openPretrained(ctx context.Context, dir string) (*transformer.Model, *chat.Tokenizer, chat.Template, error) {
	tok, err := readTokenizer(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, nil, chat.Template{}, err
	}
	template, err := pretrainedTemplate(dir, tok)
	if err != nil {
		return nil, nil, chat.Template{}, fmt.Errorf("%s: %w", dir, err)
	}
	m, err := readPretrained(ctx, dir, 0, tok)
	return m, tok, template, err
}

type modelExportCmd struct {
	Run        string `help:"Run directory." required:"" placeholder:"DIR"`
	To         string `help:"Directory to write; it must not be there." required:"" placeholder:"DIR"`
	Checkpoint string `help:"latest, best (on the held-out panel) or warm (the end of the warm start)." default:"latest" enum:"latest,best,warm"`
	Adapter    bool   `help:"Write the adapter alone, as PEFT does."`
}

// Help is shown under --help.
func (modelExportCmd) Help() string {
	return `Writes config.json, model.safetensors (float32) and the tokenizer with its chat template, as Hugging Face's libraries and
inference servers read them. What an adapter learnt is in the weights then; with --adapter it is written by itself.

Examples:
  skillmaster model export --run runs/first --to models/first
  skillmaster model export --run runs/first --to models/first-lora --checkpoint best --adapter`
}

func (c *modelExportCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	return withRun(ctx, c.Run, func(run *store.Run) error {
		m, err := run.Manifest(ctx)
		if err != nil {
			return err
		}
		var cfg runConfig
		if err := cfg.decode(m.Config); err != nil {
			return fmt.Errorf("settings of %s: %w", c.Run, err)
		}
		if cfg.Server.URL != "" || cfg.Tinker.URL != "" {
			return fmt.Errorf("%s: its policy is a model on a server, there is nothing to export", c.Run)
		}
		saved, err := checkpointOf(ctx, run, c.Run, c.Checkpoint, stderr)
		if err != nil {
			return err
		}
		engine, err := openEngine(ctx, run, cfg, world{}, 0, nil)
		if err == nil {
			err = engine.load(ctx, saved.Path)
		}
		if err != nil {
			return err
		}
		if err := c.write(ctx, engine, cfg.Model.Pretrained); err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s: the policy of version %d\n", c.To, engine.learner.Model().Version())
		return err
	})
}

func (c *modelExportCmd) write(ctx context.Context, e *engine, base string) error {
	model := e.learner.Model()
	if c.Adapter {
		return model.WriteAdapter(ctx, c.To, base)
	}
	return writeModel(ctx, c.To, model, e.tokenizer, e.template, base)
}

type modelMergeCmd struct {
	Model   string `help:"Directory of the model." required:"" placeholder:"DIR"`
	Adapter string `help:"Directory of the adapter, as PEFT keeps it." required:"" placeholder:"DIR"`
	To      string `help:"Directory to write; it must not be there." required:"" placeholder:"DIR"`
}

// Help is shown under --help.
func (modelMergeCmd) Help() string {
	return `Example:
  skillmaster model merge --model models/Qwen2.5-0.5B-Instruct --adapter models/first-lora --to models/first`
}

func (c *modelMergeCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	m, tok, template, err := openPretrained(ctx, c.Model)
	if err != nil {
		return err
	}
	if err := m.ReadAdapter(ctx, c.Adapter); err != nil {
		return err
	}
	if err := writeModel(ctx, c.To, m, tok, template, c.Model); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d parameters\n", c.To, m.Parameters())
	return err
}

// writeModel writes a model with its tokenizer as a directory that is there whole or not at all. What its base ("": none)
// says of tokenizer, template and where answers end is kept.
func writeModel(ctx context.Context, to string, m *transformer.Model, tok *chat.Tokenizer, template chat.Template, base string) (err error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s is there already: choose another directory", to))
	}
	part, err := os.MkdirTemp(filepath.Dir(filepath.Clean(to)), ".model-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(part) }() // what is left after a rename is nothing
	if err := m.WritePretrained(ctx, part); err != nil {
		return err
	}
	files, err := tokenizerFiles(tok, template)
	if err != nil {
		return err
	}
	if base != "" {
		if err := keepFiles(files, base); err != nil {
			return err
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(part, name), b, 0o644); err != nil {
			return err
		}
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// tokenizerFiles are what Hugging Face's libraries want to know beside the model.
func tokenizerFiles(tok *chat.Tokenizer, template chat.Template) (map[string][]byte, error) {
	var file bytes.Buffer
	if err := tok.Save(&file); err != nil {
		return nil, err
	}
	stop := template.Stop(tok)
	end, _ := tok.Token(stop[0])
	settings, err := json.MarshalIndent(map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "chat_template": template.Jinja(),
		"clean_up_tokenization_spaces": false,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	generation, err := json.MarshalIndent(map[string]any{"eos_token_id": stop}, "", "  ")
	return map[string][]byte{
		"tokenizer.json": file.Bytes(), "tokenizer_config.json": append(settings, '\n'), "generation_config.json": append(generation, '\n'),
	}, err
}

// keepFiles puts those of a base model in the place of ours.
func keepFiles(files map[string][]byte, base string) error {
	for _, name := range []string{
		"tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja", "special_tokens_map.json",
		"added_tokens.json", "vocab.json", "merges.txt",
	} {
		b, err := os.ReadFile(filepath.Join(base, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		files[name] = b
	}
	b, err := os.ReadFile(filepath.Join(base, "config.json"))
	if err != nil {
		return err
	}
	var config map[string]json.RawMessage // more than our own config.json says
	if err := json.Unmarshal(b, &config); err != nil {
		return fmt.Errorf("%s: config.json: %w", base, err)
	}
	delete(config, "dtype")
	config["torch_dtype"] = json.RawMessage(`"float32"`)
	files["config.json"], err = json.MarshalIndent(config, "", "  ")
	return err
}
