package bm25

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// golden opens what the real shop's engine (Lucene 8.7) gave, or is to be given. Without the data the tests that need it
// are skipped, except in CI.
func golden(t testing.TB, name string) *json.Decoder {
	t.Helper()
	dir := os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(dir, "webshop", name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the data of the real shop is needed in CI: %v (set SKILLMASTER_DATA)", err)
		}
		t.Skipf("NOT TESTED against the real shop: %v (set SKILLMASTER_DATA)", err)
	}
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(name, ".gz") {
		return json.NewDecoder(bufio.NewReader(f))
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return json.NewDecoder(z)
}

func decode[T any](t testing.TB, d *json.Decoder) (v T) {
	t.Helper()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTermsAreLucenes(t *testing.T) {
	cases := decode[[]struct {
		Text   string
		Tokens []string
	}](t, golden(t, "golden/lucene_tokens.json"))
	if len(cases) != 137 {
		t.Fatalf("%d cases, want 137", len(cases))
	}
	for _, c := range cases {
		if got := Terms(c.Text); !slices.Equal(got, c.Tokens) {
			t.Errorf("%q\ngot  %q\nwant %q", c.Text, got, c.Tokens)
		}
	}
}

func TestStemsAreLucenes(t *testing.T) {
	cases := decode[map[string]string](t, golden(t, "golden/porter_words.json"))
	if len(cases) != 1500 {
		t.Fatalf("%d cases, want 1500", len(cases))
	}
	for word, want := range cases {
		if got := term(word); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestStopWordsAreLucenes(t *testing.T) {
	want := decode[struct {
		Words []string `json:"lucene_stopwords"`
	}](t, golden(t, "golden/tables.json")).Words
	if len(want) != len(stop) {
		t.Errorf("got %d, want %d", len(stop), len(want))
	}
	for _, w := range want {
		if !stop[w] {
			t.Errorf("%q is missing", w)
		}
	}
}

func TestLengthsAreLucenes(t *testing.T) {
	steps := decode[struct {
		Values map[string]uint64 `json:"first_length_to_value"`
	}](t, golden(t, "golden/lucene_norms.json")).Values
	if len(steps) != 122 {
		t.Fatalf("%d cases, want 122", len(steps))
	}
	want := uint64(0)
	for n := range uint32(20001) {
		if v, step := steps[strconv.Itoa(int(n))]; step {
			want = v
		}
		if got := lengthOf(lengthCode(n)); got != want {
			t.Fatalf("length %d: got %d, want %d", n, got, want)
		}
	}
}

// product is what the search reads of one.
type product struct {
	ASIN        string
	Name        string
	Description string          `json:"full_description"`
	Bullets     json.RawMessage `json:"small_description"`
	Options     json.RawMessage `json:"customization_options"`
}

// shop gives the ids of the real shop's thousand products in order, and what is searched of each.
func shop(t testing.TB) (ids, contents []string) {
	t.Helper()
	byID := map[string]string{}
	for _, p := range decode[[]product](t, golden(t, "items_shuffle_1000.json.gz")) {
		if _, twice := byID[p.ASIN]; twice || p.ASIN == "nan" || len(p.ASIN) > 10 {
			continue
		}
		byID[p.ASIN] = strings.ToLower(p.Name + " " + p.Description + " " + first(t, p.Bullets) + " " + options(t, p.Options))
		ids = append(ids, p.ASIN)
	}
	slices.Sort(ids)
	for _, id := range ids {
		contents = append(contents, byID[id])
	}
	return ids, contents
}

// first is the first bullet: of a list, or all that there is.
func first(t testing.TB, raw json.RawMessage) string {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			return ""
		}
		return list[0]
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		t.Fatal(err)
	}
	return one
}

func options(t testing.TB, raw json.RawMessage) string {
	var groups []string
	for name, value := range object(t, raw) {
		var choices []struct{ Value string }
		if err := json.Unmarshal(value, &choices); err != nil {
			t.Fatal(err)
		}
		if choices == nil {
			continue
		}
		var values []string
		for _, c := range choices {
			values = append(values, strings.ReplaceAll(strings.TrimSpace(c.Value), "/", " | "))
		}
		groups = append(groups, name+": "+strings.Join(values, ", "))
	}
	return strings.Join(groups, ", and ")
}

// object gives the members of a JSON object in their order; of anything else, none.
func object(t testing.TB, raw json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		if open, err := d.Token(); err != nil || open != json.Delim('{') {
			return
		}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			if value := decode[json.RawMessage](t, d); !yield(name.(string), value) {
				return
			}
		}
	}
}

type ranking struct {
	Query string
	Hits  [][2]any // id, score
}

func rankings(t testing.TB) (all []ranking) {
	t.Helper()
	d := golden(t, "golden/lucene_rankings_1k.jsonl.gz")
	for {
		var r ranking
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// The first fifty hits for recorded queries: the same products in the same order with the same scores to the last bit.
func TestRankingsAreLucenes(t *testing.T) {
	ids, contents := shop(t)
	x := build(t, contents...)
	all := rankings(t)
	if len(all) != 219 {
		t.Fatalf("%d cases, want 219", len(all))
	}
	for _, r := range all {
		hits := x.Search(r.Query, 50)
		if len(hits) != len(r.Hits) {
			t.Errorf("%q: got %d hits, want %d", r.Query, len(hits), len(r.Hits))
			continue
		}
		for i, h := range hits {
			if id, score := r.Hits[i][0].(string), float32(r.Hits[i][1].(float64)); ids[h.Document] != id || h.Score != score {
				t.Errorf("%q: hit %d: got %s %v, want %s %v", r.Query, i+1, ids[h.Document], h.Score, id, score)
				break
			}
		}
	}
}
