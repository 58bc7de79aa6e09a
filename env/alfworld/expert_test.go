package alfworld

import (
	"context"
	"math/rand/v2"
	"testing"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

// fewer is the number of games to check: under the race detector, which makes them slow and has nothing to find in most,
// an eighth.
func fewer(n int) int {
	if raceDetector {
		return n / 8
	}
	return n
}

// everyTask lists one in so many tasks of a split.
func everyTask(t testing.TB, s *Suite, split string, every int) []episode.Task {
	t.Helper()
	tasks, err := s.Tasks(split)
	if err != nil {
		t.Fatal(err)
	}
	var some []episode.Task
	for i := 0; i < len(tasks); i += every {
		some = append(some, tasks[i])
	}
	return some
}

// played is an episode that an expert played.
type played struct {
	success bool
	steps   []episode.Step
}

// play lets an expert play a task.
func play(t testing.TB, s *Suite, task episode.Task, k env.Knowledge, advice []skill.Skill, r *rand.Rand) played {
	t.Helper()
	ctx := context.Background()
	e, _, err := s.Open(ctx, task, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, err := s.Expert(e, k, advice, r)
	if err != nil {
		t.Fatal(err)
	}
	var p played
	for {
		a, ok := x.Next()
		if !ok {
			return p
		}
		result, err := e.Step(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		x.Observe(a, result)
		p.steps = append(p.steps, episode.Step{Action: a, Observation: result.Observation.Text, Admissible: result.Admissible})
		if p.success = result.Success; result.Done {
			return p
		}
	}
}

// playAll returns the number of successes and the mean number of steps, over all episodes.
func playAll(t testing.TB, s *Suite, tasks []episode.Task, k env.Knowledge) (won int, meanSteps float64) {
	t.Helper()
	steps := 0
	for _, task := range tasks {
		p := play(t, s, task, k, nil, nil)
		steps += len(p.steps)
		if p.success {
			won++
		} else {
			t.Logf("lost %s: %s", task.ID, task.Goal)
		}
	}
	return won, float64(steps) / float64(len(tasks))
}

func TestSearcherWinsReleasedGames(t *testing.T) {
	s := openData(t, Options{})
	for _, c := range []struct {
		split     string
		every     int
		mostSteps float64 // mean
	}{{"valid_seen", 1, 7.1}, {"valid_unseen", 1, 7.8}, {"train", 12, 8}} {
		if c.split == "train" && raceDetector {
			continue // reads the whole split
		}
		tasks := everyTask(t, s, c.split, c.every)
		won, steps := playAll(t, s, tasks, env.Sees)
		t.Logf("%s: %d of %d, mean steps %.2f", c.split, won, len(tasks), steps)
		if won < len(tasks) || steps > c.mostSteps {
			t.Errorf("%s: want all, in at most %.1f steps on average", c.split, c.mostSteps)
		}
	}
}

// TestSearcherReadsTextAlone plays with nothing in hand but the texts: the searcher is made from the first observation,
// and what it is told afterwards is text.
func TestSearcherReadsTextAlone(t *testing.T) {
	s := openData(t, Options{})
	for _, task := range everyTask(t, s, "valid_unseen", 3) {
		g, err := s.Game(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		state := g.NewState(FromFile)
		x, err := newSearcher(state.Intro(), Move, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var actions []episode.Action
		for !state.Won() && len(actions) < 50 {
			a, ok := x.Next()
			if !ok {
				break
			}
			text, _ := state.Step(string(a))
			x.Observe(a, episode.StepResult{Observation: episode.Observation{Text: text}})
			actions = append(actions, a)
		}
		coached := play(t, s, task, env.Sees, nil, nil)
		if !state.Won() || len(coached.steps) != len(actions) {
			t.Errorf("%s: %d steps by text alone (success %v), %d as the suite's expert", task.ID, len(actions), state.Won(), len(coached.steps))
		}
	}
}

func TestSentencesSayTheGoal(t *testing.T) {
	s := openData(t, Options{})
	for _, split := range []string{"valid_seen", "valid_unseen"} {
		for _, task := range everyTask(t, s, split, 1) {
			g, err := s.Game(task.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := parseSentence(g.Task); !ok || got != g.sentence() {
				t.Errorf("%q is read as %+v, its goal is %+v", g.Task, got, g.Goal)
			}
		}
	}
}

func TestPlansAreNoLongerThanWalkthroughs(t *testing.T) {
	s := openData(t, Options{})
	shorter, plans := 0, 0
	for _, split := range []string{"valid_seen", "valid_unseen"} {
		for _, task := range everyTask(t, s, split, 1) {
			g, err := s.Game(task.ID)
			if err != nil {
				t.Fatal(err)
			}
			state := g.NewState(FromFile)
			plan, ok := state.Plan()
			plans++
			p := play(t, s, task, env.Knows, nil, nil)
			if !ok || !p.success || len(p.steps) != len(plan) || len(plan) > len(g.Walkthrough) {
				t.Errorf("%s: plan of %d (found %v), played %d (success %v), walkthrough %d",
					task.ID, len(plan), ok, len(p.steps), p.success, len(g.Walkthrough))
			}
			if len(plan) < len(g.Walkthrough) {
				shorter++
			}
		}
	}
	t.Logf("%d of %d plans are shorter than their walkthroughs", shorter, plans)
}

// shortest searches the whole space of states, breadth first, for the length of a shortest plan of at most limit.
func shortest(s *State, limit int) int {
	layer, seen := []*State{s}, map[string]bool{}
	for depth := range limit + 1 {
		var next []*State
		for _, s := range layer {
			if s.Won() {
				return depth
			}
			for _, a := range s.Admissible() {
				c := s.Clone()
				c.Step(string(a))
				if key := stateKey(c); !seen[key] {
					seen[key] = true
					next = append(next, c)
				}
			}
		}
		layer = next
	}
	return -1
}

func stateKey(s *State) string {
	b := make([]byte, 0, 8*len(s.sets)+8)
	for _, w := range append([]uint64(s.sets), uint64(s.location), uint64(s.held+1)) {
		for i := range 8 {
			b = append(b, byte(w>>(8*i)))
		}
	}
	return string(b)
}

// TestPlansAreShortest compares plans with exhaustive search, in bare rooms from states that a few random actions led
// to.
func TestPlansAreShortest(t *testing.T) {
	const limit = 5
	r := episode.Seed(3).Rand()
	compared := 0
	for i := range fewer(240) {
		g := bareGame(t, Families()[i%6], episode.Seed(i))
		state := g.NewState(FromFile)
		for range r.IntN(6) {
			a := state.Admissible()
			state.Step(string(a[r.IntN(len(a))]))
		}
		want := shortest(state, limit)
		if state.Won() || want < 0 {
			continue
		}
		compared++
		plan, ok := state.Plan()
		if !ok || len(plan) != want {
			t.Errorf("game %d (%s) from location %d, holding %d: plan %v of %d, shortest %d", i, g.Task, state.location, state.held, plan, len(plan), want)
		}
	}
	if compared < fewer(240)/4 {
		t.Errorf("only %d states compared", compared)
	}
	t.Logf("%d states compared", compared)
}

// bareGame varies a generated game until the room is small enough to search through.
func bareGame(t *testing.T, f Family, seed episode.Seed) *Game {
	t.Helper()
	g, err := Generate(f, seed, 0)
	for n := uint64(0); err == nil && (len(g.Receptacles) > 7 || len(g.Objects) > 14); n++ {
		g, err = g.Vary("bare", seed.Derive("bare", n))
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestExpertsWinGeneratedGames(t *testing.T) {
	n := fewer(2000)
	s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{"train": n}})
	if err != nil {
		t.Fatal(err)
	}
	tasks := everyTask(t, s, "train", 1)
	won, steps := playAll(t, s, tasks, env.Sees)
	t.Logf("search: %d of %d, mean steps %.2f", won, n, steps)
	if 100*won < 98*n {
		t.Errorf("search wins %d of %d, want 98 %%", won, n)
	}
	won, steps = playAll(t, s, tasks, env.Knows)
	t.Logf("plan: %d of %d, mean steps %.2f", won, n, steps)
	if won < n {
		t.Errorf("plans win %d of %d, want all", won, n)
	}
}

// TestSearcherCopesWithMistakes lets one action in five be a random one that the searcher did not choose.
func TestSearcherCopesWithMistakes(t *testing.T) {
	r := episode.Seed(5).Rand()
	won, n := 0, 400
	for i, g := range generated(t, n, 0) {
		w := Move
		if i%2 == 0 {
			w = Put
		}
		state := g.NewState(w)
		x, err := newSearcher(state.Intro(), w, nil, r)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			a, ok := x.Next()
			if !ok || state.Won() {
				break
			}
			if r.IntN(5) == 0 {
				all := state.Admissible()
				a = all[r.IntN(len(all))]
			}
			text, _ := state.Step(string(a))
			x.Observe(a, episode.StepResult{Observation: episode.Observation{Text: text}})
		}
		if state.Won() {
			won++
		}
	}
	t.Logf("%d of %d", won, n)
	if 100*won < 97*n {
		t.Errorf("won %d of %d games with mistakes, want 97 %%", won, n)
	}
}

func BenchmarkSearcher(b *testing.B) {
	games := generated(b, 60, 0)
	for i := 0; b.Loop(); i++ {
		state := games[i%60].NewState(Move)
		x, err := newSearcher(state.Intro(), Move, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		for !state.Won() {
			a, ok := x.Next()
			if !ok {
				break
			}
			text, _ := state.Step(string(a))
			x.Observe(a, episode.StepResult{Observation: episode.Observation{Text: text}})
		}
	}
}

// BenchmarkPlanOfReleased plans the 274 evaluation games, each from its start.
func BenchmarkPlanOfReleased(b *testing.B) {
	s := openData(b, Options{})
	var states []*State
	for _, split := range []string{"valid_seen", "valid_unseen"} {
		for _, task := range everyTask(b, s, split, 1) {
			g, err := s.Game(task.ID)
			if err != nil {
				b.Fatal(err)
			}
			states = append(states, g.NewState(Move))
		}
	}
	for b.Loop() {
		for _, state := range states {
			state.Plan()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(states)), "ns/plan")
}

func BenchmarkPlan(b *testing.B) {
	games := generated(b, 60, 0)
	for i := 0; b.Loop(); i++ {
		games[i%60].NewState(Move).Plan()
	}
}
