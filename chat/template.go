package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Template says how a conversation becomes one sequence of token ids. Conversations only grow: what Render gives for
// the first messages stays a prefix of what it gives for all. The constructors below are the only way to one.
//
// Only the template's own words become special tokens. Tags are recognised in what the assistant says and nowhere else:
// messages of other roles hold text the world and the skills wrote.
//
// Message texts are taken as they are. The texts of system and user messages are encoded together with the template's
// plain text before them, as a rendered string would be; an assistant's is encoded alone, because it is sampled after
// that text.
type Template struct {
	name     string
	begin    string   // before the first message
	system   string   // text of a system message where the conversation has none; empty: none is added
	special  []string // the special tokens it needs
	tags     []string // the tags it needs
	head     string   // before every message, {role} standing for the role; ends with its last special token
	tail     string   // plain text after head
	opening  string   // begins what the assistant says, before what it chooses
	end      string   // the special token that ends what the assistant says
	others   bool     // messages of other roles end with it as well
	between  string   // before every message but the first
	optional []string // further tokens that end a sample, where the tokenizer has them
}

const qwenSystem = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

// ChatML is the template of many models, Qwen's among them: <|im_start|>, role, line end, text, <|im_end|>, line end.
// The last line end is left to the message that follows, so that a conversation ends as it does when it is sampled.
func ChatML() Template { //nolint:revive // the format's own name
	return Template{
		name: "chatml", special: []string{"<|im_start|>", "<|im_end|>"}, head: "<|im_start|>", tail: "{role}\n",
		end: "<|im_end|>", others: true, between: "\n", optional: []string{"<|endoftext|>"},
	}
}

// Qwen is ChatML with the system message of Qwen2.5 where the conversation starts without one.
func Qwen() Template {
	t := ChatML()
	t.name, t.system = "qwen", qwenSystem
	return t
}

// Qwen3 is ChatML for the models of Qwen3 that think before they answer unless told not to: they are told so, by an empty
// thought that begins every answer. The published template takes it out of all answers but the last, this one leaves it
// there, so that conversations only grow.
func Qwen3() Template {
	t := ChatML()
	t.name, t.opening, t.tags = "qwen3", "<think>\n\n</think>\n\n", []string{"<think>", "</think>"}
	return t
}

// Llama3 is the template of Llama 3 Instruct. The published one trims texts and, from 3.1 on, puts dates into the
// system message; this one does neither.
func Llama3() Template {
	return Template{
		name: "llama3", begin: "<|begin_of_text|>",
		special: []string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
		head:    "<|start_header_id|>{role}<|end_header_id|>", tail: "\n\n",
		end: "<|eot_id|>", others: true, optional: []string{"<|end_of_text|>", "<|eom_id|>"},
	}
}

// Plain is for models trained from scratch: one special token for the role, then the text; <|end|> after what the
// assistant says alone.
func Plain() Template {
	return Template{
		name: "plain", special: []string{"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"}, head: "<|{role}|>",
		end: "<|end|>",
	}
}

// TemplateNamed returns the template with that name: chatml, qwen, qwen3, llama3 or plain.
func TemplateNamed(name string) (Template, error) {
	for _, t := range []Template{ChatML(), Qwen(), Qwen3(), Llama3(), Plain()} {
		if t.name == name {
			return t, nil
		}
	}
	return Template{}, fmt.Errorf("no template %q: there are chatml, qwen, qwen3, llama3 and plain", name)
}

// TemplateFor returns the template of the family that a model belongs to, by the tokens of its tokenizer. published is the
// template that the model's makers give, in Jinja, if there is one: the models of Qwen3 that think unless told not to differ
// in it alone from those that do not.
func TemplateFor(tok *Tokenizer, published string) (Template, error) {
	families := []Template{Llama3(), ChatML(), Plain()}
	if strings.Contains(published, "enable_thinking") {
		families = slices.Insert(families, 0, Qwen3())
	}
	var all []error
	for _, t := range families {
		err := t.Check(tok)
		if err == nil {
			return t, nil
		}
		all = append(all, err)
	}
	return Template{}, fmt.Errorf("the tokenizer fits no chat template: %w (take a model that was trained to chat)", errors.Join(all...))
}

// Jinja returns the template as Hugging Face's tokenizers take it. It adds no system message.
func (t Template) Jinja() string {
	quoted := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
	}
	start := func(role string) string {
		return strings.ReplaceAll(quoted(t.head+t.tail), "{role}", "' + "+role+" + '")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{{- %s -}}\n{%%- for m in messages -%%}\n", quoted(t.begin))
	fmt.Fprintf(&b, "{{- %s if not loop.first -}}\n{{- %s -}}\n", quoted(t.between), start("m['role']"))
	fmt.Fprintf(&b, "{{- %s if m['role'] == 'assistant' -}}\n{{- m['content'] -}}\n", quoted(t.opening))
	fmt.Fprintf(&b, "{{- %s if %t or m['role'] == 'assistant' -}}\n{%%- endfor -%%}\n", quoted(t.end), t.others)
	fmt.Fprintf(&b, "{{- %s if add_generation_prompt and messages -}}\n", quoted(t.between))
	fmt.Fprintf(&b, "{{- %s if add_generation_prompt -}}\n", start("'assistant'")+" + "+quoted(t.opening))
	return b.String()
}

// Name returns the name TemplateNamed knows it by.
func (t Template) Name() string { return t.name }

// Special returns the special tokens it needs, as TrainOptions takes them.
func (t Template) Special() []string { return slices.Clone(t.special) }

// Check returns an error naming the first special token of the template that the tokenizer lacks.
func (t Template) Check(tok *Tokenizer) error {
	if t.name == "" {
		return errors.New("no template: take one from its constructor")
	}
	for _, s := range t.special {
		if id, ok := tok.addedIDs[s]; !ok || tok.kinds[id] != special {
			return fmt.Errorf("template %s: the tokenizer has no special token %s", t.name, s)
		}
	}
	for _, s := range t.tags {
		if _, ok := tok.addedIDs[s]; !ok {
			return fmt.Errorf("template %s: the tokenizer has no token %s", t.name, s)
		}
	}
	return nil
}

// Render returns the ids of messages[from:], which follow those of messages[:from]: Render(…, 0, …) is Render of the
// first messages followed by Render from there. With openAssistant the start of an assistant's message comes last, for
// the policy to go on from. A last assistant message of messages[:from] is taken to have ended with Stop's first id. It
// panics if the tokenizer does not pass Check, on an unknown role, and on a from beyond the messages.
func (t Template) Render(tok *Tokenizer, messages []Message, from int, openAssistant bool) []int32 {
	if err := t.Check(tok); err != nil {
		panic(err)
	}
	if from < 0 || from > len(messages) {
		panic(fmt.Sprintf("render from message %d of %d", from, len(messages)))
	}
	var ids []int32
	first := from == 0 && (len(messages) > 0 || openAssistant)
	if first {
		ids = tok.EncodeWithSpecial(t.begin)
	}
	if first && t.system != "" && (len(messages) == 0 || messages[0].Role != System) {
		ids = append(ids, t.message(tok, Message{System, t.system})...)
		first = false
	}
	for _, m := range messages[from:] {
		ids = append(ids, t.separator(tok, first)...)
		ids = append(ids, t.message(tok, m)...)
		first = false
	}
	if openAssistant {
		ids = append(ids, t.separator(tok, first)...)
		ids = append(ids, t.open(tok, Assistant, "")...)
	}
	return ids
}

func (t Template) separator(tok *Tokenizer, first bool) []int32 {
	if first {
		return nil
	}
	return tok.Encode(t.between)
}

// message returns the ids of one message.
func (t Template) message(tok *Tokenizer, m Message) []int32 {
	if m.Role == Assistant {
		return append(t.open(tok, Assistant, ""), t.Reply(tok, m.Text)...)
	}
	ids := t.open(tok, m.Role, m.Text)
	if t.others {
		ids = append(ids, t.Stop(tok)[0])
	}
	return ids
}

// open returns the ids of the start of a message and of its text, which is encoded with the plain text before it; of an
// assistant's, those it goes on from.
func (t Template) open(tok *Tokenizer, r Role, text string) []int32 {
	switch r {
	case System, User, Assistant:
	default:
		panic(fmt.Sprintf("no such role: %q", r))
	}
	as := func(s string) string { return strings.ReplaceAll(s, "{role}", string(r)) }
	ids := append(tok.EncodeWithSpecial(as(t.head)), tok.Encode(as(t.tail)+text)...)
	if r == Assistant {
		ids = append(ids, tok.EncodeTags(t.opening)...)
	}
	return ids
}

// Reply returns the ids of what an assistant says, the id that ends it included: what a policy would have sampled to
// say it.
func (t Template) Reply(tok *Tokenizer, text string) []int32 {
	return append(tok.EncodeTags(text), t.Stop(tok)[0])
}

// Stop returns the ids that end what the assistant says. The first is the one Render writes. It panics like Render.
func (t Template) Stop(tok *Tokenizer) []int32 {
	last, ok := tok.addedIDs[t.end]
	if !ok {
		panic("the tokenizer has no special token " + t.end)
	}
	ids := []int32{last}
	for _, s := range t.optional {
		if id, ok := tok.addedIDs[s]; ok && tok.kinds[id] == special {
			ids = append(ids, id)
		}
	}
	return ids
}
