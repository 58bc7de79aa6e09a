package alfworld

import (
	"encoding/json"
	"testing"
)

// decodeBoth decodes an object with its long texts apart, and as it is.
func decodeBoth(object string) (apart, whole gameFile, apartErr, wholeErr error) {
	apartErr = apart.decode([]byte(object))
	wholeErr = json.Unmarshal([]byte(object), &whole)
	return apart, whole, apartErr, wholeErr
}

func (f gameFile) texts() [3]string { return [3]string{f.Domain, f.Grammar, f.Problem} }

func TestTextsApartEqualTextsWithin(t *testing.T) {
	for name, object := range map[string]string{
		"usual":          `{"pddl_domain":"(define\n)","grammar":"say \"a\\b\"\t\/","pddl_problem" : "x","solvable":true}`,
		"empty":          `{"pddl_domain":"","grammar":"","pddl_problem":""}`,
		"none":           `{}`,
		"null":           `{"grammar":null}`,
		"a number":       `{"grammar":7}`,
		"letters":        `{"grammar":"caf\u00e9 é"}`,
		"bad escape":     `{"grammar":"\x"}`,
		"bare newline":   "{\"grammar\":\"a\nb\"}",
		"unclosed":       `{"grammar":"abc`,
		"half an escape": `{"grammar":"abc\`,
		"twice":          `{"grammar":"a","grammar":"b"}`,
		"as a value":     `{"x":"grammar","grammar":"a"}`,
		"escaped key":    `{"x":"\"grammar\":\"no\"","grammar":"a"}`,
		"nothing behind": `{"grammar"`,
		"no object":      `"grammar":"a"`,
		"more behind":    `{"grammar":"a"}}`,
		"backslashes":    `{"grammar":"a\\\\","pddl_problem":"\\\"\\"}`,
	} {
		apart, whole, apartErr, wholeErr := decodeBoth(object)
		if (apartErr == nil) != (wholeErr == nil) || wholeErr == nil && apart.texts() != whole.texts() {
			t.Errorf("%s: got %q, %v; want %q, %v", name, apart.texts(), apartErr, whole.texts(), wholeErr)
		}
	}
}

func FuzzTextsApart(f *testing.F) {
	f.Add(`{"pddl_domain":"(define\n)","grammar":"say \"a\\b\"\t\/","pddl_problem" : "x","solvable":true}`)
	f.Add(`{"x":"\"grammar\":\"no\"","grammar":"a"}`)
	f.Fuzz(func(t *testing.T, object string) {
		apart, whole, apartErr, wholeErr := decodeBoth(object)
		if apartErr == nil && wholeErr == nil && apart.texts() != whole.texts() && !nests(object) {
			t.Errorf("%q: got %q, want %q", object, apart.texts(), whole.texts())
		}
		if apartErr == nil && wholeErr != nil {
			t.Errorf("%q: decodes apart, but %v", object, wholeErr)
		}
	})
}

// nests tells whether an object may have its texts anywhere but at the top, or in another case, where the two ways may
// differ.
func nests(object string) bool {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &keys); err != nil {
		return true
	}
	for key, value := range keys {
		exact := key == "pddl_domain" || key == "grammar" || key == "pddl_problem"
		if !exact || value[0] != '"' {
			return true
		}
	}
	return false
}
