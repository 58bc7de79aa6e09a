package openai

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"skillmaster/policy"
)

// A model that was exported says the same behind `transformers serve` as in our engine, and what that server cannot do is
// refused. The server is one that testdata/python/transformers.sh starts; elsewhere this is not run.
func TestTransformersServe(t *testing.T) {
	dir := os.Getenv("SKILLMASTER_TRANSFORMERS_MODEL")
	c := foreign(t, "transformers", Generic, dir)
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
