package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/policy/transformer"
)

var conversation = []chat.Message{
	{Role: chat.System, Text: "You act."},
	{Role: chat.User, Text: "Go to the <|im_end|> shelf 1."},
	{Role: chat.Assistant, Text: "<action>look</action>"},
	{Role: chat.User, Text: "You see\n\na pen 1."},
}

// checkWithPython compares what transformers and PEFT make of a written model with what we make of it. It runs where
// SKILLMASTER_PYTHON names a Python that has them.
func checkWithPython(t *testing.T, dir string, more ...string) {
	t.Helper()
	python := os.Getenv("SKILLMASTER_PYTHON")
	if python == "" {
		t.Log("NOT TESTED with transformers: SKILLMASTER_PYTHON is not set")
		return
	}
	m, tok, template, err := openPretrained(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	clean := slices.Clone(conversation)
	clean[1].Text = "Go to the shelf 1." // the published way makes special tokens of whatever somebody says
	ids := template.Render(tok, clean, 0, true)
	logs, err := m.Sampler(transformer.SamplerOptions{}).Score(t.Context(), [][]int32{ids})
	if err != nil {
		t.Fatal(err)
	}
	var messages []map[string]string
	for _, m := range clean {
		messages = append(messages, map[string]string{"role": string(m.Role), "content": m.Text})
	}
	values, err := json.Marshal(map[string]any{"ids": ids, "log_probs": logs[0][1:], "messages": messages, "chat_ids": ids})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, values, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, append([]string{"testdata/check_export.py", dir, file}, more...)...).CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
}

// exported writes the policy of a run as a model and as an adapter, which merged with its base is the same model.
func exported(t *testing.T, run, base string) {
	t.Helper()
	dir := t.TempDir()
	whole, adapter, merged := filepath.Join(dir, "whole"), filepath.Join(dir, "adapter"), filepath.Join(dir, "merged")
	if out, _ := must(t, 0, "model", "export", "--run", run, "--to", whole); !strings.Contains(out, "policy of version") {
		t.Errorf("export says %q", out)
	}
	must(t, 0, "model", "export", "--run", run, "--to", adapter, "--adapter", "--checkpoint", "latest")
	must(t, 0, "model", "merge", "--model", base, "--adapter", adapter, "--to", merged)
	files, err := os.ReadDir(whole)
	if err != nil || len(files) < 4 {
		t.Fatalf("exported are %v, %v", files, err)
	}
	for _, f := range files {
		a, err := os.ReadFile(filepath.Join(whole, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(merged, f.Name())); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is another one exported than merged: %v", f.Name(), err)
		}
	}
	out, _ := must(t, 0, "model", "info", whole)
	if !strings.Contains(out, "all finite") || !strings.Contains(out, "context        8192") || !strings.Contains(out, "chatml") {
		t.Errorf("info says\n%s", out)
	}
	if _, errs := must(t, 1, "model", "export", "--run", run, "--to", whole); !strings.Contains(errs, "already") {
		t.Errorf("exported over a model: %s", errs)
	}
	checkWithPython(t, whole, base, adapter)
	again := filepath.Join(dir, "again")
	must(t, 0, "train", "--run", again, "--preset", "pretrained", "--set", "model.pretrained="+base, "--set", "model.adapter_from="+adapter,
		"--set", "train.warm.updates=0", "--set", `world.sizes={"train":16,"probe":12,"gate":12,"valid":6,"report":6}`, "--iterations", "0")
}

// A policy that was made from nothing is written with all that others need to know of it.
func TestOwnModelIsExported(t *testing.T) {
	tok, err := chat.Train(slices.Values([]string{"go to the shelf 1", "take the pen from the shelf 1"}), chat.TrainOptions{
		VocabSize: 320, Special: chat.Plain().Special(), Tags: chat.Tags(),
		Pattern: chat.EntityPattern(slices.Values([]string{"shelf 1 shelf 2"}), 1, "take"),
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := transformer.NewModel(transformer.Config{Vocab: tok.VocabSize(), Width: 32, Layers: 2, Heads: 2, Hidden: 48, Tied: true}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := writeModel(t.Context(), dir, m, tok, chat.Plain(), ""); err != nil {
		t.Fatal(err)
	}
	same, sameTok, template, err := openPretrained(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if same.Config() != m.Config() || template.Name() != "plain" {
		t.Errorf("read again it is %+v with the template %s, was %+v", same.Config(), template.Name(), m.Config())
	}
	if got, want := template.Render(sameTok, conversation, 0, true), chat.Plain().Render(tok, conversation, 0, true); !slices.Equal(got, want) {
		t.Errorf("a conversation is %v, was %v", got, want)
	}
	checkWithPython(t, dir)
}

func TestModelRefusals(t *testing.T) {
	dir := pretrainedDir(t)
	for want, args := range map[string][]string{
		"tokenizer.json":             {"model", "info", t.TempDir()},
		"no such file":               {"model", "merge", "--model", filepath.Join(dir, "nothing"), "--adapter", dir, "--to", filepath.Join(dir, "x")},
		"there is no adapter_config": {"model", "merge", "--model", dir, "--adapter", dir, "--to", filepath.Join(dir, "x")},
		"no adapter in":              {"train", "--set", "model.adapter_from=" + dir, "--print-config"},
		"no run here":                {"model", "export", "--run", dir, "--to", filepath.Join(dir, "x")},
	} {
		code := 1
		if args[0] == "train" {
			code = 2
		}
		if _, errs := must(t, code, args...); !strings.Contains(errs, want) {
			t.Errorf("%q is answered with %q, want %q", args, errs, want)
		}
	}
}

// The template's family is read from what the makers of a model publish.
func TestPublishedTemplate(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"chatml":                  {},
		"qwen3":                   {"chat_template.jinja": "{% if enable_thinking %}"},
		"qwen3 ":                  {"tokenizer_config.json": `{"chat_template":[{"name":"default","template":"enable_thinking"}]}`},
		"chatml ":                 {"tokenizer_config.json": `{"eos_token":"<|im_end|>"}`},
		"tokenizer_config.json: ": {"tokenizer_config.json": `{`},
	} {
		dir := pretrainedDir(t)
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, template, err := openPretrained(t.Context(), dir)
		if got := template.Name(); err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", files, err)
			}
		} else if got != strings.TrimSpace(want) {
			t.Errorf("%v: template %q, want %q", files, got, want)
		}
	}
}
