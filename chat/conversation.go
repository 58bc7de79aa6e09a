package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Conversation is a conversation that somebody had, to be learnt from: at least one message of the assistant's, each after
// one of another role; a system message comes first, if there is one.
type Conversation []Message

// longestLine is the most bytes of a line of conversations.
const longestLine = 16 << 20

// ReadConversations reads JSON lines in the form that libraries for fine-tuning take: an object with "messages", each with
// "role" and "content"; the assistant's may have "tool_calls", whose calls are appended to its text as
// <tool_call>{"name":…,"arguments":{…}}</tool_call>; what role "tool" says becomes a user message in <tool_response>
// tags. "tools", if any, stand at the end of the system message. Other keys of a line are left alone, other keys of a message are
// refused but for "name" and ids. Errors name the line.
func ReadConversations(r io.Reader) ([]Conversation, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	var out []Conversation
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		c, err := readConversation(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no conversation in it")
	}
	return out, nil
}

// told is a message as a file has it.
type told struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	Calls      []toolCall `json:"tool_calls"`
	Name       *string    `json:"name"`
	ToolCallID *string    `json:"tool_call_id"`
}

type toolCall struct {
	ID       *string `json:"id"`
	Type     *string `json:"type"`
	Index    *int    `json:"index"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object, or a string that holds one
	} `json:"function"`
}

func readConversation(line []byte) (Conversation, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("it is not UTF-8")
	}
	var row struct {
		Messages []json.RawMessage `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, err
	}
	var out Conversation
	said := false
	for i, raw := range row.Messages {
		m, err := readMessage(raw)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		switch {
		case m.Role == System && i > 0:
			return nil, fmt.Errorf("message %d: a system message is the first, or there is none", i+1)
		case m.Role == Assistant && (len(out) == 0 || out[len(out)-1].Role == Assistant):
			return nil, fmt.Errorf("message %d: the assistant speaks after somebody else", i+1)
		}
		said = said || m.Role == Assistant
		out = append(out, m)
	}
	if !said {
		return nil, errors.New("the assistant says nothing in it: there is nothing to learn")
	}
	return out.withTools(row.Tools), nil
}

func readMessage(raw []byte) (m Message, err error) {
	var t told
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return m, err
	}
	if t.Content != nil {
		m.Text = *t.Content
	}
	if t.Role != string(Assistant) && len(t.Calls) > 0 {
		return m, fmt.Errorf("role %s calls tools: only the assistant does", t.Role)
	}
	switch t.Role {
	case string(System), string(User):
		m.Role = Role(t.Role)
	case "tool":
		m.Role, m.Text = User, "<tool_response>\n"+m.Text+"\n</tool_response>"
	case string(Assistant):
		m.Role = Assistant
		for _, c := range t.Calls {
			text, err := c.text()
			if err != nil {
				return m, err
			}
			m.Text += text
		}
		if m.Text == "" {
			return m, errors.New("the assistant says nothing")
		}
	default:
		return m, fmt.Errorf("there is no role %q: it is system, user, assistant or tool", t.Role)
	}
	return m, nil
}

// text is a call as the assistant writes it.
func (c toolCall) text() (string, error) {
	args := c.Function.Arguments
	var quoted string
	if json.Unmarshal(args, &quoted) == nil {
		args = json.RawMessage(quoted)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil || object == nil || c.Function.Name == "" {
		return "", fmt.Errorf("a call of %q has no arguments that are an object", c.Function.Name)
	}
	name, err := json.Marshal(c.Function.Name)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`<tool_call>{"name":%s,"arguments":%s}</tool_call>`, name, bytes.TrimSpace(args)), nil
}

// withTools puts tools at the end of the system message.
func (c Conversation) withTools(tools []json.RawMessage) Conversation {
	if len(tools) == 0 {
		return c
	}
	var b strings.Builder
	b.WriteString(`Tools, called as <tool_call>{"name":…,"arguments":{…}}</tool_call>:`)
	for _, t := range tools {
		b.WriteByte('\n')
		b.Write(t)
	}
	if c[0].Role == System {
		c[0].Text += "\n\n" + b.String()
		return c
	}
	return append(Conversation{{System, b.String()}}, c...)
}
