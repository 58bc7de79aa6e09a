package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"skillmaster/chat"
	"skillmaster/policy"
	"skillmaster/policy/remote"
)

// Policy is the policy behind a server's /v1/chat/completions: messages in, text out. Its completions have no ids, so
// nothing can be learnt from them; it evaluates, and finds skills with fixed weights. Safe for concurrent use.
//
// Sampling.TopK and Request.Allowed work where the server has them, and are refused elsewhere, as are stop ids.
type Policy struct {
	client  *Client
	version int
}

var _ policy.Policy = (*Policy)(nil)

// Policy returns the client's model as a policy of messages whose completions carry the version.
func (c *Client) Policy(version int) *Policy { return &Policy{c, version} }

// Complete implements policy.Policy. A conversation that the server says is too long is the completion {Stop:
// policy.NoContext}; a reply without text is an error.
func (p *Policy) Complete(ctx context.Context, r policy.Request) (policy.Completion, error) {
	body, err := p.body(r)
	if err != nil {
		return policy.Completion{}, err
	}
	out := policy.Completion{Version: p.version}
	err = p.client.call(ctx, request{
		method: http.MethodPost, path: "/v1/chat/completions", body: body,
		most: usage{longest(r.Messages), int64(r.Sampling.MaxTokens)},
		read: func(reply []byte) (spent usage, err error) {
			out.Text, out.Stop, spent, err = p.read(reply, r)
			return spent, err
		},
	})
	if p.full(err) {
		p.client.ledger.count(func(s *Spent) { s.Failed, s.Requests = s.Failed-1, s.Requests+1 })
		return policy.Completion{Stop: policy.NoContext, Version: p.version}, nil
	}
	if err != nil {
		return policy.Completion{}, err
	}
	return out, nil
}

// checkedIDs is the most ids of a reply that Check asks for.
const checkedIDs = 64

// Check asks for a short reply, and, where the dialect has a guided choice, for one of two replies that no model would
// think of. Call it at the start: a server passes over a field it does not know, and nobody would notice.
func (p *Policy) Check(ctx context.Context) error {
	r := policy.Request{Messages: []chat.Message{{Role: chat.User, Text: "Say hello."}}, Sampling: policy.Sampling{Temperature: 1, MaxTokens: checkedIDs}}
	if _, err := p.Complete(ctx, r); err != nil {
		return fmt.Errorf("checking the server: %w", err)
	}
	if p.client.dialect.guided.ask == nil {
		return nil
	}
	r.Allowed = []string{"<b>qx-17</b>", "<b>zw-40</b>"}
	if _, err := p.Complete(ctx, r); err != nil {
		return fmt.Errorf("checking the server's guided choice: %w", err)
	}
	return nil
}

// longest is more ids than any tokenizer makes of a conversation: one for each byte, and some for roles.
func longest(messages []chat.Message) int64 {
	n := int64(16)
	for _, m := range messages {
		n += int64(len(m.Text)) + 16
	}
	return n
}

// body is the request for the next message.
func (p *Policy) body(r policy.Request) (fields, error) {
	d, s := p.client.dialect, r.Sampling
	switch {
	case len(r.Messages) == 0:
		return nil, errors.New("a request without messages")
	case r.Messages[len(r.Messages)-1].Role == chat.Assistant:
		return nil, errors.New("a request whose last message is the policy's own")
	case len(r.Prior) > 0 || r.Seen > 0 || len(s.Stop) > 0 || len(s.Allowed) > 0:
		return nil, fmt.Errorf("token ids in a request of messages: %w", ErrNotOffered)
	case s.MaxTokens < 1:
		return nil, fmt.Errorf("sampling allows %d tokens, it must allow at least 1", s.MaxTokens)
	case s.TopK > 0 && !d.topK:
		return nil, fmt.Errorf("top-k: %w (dialect %s): set it to 0", ErrNotOffered, p.client.options.Dialect)
	case len(r.Allowed) > 0 && d.guided.ask == nil:
		return nil, fmt.Errorf("a choice among given replies: %w (dialect %s): decode freely", ErrNotOffered, p.client.options.Dialect)
	}
	type message struct {
		Role    chat.Role `json:"role"`
		Content string    `json:"content"`
	}
	var messages []message
	for i, m := range r.Messages {
		if m.Role != chat.System && m.Role != chat.User && m.Role != chat.Assistant {
			return nil, fmt.Errorf("message %d has no such role: %q", i, m.Role)
		}
		messages = append(messages, message{m.Role, m.Text})
	}
	body := fields{"model": p.client.options.Model, "messages": messages, "temperature": s.Temperature, d.most: s.MaxTokens}
	if orOne(s.TopP) != 1 {
		body["top_p"] = s.TopP
	}
	if s.TopK > 0 {
		body["top_k"] = s.TopK
	}
	if d.seed > 0 {
		body["seed"] = d.cut(s.Seed)
	}
	if len(r.Allowed) > 0 {
		replies := slices.Sorted(slices.Values(r.Allowed))
		d.guided.ask(body, slices.Compact(replies))
	}
	return body, nil
}

// read takes a reply.
func (p *Policy) read(reply []byte, asked policy.Request) (text string, stop policy.StopKind, spent usage, err error) {
	var r struct {
		Model   string `json:"model"`
		Choices []struct {
			Finish  string `json:"finish_reason"`
			Message struct {
				Content *string    `json:"content"`
				Calls   []toolCall `json:"tool_calls"`
				Refusal string     `json:"refusal"`
			} `json:"message"`
		} `json:"choices"`
		Usage counted `json:"usage"`
	}
	if err := decode(reply, &r); err != nil {
		return "", 0, usage{}, err
	}
	spent = r.Usage.usage()
	fail := func(err error) (string, policy.StopKind, usage, error) { return "", 0, spent, err }
	if len(r.Choices) != 1 {
		return fail(fmt.Errorf("%d answers came, asked was one", len(r.Choices)))
	}
	if d := p.client.dialect; d.echoes && r.Model != p.client.options.Model {
		return fail(fmt.Errorf("%w: model %q, asked was %q", policy.ErrVersion, remote.Printable(r.Model), p.client.options.Model))
	}
	c := r.Choices[0]
	switch {
	case c.Finish == "stop":
		stop = policy.Stopped
	case c.Finish == "length":
		stop = policy.Length
	case c.Finish == "tool_calls" && len(c.Message.Calls) > 0:
		stop = policy.Stopped
		whole := withCalls(c.Message.Content, c.Message.Calls)
		c.Message.Content = &whole
	case c.Message.Refusal != "":
		return fail(remote.Final(fmt.Errorf("the server refuses: %s", remote.Printable(c.Message.Refusal))))
	case c.Finish == "content_filter":
		return fail(remote.Final(errors.New("the server's filter took the reply away")))
	default:
		return fail(fmt.Errorf("the server ended because of %q", remote.Printable(c.Finish)))
	}
	switch {
	case (c.Message.Content == nil || *c.Message.Content == "") && stop == policy.Length:
		return fail(remote.Final(fmt.Errorf("all %d ids went into reasoning that is not shown, none into the reply: allow more, or turn reasoning off", asked.Sampling.MaxTokens)))
	case c.Message.Content == nil || *c.Message.Content == "":
		return fail(errors.New("the reply has no text"))
	}
	text = *c.Message.Content
	unwrap := p.client.dialect.guided.read
	switch {
	case len(asked.Allowed) == 0 || stop == policy.Length && unwrap == nil:
		return text, stop, spent, nil
	case stop == policy.Length: // what was cut is the wrapping's own length, of which the policy knows nothing
		return fail(remote.Final(fmt.Errorf("a choice among given replies was cut off after %d ids: allow more", asked.Sampling.MaxTokens)))
	case unwrap != nil:
		if text, err = unwrap(text); err != nil {
			return fail(err)
		}
	}
	if !slices.Contains(asked.Allowed, text) {
		return fail(fmt.Errorf("the server says %q, which is none of the %d replies it was given: does it know guided choice?",
			remote.Printable(text), len(asked.Allowed)))
	}
	return text, stop, spent, nil
}

// toolCall is a call that a server has taken out of the text, without having been told of tools: those of many models are
// known by their tags alone.
type toolCall struct {
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON
	} `json:"function"`
}

// withCalls puts the calls of a reply back after its text, as models write them that were told how in the prompt.
// Arguments are as the model wrote them, whole or not; where they stood in the text is not known.
func withCalls(text *string, calls []toolCall) string {
	var b strings.Builder
	if text != nil {
		b.WriteString(*text)
	}
	for _, c := range calls {
		name, _ := json.Marshal(c.Function.Name) // a text can be written
		fmt.Fprintf(&b, `<tool_call>{"name":%s,"arguments":%s}</tool_call>`, name, c.Function.Arguments)
	}
	return b.String()
}

// full says whether a refusal means that the conversation is too long.
func (p *Policy) full(err error) bool {
	var e *remote.StatusError
	d := p.client.dialect
	return d.full != "" && errors.As(err, &e) && (e.Status == http.StatusBadRequest || e.Status == http.StatusRequestEntityTooLarge) &&
		(strings.Contains(e.Code, d.full) || strings.Contains(e.Message, d.full))
}

// Embed returns a vector for each text, in order, all of the same length. The client's model must be one that embeds.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	var most usage
	for _, t := range texts {
		most.prompt += int64(len(t)) + 16
	}
	var out [][]float32
	err := c.call(ctx, request{
		method: http.MethodPost, path: "/v1/embeddings", most: most,
		body: fields{"model": c.options.Model, "input": texts, "encoding_format": "float"},
		read: func(reply []byte) (spent usage, err error) {
			out, spent, err = readEmbeddings(reply, len(texts))
			return spent, err
		},
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func readEmbeddings(reply []byte, n int) ([][]float32, usage, error) {
	var r struct {
		Data []struct {
			Index  int       `json:"index"`
			Vector []float32 `json:"embedding"`
		} `json:"data"`
		Usage counted `json:"usage"`
	}
	if err := decode(reply, &r); err != nil {
		return nil, usage{}, err
	}
	spent := r.Usage.usage()
	if len(r.Data) != n {
		return nil, spent, fmt.Errorf("%d vectors came for %d texts", len(r.Data), n)
	}
	out := make([][]float32, n)
	for _, d := range r.Data {
		switch {
		case d.Index < 0 || d.Index >= n || out[d.Index] != nil:
			return nil, spent, fmt.Errorf("there is no text %d, or its vector came twice", d.Index)
		case len(d.Vector) == 0 || len(d.Vector) != len(r.Data[0].Vector):
			return nil, spent, fmt.Errorf("vectors of %d and %d numbers came", len(r.Data[0].Vector), len(d.Vector))
		case !slices.ContainsFunc(d.Vector, func(v float32) bool { return v != 0 }):
			return nil, spent, fmt.Errorf("the vector of text %d is zero", d.Index)
		}
		out[d.Index] = d.Vector
	}
	return out, spent, nil
}
