// Package policytest holds what tests of policies and their users need: a scripted policy, and conformance suites for
// policy.Sampler, policy.Scorer and policy.Learner.
package policytest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"skillmaster/chat"
	"skillmaster/policy"
)

// The ids of the byte tokenizer beyond the bytes 0…255.
const (
	End       int32             = 256 + iota // ends every message
	System                                   // begins a system message
	User                                     // begins a user message
	Assistant                                // begins an assistant message
	Vocab     = int(iota) + 256              // the number of ids
)

// Script is a policy that says what a function tells it to. Its zero value is of no use: Say must be set. Safe for
// concurrent use if Say is; the fields are not to be changed once it is in use.
type Script struct {
	// Say returns the reply to a request. An error is returned as it is.
	Say func(ctx context.Context, r policy.Request) (string, error)
	// IDs makes Complete return token ids of the byte tokenizer, with log-probability LogProb each, and obey Prior,
	// MaxTokens and Context. Without it the policy is one of messages only.
	IDs     bool
	LogProb float32 // of every sampled id
	Context int     // most ids of a conversation; 0: no limit
	Version int     // of every completion

	mu       sync.Mutex
	requests []policy.Request
}

var _ policy.Policy = (*Script)(nil)

// Lines is a Script whose replies are the given lines in the order of the requests, whatever they say; after the last
// line it fails. Call it from one goroutine, or expect the lines in the order of arrival.
func Lines(lines ...string) *Script {
	var mu sync.Mutex
	next := 0
	return &Script{Say: func(context.Context, policy.Request) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(lines) {
			return "", fmt.Errorf("the script has %d lines and was asked for one more", len(lines))
		}
		next++
		return lines[next-1], nil
	}}
}

// Complete answers with what Say says.
func (s *Script) Complete(ctx context.Context, r policy.Request) (policy.Completion, error) {
	if err := ctx.Err(); err != nil {
		return policy.Completion{}, err
	}
	s.record(r)
	text, err := s.Say(ctx, r)
	if err != nil {
		return policy.Completion{}, err
	}
	if len(r.Allowed) > 0 && !slices.Contains(r.Allowed, text) {
		return policy.Completion{}, fmt.Errorf("the script says %q, the request allows %q", text, r.Allowed)
	}
	if !s.IDs {
		return policy.Completion{Text: text, Stop: policy.Stopped, Version: s.Version}, nil
	}
	return s.complete(r, text)
}

// Requests returns what was asked so far, in the order of arrival.
func (s *Script) Requests() []policy.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Script) record(r policy.Request) {
	r.Messages, r.Prior = slices.Clone(r.Messages), slices.Clone(r.Prior)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

func (s *Script) complete(r policy.Request, text string) (policy.Completion, error) {
	if r.Seen < 0 || r.Seen > len(r.Messages) {
		return policy.Completion{}, fmt.Errorf("request says %d of %d messages were seen", r.Seen, len(r.Messages))
	}
	if r.Sampling.MaxTokens <= 0 {
		return policy.Completion{}, fmt.Errorf("request allows %d tokens, at least 1 is needed", r.Sampling.MaxTokens)
	}
	c := policy.Completion{Prompt: Prompt(r.Messages[r.Seen:]), Version: s.Version, Stop: policy.Stopped}
	most, full := r.Sampling.MaxTokens, policy.Length
	if room := s.Context - len(r.Prior) - len(c.Prompt); s.Context > 0 && room < most {
		most, full = max(room, 0), policy.NoContext
	}
	c.IDs = append(Bytes(text), End)
	if len(c.IDs) > most {
		c.IDs, c.Stop = c.IDs[:most], full
	}
	c.Text = Text(c.IDs)
	c.LogProbs = slices.Repeat([]float32{s.LogProb}, len(c.IDs))
	return c, nil
}

// Prompt lays messages out as ids of the byte tokenizer, each as its role, its bytes and End, then Assistant. A role
// there is no id for panics.
func Prompt(messages []chat.Message) []int32 {
	roles := map[chat.Role]int32{chat.System: System, chat.User: User, chat.Assistant: Assistant}
	var ids []int32
	for _, m := range messages {
		role, known := roles[m.Role]
		if !known {
			panic(fmt.Sprintf("policytest: no id for role %q", m.Role))
		}
		ids = append(append(append(ids, role), Bytes(m.Text)...), End)
	}
	return append(ids, Assistant)
}

// Bytes returns the ids of a text: its bytes.
func Bytes(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}

// Text returns the text of ids, leaving out those that are not bytes.
func Text(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		if id >= 0 && id < 256 {
			b.WriteByte(byte(id))
		}
	}
	return b.String()
}
