package webshop

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// splitAll cuts a list into its entries.
func splitAll(r io.Reader) (entries []string, err error) {
	s := splitter{r: r}
	for {
		e, err := s.next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return entries, err
		}
		entries = append(entries, string(e))
	}
}

func TestSplitter(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "", " [ ] \n": "", `[1]`: "1", `[1, "a,]}" ,{"b":[{},"\""]}, null ]`: `1|"a,]}" |{"b":[{},"\""]}|null `, `["\\",2]`: `"\\"|2`,
		`[{"a":"x\\\"y"}]`: `{"a":"x\\\"y"}`, "[,1]": "|1",
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			if got, err := splitAll(r); err != nil || strings.Join(got, "|") != want {
				t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
			}
		}
	}
	for text, want := range map[string]string{
		"": "unexpected EOF", "[": "unexpected EOF", "[1": "unexpected EOF", `["a`: "unexpected EOF", `["a\"`: "unexpected EOF", "[{}": "unexpected EOF", "[1,": "unexpected EOF",
		"{}": "begins with {", "[{}{}]": "{ between", "[1]]": "more: ]", "[{}]x": "more: x",
	} {
		if got, err := splitAll(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v; want an error with %q", text, got, err, want)
		}
	}
	if _, err := splitAll(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("[1,2]")))); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a reader that breaks: %v", err)
	}
}

// FuzzSplitter compares with encoding/json: of a list that is one, the entries are the same.
func FuzzSplitter(f *testing.F) {
	for _, s := range []string{"[]", `[{"a":["b\\",1]},"]",2]`, "[1,2", "{}", `["\u005d"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := splitAll(iotest.HalfReader(strings.NewReader(text)))
		var want []json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return // whoever decodes an entry finds what is wrong with it
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: got %q, %v; want %q", text, got, err, want)
		}
		for i := range want {
			if !bytes.Equal(bytes.TrimSpace([]byte(got[i])), bytes.TrimSpace(want[i])) {
				t.Errorf("%q: entry %d is %q, want %q", text, i, got[i], want[i])
			}
		}
	})
}
