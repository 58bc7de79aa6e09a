package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// realFile is a file about a released model that testdata/real_tokenizers.py fetched.
func realFile(name, file string) ([]byte, error) {
	dir := os.Getenv("SKILLMASTER_TOKENIZERS")
	if dir == "" {
		dir = filepath.Join("..", "bin", "tokenizers")
	}
	return os.ReadFile(filepath.Join(dir, name, file))
}

// publishedTemplate is the chat template its makers give, if they do.
func publishedTemplate(t testing.TB, name string) string {
	t.Helper()
	var config struct {
		Template string `json:"chat_template"`
	}
	data, err := realFile(name, "tokenizer_config.json")
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return config.Template
}

// realTokenizer reads the tokenizer of a released model.
func realTokenizer(t testing.TB, name string) (*Tokenizer, []byte) {
	t.Helper()
	data, err := realFile(name, "tokenizer.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("NOT TESTED on the tokenizer of %s (fetch it: make tokenizers)", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Load(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return tok, data
}

// TestRealTokenizers: with the tokenizers of released models, ids are those of Hugging Face's tokenizers, which
// testdata/real.json holds.
func TestRealTokenizers(t *testing.T) {
	var v struct {
		Texts      []string      `json:"texts"`
		Messages   [][][2]string `json:"messages"` // of role and text
		Tokenizers map[string]struct {
			SHA256  string    `json:"sha256"`
			Size    int       `json:"size"`
			Special [][]int32 `json:"special"`
			Chats   []string  `json:"chats"` // what the published template makes of the first messages
		} `json:"tokenizers"`
	}
	if err := json.Unmarshal(readTestdata(t, "real.json"), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Tokenizers) != 5 {
		t.Fatalf("values of %d tokenizers, want 5", len(v.Tokenizers))
	}
	for name, want := range v.Tokenizers {
		t.Run(name, func(t *testing.T) {
			tok, data := realTokenizer(t, name)
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want.SHA256 {
				t.Fatalf("the file has the hash %x, the values are of %s", sum, want.SHA256)
			}
			if got := tok.VocabSize(); got != want.Size {
				t.Errorf("%d tokens, want %d", got, want.Size)
			}
			for i, text := range v.Texts {
				if got := tok.EncodeWithSpecial(text); !slices.Equal(got, want.Special[i]) {
					t.Errorf("%q:\n got %q\nwant %q", text, split(tok, got), split(tok, want.Special[i]))
				}
				if got := tok.Encode(text); tok.Decode(got) != known(tok, tok.normal(text)) {
					t.Errorf("Decode(Encode(%q)) = %q", text, tok.Decode(got))
				}
			}
			tmpl, err := TemplateFor(tok, publishedTemplate(t, name))
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range want.Chats {
				var messages []Message
				for _, m := range v.Messages[i] {
					messages = append(messages, Message{Role(m[0]), m[1]})
				}
				if got := tmpl.Render(tok, messages, 0, true); tok.Decode(got) != text || !slices.Equal(got, tok.EncodeWithSpecial(text)) {
					t.Errorf("%s renders %q, want %q", tmpl.Name(), split(tok, got), text)
				}
			}
			again, err := Load(bytes.NewReader(save(t, tok)))
			if err != nil || again.VocabSize() != want.Size {
				t.Errorf("saved and loaded: %v", err)
			}
		})
	}
}
