package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// edited returns a stored tokenizer.json after a change to its parsed form.
func edited(t *testing.T, name string, change func(file map[string]any)) []byte {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(readTestdata(t, name), &file); err != nil {
		t.Fatal(err)
	}
	change(file)
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLoadNamesWhatItCannotRead(t *testing.T) {
	type object = map[string]any
	set := func(keys ...any) func(object) { // keys of objects, the last but one; then the value
		return func(file object) {
			at := file
			for _, k := range keys[:len(keys)-2] {
				at = at[k.(string)].(object)
			}
			at[keys[len(keys)-2].(string)] = keys[len(keys)-1]
		}
	}
	step := func(i int, key string, value any) func(object) {
		return func(file object) {
			file["pre_tokenizer"].(object)["pretokenizers"].([]any)[i].(object)[key] = value
		}
	}
	addedToken := func(key string, value any) func(object) {
		return func(file object) { file["added_tokens"].([]any)[0].(object)[key] = value }
	}
	for _, c := range []struct {
		reason string
		change func(object)
	}{
		{`version "2.0"`, set("version", "2.0")},
		{"truncation", set("truncation", object{"max_length": 5})},
		{"padding", set("padding", object{})},
		{`unknown field "extra"`, set("extra", 1)},
		{`unknown field "extra"`, set("model", "extra", 1)},
		{`model.type "Unigram"`, set("model", "type", "Unigram")},
		{"model.dropout", set("model", "dropout", 0.1)},
		{`continuing_subword_prefix "##"`, set("model", "continuing_subword_prefix", "##")},
		{`end_of_word_suffix "</w>"`, set("model", "end_of_word_suffix", "</w>")},
		{"byte_fallback", set("model", "byte_fallback", true)},
		{`normalizer "NFKC"`, set("normalizer", object{"type": "NFKC"})},
		{"decoder null", set("decoder", nil)},
		{`decoder "Fuse"`, set("decoder", object{"type": "Fuse"})},
		{"pre_tokenizer null", set("pre_tokenizer", nil)},
		{`"Whitespace"`, set("pre_tokenizer", object{"type": "Whitespace"})},
		{"Sequence of 0", set("pre_tokenizer", object{"type": "Sequence", "pretokenizers": []any{}})},
		{`behavior "Removed"`, step(0, "behavior", "Removed")},
		{"without a Regex", step(0, "pattern", object{"String": "x"})},
		{`(?!x)`, step(0, "pattern", object{"Regex": "a(?!x)"})},
		{`"Punctuation"`, step(0, "type", "Punctuation")},
		{`"Digits" is not supported at its place`, step(1, "type", "Digits")},
		{"add_prefix_space", step(1, "add_prefix_space", true)},
		{`unknown field "new"`, step(1, "new", true)},
		{"single_word", addedToken("single_word", true)},
		{"lstrip", addedToken("lstrip", true)},
		{"rstrip", addedToken("rstrip", true)},
		{"id 999999999", addedToken("id", 999999999)},
		{"has 0 bytes", addedToken("content", "")},
		{"stands there twice", func(f object) { f["added_tokens"] = append(f["added_tokens"].([]any), f["added_tokens"].([]any)[0]) }},
		{`"a b" is not written in the byte alphabet`, set("model", "vocab", "a b", 9000)},
		{"id -1", set("model", "vocab", "zzz", -1)},
		{"id 1048576", set("model", "vocab", "zzz", 1<<20)},
		{"id 300 is", set("model", "vocab", "zzz", 300)},
		{"no token for byte 0x61", func(f object) {
			delete(f["model"].(object)["vocab"].(object), "a")
			f["model"].(object)["merges"] = []any{}
			f["model"].(object)["unk_token"] = "<|endoftext|>"
		}},
		{"1 parts", set("model", "merges", []any{"ab"})},
		{"3 parts", set("model", "merges", []any{[]any{"a", "b", "c"}})},
		{`"zzz" is not in the vocabulary`, set("model", "merges", []any{"a zzz"})},
		{"merge 0 makes", set("model", "merges", []any{"~ ~"})},
		{"stands there twice", func(f object) {
			m := f["model"].(object)["merges"].([]any)
			f["model"].(object)["merges"] = append(m, m[0])
		}},
	} {
		_, err := Load(bytes.NewReader(edited(t, "qwen.json", c.change)))
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("error %v, want one that says %q", err, c.reason)
		}
	}
}

func TestLoadRefusesWhatIsNoTokenizer(t *testing.T) {
	whole := string(readTestdata(t, "qwen.json"))
	for _, s := range []string{"", "{", "[]", "null", `{"version":"1.0"}`, whole[:len(whole)/2], whole + "x"} {
		if _, err := Load(strings.NewReader(s)); err == nil {
			t.Errorf("%.20q loads", s)
		}
	}
	twice := strings.Replace(whole, `"vocab":{`, `"vocab":{"a":66666,`, 1)
	if _, err := Load(strings.NewReader(twice)); err == nil || !strings.Contains(err.Error(), "two ids share a token") {
		t.Errorf("a key that stands twice: error %v", err)
	}
	if _, err := Load(spaces64{}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("an endless file: error %v", err)
	}
}

// spaces64 is a file without end.
type spaces64 struct{}

func (spaces64) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Merges as strings, the older form, are the same merges.
func TestLoadReadsMergesAsStrings(t *testing.T) {
	data := edited(t, "qwen.json", func(file map[string]any) {
		merges := file["model"].(map[string]any)["merges"].([]any)
		for i, m := range merges {
			merges[i] = m.([]any)[0].(string) + " " + m.([]any)[1].(string)
		}
	})
	tok, err := Load(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	same, err := Load(bytes.NewReader(edited(t, "qwen.json", func(map[string]any) {})))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(save(t, tok), save(t, same)) {
		t.Error("merges as strings load as another tokenizer")
	}
}

// Save keeps what it does not apply.
func TestSaveKeepsThePostProcessor(t *testing.T) {
	post := map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true}
	tok, err := Load(bytes.NewReader(edited(t, "qwen.json", func(f map[string]any) { f["post_processor"] = post })))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(save(t, tok), &file); err != nil {
		t.Fatal(err)
	}
	if got := file["post_processor"].(map[string]any)["trim_offsets"]; got != false {
		t.Errorf("post_processor after Save: %v", file["post_processor"])
	}
}

func FuzzLoad(f *testing.F) {
	small, err := Train(func(yield func(string) bool) { yield("aa ab aa ab") }, TrainOptions{VocabSize: 264, Special: []string{"<|end|>"}, Tags: []string{"<t>"}})
	if err != nil {
		f.Fatal(err)
	}
	data := save(f, small)
	f.Add(data)
	f.Add(bytes.Replace(data, []byte(`"normalizer":null`), []byte(`"normalizer":{"type":"NFC"}`), 1))
	f.Add(bytes.Replace(data, []byte(`"ignore_merges":false`), []byte(`"ignore_merges":true`), 1))
	f.Add(data[:len(data)-9])
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Load(bytes.NewReader(data))
		if err != nil {
			return
		}
		once := save(t, tok)
		again, err := Load(bytes.NewReader(once))
		if err != nil {
			t.Fatalf("what Save wrote does not load: %v", err)
		}
		if !bytes.Equal(once, save(t, again)) {
			t.Error("saved twice, two files")
		}
		text := "aab <|end|><t> ab\n\xff"
		ids := tok.Encode(text)
		if got := tok.Decode(ids); got != text && !tok.nfc && !slices.Contains(tok.byteIDs[:], noToken) {
			t.Errorf("Decode(Encode(%q)) = %q", text, got)
		}
		if s, g := addedIn(tok, ids); s+g != 0 {
			t.Error("Encode makes added tokens")
		}
	})
}
