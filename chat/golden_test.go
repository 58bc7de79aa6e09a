package chat

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trace is a recorded episode of the real household world.
type trace struct {
	Reset struct{ Obs string }
	Steps []struct{ A, Obs string }
}

// goldenTraces reads the recorded episodes of one file, by default of shared/data beside the repository.
func goldenTraces(t testing.TB, name string) []trace {
	t.Helper()
	dir := os.Getenv("SKILLMASTER_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(dir, "alfworld", "golden", name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("recorded episodes: %v", err)
		}
		t.Skipf("NOT TESTED on recorded episodes (set SKILLMASTER_DATA): %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []trace
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var tr trace
		if err := json.Unmarshal(lines.Bytes(), &tr); err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%d episodes, %v", len(all), err)
	}
	return all
}

func goldenTexts(all []trace) []string {
	var texts []string
	for _, tr := range all {
		texts = append(texts, tr.Reset.Obs)
		for _, s := range tr.Steps {
			texts = append(texts, "<action>"+s.A+"</action>", s.Obs)
		}
	}
	return texts
}

// A tokenizer of 2,048 tokens learned from episodes in some rooms makes short work of episodes in others: an entity is
// one token, and a list of things takes about two tokens each.
func TestGoldenTokens(t *testing.T) {
	texts := goldenTexts(append(goldenTraces(t, "train.0.jsonl.gz"), goldenTraces(t, "seen.0.jsonl.gz")...))
	tok, err := Train(slices.Values(texts), TrainOptions{
		VocabSize: 2048, Special: Plain().Special(), Tags: Tags(),
		Pattern: EntityPattern(slices.Values(texts), 2, "clean", "hot", "cool", "two"),
	})
	if err != nil {
		t.Fatal(err)
	}
	unseen := goldenTraces(t, "unseen.0.jsonl.gz")
	var observation, action, steps, reset int
	var arrivals, arrival, listed int // observations that list things, their tokens, and the things
	for _, tr := range unseen {
		reset += len(tok.Encode(tr.Reset.Obs))
		for _, s := range tr.Steps {
			steps++
			observation += len(tok.Encode(s.Obs))
			action += len(tok.EncodeTags("<action>" + s.A + "</action>"))
			if strings.HasPrefix(s.Obs, "You arrive at ") && strings.Contains(s.Obs, ", you see a ") {
				arrivals++
				arrival += len(tok.Encode(s.Obs))
				listed += strings.Count(s.Obs, " a ")
			}
		}
	}
	n := float64(steps)
	perStep := float64(observation+action) / n
	t.Logf("%d tokens learned; %d episodes: first observation %.1f tokens, then per step %.2f (action %.2f with its tags, observation %.2f)",
		tok.VocabSize(), len(unseen), float64(reset)/float64(len(unseen)), perStep, float64(action)/n, float64(observation)/n)
	if perStep > 13 {
		t.Errorf("%.2f tokens per step, want at most 13", perStep)
	}
	// "You arrive at", place, ". On the", place and the full stop are five
	perThing := float64(arrival-5*arrivals) / float64(listed)
	t.Logf("%d arrivals list %d things: %.3f tokens each", arrivals, listed, perThing)
	if perThing > 2.1 {
		t.Errorf("%.3f tokens per thing listed, want at most 2.1", perThing)
	}
	entities, whole := 0, 0
	for _, s := range goldenTexts(unseen) {
		for _, id := range tok.Encode(s) {
			if tok.Parts(id) != nil {
				whole++
			}
		}
		for i := range len(s) {
			if isLetter(s[i]) && !wordBefore(s, i) {
				if stop, ok := wordEnd(s, i); ok && numberAfter(s, stop) > 0 {
					entities++
				}
			}
		}
	}
	if share := float64(whole) / float64(entities); share < 0.995 {
		t.Errorf("%d of %d entities are one token (%.4f), want 0.995", whole, entities, share)
	} else {
		t.Logf("%d of %d entities are one token", whole, entities)
	}
}

func BenchmarkGolden(b *testing.B) {
	texts := goldenTexts(append(goldenTraces(b, "train.0.jsonl.gz"), goldenTraces(b, "seen.0.jsonl.gz")...))
	o := TrainOptions{VocabSize: 2048, Special: Plain().Special(), Tags: Tags(), Pattern: EntityPattern(slices.Values(texts), 2)}
	tok, err := Train(slices.Values(texts), o)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, s := range texts {
		n += len(s)
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(n))
		for b.Loop() {
			for _, s := range texts {
				tok.Encode(s)
			}
		}
	})
	b.Run("train", func(b *testing.B) {
		b.SetBytes(int64(n))
		for b.Loop() {
			if _, err := Train(slices.Values(texts), o); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pattern", func(b *testing.B) {
		b.SetBytes(int64(n))
		for b.Loop() {
			EntityPattern(slices.Values(texts), 2)
		}
	})
}
