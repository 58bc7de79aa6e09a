package chat

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/entity.json; run testdata/make_tokenizer_values.py afterwards")

// stored are the tokenizers of testdata.
var stored = []string{"gpt2", "qwen", "llama3", "smollm", "common", "entity"}

// values are what Hugging Face's tokenizers make of texts: testdata/values.json, by make_tokenizer_values.py.
type values struct {
	Texts      []string `json:"texts"`
	Tokenizers map[string]struct {
		Size    int       `json:"size"`
		Special [][]int32 `json:"special"`
		Tags    [][]int32 `json:"tags"`
		Plain   [][]int32 `json:"plain"`
	} `json:"tokenizers"`
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func loadTestdata(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := Load(bytes.NewReader(readTestdata(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func save(t testing.TB, tok *Tokenizer) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tok.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestIDsEqualHuggingFace(t *testing.T) {
	var v values
	if err := json.Unmarshal(readTestdata(t, "values.json"), &v); err != nil {
		t.Fatal(err)
	}
	for _, name := range stored {
		tok := loadTestdata(t, name+".json")
		want := v.Tokenizers[name]
		if got := tok.VocabSize(); got != want.Size {
			t.Errorf("%s: VocabSize = %d, want %d", name, got, want.Size)
		}
		for i, text := range v.Texts {
			for _, c := range []struct {
				method string
				got    []int32
				want   []int32
			}{
				{"EncodeWithSpecial", tok.EncodeWithSpecial(text), want.Special[i]},
				{"EncodeTags", tok.EncodeTags(text), want.Tags[i]},
				{"Encode", tok.Encode(text), want.Plain[i]},
			} {
				if !slices.Equal(c.got, c.want) {
					t.Errorf("%s: %s(%q):\n got %q\nwant %q", name, c.method, text, split(tok, c.got), split(tok, c.want))
				}
			}
		}
	}
}

// split returns the text of each id.
func split(tok *Tokenizer, ids []int32) []string {
	var parts []string
	for _, id := range ids {
		s, _ := tok.Token(id)
		parts = append(parts, s)
	}
	return parts
}

func TestSaveIsStable(t *testing.T) {
	for _, name := range stored {
		once := save(t, loadTestdata(t, name+".json"))
		again, err := Load(bytes.NewReader(once))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if twice := save(t, again); !bytes.Equal(once, twice) {
			t.Errorf("%s: saved twice, two files", name)
		}
	}
}

// The trainer learns the merges Hugging Face's learns.
func TestTrainEqualsHuggingFace(t *testing.T) {
	var paragraphs []string // without special tokens: Hugging Face's trainer does not cut texts at them
	for _, p := range strings.Split(string(readTestdata(t, "corpus.txt")), "\n\n") {
		if !strings.Contains(p, "<|") {
			paragraphs = append(paragraphs, p)
		}
	}
	for name, pattern := range map[string]string{"gpt2": GPT2Pattern, "llama3": Llama3Pattern} {
		want := loadTestdata(t, name+".json")
		tags := Tags()[:2] // added after training there: no cuts at them
		got, err := Train(slices.Values(paragraphs), TrainOptions{
			VocabSize: 700, Special: []string{"<|im_start|>", "<|im_end|>", "<|endoftext|>"}, Pattern: pattern,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.VocabSize()+len(tags) != want.VocabSize() {
			t.Errorf("%s: %d tokens, want %d", name, got.VocabSize()+len(tags), want.VocabSize())
		}
		if g, w := mergeTexts(got), mergeTexts(want); !slices.Equal(g, w) {
			t.Errorf("%s: merges differ:\n got %q\nwant %q", name, g, w)
		}
	}
}

func mergeTexts(tok *Tokenizer) [][2]string {
	var all [][2]string
	for _, p := range tok.merges {
		all = append(all, [2]string{tok.tokens[p.left], tok.tokens[p.right]})
	}
	return all
}

// entityOptions are those of testdata/entity.json.
func entityOptions(texts []string) TrainOptions {
	return TrainOptions{
		VocabSize: 700, Special: Plain().Special(), Tags: Tags(),
		Pattern: EntityPattern(slices.Values(texts), 2, "clean", "hot", "two"),
	}
}

func TestEntityTokenizerIsTheStoredOne(t *testing.T) {
	texts := worldTexts(60)
	tok, err := Train(slices.Values(texts), entityOptions(texts))
	if err != nil {
		t.Fatal(err)
	}
	got := save(t, tok)
	if *update {
		if err := os.WriteFile("testdata/entity.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, readTestdata(t, "entity.json")) {
		t.Error("training gives another tokenizer than testdata/entity.json (if this is meant: -update, then make_tokenizer_values.py)")
	}
}
