package chat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadConversations(t *testing.T) {
	got, err := ReadConversations(strings.NewReader(`{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Where?"},{"role":"assistant","content":"Here."}],"source":"mine","tools":[{"name":"fly"}]}

{"messages":[{"role":"user","content":"Review."},{"role":"assistant","content":"So.","tool_calls":[{"id":"1","type":"function","function":{"name":"keep_skill","arguments":{"reason": "seen"}}}]},{"role":"tool","name":"keep_skill","content":"kept"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"keep_skill","arguments":"{\"reason\":\"é\"}"}}]},{"role":"user","content":"Bye."}],"tools":null}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Conversation{
		{
			{System, "Be brief.\n\nTools, called as <tool_call>{\"name\":…,\"arguments\":{…}}</tool_call>:\n{\"name\":\"fly\"}"},
			{User, "Where?"}, {Assistant, "Here."},
		},
		{
			{User, "Review."},
			{Assistant, `So.<tool_call>{"name":"keep_skill","arguments":{"reason": "seen"}}</tool_call>`},
			{User, "<tool_response>\nkept\n</tool_response>"},
			{Assistant, `<tool_call>{"name":"keep_skill","arguments":{"reason":"é"}}</tool_call>`},
			{User, "Bye."},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadConversationsRefuses(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"no JSON":             {`{"messages":`, "line 1"},
		"nothing":             {"\n\n", "no conversation"},
		"no messages":         {`{"text":"hello"}`, "nothing to learn"},
		"nothing said":        {`{"messages":[{"role":"user","content":"a"}]}`, "nothing to learn"},
		"an empty reply":      {`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":""}]}`, "says nothing"},
		"a reply to nobody":   {`{"messages":[{"role":"assistant","content":"a"}]}`, "message 1"},
		"two replies":         {`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}]}`, "message 3"},
		"a late system":       {`{"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"assistant","content":"a"}]}`, "message 2"},
		"another role":        {`{"messages":[{"role":"judge","content":"a"}]}`, `"judge"`},
		"parts":               {`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, "message 1"},
		"an unknown key":      {`{"messages":[{"role":"user","content":"a","weight":0}]}`, "weight"},
		"a user's call":       {`{"messages":[{"role":"user","tool_calls":[{"function":{"name":"a","arguments":{}}}]}]}`, "only the assistant"},
		"arguments of a list": {`{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"a","arguments":[]}}]}]}`, "arguments"},
		"broken bytes":        {"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", "UTF-8"},
	} {
		if _, err := ReadConversations(strings.NewReader(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// Whatever a file holds, what is read of it can be rendered.
func FuzzReadConversations(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":[1]}`)
	f.Add(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"x","arguments":"{}"}}]}]}`)
	tok, err := Train(func(yield func(string) bool) { yield("a b") }, TrainOptions{VocabSize: 300, Special: Plain().Special(), Tags: Tags()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ReadConversations(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, c := range all {
			if len(Plain().Render(tok, c, 0, false)) < len(c) {
				t.Errorf("%q lost a message", text)
			}
		}
	})
}
