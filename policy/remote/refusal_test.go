package remote

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMessage(t *testing.T) {
	for body, want := range map[string][2]string{
		`{"error":{"message":"too long","code":"context_length_exceeded"}}`: {"context_length_exceeded", "too long"},
		`{"error":{"message":"busy","type":"overloaded","code":7}}`:         {"overloaded", "busy"},
		`{"error":"no such model"}`:                                         {"", "no such model"},
		`{"detail":"checkpoint not found"}`:                                 {"", "checkpoint not found"},
		`{"detail":[{"loc":["a"],"msg":"bad"}]}`:                            {"", `[{"loc":["a"],"msg":"bad"}]`},
		`<html>`:                                                            {"", "<html>"},
		``:                                                                  {"", ""},
	} {
		if code, text := message([]byte(body)); code != want[0] || text != want[1] {
			t.Errorf("%s: got %q, %q; want %q", body, code, text, want)
		}
	}
}

// Whatever a server says, what is shown of it is short text.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"a","code":"b"}}`))
	f.Add([]byte("\xff\x00{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, text := message(body)
		if shown := Printable(text); len(shown) > 410 || !utf8.ValidString(shown) || strings.ContainsAny(shown, "\n\x1b") {
			t.Errorf("%q is shown as %q", body, shown)
		}
	})
}
