package skill

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
)

// letters embeds a text as how often it has a, b and c, and counts what it is asked.
type letters struct {
	mu    sync.Mutex
	asked map[string]int
	calls int
	give  func(texts []string) ([][]float32, error) // nil: counts
}

func (l *letters) Embed(_ context.Context, texts []string) ([][]float32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.give != nil {
		return l.give(texts)
	}
	var out [][]float32
	for _, t := range texts {
		if l.asked == nil {
			l.asked = map[string]int{}
		}
		l.asked[t]++
		out = append(out, []float32{float32(strings.Count(t, "a")), float32(strings.Count(t, "b")), float32(strings.Count(t, "c"))})
	}
	return out, nil
}

// Vectors (3,4,0) and (4,3,0) against (1,0,0): cosines 0.6 and 0.8.
func TestScoresByHand(t *testing.T) {
	b := must(t, Skill{"x", "s", "aa", "abbbb", ""}, Skill{"y", General, "aaaa", "bbb", ""}, Skill{"z", "other", "a", "a", ""})
	l := &letters{}
	v := NewVectors(l)
	q := Query{How: Embedded, Category: "s", Text: "a"}
	got, err := v.Scores(t.Context(), b, q)
	if err != nil || len(got) != 2 || math.Abs(got["x"]-0.6) > 1e-6 || math.Abs(got["y"]-0.8) > 1e-6 {
		t.Fatalf("scores %v, %v; want 0.6 and 0.8", got, err)
	}
	q.Scores = got
	q.MaxSkills = 1
	if s := Retrieve(b, q); len(s) != 1 || s[0].ID != "y" {
		t.Errorf("retrieved %v", s)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := v.Scores(t.Context(), b, q); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for text, n := range l.asked {
		if n != 1 {
			t.Errorf("asked %d times for %q", n, text)
		}
	}
	if got, err := v.Scores(t.Context(), Bank{}, q); got != nil || err != nil || l.calls != 1 {
		t.Errorf("an empty bank: %v, %v, %d calls", got, err, l.calls)
	}
}

func TestScoresRefuses(t *testing.T) {
	b := must(t, Skill{"x", "s", "a", "b", ""})
	broken := errors.New("no server")
	for name, give := range map[string]func(texts []string) ([][]float32, error){
		"an error":         func([]string) ([][]float32, error) { return nil, broken },
		"too few":          func([]string) ([][]float32, error) { return [][]float32{{1}}, nil },
		"other lengths":    func([]string) ([][]float32, error) { return [][]float32{{1}, {1, 2}}, nil },
		"nothing":          func([]string) ([][]float32, error) { return [][]float32{{0}, {1}}, nil },
		"not a number":     func([]string) ([][]float32, error) { return [][]float32{{float32(math.NaN())}, {1}}, nil },
		"without end":      func([]string) ([][]float32, error) { return [][]float32{{float32(math.Inf(1))}, {1}}, nil },
		"without elements": func([]string) ([][]float32, error) { return [][]float32{{}, {}}, nil },
	} {
		if got, err := NewVectors(&letters{give: give}).Scores(t.Context(), b, Query{Category: "s", Text: "a"}); err == nil {
			t.Errorf("%s gives %v", name, got)
		}
	}
}

func TestUsed(t *testing.T) {
	mug := Skill{"dyn_001", "c", "Find the mug", "Look for a mug in the coffeemachine first.", ""}
	b := must(t, mug, Skill{"dyn_002", "c", "Find the apple", "Look for an apple in the fridge first.", ""}, Skill{"dyn_003", "c", "Find the plate", "Look for a plate in the cabinets first.", ""})
	plate, _ := b.Skill("dyn_003")
	for _, c := range []struct {
		name, goal, wrote string
		s                 Skill
		want              bool
	}{
		{"the place", "cool some mug", "<action>go to coffeemachine 1</action>", mug, true},
		{"the thing is in the goal", "cool some mug", "<action>take mug 1 from shelf 1</action>", mug, false},
		{"words that most skills have", "cool some mug", "<think>I look there first</think><action>look</action>", mug, false},
		{"another place", "cool some mug", "<action>go to fridge 1</action>", mug, false},
		{"by id", "cool some mug", "<think>dyn_001 says</think>", mug, true},
		{"another id", "cool some mug", "<think>dyn_0010 and xdyn_001</think>", mug, false},
		{"by stem", "cool some plate", "<action>open cabinet 2</action>", plate, true},
		{"nothing", "cool some mug", "", mug, false},
	} {
		if got := Used(b, []Skill{c.s}, c.goal, c.wrote); (len(got) == 1 && got[0] == c.s.ID) != c.want || len(got) > 1 {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := Used(must(t, mug), []Skill{mug}, "cool some mug", "look"); len(got) != 1 { // no other skill has the word
		t.Errorf("of an only skill: %v", got)
	}
}
