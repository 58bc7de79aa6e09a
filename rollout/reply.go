package rollout

import "strings"

// ParseAction reads an action reply: optional reasoning in <think>…</think> (its opening tag may have been the
// template's), then exactly one <action>…</action> and nothing else. It returns the action, trimmed, and whether the
// reply was well formed. What a malformed reply sends in its place is its own text, on one line and at most 80 bytes
// long, so that the world's answer is about what was written.
func ParseAction(reply string) (action string, ok bool) {
	rest := reply
	if i := strings.LastIndex(rest, "</think>"); i >= 0 {
		rest = rest[i+len("</think>"):]
	}
	rest = strings.TrimSpace(rest)
	if body, opened := strings.CutPrefix(rest, "<action>"); opened {
		if a, closed := strings.CutSuffix(body, "</action>"); closed {
			a = strings.TrimSpace(a)
			if a != "" && !strings.ContainsAny(a, "<>\n") {
				return a, true
			}
		}
	}
	return clip(strings.Join(strings.Fields(reply), " "), 80), false
}

// FormatAction is the reply whose action ParseAction reads.
func FormatAction(action string) string { return "<action>" + action + "</action>" }

// clip cuts s to at most n bytes at a rune boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
