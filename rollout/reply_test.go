package rollout

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseAction(t *testing.T) {
	for _, c := range []struct {
		reply, action string
		ok            bool
	}{
		{"<action>go to desk 1</action>", "go to desk 1", true},
		{"<think>The mug may be there.</think><action>go to desk 1</action>", "go to desk 1", true},
		{"The template opened it.</think>\n<action> look </action>\n", "look", true},
		{"<think></think><action>look</action>", "look", true},
		{"<think><action>look</action></think><action>inventory</action>", "inventory", true},
		{"go to desk 1", "go to desk 1", false},
		{"", "", false},
		{"<action></action>", "<action></action>", false},
		{"<action>look</action> and more", "<action>look</action> and more", false},
		{"before <action>look</action>", "before <action>look</action>", false},
		{"<action>look</action><action>look</action>", "<action>look</action><action>look</action>", false},
		{"<action>look", "<action>look", false},
		{"two\nlines", "two lines", false},
		{strings.Repeat("é", 60), strings.Repeat("é", 40), false},
	} {
		action, ok := ParseAction(c.reply)
		if action != c.action || ok != c.ok {
			t.Errorf("ParseAction(%q) = %q, %v, want %q, %v", c.reply, action, ok, c.action, c.ok)
		}
	}
}

func FuzzParseAction(f *testing.F) {
	for _, s := range []string{"<action>go to desk 1</action>", "<think>a</think><action>b</action>", "</action><action>", "\xff<action>", strings.Repeat("</think>", 9)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		action, ok := ParseAction(reply)
		switch {
		case ok && (action == "" || strings.ContainsAny(action, "<>\n")):
			t.Errorf("%q was read as the action %q", reply, action)
		case ok:
			if again, ok := ParseAction(FormatAction(action)); !ok || again != action {
				t.Errorf("the action %q does not survive being written", action)
			}
		case len(action) > 80 || strings.Contains(action, "\n"):
			t.Errorf("%q is sent in place of an action", action)
		case utf8.ValidString(reply) && !utf8.ValidString(action):
			t.Errorf("%q cut %q within a rune", action, reply)
		}
	})
}
