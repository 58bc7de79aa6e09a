package openai

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skillmaster/policy"
)

// llama.cpp takes and gives the ids and log-probabilities of our engine for the same weights, and chooses among admissible
// actions; what it cannot do is refused. The server is one that testdata/python/llamacpp.sh starts; elsewhere this is not
// run.
func TestLlamaCPPServer(t *testing.T) {
	url, dir := os.Getenv("SKILLMASTER_LLAMACPP_URL"), os.Getenv("SKILLMASTER_LLAMACPP_MODEL")
	if url == "" {
		t.Skip("no server: make llamacpp-python starts one")
	}
	c := client(t, Options{URL: url, Dialect: LlamaCPP, Model: "base", Limits: Limits{Patience: 5 * time.Minute}, Notice: func(text string) { t.Log(text) }})
	here, tok, template := exported(t, dir, "")
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

// sameSamples compares samples with what our engine makes of the same prompt: greedy ids, and log-probabilities, which may
// be so far apart. Samples that llama.cpp has not all log-probabilities of are left out, and told.
func sameSamples(t *testing.T, there *Sampler, here interface {
	policy.Sampler
	policy.Scorer
}, prompt []int32, tolerance float64) {
	t.Helper()
	greedy := policy.Sampling{MaxTokens: 24}
	want, err := here.Sample(t.Context(), prompt, greedy)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := there.Sample(t.Context(), prompt, greedy); err != nil || !slices.Equal(got.IDs, want.IDs) {
		t.Errorf("greedy: %v, %v, here %v", got.IDs, err, want.IDs)
	}
	whole, stops, most := 0, 0, 0.0
	for seed := range uint64(8) {
		p := policy.Sampling{Temperature: 1, MaxTokens: 48, Seed: seed, Stop: want.IDs[12:]}
		got, err := there.Sample(t.Context(), prompt, p)
		if err != nil && strings.Contains(err.Error(), "leaves them out") {
			t.Logf("seed %d: %v", seed, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		whole++
		again, err := there.Sample(t.Context(), prompt, p)
		if err != nil || !slices.Equal(again.IDs, got.IDs) {
			t.Errorf("seed %d: %v and then %v, %v", seed, got.IDs, again.IDs, err)
		}
		rows := scored(t, here, [][]int32{slices.Concat(prompt, got.IDs)})
		d := furthest(got.LogProbs, rows[0][len(prompt):])
		if most = max(most, d); d > tolerance || got.Version != 3 || (got.Stop == policy.Stopped) != slices.Contains(p.Stop, got.IDs[len(got.IDs)-1]) {
			t.Errorf("seed %d: %+v, here %v", seed, got, rows[0][len(prompt):])
		}
		if got.Stop == policy.Stopped {
			stops++
		}
	}
	if whole < 4 || stops == 0 {
		t.Errorf("%d samples, %d of them stopped: the test shows less than it should", whole, stops)
	}
	t.Logf("%d samples, %d of them stopped: log-probabilities are at most %.2g apart", whole, stops, most)
}

// sameReplies compares what is said to messages: a choice among admissible actions, and a greedy reply.
func sameReplies(t *testing.T, c *Client, here policy.Policy) {
	t.Helper()
	there := c.Policy(3)
	if err := there.Check(t.Context()); err != nil {
		t.Error(err)
	}
	r := asking("Look around.", 1, 0)
	r.Sampling.MaxTokens = 96
	r.Allowed = []string{"take mug 1 from desk 2", "go to desk 1", `say "é" \ 5`}
	said := map[string]int{}
	for r.Sampling.Seed = range uint64(24) {
		got, err := there.Complete(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		said[got.Text]++
	}
	t.Logf("of admissible actions: %v", said)
	r = asking("Look around.", 0, 0)
	want, err := here.Complete(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := there.Complete(t.Context(), r); err != nil || strings.TrimSpace(got.Text) != strings.TrimSpace(want.Text) || got.Stop != want.Stop {
		t.Errorf("greedy reply %q (%v), %v, here %q (%v)", got.Text, got.Stop, err, want.Text, want.Stop)
	} else {
		t.Logf("greedy reply: %q", got.Text)
	}
	if got, err := there.Complete(t.Context(), asking(strings.Repeat("go to desk 1. ", 4000), 0, 0)); err != nil || got.Stop != policy.NoContext {
		t.Errorf("more than the context holds: %+v, %v", got, err)
	}
}

func scored(t *testing.T, s policy.Scorer, rows [][]int32) [][]float32 {
	t.Helper()
	out, err := s.Score(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// furthest is the largest difference of two rows of the same length; of others, it is infinite.
func furthest(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most := 0.0
	for i := range a {
		most = max(most, math.Abs(float64(a[i]-b[i])))
	}
	return most
}
