package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/policy/transformer"
)

// pretrainedDir is a small model as Hugging Face's libraries keep one, with its tokenizer.
func pretrainedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tok, err := chat.Train(slices.Values([]string{"go to the shelf 1", "take the pen from the shelf 1"}), chat.TrainOptions{
		VocabSize: 320, Special: chat.ChatML().Special(), Tags: chat.Tags(),
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := transformer.NewModel(transformer.Config{
		Vocab: tok.VocabSize() + 7, Width: 32, Layers: 2, Heads: 2, Hidden: 48, Context: 8192, Tied: true, QKNorm: true,
	}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.WritePretrained(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A pretrained model is trained through an adapter, resumed and evaluated; its directory stays as it was.
func TestPretrainedRun(t *testing.T) {
	model := pretrainedDir(t)
	before, err := os.ReadFile(filepath.Join(model, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	must(t, 0, "train", "--run", dir, "--preset", "pretrained", "--set", "model.pretrained="+model, "--set", "model.adapter.rank=2",
		"--set", "train.warm.updates=4", "--set", "train.warm.round=2", "--set", "train.warm.tokens=800", "--set", "train.tasks=2",
		"--set", "train.group=2", "--set", "train.learn.kl=0.1", "--set", `world.sizes={"train":16,"probe":12,"gate":12,"valid":6,"report":6}`,
		"--set", "train.rollout.action_tokens=8", "--set", "train.rollout.review_tokens=8", "--iterations", "1")
	must(t, 0, "train", "--run", dir, "--resume")
	out, _ := must(t, 0, "eval", "--run", dir, "--decoding", "constrained")
	if !strings.Contains(out, "constrained decoding") {
		t.Errorf("eval says %q", out)
	}
	after, err := os.ReadFile(filepath.Join(model, "model.safetensors"))
	if err != nil || !slices.Equal(after, before) {
		t.Errorf("the pretrained model was written to: %v", err)
	}
	checkpoints, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*.safetensors"))
	if err != nil || len(checkpoints) == 0 {
		t.Fatalf("no checkpoints: %v", err)
	}
	for _, path := range checkpoints {
		if info, err := os.Stat(path); err != nil || info.Size() > int64(len(before)) {
			t.Errorf("%s is larger than the model it adapts: %v", path, err)
		}
	}
	exported(t, dir, model)
}

func TestPretrainedRefusals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, errs := must(t, 2, "train", "--run", dir, "--preset", "pretrained")
	if !strings.Contains(errs, "model.pretrained=DIR") {
		t.Errorf("no directory: %s", errs)
	}
	_, errs = must(t, 2, "train", "--run", dir, "--preset", "pretrained", "--set", "model.pretrained="+t.TempDir())
	if !strings.Contains(errs, "config.json") {
		t.Errorf("an empty directory: %s", errs)
	}
	model := pretrainedDir(t)
	tok, err := chat.Train(slices.Values([]string{"go"}), chat.TrainOptions{VocabSize: 280, Special: []string{"<s>"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(model, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tok.Save(f); err != nil {
		t.Fatal(err)
	}
	_, errs = must(t, 1, "train", "--run", dir, "--preset", "pretrained", "--set", "model.pretrained="+model)
	if !strings.Contains(errs, "chat template") {
		t.Errorf("a tokenizer without roles: %s", errs)
	}
}
