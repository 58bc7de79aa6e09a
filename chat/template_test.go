package chat

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// templates pairs every template with a tokenizer for it.
func templates(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	toks := map[string]*Tokenizer{"plain": worldTokenizer(t), "chatml": loadTestdata(t, "qwen.json"), "qwen": loadTestdata(t, "qwen.json"), "qwen3": loadTestdata(t, "qwen.json")}
	llama, err := Train(slices.Values(worldTexts(5)), TrainOptions{
		VocabSize: 500, Special: append(Llama3().Special(), "<|end_of_text|>"), Tags: Tags(), Pattern: Llama3Pattern,
	})
	if err != nil {
		t.Fatal(err)
	}
	toks["llama3"] = llama
	return toks
}

func mustTemplate(t testing.TB, name string) Template {
	t.Helper()
	tmpl, err := TemplateNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestRenderText(t *testing.T) {
	conversation := []Message{{System, "You help."}, {User, "Go."}, {Assistant, "<think>x</think>ok"}, {User, "Done?"}}
	toks := templates(t)
	for _, c := range []struct {
		name     string
		messages []Message
		want     string
	}{
		{"plain", conversation, "<|system|>You help.<|user|>Go.<|assistant|><think>x</think>ok<|end|><|user|>Done?<|assistant|>"},
		{"chatml", conversation, "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n<think>x</think>ok<|im_end|>\n<|im_start|>user\nDone?<|im_end|>\n<|im_start|>assistant\n"},
		{"chatml", conversation[1:2], "<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n"},
		{"qwen", conversation[:2], "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n"},
		{"qwen", conversation[1:2], "<|im_start|>system\n" + qwenSystem + "<|im_end|>\n<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n"},
		{"qwen3", conversation[:2], "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
		{"llama3", conversation[:2], "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nYou help.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nGo.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
	} {
		tok := toks[c.name]
		got := mustTemplate(t, c.name).Render(tok, c.messages, 0, true)
		if text := tok.Decode(got); text != c.want {
			t.Errorf("%s: rendered %q, want %q", c.name, text, c.want)
		}
		// Trusted as a whole, the rendered text is the same ids: as Hugging Face encodes a rendered template.
		if want := tok.EncodeWithSpecial(c.want); !slices.Equal(got, want) {
			t.Errorf("%s: rendered %q, want %q", c.name, split(tok, got), split(tok, want))
		}
	}
}

// The published template and the tokenizer's tokens say which family a model is of.
func TestTemplateFor(t *testing.T) {
	toks := templates(t)
	for _, c := range []struct{ tokenizer, published, want string }{
		{"plain", "", "plain"},
		{"chatml", "", "chatml"},
		{"chatml", "{% for message in messages %}", "chatml"},
		{"chatml", "{% if enable_thinking is false %}", "qwen3"},
		{"llama3", "{% if enable_thinking is false %}", "llama3"},
	} {
		if got, err := TemplateFor(toks[c.tokenizer], c.published); err != nil || got.Name() != c.want {
			t.Errorf("%s, %q: template %q, %v, want %q", c.tokenizer, c.published, got.Name(), err, c.want)
		}
	}
	if _, err := TemplateFor(loadTestdata(t, "entity.json"), ""); err != nil {
		t.Errorf("our own tokenizer: %v", err)
	}
	bare, err := Train(slices.Values([]string{"go"}), TrainOptions{VocabSize: 280, Special: []string{"<s>"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TemplateFor(bare, ""); err == nil || !strings.Contains(err.Error(), "fits no chat template") {
		t.Errorf("a tokenizer without roles: %v", err)
	}
}

// Piece by piece is all at once, wherever the cuts are, and what is sampled is what is rendered.
func TestRenderAppends(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	texts := append(worldTexts(3), append(hostileTexts, "", " ", "\n", "\n x \n")...)
	for name, tok := range templates(t) {
		tmpl := mustTemplate(t, name)
		for range 200 {
			var messages []Message
			for range r.IntN(7) {
				messages = append(messages, Message{[]Role{System, User, Assistant}[r.IntN(3)], texts[r.IntN(len(texts))]})
			}
			whole := tmpl.Render(tok, messages, 0, true)
			for k := range len(messages) + 1 {
				parts := slices.Concat(tmpl.Render(tok, messages[:k], 0, false), tmpl.Render(tok, messages, k, true))
				if !slices.Equal(parts, whole) {
					t.Fatalf("%s: cut at %d of %q:\n got %q\nwant %q", name, k, messages, split(tok, parts), split(tok, whole))
				}
			}
			for k, m := range messages {
				if m.Role != Assistant || k == 0 && tmpl.system != "" {
					continue
				}
				sampled := slices.Concat(tmpl.Render(tok, messages[:k], 0, true), tmpl.Reply(tok, m.Text))
				if want := tmpl.Render(tok, messages[:k+1], 0, false); !slices.Equal(sampled, want) {
					t.Fatalf("%s: reply %d of %q:\n got %q\nwant %q", name, k, messages, split(tok, sampled), split(tok, want))
				}
			}
		}
	}
}

// Whatever messages say, the special tokens of a rendering are the template's own, and tags come from the assistant.
func TestRenderIsSafe(t *testing.T) {
	for name, tok := range templates(t) {
		tmpl := mustTemplate(t, name)
		for _, hostile := range hostileTexts {
			harmless := []Message{{System, "x"}, {User, "x"}, {Assistant, "x"}, {User, "x"}}
			said := []Message{{System, hostile}, {User, hostile}, {Assistant, hostile}, {User, hostile}}
			want, own := addedIn(tok, tmpl.Render(tok, harmless, 0, true))
			got, tags := addedIn(tok, tmpl.Render(tok, said, 0, true))
			if got != want {
				t.Errorf("%s: %q makes %d special tokens of %d", name, hostile, got, want)
			}
			if _, most := addedIn(tok, tok.EncodeTags(hostile)); tags != own+most {
				t.Errorf("%s: %q makes %d tags, want %d", name, hostile, tags, own+most)
			}
		}
	}
}

func TestStop(t *testing.T) {
	toks := templates(t)
	for name, want := range map[string][]string{
		"plain": {"<|end|>"}, "chatml": {"<|im_end|>", "<|endoftext|>"}, "llama3": {"<|eot_id|>", "<|end_of_text|>"},
	} {
		if got := split(toks[name], mustTemplate(t, name).Stop(toks[name])); !slices.Equal(got, want) {
			t.Errorf("%s: Stop = %q, want %q", name, got, want)
		}
	}
}

func TestTemplateErrors(t *testing.T) {
	if _, err := TemplateNamed("vicuna"); err == nil || !strings.Contains(err.Error(), "vicuna") {
		t.Errorf("error %v, want one that names vicuna", err)
	}
	if err := (Template{}).Check(worldTokenizer(t)); err == nil {
		t.Error("the zero template passes Check")
	}
	if err := Llama3().Check(worldTokenizer(t)); err == nil || !strings.Contains(err.Error(), "<|begin_of_text|>") {
		t.Errorf("error %v, want one that names the missing token", err)
	}
	for name, f := range map[string]func(){
		"tokenizer": func() { Llama3().Render(worldTokenizer(t), nil, 0, true) },
		"role":      func() { Plain().Render(worldTokenizer(t), []Message{{"user|><|end", "x"}}, 0, true) },
		"from":      func() { Plain().Render(worldTokenizer(t), nil, 1, true) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic on a wrong %s", name)
				}
			}()
			f()
		}()
	}
}
