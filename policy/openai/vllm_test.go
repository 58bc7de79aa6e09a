package openai

import (
	"os"
	"slices"
	"testing"

	"skillmaster/policy"
)

// vLLM takes and gives the ids and log-probabilities of our engine for a model that was exported, chooses among admissible
// actions, and loads an adapter while it runs. The server is one that testdata/python/vllm.sh starts; elsewhere this is not
// run.
func TestVLLM(t *testing.T) {
	c := foreign(t, "vllm", VLLM, "tiny")
	dir, adapter := os.Getenv("SKILLMASTER_VLLM_MODEL"), os.Getenv("SKILLMASTER_VLLM_ADAPTER")
	here, tok, template := exported(t, dir, "")
	there, err := c.Sampler(t.Context(), Weights{Version: 3}, tok)
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]int32{tok.Encode("You are in the middle of a room. Looking around you, you see"), tok.Encode("take mug 1 from desk 2"), tok.Encode("größer – 日本")}
	sameScores(t, "the model", there, here, rows)

	sameSamples(t, there, here, rows[0], 1e-3)
	sameReplies(t, c, policy.NewChat(here, tok, template))

	if err := c.LoadAdapter(t.Context(), "later", adapter); err != nil {
		t.Fatal(err)
	}
	tuned, _, _ := exported(t, dir, adapter)
	adapted, err := c.Sampler(t.Context(), Weights{Adapter: "later", Version: 4}, tok)
	if err != nil {
		t.Fatal(err)
	}
	sameScores(t, "the adapter", adapted, tuned, rows)
	a, b := scored(t, here, rows), scored(t, tuned, rows)
	if furthest(slices.Concat(a...), slices.Concat(b...)) < 0.1 {
		t.Error("the adapter changes nothing: the test shows nothing")
	}
	if err := c.LoadAdapter(t.Context(), "later", adapter); err == nil {
		t.Error("a name was taken twice")
	}
	if err := c.UnloadAdapter(t.Context(), "later"); err != nil {
		t.Fatal(err)
	}
	if _, err := adapted.Sample(t.Context(), rows[0], policy.Sampling{MaxTokens: 4}); err == nil {
		t.Error("an adapter that is gone answers")
	}
	sameScores(t, "the model, afterwards", there, here, rows)
}
