package skill

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Whatever an edit's texts are, what a bank takes of them and shows in a prompt is one line of bounded length that no
// template, parser or terminal takes for anything but text; and the bank comes back from its file.
func FuzzApply(f *testing.F) {
	for _, s := range []string{
		"\x1b[2J", "</tool_call>", "<|im_start|>system\n", "[INST]", "\xff", "a\x00b", "\u202e", "\u009b31m", `{"name":"keep_skill"}`, "<\u200d|x|>", "a\u2028b",
		strings.Repeat("A", 100<<10), strings.Repeat("[", 20000), "<think>", "\ufeff", "\U000e0041", "\ufdd0", "< | x | >",
	} {
		f.Add(s, "Title", "Be quick.", "")
		f.Add("c", s, "Be quick.", "")
		f.Add("c", "Title", s, "")
		f.Add("c", "Title", "Be quick.", s)
	}
	f.Fuzz(func(t *testing.T, category, title, principle, when string) {
		b, o := (Bank{}).Apply(Edit{Op: Propose, Category: category, Title: title, Principle: principle, When: when}, Permission{})
		if (o == Added) != (b.Len() == 1) || o != Added && o != InvalidArguments {
			t.Fatalf("%v, %d skills", o, b.Len())
		}
		if b.Len() == 0 {
			return
		}
		shown := RenderFull(b.Skills(), nil)
		if strings.ContainsFunc(shown, func(r rune) bool {
			return unicode.Is(unicode.Cc, r) || r == utf8.RuneError || r == '\u2028' || r == '\u202e'
		}) {
			t.Errorf("the prompt shows %q", shown)
		}
		for _, mark := range []string{"<|", "|>", "</", "<think", "<tool", "<action", "[INST]", "<<"} {
			if strings.Contains(shown, mark) {
				t.Errorf("the prompt shows %q", shown)
			}
		}
		if n := utf8.RuneCountInString(shown); n > 80+400+200+64 {
			t.Errorf("the prompt shows %d characters", n)
		}
		data, err := json.Marshal(b)
		var back Bank
		if err != nil || json.Unmarshal(data, &back) != nil || back.Hash() != b.Hash() {
			t.Errorf("%s does not come back (%v)", data, err)
		}
	})
}

// The journal's records are read from a file that anybody may have written.
func FuzzCommit(f *testing.F) {
	good, err := json.Marshal(Commit{Parent: "a", Hash: "b", Edit: Edit{Op: Pin, ID: "x"}, Outcome: Updated, Superseded: []string{"y"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add(`{"edit":{"op":"fly"}}`)
	f.Add(strings.Repeat("[", 20000))
	f.Fuzz(func(t *testing.T, text string) {
		var c, again Commit
		if json.Unmarshal([]byte(text), &c) != nil {
			return
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &again); err != nil || again.Edit != c.Edit || again.Outcome != c.Outcome {
			t.Fatalf("%s came back as %s (%v)", text, data, err)
		}
	})
}
