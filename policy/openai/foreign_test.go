package openai

import (
	"math"
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

// foreign is a client of a server that is not ours, which make NAME-python starts; without one the test is skipped.
func foreign(t *testing.T, name string, d Dialect, model string) *Client {
	t.Helper()
	url := os.Getenv("SKILLMASTER_" + strings.ToUpper(name) + "_URL")
	if url == "" {
		t.Skipf("no server: make %s-python starts one", name)
	}
	return client(t, Options{URL: url, Dialect: d, Model: model, Limits: Limits{Patience: 5 * time.Minute}, Notice: func(text string) { t.Log(text) }})
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

// sameScores compares the log-probabilities of rows.
func sameScores(t *testing.T, what string, there *Sampler, here policy.Scorer, rows [][]int32) {
	t.Helper()
	s, err := there.Scorer()
	if err != nil {
		t.Fatal(err)
	}
	got, want := scored(t, s, rows), scored(t, here, rows)
	if d := furthest(slices.Concat(got...), slices.Concat(want...)); d > 1e-3 {
		t.Errorf("%s: log-probabilities are up to %v apart", what, d)
	} else {
		t.Logf("%s: log-probabilities are at most %.2g apart", what, d)
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
