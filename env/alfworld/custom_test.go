package alfworld

import (
	"strings"
	"testing"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

func house(t *testing.T, share float64, seed episode.Seed) *Suite {
	t.Helper()
	s, err := NewGenerated(GeneratedOptions{
		Splits: map[string]int{"usual": 60, "own": 300}, Custom: Custom{Share: share, Seed: seed, Usual: []string{"usual"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// whereabouts counts, by object type, the receptacle types its things lie in.
func whereabouts(t *testing.T, s *Suite, split string) map[string]map[string]int {
	t.Helper()
	tasks, err := s.Tasks(split)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]int{}
	for _, task := range tasks {
		g, err := s.Game(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		spec := g.Spec()
		class := map[string]string{}
		for _, r := range spec.Receptacles {
			class[r.ID] = r.Class
		}
		for _, o := range spec.Objects {
			if o.Traits&Pickupable != 0 && len(o.In) > 0 {
				if out[o.Class] == nil {
					out[o.Class] = map[string]int{}
				}
				out[o.Class][class[o.In[0]]]++
			}
		}
	}
	return out
}

// mostly is the mean share of an object type's things that lie in its most frequent receptacle type.
func mostly(where map[string]map[string]int) float64 {
	var sum, n float64
	for _, in := range where {
		all, most := 0, 0
		for _, k := range in {
			all += k
			most = max(most, k)
		}
		if all >= 20 {
			sum += float64(most) / float64(all)
			n++
		}
	}
	return sum / n
}

// A house keeps each thing in a place of its own, another house in another, and a usual split knows nothing of it.
func TestCustom(t *testing.T) {
	usual, own, other := whereabouts(t, house(t, 0, 0), "own"), whereabouts(t, house(t, 1, 1), "own"), whereabouts(t, house(t, 1, 2), "own")
	if u, o := mostly(usual), mostly(own); o < u+0.1 {
		t.Errorf("a thing lies in its most frequent place %.2f of the time in a house with customs, %.2f in a usual one", o, u)
	}
	moved := 0
	for class, in := range own {
		if favourite(in) != favourite(other[class]) {
			moved++
		}
	}
	if moved*3 < len(own) {
		t.Errorf("two houses differ in %d of %d things", moved, len(own))
	}
	a, b := whereabouts(t, house(t, 0, 0), "usual"), whereabouts(t, house(t, 1, 1), "usual")
	for class, in := range a {
		for r, n := range in {
			if b[class][r] != n {
				t.Fatalf("the usual split of a house with customs has %d %s in a %s, want %d", b[class][r], class, r, n)
			}
		}
	}
}

func favourite(in map[string]int) string {
	best := ""
	for r, n := range in {
		if best == "" || n > in[best] || n == in[best] && r < best {
			best = r
		}
	}
	return best
}

// What one game teaches about a house holds in its next: an expert told the lessons of earlier games finds things sooner.
func TestLessonsHoldInTheHouse(t *testing.T) {
	s := house(t, 1, 1)
	tasks, err := s.Tasks("own")
	if err != nil {
		t.Fatal(err)
	}
	lessons := map[string]skill.Skill{} // by title
	play := func(task episode.Task, advice []skill.Skill) []episode.Step {
		e, _, err := s.Open(t.Context(), task, 0)
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.Expert(e, env.Sees, advice, nil)
		if err != nil {
			t.Fatal(err)
		}
		var steps []episode.Step
		for {
			a, ok := x.Next()
			if !ok {
				return steps
			}
			r, err := e.Step(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			x.Observe(a, r)
			steps = append(steps, episode.Step{Action: a, Observation: r.Observation.Text})
			if r.Done {
				return steps
			}
		}
	}
	for _, task := range tasks[:200] {
		if k, ok := s.Lesson(task, play(task, nil)); ok {
			lessons[k.Title] = k
		}
	}
	without, with, told := 0, 0, 0
	for _, task := range tasks[200:] {
		var advice []skill.Skill
		for title, k := range lessons {
			if thing, ok := strings.CutPrefix(title, "Find the "); ok && strings.Contains(task.Goal, " "+thing+" ") {
				advice = append(advice, k)
			}
		}
		untaught, taught := len(play(task, nil)), len(play(task, advice))
		without += untaught
		with += taught
		if untaught != taught {
			told++
		}
	}
	t.Logf("%d lessons; 100 games take %d steps without and %d with them; %d games differ", len(lessons), without, with, told)
	if with >= without {
		t.Errorf("the lessons of a house do not help in it: %d steps with, %d without", with, without)
	}
}
