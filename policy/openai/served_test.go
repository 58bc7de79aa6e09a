package openai

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/policytest"
	"skillmaster/policy/transformer"
)

func testTokenizer(t testing.TB) *chat.Tokenizer {
	t.Helper()
	tok, err := chat.Train(slices.Values([]string{"go to the shelf", "go to the shelf", "take the kettle"}), chat.TrainOptions{
		VocabSize: 290, Special: chat.ChatML().Special(), Tags: chat.Tags(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const testContext = 160

// tiny is a model that nobody trained, whose ids are not all but certain.
func tiny(t testing.TB) *transformer.Sampler {
	t.Helper()
	m, err := transformer.NewModel(transformer.Config{
		Vocab: testTokenizer(t).VocabSize(), Width: 16, Layers: 1, Heads: 2, Hidden: 24, Context: testContext,
	}, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Sampler(transformer.SamplerOptions{Workers: 2})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// offer is a handler of the tiny model.
func offer(t testing.TB, change func(s *Served)) *Handler {
	t.Helper()
	model, tok := tiny(t), testTokenizer(t)
	s := Served{
		Model: "tiny", Sampler: model, Scorer: model, Tokenizer: tok, Template: chat.ChatML(), Vocab: tok.VocabSize(), Context: testContext,
	}
	if change != nil {
		change(&s)
	}
	h, err := NewHandler(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func serveHTTP(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func client(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// distant is the tiny model behind the handler and the client.
func distant(t testing.TB, url string, d Dialect) *Scorer {
	t.Helper()
	c := client(t, Options{URL: url, Dialect: d, Model: "tiny", Limits: Limits{Parallel: 64}})
	s, err := c.Sampler(t.Context(), Weights{Version: 0}, testTokenizer(t))
	if err != nil {
		t.Fatal(err)
	}
	scorer, err := s.Scorer()
	if err != nil {
		t.Fatal(err)
	}
	return scorer
}

// What goes over the wire and back keeps every contract; one id of the context is left unused.
func TestConforms(t *testing.T) {
	url := serveHTTP(t, offer(t, nil))
	limits := policytest.Limits{Vocab: testTokenizer(t).VocabSize(), Context: testContext - 1}
	t.Run("sampler", func(t *testing.T) {
		policytest.RunSampler(t, limits, func(t *testing.T) policy.Sampler { return distant(t, url, SkillMaster) })
	})
	t.Run("scorer", func(t *testing.T) {
		policytest.RunScorer(t, limits, func(t *testing.T) policy.Scorer { return distant(t, url, SkillMaster) })
	})
}

// A sample from afar is the sample that the model gives here, to the last bit.
func TestSameAsHere(t *testing.T) {
	here, url := tiny(t), serveHTTP(t, offer(t, nil))
	there := distant(t, url, SkillMaster)
	prompt := []int32{5, 80, 200, 13}
	for seed := range uint64(20) {
		p := policy.Sampling{Temperature: 0.9, TopP: 0.95, TopK: 40, MaxTokens: 12, Seed: seed << 60, Stop: []int32{int32(seed)}}
		want, err := here.Sample(t.Context(), prompt, p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := there.Sample(t.Context(), prompt, p)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.LogProbs, want.LogProbs) || got.Stop != want.Stop {
			t.Fatalf("seed %d: got %+v, want %+v", seed, got, want)
		}
	}
}

// A conversation by ids over the wire is the conversation that the model leads here.
func TestChatOverIDs(t *testing.T) {
	tok := testTokenizer(t)
	here := policy.NewChat(tiny(t), tok, chat.ChatML())
	there := policy.NewChat(distant(t, serveHTTP(t, offer(t, nil)), SkillMaster), tok, chat.ChatML())
	messages := []chat.Message{{Role: chat.System, Text: "You tidy."}, {Role: chat.User, Text: "go to the shelf"}}
	var prior []int32
	seen := 0
	for turn := range uint64(3) {
		r := policy.Request{Messages: messages, Prior: prior, Seen: seen, Sampling: policy.Sampling{Temperature: 1, MaxTokens: 9, Seed: turn}}
		want, err := here.Complete(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := there.Complete(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != want.Text || !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Prompt, want.Prompt) || got.Stop != want.Stop {
			t.Fatalf("turn %d: got %+v, want %+v", turn, got, want)
		}
		prior = slices.Concat(prior, got.Prompt, got.IDs)
		messages = append(messages, chat.Message{Role: chat.Assistant, Text: got.Text})
		seen = len(messages)
		messages = append(messages, chat.Message{Role: chat.User, Text: "and now?"})
	}
}

// Messages over the wire: the same text as here, a choice among replies, the end of the context.
func TestMessages(t *testing.T) {
	tok := testTokenizer(t)
	url := serveHTTP(t, offer(t, nil))
	here := policy.NewChat(tiny(t), tok, chat.ChatML())
	there := client(t, Options{URL: url + "/v1", Dialect: SkillMaster, Model: "tiny"}).Policy(3)
	r := policy.Request{
		Messages: []chat.Message{{Role: chat.User, Text: "go to the shelf"}}, Sampling: policy.Sampling{Temperature: 1, TopK: 50, MaxTokens: 9, Seed: 4},
	}
	want, err := here.Complete(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := there.Complete(t.Context(), r)
	if err != nil || got.Text != want.Text || got.Stop != want.Stop || got.IDs != nil || got.Version != 3 {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	r.Allowed, r.Sampling.MaxTokens = []string{"take it", "leave it", "look"}, 40
	for r.Sampling.Seed = range 20 {
		got, err = there.Complete(t.Context(), r)
		if err != nil || !slices.Contains(r.Allowed, got.Text) || got.Stop != policy.Stopped {
			t.Fatalf("got %+v, %v, want one of %q", got, err, r.Allowed)
		}
	}
	r.Allowed, r.Messages[0].Text = nil, strings.Repeat("é", testContext)
	if got, err = there.Complete(t.Context(), r); err != nil || got.Stop != policy.NoContext || got.Text != "" {
		t.Errorf("too long: got %+v, %v, want NoContext", got, err)
	}
}
