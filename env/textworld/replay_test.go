package textworld_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"skillmaster/env"
	"skillmaster/env/textworld"
)

var _ env.Replayer = (*textworld.Suite)(nil)

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"attic", "ferry", "lighthouse"} { // not the kitchen
		writeFile(t, filepath.Join(dir, name+".tw-pddl"), encode(t, foreignFile(t, name)))
	}
	for naming, skipped := range map[textworld.Naming]int{textworld.ByID: 8 + 12, textworld.ByAlfworld: 8 + 12} {
		s := openForeign(t, dir, textworld.Options{Naming: naming})
		got, err := s.Replay(t.Context(), os.DirFS("testdata"), "recorded.jsonl.gz")
		if err != nil || got.First != nil {
			t.Fatal(err, got.First)
		}
		if got.Episodes != 12 || got.Steps != 12*42 || len(got.Skipped) != skipped {
			t.Errorf("naming %d: %d episodes, %d steps, %d skipped", naming, got.Episodes, got.Steps, len(got.Skipped))
		}
	}
}

// TestReplayDiffers changes a word of a recording.
func TestReplayDiffers(t *testing.T) {
	s := openForeign(t, foreignFolder(t), textworld.Options{})
	packed, err := os.ReadFile(filepath.Join("testdata", "recorded.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct{ old, new, what string }{
		{"You leave", "You left", "observation"},
		{`, "take book_comma_red"`, "", "admissible actions"},
		{`"done": false`, `"done": true`, "done"},
		{`"r": 1`, `"r": 0`, "reward"},
		{`"won": false`, `"won": true`, "success"},
		{`"-= Attic =-`, `"= Attic =`, "observation"},
	}
	for _, c := range cases {
		changed := strings.Replace(string(text), c.old, c.new, 1)
		if changed == string(text) {
			t.Fatalf("no %s in the recording", c.old)
		}
		got, err := s.Replay(t.Context(), fstest.MapFS{"x": {Data: []byte(changed)}}, "x")
		if err != nil || got.First == nil || got.First.What != c.what {
			t.Errorf("%s: %v, %v", c.old, err, got.First)
		}
	}
	for _, bad := range []string{`{"game":"ferry","names":"people"}`, `{"game":"ferry","weather":1}`, `{`} {
		if _, err := s.Replay(t.Context(), fstest.MapFS{"x": {Data: []byte(bad)}}, "x"); err == nil {
			t.Errorf("%s is replayed", bad)
		}
	}
}
