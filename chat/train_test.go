package chat

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
)

// By hand: a and b stand together three times; then x z, y z and ab c twice each. Ties go to the lower left id, and what
// was learned has a higher id than every byte.
func TestTrainByHand(t *testing.T) {
	tok, err := Train(slices.Values([]string{"abc", "abc", "ab", "yz", "yz", "xz", "xz"}), TrainOptions{VocabSize: 300})
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{{"a", "b"}, {"x", "z"}, {"y", "z"}, {"ab", "c"}}
	if got := mergeTexts(tok); !slices.Equal(got, want) {
		t.Errorf("merges %q, want %q", got, want)
	}
	if got := tok.VocabSize(); got != 260 {
		t.Errorf("VocabSize = %d, want 260", got)
	}
}

func TestTrainOptions(t *testing.T) {
	corpus := []string{"ab ab ab", "<|end|> is cut out: <|end|>", "cd cd"}
	tok, err := Train(slices.Values(corpus), TrainOptions{VocabSize: 261, Special: []string{"<|end|>"}, Tags: []string{"<t>"}, MinCount: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mergeTexts(tok), [][2]string{{"a", "b"}}; !slices.Equal(got, want) {
		t.Errorf("merges %q, want %q", got, want)
	}
	if end, _ := tok.ID("<|end|>"); end != 257 {
		t.Errorf("<|end|> has id %d, want 257", end)
	}
	for _, o := range []TrainOptions{
		{VocabSize: 255},
		{VocabSize: 256, Special: []string{"<|end|>"}},
		{VocabSize: 1 << 30},
		{VocabSize: 300, Pattern: "("},
		{VocabSize: 300, Special: []string{"<|end|>"}, Tags: []string{"<|end|>"}},
		{VocabSize: 300, Special: []string{""}},
	} {
		if _, err := Train(slices.Values(corpus), o); err == nil {
			t.Errorf("no error of %+v", o)
		}
	}
}

func TestTrainDoesNotDependOnOrder(t *testing.T) {
	texts := worldTexts(30)
	o := entityOptions(texts)
	forth, err := Train(slices.Values(texts), o)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(texts)
	back, err := Train(slices.Values(texts), o)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(save(t, forth), save(t, back)) {
		t.Error("the order of the texts changes the tokenizer")
	}
}

// slowMerges is the trainer as it is defined: count all pairs anew for every merge.
func slowMerges(counts map[string]int, words bool, most int) [][2]string {
	order := map[string]int{}
	for i, s := range byteTokens() {
		order[s] = i
	}
	type row struct {
		tokens []string
		edges  []edge
		count  int
	}
	var rows []row
	for _, piece := range slices.Sorted(maps.Keys(counts)) {
		rows = append(rows, row{strings.Split(piece, ""), wordEdges(piece), counts[piece]})
	}
	var merges [][2]string
	for len(order) < 256+most {
		seen := map[[2]string]int{}
		for _, r := range rows {
			for i := range len(r.tokens) - 1 {
				if !words || countable(r.edges[i], r.edges[i+1]) {
					seen[[2]string{r.tokens[i], r.tokens[i+1]}] += r.count
				}
			}
		}
		var best [2]string
		for p, n := range seen {
			lower := order[p[0]] < order[best[0]] || p[0] == best[0] && order[p[1]] < order[best[1]]
			if n >= 2 && (n > seen[best] || n == seen[best] && lower) {
				best = p
			}
		}
		if seen[best] < 2 {
			return merges
		}
		merges = append(merges, best)
		if _, known := order[best[0]+best[1]]; !known {
			order[best[0]+best[1]] = len(order)
		}
		for k, r := range rows {
			for i := 0; i+1 < len(r.tokens); i++ {
				if r.tokens[i] == best[0] && r.tokens[i+1] == best[1] {
					r.edges[i] = join(r.edges[i], r.edges[i+1])
					r.tokens = slices.Replace(r.tokens, i, i+2, best[0]+best[1])
					r.edges = slices.Delete(r.edges, i+1, i+2)
				}
			}
			rows[k] = r
		}
	}
	return merges
}

func TestTrainEqualsSlowTrain(t *testing.T) {
	texts := append(worldTexts(8), "aaaa aaaaa aaa bbb a a a -- --- ----", "aaaa aaaaa")
	for name, pattern := range map[string]string{"words": EntityPattern(slices.Values(texts), 2, "clean"), "plain": GPT2Pattern} {
		o := TrainOptions{VocabSize: 420, Pattern: pattern}
		tok, err := Train(slices.Values(texts), o)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, s := range texts {
			pieces(s, tok.cuts, func(p string) { counts[p]++ })
		}
		if got, want := mergeTexts(tok), slowMerges(counts, name == "words", 420-256); !slices.Equal(got, want) {
			t.Errorf("%s: merges\n got %q\nwant %q", name, got, want)
		}
	}
}

func TestWordEdges(t *testing.T) {
	const s, e = starts, ends
	for piece, want := range map[string][]edge{
		"a":      {s | e},
		", a":    {s | e, s, e},
		" ab 12": {s, 0, e, s, 0, e},
		`{"a":`:  {s, e, s | e, s, e},
		"  a":    {s | e, s, e},
	} {
		if got := wordEdges(piece); !slices.Equal(got, want) {
			t.Errorf("wordEdges(%q) = %v, want %v", piece, got, want)
		}
	}
}

func TestCountable(t *testing.T) {
	const word, head, middle, tail = starts | ends, starts, edge(0), ends
	tornEnd := join(word, head) // a word and the start of another
	for _, c := range []struct {
		name        string
		left, right edge
		want        bool
	}{
		{"parts of a word", head, middle, true},
		{"a word from its parts", head, tail, true},
		{"two words", word, word, true},
		{"the end of a word and a word", tail, word, false},
		{"a word and the start of one", word, head, false},
		{"a torn end and more of its word", tornEnd, middle, false},
		{"a torn end and all the rest of its word", tornEnd, tail, true},
		{"three words", join(word, word), word, true},
	} {
		if got := countable(c.left, c.right); got != c.want {
			t.Errorf("%s: countable = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWorldTokens(t *testing.T) {
	tok := worldTokenizer(t)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"You arrive at cabinet 3. On the cabinet 3, you see a pot 1, a potato 2, and a cd 4.", []string{"You arrive at", " cabinet 3", ". On the", " cabinet 3", ", you see a", " pot 1", ", a", " potato 2", ", and a", " cd 4", "."}},
		{"Your task: put a clean mug in cabinet.", []string{"Your task: put a", " clean", " mug", " in", " cabinet", "."}},
		{"Your task: put two cd in shelf.", []string{"Your task: put", " two", " cd", " in", " shelf", "."}},
		{"<action>take mug 2 from drawer 1</action>", []string{"<action>", "take", " mug 2", " from", " drawer 1", "</action>"}},
		{`<tool_call>{"name":"propose_skill","arguments":{"category":"clean"`, []string{"<tool_call>", `{"name":"propose_skill","arguments":{"category":"`, "clean", `"`}},
	} {
		got := split(tok, tok.EncodeTags(c.text))
		if !slices.Equal(got, c.want) {
			t.Errorf("%q:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

func BenchmarkTrain(b *testing.B) {
	texts := worldTexts(8000)
	o := entityOptions(texts)
	o.VocabSize = 2256
	n := 0
	for _, s := range texts {
		n += len(s)
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		if _, err := Train(slices.Values(texts), o); err != nil {
			b.Fatal(err)
		}
	}
}
