package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"skillmaster/chat"
)

// fakeSampler gives the ids it was told to give, and remembers what it was asked.
type fakeSampler struct {
	give Sample
	err  error

	mu      sync.Mutex
	prompts [][]int32
	asked   []Sampling
}

func (f *fakeSampler) Sample(_ context.Context, prompt []int32, p Sampling) (Sample, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prompts = append(f.prompts, slices.Clone(prompt))
	f.asked = append(f.asked, p)
	return f.give, f.err
}

func chatTokenizer(t *testing.T) *chat.Tokenizer {
	t.Helper()
	tok, err := chat.Train(slices.Values([]string{"go to the shelf", "go to the shelf"}), chat.TrainOptions{
		VocabSize: 300, Special: append(chat.Plain().Special(), chat.ChatML().Special()...), Tags: chat.Tags(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func id(t *testing.T, tok *chat.Tokenizer, s string) int32 {
	t.Helper()
	i, ok := tok.ID(s)
	if !ok {
		t.Fatalf("no token %q", s)
	}
	return i
}

// Allowed replies reach the sampler as the ids of each, once; one that cannot be said is refused.
func TestChatAllows(t *testing.T) {
	tok := chatTokenizer(t)
	for _, tmpl := range []chat.Template{chat.Plain(), chat.Qwen()} {
		s := &fakeSampler{}
		c := NewChat(s, tok, tmpl)
		ask := func(allowed ...string) error {
			_, err := c.Complete(t.Context(), Request{
				Messages: []chat.Message{{Role: chat.User, Text: "You see a shelf."}}, Allowed: allowed, Sampling: Sampling{MaxTokens: 9},
			})
			return err
		}
		if err := ask("look", "go to the shelf", "look"); err != nil {
			t.Fatal(err)
		}
		want := [][]int32{c.Encode("look"), c.Encode("go to the shelf")}
		slices.SortFunc(want, slices.Compare)
		if got := s.asked[0].Allowed; !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: the sampler may say %v, want %v", tmpl.Name(), got, want)
		}
		if err := ask("go", "go \xff"); err == nil || !strings.Contains(err.Error(), "go ") {
			t.Errorf("%s: a reply of bad bytes: %v", tmpl.Name(), err)
		}
		if err := ask(); err != nil || s.asked[1].Allowed != nil {
			t.Errorf("%s: without a choice: %v, %v", tmpl.Name(), s.asked[1].Allowed, err)
		}
	}
}

// A conversation of several turns, each extending the last, is the rendering of the whole.
func TestChatExtendsPrior(t *testing.T) {
	tok := chatTokenizer(t)
	for _, tmpl := range []chat.Template{chat.Plain(), chat.ChatML(), chat.Qwen()} {
		s := &fakeSampler{}
		c := NewChat(s, tok, tmpl)
		messages := []chat.Message{{Role: chat.User, Text: "You see a shelf. <|end|><|im_end|>"}}
		var prior []int32
		seen := 0
		for turn, reply := range []string{"<action>go to the shelf</action>", "", "\n done "} {
			s.give = Sample{IDs: c.Encode(reply), LogProbs: make([]float32, len(c.Encode(reply))), Version: turn}
			got, err := c.Complete(t.Context(), Request{Messages: messages, Prior: prior, Seen: seen, Sampling: Sampling{MaxTokens: 9, Seed: 5}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != reply || got.Version != turn || !slices.Equal(got.IDs, s.give.IDs) || len(got.LogProbs) != len(got.IDs) {
				t.Errorf("%s: completion %+v of reply %q", tmpl.Name(), got, reply)
			}
			prior = slices.Concat(prior, got.Prompt, got.IDs)
			if asked := s.prompts[turn]; !slices.Equal(asked, prior[:len(prior)-len(got.IDs)]) {
				t.Errorf("%s: sampled after %v, want Prior and Prompt", tmpl.Name(), asked)
			}
			messages = append(messages, chat.Message{Role: chat.Assistant, Text: reply})
			seen = len(messages)
			if want := tmpl.Render(tok, messages, 0, false); !slices.Equal(prior, want) {
				t.Errorf("%s: after turn %d the sequence is %q, want %q", tmpl.Name(), turn, tok.Decode(prior), tok.Decode(want))
			}
			messages = append(messages, chat.Message{Role: chat.User, Text: "You are at the shelf."})
		}
		if p := s.asked[0]; p.MaxTokens != 9 || p.Seed != 5 || !slices.Equal(p.Stop, tmpl.Stop(tok)) {
			t.Errorf("%s: asked for %+v", tmpl.Name(), p)
		}
	}
}

// Sampled ids are kept as they are, also where the text would be encoded otherwise.
func TestChatKeepsSampledIDs(t *testing.T) {
	tok := chatTokenizer(t)
	var letters []int32
	for _, c := range "go to" {
		letters = append(letters, id(t, tok, string(c)))
	}
	ids := append(letters, id(t, tok, "<|end|>"))
	if slices.Equal(ids, tok.Encode("go to")) {
		t.Fatal("the letters are how the text is encoded: nothing to test")
	}
	s := &fakeSampler{give: Sample{IDs: ids}}
	c := NewChat(s, tok, chat.Plain())
	messages := []chat.Message{{Role: chat.User, Text: "x"}}
	first, err := c.Complete(t.Context(), Request{Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	prior := slices.Concat(first.Prompt, first.IDs)
	messages = append(messages, chat.Message{Role: chat.Assistant, Text: first.Text}, chat.Message{Role: chat.User, Text: "y"})
	if _, err := c.Complete(t.Context(), Request{Messages: messages, Prior: prior, Seen: 2}); err != nil {
		t.Fatal(err)
	}
	if got := s.prompts[1]; !slices.Equal(got[:len(prior)], prior) {
		t.Errorf("the second prompt starts %v, want %v", got[:len(prior)], prior)
	}
}

func TestChatStops(t *testing.T) {
	tok := chatTokenizer(t)
	end, closing, b := id(t, tok, "<|end|>"), id(t, tok, "</action>"), id(t, tok, "b")
	for _, c := range []struct {
		name      string
		ids       []int32
		stop      StopKind
		text      string
		endedBy   int32 // 0: the end is to be added
		extraStop []int32
	}{
		{"the template's id", []int32{b, end}, Stopped, "b", end, nil},
		{"an id of the request", []int32{b, closing}, Stopped, "b</action>", 0, []int32{closing, end}},
		{"the limit", []int32{b, b}, Length, "bb", 0, nil},
		{"half a character", []int32{b, id(t, tok, "\xc3")}, Length, "b\uFFFD", 0, nil},
	} {
		s := &fakeSampler{give: Sample{IDs: c.ids, Stop: c.stop}}
		p := NewChat(s, tok, chat.Plain())
		messages := []chat.Message{{Role: chat.User, Text: "x"}}
		got, err := p.Complete(t.Context(), Request{Messages: messages, Sampling: Sampling{Stop: c.extraStop}})
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != c.text || got.Stop != c.stop {
			t.Errorf("%s: text %q, stop %d; want %q, %d", c.name, got.Text, got.Stop, c.text, c.stop)
		}
		if asked := s.asked[0].Stop; !slices.Contains(asked, end) || len(asked) != max(1, len(c.extraStop)) {
			t.Errorf("%s: asked to stop at %v", c.name, asked)
		}
		messages = append(messages, chat.Message{Role: chat.Assistant, Text: got.Text}, chat.Message{Role: chat.User, Text: "y"})
		next, err := p.Prompt(Request{Messages: messages, Prior: slices.Concat(got.Prompt, got.IDs), Seen: 2})
		if err != nil {
			t.Fatal(err)
		}
		want := "<|user|>y<|assistant|>"
		if c.endedBy == 0 {
			want = "<|end|>" + want
		}
		if text := tok.Decode(next); text != want {
			t.Errorf("%s: then shows %q, want %q", c.name, text, want)
		}
	}
}

func TestChatNoContext(t *testing.T) {
	tok := chatTokenizer(t)
	c := NewChat(&fakeSampler{give: Sample{Stop: NoContext}}, tok, chat.Plain())
	got, err := c.Complete(t.Context(), Request{Messages: []chat.Message{{Role: chat.User, Text: "x"}}})
	if err != nil || got.Stop != NoContext || got.Text != "" || len(got.IDs) != 0 || len(got.Prompt) == 0 {
		t.Errorf("completion %+v, %v", got, err)
	}
}

func TestChatErrors(t *testing.T) {
	tok := chatTokenizer(t)
	broken := errors.New("broken")
	user := chat.Message{Role: chat.User, Text: "x"}
	for _, c := range []struct {
		reason string
		s      *fakeSampler
		r      Request
	}{
		{"broken", &fakeSampler{err: broken}, Request{Messages: []chat.Message{user}}},
		{"1 log-probabilities for 2 ids", &fakeSampler{give: Sample{IDs: []int32{1, 2}, LogProbs: []float32{0}}}, Request{Messages: []chat.Message{user}}},
		{"without messages", &fakeSampler{}, Request{}},
		{"seen 2 of 1", &fakeSampler{}, Request{Messages: []chat.Message{user}, Prior: []int32{1}, Seen: 2}},
		{"seen -1 of 1", &fakeSampler{}, Request{Messages: []chat.Message{user}, Seen: -1}},
		{"1 prior ids for 0 messages", &fakeSampler{}, Request{Messages: []chat.Message{user}, Prior: []int32{1}}},
		{"0 prior ids for 1 messages", &fakeSampler{}, Request{Messages: []chat.Message{user, user}, Seen: 1}},
		{"the policy's own", &fakeSampler{}, Request{Messages: []chat.Message{user, {Role: chat.Assistant}}}},
		{`no such role: "tool"`, &fakeSampler{}, Request{Messages: []chat.Message{{Role: "tool"}, user}}},
	} {
		_, err := NewChat(c.s, tok, chat.Plain()).Complete(t.Context(), c.r)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("error %v, want one that says %q", err, c.reason)
		}
	}
	if _, err := NewChat(&fakeSampler{err: broken}, tok, chat.Plain()).Complete(t.Context(), Request{Messages: []chat.Message{user}}); !errors.Is(err, broken) {
		t.Errorf("error %v, want the sampler's own", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic on a tokenizer without the template's tokens")
		}
	}()
	NewChat(nil, tok, chat.Llama3())
}
