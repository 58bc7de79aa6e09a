package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"skillmaster/chat"
	"skillmaster/grpo"
	"skillmaster/policy/openai"
	"skillmaster/policy/transformer"
	"skillmaster/probe"
	"skillmaster/skill"
	"skillmaster/train"
)

// runConfig is everything that decides what a run does: what a config file holds, and what a run directory records.
type runConfig struct {
	World      worldConfig   `json:"world"`
	Model      modelConfig   `json:"model"`
	Vocabulary int           `json:"vocabulary"` // most tokens of the tokenizer
	Corpus     int           `json:"corpus"`     // demonstrations the tokenizer is trained on
	WarmFrom   string        `json:"warm_from"`  // run whose warm start is taken in place of an own one; empty: none
	WarmData   warmData      `json:"warm_data"`  // conversations that are cloned in place of the expert's episodes
	Server     serverConfig  `json:"server"`     // the policy is a model there, and does not learn
	Embeddings serverConfig  `json:"embeddings"` // embeds skills and goals, where they are retrieved by embedding
	Teacher    serverConfig  `json:"teacher"`    // a model there proposes skills
	Tinker     distantConfig `json:"tinker"`     // the policy is trained there
	Train      train.Config  `json:"train"`
}

// modelConfig is the embedded transformer: its shape, or the directory of a pretrained one, which has its own shape and
// tokenizer; the context counts for both.
type modelConfig struct {
	Width   int `json:"width"`
	Layers  int `json:"layers"`
	Heads   int `json:"heads"`
	KVHeads int `json:"kv_heads"`
	Hidden  int `json:"hidden"`
	Context int `json:"context"`

	RopeBase  float64 `json:"rope_base"` // slowest turn of positions, by its inverse; large for what is far apart; 0: 10000
	Induction bool    `json:"induction"` // a new model begins with two heads that copy what came next the last time

	Pretrained  string                    `json:"pretrained"`   // directory with config.json, tokenizer.json and safetensors; empty: none
	Adapter     transformer.AdapterConfig `json:"adapter"`      // rank 0: none, all weights are trained
	AdapterFrom string                    `json:"adapter_from"` // directory, as PEFT writes it, of the adapter to begin with, in place of a new one
	Precision   transformer.Precision     `json:"precision"`    // of products with weights: float32 or bfloat16
	Recompute   bool                      `json:"recompute"`    // less memory and more time in updates
}

// shape is what the engine makes a model of with the given number of tokens.
func (m modelConfig) shape(vocabulary int) transformer.Config {
	return transformer.Config{
		Vocab: vocabulary, Width: m.Width, Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads,
		Hidden: m.Hidden, Context: m.Context, RopeBase: m.RopeBase, Bias: m.Induction, Tied: true,
	}
}

func (m modelConfig) validate(vocabulary int) error {
	if m.Context < 2 {
		return fmt.Errorf("model.context is %d, at least 2 ids are needed", m.Context)
	}
	if m.Adapter.Rank != 0 {
		if err := m.Adapter.Validate(); err != nil {
			return err
		}
	}
	if m.AdapterFrom != "" {
		if _, err := os.Stat(filepath.Join(m.AdapterFrom, "adapter_config.json")); err != nil {
			return fmt.Errorf("model.adapter_from: no adapter in %s: %w", m.AdapterFrom, err)
		}
	}
	switch {
	case m.Pretrained == "" && m.Width == 0:
		return errors.New("model has no shape: give the directory of a pretrained one (--set model.pretrained=DIR)")
	case m.Pretrained == "":
		return m.shape(vocabulary).Validate()
	}
	if _, err := os.Stat(filepath.Join(m.Pretrained, "config.json")); err != nil {
		return fmt.Errorf("model.pretrained: no model in %s: %w", m.Pretrained, err)
	}
	return nil
}

// validate reports settings that cannot be, so that no run directory is made with them.
func (c runConfig) validate() error {
	if err := c.Model.validate(c.Vocabulary); err != nil {
		return err
	}
	least := 256 + len(chat.Plain().Special()) + len(chat.Tags())
	switch {
	case c.Vocabulary < least:
		return fmt.Errorf("vocabulary is %d, at least %d are needed: all bytes and the tokens with a meaning of their own", c.Vocabulary, least)
	case c.Corpus < 1:
		return fmt.Errorf("corpus is %d, a tokenizer needs at least 1 demonstration", c.Corpus)
	}
	if err := c.World.validate(); err != nil {
		return err
	}
	if err := c.Train.Validate(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if c.WarmData.File != "" && c.Train.Warm.Updates == 0 {
		return errors.New("warm_data is for the warm start, and train.warm.updates is 0: set it")
	}
	if err := c.validateServers(); err != nil {
		return err
	}
	return nil
}

// The presets there are.
var presets = []string{"default", "paper", "release", "quick", "smoke", "pretrained", "server", "distant"}

// preset is a named starting point of a config, by world.
func preset(world, name string) (runConfig, error) {
	c := runConfig{
		World: defaultWorld(world), Vocabulary: 2048, Corpus: 600,
		Server: serverConfig{Dialect: string(openai.Generic)}, Teacher: serverConfig{Dialect: string(openai.Generic)},
		Embeddings: serverConfig{Dialect: string(openai.Generic)},
		Model:      modelConfig{Width: 128, Layers: 4, Heads: 4, KVHeads: 2, Hidden: 512, Context: 1024},
		Train:      train.Default(),
	}
	switch world {
	case realGames:
		c.Train.Warm.Updates = 9000
		c.Train.Iterations = 120
	case madeShop: // pages of ten products are long, and a search repeats much of the instruction
		c.Vocabulary, c.Model.Context, c.Train.Rollout.ActionTokens = 2560, 2048, 64
		c.Train.Warm.Vary, c.Train.Vary = 0.9, 0 // copying is learnt where nothing can be known by heart, choosing where all is offered
		c.Train.Warm.Updates = 3000
		c.copies()
	case realShop:
		c.Vocabulary, c.Model.Context, c.Train.Rollout.ActionTokens = 4096, 4096, 96
		c.Train.Warm.Updates, c.Train.Warm.Advised = 7000, 0.3
		c.copies()
	}
	switch name {
	case "default":
	case "paper":
		c.paper()
	case "release": // the public release: harm clipped to zero, a bank that never changes, turns pooled
		c.published()
		c.Train.Probe = probe.Config{Tasks: 4, Alpha: 0.2, Efficiency: 1, ClipAtZero: true, Independent: true, Replay: true, Fixed: true}
		c.Train.Gate.Rule = probe.Never
		c.Train.Prices = train.ReleasePrices()
		c.Train.Learn.Aggregation, c.Train.Learn.Entropy = grpo.RowMix, 0.001
		c.Train.Learn.StdFloor, c.Train.Learn.PoolTurns, c.Train.Learn.RawSingleton = 1e-6, true, true
		c.Train.Rollout.RetrieveBy, c.Train.Rollout.MaxSkills, c.Train.Rollout.Mistakes, c.Train.Rollout.Recap = skill.Prefix, 13, 5, 12
		if world == realShop || world == madeShop {
			c.Train.Rollout.MaxSkills = 6
		}
	case "quick": // four minutes of two cores, most of them the warm start: for comparing ways to train in miniature
		c.Model = modelConfig{Width: 64, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 256, Context: 1024}
		c.Vocabulary = 1024
		c.Train.Warm.Updates, c.Train.Warm.Rate, c.Train.Warm.Advised = 3000, 3e-3, 0.8
		c.Train.Iterations, c.Train.Tasks, c.Train.Group, c.Train.Learn.Rate, c.Train.Evaluate = 12, 8, 8, 3e-4, 6
		if world == household {
			c.World.Sizes["valid"], c.World.Sizes["report"] = 128, 128
		}
	case "smoke": // seconds, to see that everything works
		c.Model = modelConfig{Width: 32, Layers: 1, Heads: 2, KVHeads: 2, Hidden: 64, Context: 768}
		c.Corpus = 50
		c.Train.Warm.Updates, c.Train.Warm.Round, c.Train.Warm.Tokens, c.Train.Warm.Rate = 100, 25, 1000, 6e-3
		c.Train.Iterations, c.Train.Tasks, c.Train.Group = 3, 2, 4
	case "pretrained": // a chat model that knows language, and the world from its guide alone
		c.Model = modelConfig{Context: 4096, Adapter: transformer.AdapterConfig{Rank: 16}, Recompute: true}
		if transformer.KernelBF16() != "generic" { // elsewhere it is slow
			c.Model.Precision = transformer.BFloat16
		}
		c.Train.Rollout.Guide, c.Train.Rollout.ActionTokens, c.Train.Rollout.ReviewTokens = true, 64, 256
		c.Train.Rollout.Recap, c.Train.Probe.Tasks = 12, 8
		c.Train.Warm.Updates, c.Train.Warm.Rate, c.Train.Learn.Rate, c.Train.Learn.Lambda = 200, 2e-4, 2e-5, publishedLambda
		c.Train.Warm.Compare = 0 // it is slow
		c.Train.Tasks, c.Train.Group = 4, 4
	case "server": // a model on a server, whose weights stay as they are: the bank is what improves
		c.Train.Frozen, c.Train.Warm.Updates, c.Train.Iterations = true, 0, 20
		c.Train.Rollout.Guide, c.Train.Rollout.ActionTokens, c.Train.Rollout.ReviewTokens, c.Train.Rollout.Recap = true, 256, 512, 12
		c.Train.Tasks, c.Train.Group = 8, 4
	case "distant": // a chat model whose adapter is trained on a server that speaks the Tinker API
		c.Model = modelConfig{Context: 8192, Adapter: transformer.AdapterConfig{Rank: 32}}
		c.Train.Rollout.Guide, c.Train.Rollout.ActionTokens, c.Train.Rollout.ReviewTokens, c.Train.Rollout.Recap = true, 256, 512, 12
		c.Train.Warm.Updates, c.Train.Warm.Compare, c.Train.Learn.Rate, c.Train.Learn.Lambda = 0, 0, 2e-5, publishedLambda
		c.Train.Tasks, c.Train.Group = 8, 8
	default:
		return c, fmt.Errorf("there is no preset %q: it is one of %s", name, strings.Join(presets, ", "))
	}
	if c.Train.Rollout.Guide { // what a chat model writes as a condition need not share a word with the goal
		c.Train.Rollout.RetrieveBy = skill.Ranked
	}
	if _, remote := c.World.remote(); remote {
		c.Train.Warm.Updates = 0 // no expert plays on somebody else's server
	}
	return c, nil
}

// publishedLambda is the release's weight of the review stream, for chat models. In a small policy reviews would take over each
// step (docs/method.md).
const publishedLambda = 0.2

// paper lays the paper's settings over others: signed utility, win weight 0.3, every edit judged whole and at no cost.
func (c *runConfig) paper() {
	c.published()
	c.Train.Probe = probe.Config{Tasks: 4, Alpha: 0.3, Efficiency: 1}
}

// copies suits a world where most of what is said is copied from pages far above: few wide heads that begin by copying, and no
// time for learning what stands on those pages.
func (c *runConfig) copies() {
	c.Model.Heads, c.Model.KVHeads, c.Model.Hidden, c.Model.Induction, c.Model.RopeBase = 2, 2, 256, true, 1e6
	c.Train.Warm.Observation = 0
}

// published is what paper and release have in common: eight tasks of eight episodes, all edits judged, no skill dropout, and
// the KL term of the scripts, by world.
func (c *runConfig) published() {
	c.Train.Tasks, c.Train.Group, c.Train.Retire.Dropout = 8, 8, 0
	c.Train.Rollout.RetrieveBy = skill.Ranked
	c.Train.Learn.Lambda, c.Train.Learn.KL = publishedLambda, 0.01
	if c.World.Name == realShop || c.World.Name == madeShop {
		c.Train.Learn.KL = 0.05
	}
}

// load lays a config file over c. Keys that are not known are an error.
func (c *runConfig) load(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := c.decode(b); err != nil {
		return fmt.Errorf("%s: %w (skillmaster train --print-config shows every key)", path, err)
	}
	return nil
}

func (c *runConfig) decode(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			return fmt.Errorf("%s cannot be a %s, it is a %s", t.Field, t.Value, t.Type)
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the config")
	}
	return nil
}

// set lays one key=value over c, the key as a path such as train.learn.rate.
func (c *runConfig) set(assignment string) error {
	key, value, ok := strings.Cut(assignment, "=")
	if !ok || key == "" {
		return fmt.Errorf("--set %s: write key=value, such as train.learn.rate=1e-4", assignment)
	}
	if !json.Valid([]byte(value)) {
		quoted, err := json.Marshal(value)
		if err != nil {
			return err
		}
		value = string(quoted)
	}
	path := strings.Split(key, ".")
	doc := value
	for i := len(path) - 1; i >= 0; i-- {
		name, err := json.Marshal(path[i])
		if err != nil {
			return err
		}
		doc = "{" + string(name) + ":" + doc + "}"
	}
	if err := c.decode([]byte(doc)); err != nil {
		return fmt.Errorf("--set %s: %w (skillmaster train --print-config shows every key)", assignment, err)
	}
	return nil
}

// JSON is the config as a file.
func (c runConfig) JSON() ([]byte, error) { return json.MarshalIndent(c, "", "  ") }
