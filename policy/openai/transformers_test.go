package openai

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/transformer"
)

// A model that was exported says the same behind `transformers serve` as in our engine, and what that server cannot do is
// refused. The server is one that testdata/python/transformers.sh starts; elsewhere this is not run.
func TestTransformersServe(t *testing.T) {
	url, dir := os.Getenv("SKILLMASTER_TRANSFORMERS_URL"), os.Getenv("SKILLMASTER_TRANSFORMERS_MODEL")
	if url == "" {
		t.Skip("no server: make transformers-python starts one")
	}
	c := client(t, Options{URL: url, Dialect: Generic, Model: dir, Limits: Limits{Patience: 5 * time.Minute}, Notice: func(text string) { t.Log(text) }})
	models, err := c.Models(t.Context())
	if err != nil || !slices.Contains(models, Model{ID: dir}) {
		t.Errorf("it lists %v, %v", models, err)
	}
	if _, err := c.Sampler(t.Context(), Weights{Context: 256}, nil); !errors.Is(err, ErrNotOffered) {
		t.Errorf("ids of a server of messages: %v", err)
	}
	there := c.Policy(3)
	if err := there.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(r *policy.Request){
		"top-k":    func(r *policy.Request) { r.Sampling.TopK = 5 },
		"a choice": func(r *policy.Request) { r.Allowed = []string{"look", "inventory"} },
		"stop ids": func(r *policy.Request) { r.Sampling.Stop = []int32{3} },
	} {
		r := asking("look", 0, 1)
		change(&r)
		if _, err := there.Complete(t.Context(), r); !errors.Is(err, ErrNotOffered) {
			t.Errorf("%s: %v", name, err)
		}
	}
	model, tok, template := exported(t, dir, "")
	here := policy.NewChat(model, tok, template)
	for _, said := range []string{
		"You are in the middle of a room. Your task is to: put a mug in desk.", "You see a desk 1.\n\nLook around.", "Nothing happens.", "größer – 日本",
	} {
		want, err := here.Complete(t.Context(), asking(said, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range template.Special() { // which a policy this small says in the middle of a reply, and the server leaves out
			want.Text = strings.ReplaceAll(want.Text, token, "")
		}
		got, err := there.Complete(t.Context(), asking(said, 0, 1))
		if err != nil || got.Text != want.Text || got.Stop != want.Stop || got.Version != 3 {
			t.Errorf("%s: got %q (%v), %v, want %q (%v)", said, got.Text, got.Stop, err, want.Text, want.Stop)
		}
		t.Logf("%q", got.Text)
	}
	texts := map[string]int{}
	for seed := range uint64(12) {
		for range 2 {
			got, err := there.Complete(t.Context(), asking("Look around.", 1, seed/2))
			if err != nil {
				t.Fatal(err)
			}
			texts[got.Text]++
		}
	}
	if len(texts) < 2 || len(texts) > 6 {
		t.Errorf("6 seeds, four times each, have %d texts: %v", len(texts), texts)
	}
}

func asking(said string, temperature float64, seed uint64) policy.Request {
	return policy.Request{
		Messages: []chat.Message{{Role: chat.System, Text: "Play."}, {Role: chat.User, Text: said}},
		Sampling: policy.Sampling{Temperature: temperature, MaxTokens: 24, Seed: seed},
	}
}

// exported is a model in a folder, with an adapter in another where one is named, in our engine.
func exported(t *testing.T, dir, adapter string) (*transformer.Sampler, *chat.Tokenizer, chat.Template) {
	t.Helper()
	m, err := transformer.ReadPretrained(t.Context(), dir, transformer.PretrainedOptions{Context: 512})
	if err == nil && adapter != "" {
		err = m.ReadAdapter(t.Context(), adapter)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := chat.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.TemplateFor(tok, "")
	if err != nil {
		t.Fatal(err)
	}
	s := m.Sampler(transformer.SamplerOptions{Workers: 1})
	t.Cleanup(func() { _ = s.Close() })
	return s, tok, template
}
