package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxFile bounds a tokenizer.json, in bytes.
const maxFile = 64 << 20

// fileParts is what of a tokenizer.json is written back as it was read.
type fileParts struct {
	normalizer, preTokenizer, postProcessor, decoder json.RawMessage
	model                                            modelHead
}

// modelHead is the model of a tokenizer.json without its tables.
type modelHead struct {
	Type         string   `json:"type"`
	Dropout      *float64 `json:"dropout"`
	UnkToken     *string  `json:"unk_token"`
	Prefix       *string  `json:"continuing_subword_prefix"`
	Suffix       *string  `json:"end_of_word_suffix"`
	FuseUnk      bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`
}

// jsonFile is a tokenizer.json.
type jsonFile struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []jsonAdded     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         struct {
		modelHead
		Vocab  json.RawMessage `json:"vocab"`
		Merges []jsonMerge     `json:"merges"`
	} `json:"model"`
}

type jsonAdded struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// jsonMerge is "left right" or ["left", "right"].
type jsonMerge [2]string

func (m *jsonMerge) UnmarshalJSON(b []byte) error {
	var parts []string
	if b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		parts = strings.Split(s, " ")
	} else if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("merge %s has %d parts, not 2", b, len(parts))
	}
	m[0], m[1] = parts[0], parts[1]
	return nil
}

// Load reads a tokenizer.json of Hugging Face's tokenizers: a BPE model over bytes, split by ByteLevel with or without
// Split and Digits before it, with no normaliser or NFC. Whatever it cannot follow exactly is an error
// that names it. Post-processors are kept for Save and not applied: templates write their tokens themselves.
func Load(r io.Reader) (*Tokenizer, error) {
	t, err := load(r)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", err)
	}
	return t, nil
}

func load(r io.Reader) (*Tokenizer, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	var f jsonFile
	if err := strict(data, &f); err != nil {
		return nil, err
	}
	d, err := f.definition()
	if err != nil {
		return nil, err
	}
	return assemble(d)
}

// strict decodes one JSON value that has nothing unknown in it and nothing after it.
func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the JSON value")
	}
	return nil
}

func null(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

// definition translates the file.
func (f *jsonFile) definition() (definition, error) {
	var d definition
	for _, check := range []func(*definition) error{f.readHead, f.readNormalizer, f.readPreTokenizer, f.readAdded, f.readVocab, f.readMerges} {
		if err := check(&d); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (f *jsonFile) readHead(d *definition) error {
	m := f.Model.modelHead
	switch {
	case f.Version != "1.0":
		return fmt.Errorf("version %q is not supported: only 1.0", f.Version)
	case !null(f.Truncation):
		return errors.New("truncation is not supported: set it to null")
	case !null(f.Padding):
		return errors.New("padding is not supported: set it to null")
	case m.Type != "BPE":
		return fmt.Errorf("model.type %q is not supported: only BPE", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return errors.New("model.dropout is not supported: set it to null")
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("model.continuing_subword_prefix %q is not supported", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("model.end_of_word_suffix %q is not supported", *m.Suffix)
	case m.ByteFallback:
		return errors.New("model.byte_fallback is not supported: only byte-level models")
	}
	var decoder struct {
		Type string `json:"type"`
	}
	if null(f.Decoder) {
		return errors.New("decoder null is not supported: only ByteLevel")
	}
	if err := json.Unmarshal(f.Decoder, &decoder); err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if decoder.Type != "ByteLevel" {
		return fmt.Errorf("decoder %q is not supported: only ByteLevel", decoder.Type)
	}
	d.whole = m.IgnoreMerges
	d.file = fileParts{f.Normalizer, f.PreTokenizer, f.PostProcessor, f.Decoder, m}
	return nil
}

func (f *jsonFile) readNormalizer(d *definition) error {
	if null(f.Normalizer) {
		return nil
	}
	var n struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(f.Normalizer, &n); err != nil {
		return fmt.Errorf("normalizer: %w", err)
	}
	if n.Type != "NFC" {
		return fmt.Errorf("normalizer %q is not supported: only null and NFC", n.Type)
	}
	d.nfc = true
	return nil
}

// readPreTokenizer reads ByteLevel, or a Sequence of Splits and Digits with ByteLevel at its end.
func (f *jsonFile) readPreTokenizer(d *definition) error {
	if null(f.PreTokenizer) {
		return errors.New("pre_tokenizer null is not supported: only ByteLevel, with or without Split and Digits before it")
	}
	var outer struct {
		Type          string            `json:"type"`
		PreTokenizers []json.RawMessage `json:"pretokenizers"`
	}
	if err := json.Unmarshal(f.PreTokenizer, &outer); err != nil {
		return fmt.Errorf("pre_tokenizer: %w", err)
	}
	steps := []json.RawMessage{f.PreTokenizer}
	if outer.Type == "Sequence" {
		steps = outer.PreTokenizers
	}
	if len(steps) == 0 || len(steps) > maxSplits+1 {
		return fmt.Errorf("pre_tokenizer Sequence of %d: from 1 to %d are supported", len(steps), maxSplits+1)
	}
	for i, raw := range steps {
		pattern, err := readStep(raw, i == len(steps)-1)
		if err != nil {
			return err
		}
		if pattern != "" {
			d.pattern = append(d.pattern, pattern)
		}
	}
	return nil
}

// readStep returns the pattern of one pre-tokenizer: a Split, Digits, or the ByteLevel at the end, which may have none.
func readStep(raw json.RawMessage, last bool) (string, error) {
	var s struct {
		Type    string `json:"type"`
		Pattern struct {
			Regex  *string `json:"Regex"`
			String *string `json:"String"`
		} `json:"pattern"`
		Behavior       string `json:"behavior"`
		Invert         bool   `json:"invert"` // keeps the same pieces where behavior is Isolated
		AddPrefixSpace *bool  `json:"add_prefix_space"`
		TrimOffsets    bool   `json:"trim_offsets"` // for offsets into the text, which are not used here
		UseRegex       *bool  `json:"use_regex"`
		Individual     bool   `json:"individual_digits"`
	}
	if err := strict(raw, &s); err != nil {
		return "", fmt.Errorf("pre_tokenizer: %w", err)
	}
	switch {
	case last && s.Type != "ByteLevel", !last && s.Type != "Split" && s.Type != "Digits":
		return "", fmt.Errorf("pre_tokenizer %q is not supported at its place: only Split and Digits with ByteLevel at the end", s.Type)
	case last && (s.AddPrefixSpace == nil || *s.AddPrefixSpace):
		return "", errors.New("pre_tokenizer ByteLevel with add_prefix_space true is not supported")
	case last && s.UseRegex != nil && !*s.UseRegex:
		return "", nil
	case last:
		return GPT2Pattern, nil
	case s.Type == "Digits" && s.Individual:
		return digitPattern, nil
	case s.Type == "Digits":
		return digitPattern + "+", nil
	case s.Pattern.Regex == nil || *s.Pattern.Regex == "":
		return "", errors.New("pre_tokenizer Split without a Regex is not supported")
	case s.Behavior != "Isolated":
		return "", fmt.Errorf("pre_tokenizer Split with behavior %q is not supported: only Isolated", s.Behavior)
	}
	return *s.Pattern.Regex, nil
}

func (f *jsonFile) readAdded(d *definition) error {
	for _, a := range f.AddedTokens {
		for name, set := range map[string]bool{"single_word": a.SingleWord, "lstrip": a.LStrip, "rstrip": a.RStrip} {
			if set {
				return fmt.Errorf("added token %q with %s is not supported", a.Content, name)
			}
		}
		k := tag
		if a.Special {
			k = special
		}
		d.added = append(d.added, added{id: a.ID, text: a.Content, kind: k, normalized: a.Normalized})
	}
	return nil
}

// readVocab reads the vocabulary key by key, so that a key that stands there twice is seen.
func (f *jsonFile) readVocab(d *definition) error {
	raw := map[string]int32{} // added tokens, which the vocabulary holds as they are
	for _, a := range d.added {
		raw[a.text] = a.id
	}
	d.tokens = map[int32]string{}
	dec := json.NewDecoder(bytes.NewReader(f.Model.Vocab))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return errors.New("model.vocab is not an object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return fmt.Errorf("model.vocab: %w", err)
		}
		name := key.(string)
		var id int32
		if err := dec.Decode(&id); err != nil {
			return fmt.Errorf("model.vocab: id of %q: %w", name, err)
		}
		token, ok := unspell(name)
		if at, named := raw[name]; named && at == id {
			token, ok = name, true
		}
		if !ok {
			return fmt.Errorf("model.vocab: %q is not written in the byte alphabet: only byte-level models are supported", name)
		}
		if twice, ok := d.tokens[id]; ok {
			return fmt.Errorf("model.vocab: id %d is %q and %q", id, twice, token)
		}
		d.tokens[id] = token
	}
	return nil
}

func (f *jsonFile) readMerges(d *definition) error {
	ids := make(map[string]int32, len(d.tokens))
	for id, s := range d.tokens {
		ids[s] = id
	}
	for rank, m := range f.Model.Merges {
		var p [2]int32
		for i, name := range m {
			token, ok := unspell(name)
			if ok {
				p[i], ok = ids[token]
			}
			if !ok {
				return fmt.Errorf("merge %d: %q is not in the vocabulary", rank, name)
			}
		}
		d.merges = append(d.merges, pair{p[0], p[1]})
	}
	return nil
}

// Save writes the tokenizer as a tokenizer.json: always the same bytes, which Load and Hugging Face's tokenizers read.
func (t *Tokenizer) Save(w io.Writer) error {
	b := bufio.NewWriter(w)
	head, err := t.head()
	if err != nil {
		return fmt.Errorf("write tokenizer.json: %w", err)
	}
	b.Write(head)
	b.WriteString(",\"vocab\":{")
	comma := "\n"
	for id, s := range t.tokens {
		a, isAdded := t.addedAt(int32(id))
		switch {
		case t.kinds[id] == hole, isAdded && !a.inModel:
			continue
		case !isAdded:
			s = spell(s)
		}
		fmt.Fprintf(b, "%s%s:%d", comma, quote(s), id)
		comma = ",\n"
	}
	b.WriteString("\n},\"merges\":[")
	comma = "\n"
	for _, p := range t.merges {
		fmt.Fprintf(b, "%s[%s,%s]", comma, quote(spell(t.tokens[p.left])), quote(spell(t.tokens[p.right])))
		comma = ",\n"
	}
	b.WriteString("\n]}}\n")
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write tokenizer.json: %w", err)
	}
	return nil
}

// head returns the file up to the tables of the model, which is left open.
func (t *Tokenizer) head() ([]byte, error) {
	f := struct {
		Version       string          `json:"version"`
		Truncation    json.RawMessage `json:"truncation"`
		Padding       json.RawMessage `json:"padding"`
		AddedTokens   []jsonAdded     `json:"added_tokens"`
		Normalizer    json.RawMessage `json:"normalizer"`
		PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
		PostProcessor json.RawMessage `json:"post_processor"`
		Decoder       json.RawMessage `json:"decoder"`
		Model         modelHead       `json:"model"`
	}{
		Version: "1.0", AddedTokens: []jsonAdded{}, Normalizer: t.file.normalizer, PreTokenizer: t.file.preTokenizer,
		PostProcessor: t.file.postProcessor, Decoder: t.file.decoder, Model: t.file.model,
	}
	for _, a := range t.added {
		f.AddedTokens = append(f.AddedTokens, jsonAdded{ID: a.id, Content: a.text, Normalized: a.normalized, Special: a.kind == special})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("}}\n")), nil
}

func (t *Tokenizer) addedAt(id int32) (added, bool) {
	i, ok := slices.BinarySearchFunc(t.added, id, func(a added, id int32) int { return int(a.id) - int(id) })
	if !ok {
		return added{}, false
	}
	return t.added[i], true
}

// quote writes a string as JSON, legible.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes, and a buffer always takes it
	return strings.TrimSuffix(b.String(), "\n")
}
