package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skillmaster/chat"
)

// Chat is the Policy of a Sampler: it renders messages as ids, samples, and reads the ids as text. Safe for concurrent
// use.
type Chat struct {
	sampler  Sampler
	tok      *chat.Tokenizer
	template chat.Template
	stop     []int32 // of the template; the first ends a message
}

var _ Policy = (*Chat)(nil)

// NewChat returns the policy that speaks through s. It panics if the tokenizer lacks a special token of the template;
// Template.Check says so beforehand.
func NewChat(s Sampler, tok *chat.Tokenizer, t chat.Template) *Chat {
	if err := t.Check(tok); err != nil {
		panic(err)
	}
	return &Chat{sampler: s, tok: tok, template: t, stop: t.Stop(tok)}
}

// Complete samples the next message. Prior goes before the new ids as it is; Completion.IDs are as they were sampled,
// the stop id included, and Text is what they say without the template's stop id: a stop id that the request names is
// part of the text. Bytes that are not UTF-8 appear as U+FFFD in Text.
func (c *Chat) Complete(ctx context.Context, r Request) (Completion, error) {
	shown, err := c.Prompt(r)
	if err != nil {
		return Completion{}, err
	}
	p := r.Sampling
	if p.Allowed, err = c.allowed(r.Allowed); err != nil {
		return Completion{}, err
	}
	p.Stop = slices.Clone(c.stop)
	for _, id := range r.Sampling.Stop {
		if !slices.Contains(p.Stop, id) {
			p.Stop = append(p.Stop, id)
		}
	}
	s, err := c.sampler.Sample(ctx, slices.Concat(r.Prior, shown), p)
	if err != nil {
		return Completion{}, err
	}
	if s.LogProbs != nil && len(s.LogProbs) != len(s.IDs) {
		return Completion{}, fmt.Errorf("the sampler gave %d log-probabilities for %d ids", len(s.LogProbs), len(s.IDs))
	}
	return Completion{
		Text: c.Text(s.IDs), Prompt: shown, IDs: s.IDs, LogProbs: s.LogProbs, Stop: s.Stop, Version: s.Version,
	}, nil
}

// allowed are the id sequences of replies, each once.
func (c *Chat) allowed(replies []string) ([][]int32, error) {
	var all [][]int32
	for _, text := range replies {
		ids := c.Encode(text)
		if c.Text(ids) != text || slices.ContainsFunc(ids[:len(ids)-1], func(id int32) bool { return slices.Contains(c.stop, id) }) {
			return nil, fmt.Errorf("the policy cannot say %q: the tokenizer would make another text of it", text)
		}
		all = append(all, ids)
	}
	slices.SortFunc(all, slices.Compare)
	return slices.CompactFunc(all, slices.Equal), nil
}

// Prompt returns the ids that Complete would show after Prior, the start of the reply included. Where what the policy
// said last was cut off before its stop id, they begin with that id.
func (c *Chat) Prompt(r Request) ([]int32, error) {
	switch {
	case len(r.Messages) == 0:
		return nil, errors.New("a request without messages")
	case r.Seen < 0 || r.Seen > len(r.Messages):
		return nil, fmt.Errorf("a request that has seen %d of %d messages", r.Seen, len(r.Messages))
	case (r.Seen == 0) != (len(r.Prior) == 0):
		return nil, fmt.Errorf("a request with %d prior ids for %d messages", len(r.Prior), r.Seen)
	case r.Messages[len(r.Messages)-1].Role == chat.Assistant:
		return nil, errors.New("a request whose last message is the policy's own")
	}
	for i, m := range r.Messages {
		if m.Role != chat.System && m.Role != chat.User && m.Role != chat.Assistant {
			return nil, fmt.Errorf("message %d has no such role: %q", i, m.Role)
		}
	}
	var ids []int32
	if r.Seen > 0 && r.Messages[r.Seen-1].Role == chat.Assistant && !slices.Contains(c.stop, r.Prior[len(r.Prior)-1]) {
		ids = append(ids, c.stop[0])
	}
	return append(ids, c.template.Render(c.tok, r.Messages, r.Seen, true)...), nil
}

// Encode returns the ids a policy would have sampled to say text, the stop id included: for replies that somebody else
// wrote, such as an expert's.
func (c *Chat) Encode(text string) []int32 { return c.template.Reply(c.tok, text) }

// Text returns what sampled ids say, without the template's stop id at their end.
func (c *Chat) Text(ids []int32) string {
	if n := len(ids); n > 0 && slices.Contains(c.stop, ids[n-1]) {
		ids = ids[:n-1]
	}
	return strings.ToValidUTF8(c.tok.Decode(ids), "\uFFFD")
}
