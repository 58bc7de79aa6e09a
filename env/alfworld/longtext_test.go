package alfworld

import (
	"encoding/json"
	"slices"
	"strings"
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
		"inside":         `{"x":{"grammar":"a"}}`,
		"inside before":  `{"x":{"grammar":"a"},"grammar":""}`,
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

// TestDecodingRefuses is of what decoding by itself would pass over.
func TestDecodingRefuses(t *testing.T) {
	for object, want := range map[string]string{
		`{"grammar":"a","grammar":"b"}`:               `"grammar" is given twice`,
		`{"grammar":"a","grammar":""}`:                `"grammar" is given twice`,
		`{"grammar":"a","Grammar":"b"}`:               `"Grammar" is given twice`,
		`{"solvable":true,"solvable":false}`:          `"solvable" is given twice`,
		"\xef\xbb\xbf{}":                              "byte-order mark",
		"\xff\xfe{\x00}\x00":                          "UTF-16",
		"\xfe\xff\x00{\x00}":                          "UTF-16",
		"{\x00}\x00":                                  "zero byte",
		"{\n\"grammar\":\"caf\xe9\"}":                 "line 2: it is not UTF-8",
		"{\"x\":\"\ufffd\",\n\"grammar\":\"\xe9\"}":   "line 2: it is not UTF-8",
		"{\n\n\"solvable\":\"yes\"}":                  "line 3",
		"{\n\n\"grammar\":\"a\",\n\"walkthrough\":1}": "line 4",
	} {
		var f gameFile
		if err := f.decode([]byte(object)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", object, err, want)
		}
	}
}

func FuzzTextsApart(f *testing.F) {
	f.Add(`{"pddl_domain":"(define\n)","grammar":"say \"a\\b\"\t\/","pddl_problem" : "x","solvable":true}`)
	f.Add(`{"x":"\"grammar\":\"no\"","grammar":"a"}`)
	f.Add(`{"x":{"grammar":"no"},"grammar":"a"}`)
	f.Add(`{"x":{"grammar":"no"}}`)
	f.Fuzz(func(t *testing.T, object string) {
		apart, whole, apartErr, wholeErr := decodeBoth(object)
		if apartErr == nil && (wholeErr != nil || apart.texts() != whole.texts()) {
			t.Errorf("%q: got %q, want %q, %v", object, apart.texts(), whole.texts(), wholeErr)
		}
		if passedOver := []string{"given twice", "byte-order", "UTF"}; wholeErr == nil && apartErr != nil &&
			!slices.ContainsFunc(passedOver, func(s string) bool { return strings.Contains(apartErr.Error(), s) }) {
			t.Errorf("%q: decodes whole, but %v", object, apartErr)
		}
	})
}
