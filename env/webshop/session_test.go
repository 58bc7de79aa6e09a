package webshop

import "testing"

func TestParseAction(t *testing.T) {
	for action, want := range map[string][2]string{
		"search[red shoes]": {"search", "red shoes"}, "click[a] b": {"click", "a"}, "search[a[b]]": {"search[a", "b]"}, "search[a[]": {"search", "a["},
		"click[x]]": {"click", "x]"}, "a[b]\n[c]": {"a", "b"}, "a[[": {}, "a[b\n]": {}, "[b]": {}, "a[]": {}, "a[": {}, "]": {}, "": {}, "a[]]": {"a", "]"},
		"[[b]": {"[", "b"}, "a[b][c]": {"a[b]", "c"},
	} {
		name, argument, ok := parseAction(action)
		if [2]string{name, argument} != want || ok != (want[0] != "") {
			t.Errorf("%q: got %q, %q, %v, want %q", action, name, argument, ok, want)
		}
	}
}
