package openai

import (
	"errors"
	"os"
	"slices"
	"testing"

	"skillmaster/policy"
)

// llama.cpp takes and gives the ids and log-probabilities of our engine for the same weights, and chooses among admissible
// actions; what it cannot do is refused. The server is one that testdata/python/llamacpp.sh starts; elsewhere this is not
// run.
func TestLlamaCPPServer(t *testing.T) {
	c := foreign(t, "llamacpp", LlamaCPP, "base")
	here, tok, template := exported(t, os.Getenv("SKILLMASTER_LLAMACPP_MODEL"), "")
	there, err := c.Sampler(t.Context(), Weights{Version: 3}, tok)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Scorer(); !errors.Is(err, ErrNotOffered) {
		t.Errorf("log-probabilities of given ids: %v", err)
	}
	prompt := tok.Encode("You are in the middle of a room. Looking around you, you see")
	sameSamples(t, there, here, prompt, 1e-2) // its attention computes with 16 bits
	sameReplies(t, c, policy.NewChat(here, tok, template))
	if got, err := there.Sample(t.Context(), slices.Repeat(prompt, 400), policy.Sampling{MaxTokens: 4}); err != nil || got.Stop != policy.NoContext {
		t.Errorf("more than the context holds: %+v, %v", got, err)
	}
	cut, err := there.Sample(t.Context(), slices.Repeat(prompt, 400)[:there.Context()-2], policy.Sampling{MaxTokens: 4})
	if err != nil || cut.Stop != policy.NoContext || len(cut.IDs) != 2 {
		t.Errorf("a context with room for two ids: %+v, %v", cut, err)
	}
}
