package bm25

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// testdata/lucene/make.py says where the cases are from, and what is left out.
func TestTermsOfAllScriptsAreLucenes(t *testing.T) {
	f, err := os.Open("testdata/lucene/terms.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	for d := json.NewDecoder(f); ; cases++ {
		var text string
		var want []string
		err := d.Decode(&[2]any{&text, &want})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := Terms(text); !slices.Equal(got, want) {
			t.Errorf("%q (%+[1]q)\ngot  %+q\nwant %+q", text, got, want)
		}
	}
	if cases < 3000 {
		t.Errorf("only %d cases", cases)
	}
}

func TestInvalidTextPartsWords(t *testing.T) {
	if got, want := Terms("mu\xffg \xe2\x82 red\xf0"), []string{"mu", "g", "red"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func eachOf(cut func(string, func(string)), text string) (words []string) {
	cut(text, func(w string) { words = append(words, w) })
	return words
}

// Terms are valid, never stop words, and the short cut for ASCII is but a short cut.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"Women's T-shirts, 3.5mm a_b 1:2 x:y U.S.A. __ _1'2\"", "★ 👍🏽 日本語 ภาษาไทย", "a\xff", strings.Repeat("a.", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range Terms(text) {
			if term == "" || !utf8.ValidString(term) {
				t.Errorf("term %q", term)
			}
		}
		ascii := strings.Map(func(r rune) rune { return r % utf8.RuneSelf }, text)
		if got, want := eachOf(eachASCIIWord, ascii), eachOf(eachUnicodeWord, ascii); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", ascii, got, want)
		}
	})
}
