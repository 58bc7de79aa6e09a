package policytest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"skillmaster/chat"
	"skillmaster/policy"
)

func say(text string) func(context.Context, policy.Request) (string, error) {
	return func(context.Context, policy.Request) (string, error) { return text, nil }
}

func TestScriptOfMessages(t *testing.T) {
	s := Lines("one", "two")
	for _, want := range []string{"one", "two"} {
		c, err := s.Complete(t.Context(), policy.Request{Messages: []chat.Message{{Role: chat.User, Text: "go on"}}})
		if err != nil || c.Text != want || c.IDs != nil || c.Prompt != nil || c.LogProbs != nil {
			t.Errorf("got %+v, %v; want the text %q and no ids", c, err, want)
		}
	}
	if c, err := s.Complete(t.Context(), policy.Request{}); err == nil {
		t.Errorf("after the last line got %+v, want an error", c)
	}
	if got := len(s.Requests()); got != 3 {
		t.Errorf("got %d requests, want 3", got)
	}
}

func TestScriptOfIDs(t *testing.T) {
	s := &Script{Say: say("look"), IDs: true, LogProb: -0.5, Version: 3}
	first := []chat.Message{{Role: chat.System, Text: "be"}, {Role: chat.User, Text: "hi"}}
	r := policy.Request{Messages: first, Sampling: policy.Sampling{MaxTokens: 9}}
	c, err := s.Complete(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{System, 'b', 'e', End, User, 'h', 'i', End, Assistant}; !slices.Equal(c.Prompt, want) {
		t.Errorf("got prompt %v, want %v", c.Prompt, want)
	}
	if want := []int32{'l', 'o', 'o', 'k', End}; !slices.Equal(c.IDs, want) || len(c.LogProbs) != len(want) || c.LogProbs[4] != -0.5 {
		t.Errorf("got ids %v with %v, want %v", c.IDs, c.LogProbs, want)
	}
	if c.Text != "look" || c.Stop != policy.Stopped || c.Version != 3 {
		t.Errorf("got %+v", c)
	}

	r.Prior, r.Seen = append(c.Prompt, c.IDs...), 3
	r.Messages = append(first, chat.Message{Role: chat.Assistant, Text: "look"}, chat.Message{Role: chat.User, Text: "a"})
	if c, err = s.Complete(t.Context(), r); err != nil || !slices.Equal(c.Prompt, []int32{User, 'a', End, Assistant}) {
		t.Errorf("got prompt %v, %v; want only what was not seen", c.Prompt, err)
	}
}

func TestScriptLimits(t *testing.T) {
	r := policy.Request{Messages: []chat.Message{{Role: chat.User, Text: "hi"}}, Sampling: policy.Sampling{MaxTokens: 2}}
	for _, c := range []struct {
		name    string
		context int
		text    string
		stop    policy.StopKind
	}{
		{"most tokens", 0, "lo", policy.Length},
		{"little context", 6, "l", policy.NoContext},
		{"no context", 3, "", policy.NoContext},
	} {
		s := &Script{Say: say("look"), IDs: true, Context: c.context}
		got, err := s.Complete(t.Context(), r)
		if err != nil || got.Text != c.text || got.Stop != c.stop || len(got.IDs) != len(c.text) {
			t.Errorf("%s: got %+v, %v; want %q and stop %d", c.name, got, err, c.text, c.stop)
		}
	}
	s := &Script{Say: say("look"), IDs: true}
	if got, err := s.Complete(t.Context(), policy.Request{}); err == nil {
		t.Errorf("a request for no tokens got %+v, want an error", got)
	}
}

func TestScriptHonoursCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Script{Say: say("look")}
	if _, err := s.Complete(ctx, policy.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
