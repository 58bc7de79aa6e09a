package alfworld

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"skillmaster/env"
	"skillmaster/episode"
	"skillmaster/skill"
)

func TestParseHints(t *testing.T) {
	for _, c := range []struct {
		principle string
		want      []hint
	}{
		{"Look for a mug in the coffeemachine first.", []hint{{object: "mug", receptacles: []string{"coffeemachine"}}}},
		{"look for an apple in the fridge first", []hint{{object: "apple", receptacles: []string{"fridge"}}}},
		{"Look for the desklamp in the dresser first.", []hint{{object: "desklamp", receptacles: []string{"dresser"}}}},
		{"Look for the second pen in the drawer first.", []hint{{object: "pen", second: true, receptacles: []string{"drawer"}}}},
		{"Search the countertop first, then the fridge.", []hint{{receptacles: []string{"countertop", "fridge"}}}},
		{"Be quick. Look for a mug in the cabinet first. Search the shelf first, then the desk.", []hint{
			{object: "mug", receptacles: []string{"cabinet"}}, {receptacles: []string{"shelf", "desk"}},
		}},
		{"Look for a unicorn in the fridge first.", nil},
		{"Look for a mug in the garage first.", nil},
		{"Look for a mug in the fridge.", nil},
		{"Search the fridge first.", nil},
		{"", nil},
	} {
		got := parseHints(skill.Skill{Principle: c.principle})
		if !slices.EqualFunc(got, c.want, func(a, b hint) bool {
			return a.object == b.object && a.second == b.second && slices.Equal(a.receptacles, b.receptacles)
		}) {
			t.Errorf("%q is read as %+v, want %+v", c.principle, got, c.want)
		}
	}
}

// TestAdviceIsUnderstood checks that experts read all that Advice says, that it is true or false as asked, and that it
// comes in the shares it should.
func TestAdviceIsUnderstood(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{"train": 600}})
	if err != nil {
		t.Fatal(err)
	}
	r := episode.Seed(1).Rand()
	given, orders := 0, 0
	for _, task := range everyTask(t, s, "train", 1) {
		g, err := s.Game(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, helpful := range []bool{true, false} {
			a, ok := s.Advice(task, helpful, r)
			if !ok {
				continue
			}
			given++
			hints := parseHints(a)
			if len(hints) != 1 || a.ID != "" || !serves(a, task) || a.Title == "" {
				t.Fatalf("advice %+v is understood as %+v", a, hints)
			}
			h := hints[0]
			if h.object == "" {
				orders++
				h.object = g.sentence().object
			}
			if got := holds(g, h.object, h.receptacles[0]); got != helpful {
				t.Errorf("%s: %q, helpful %v: a %s in a %s is %v", task.Goal, a.Principle, helpful, h.object, h.receptacles[0], got)
			}
		}
	}
	if given < 1100 {
		t.Errorf("%d of 1200 times there was advice", given)
	}
	if share := float64(orders) / float64(given); share < 0.25 || share > 0.35 {
		t.Errorf("%.2f of the advice is an order of search, want 0.30", share)
	}
}

// holds tells whether a receptacle of one type holds an object of another at the start.
func holds(g *Game, object, receptacle string) bool {
	class, _ := g.ClassOf(object)
	for i, r := range g.Receptacles {
		if strings.EqualFold(g.Classes[r.Class], receptacle) &&
			slices.ContainsFunc(g.Contents(i), func(o int) bool { return g.Objects[o].Class == class }) {
			return true
		}
	}
	return false
}

func TestAdviceRepeats(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, task := range everyTask(t, s, "valid", 10) {
		a, _ := s.Advice(task, true, episode.Seed(i).Rand())
		b, _ := s.Advice(task, true, episode.Seed(i).Rand())
		if a != b {
			t.Fatalf("%s: %+v, then %+v", task.ID, a, b)
		}
	}
	if _, ok := s.Advice(episode.Task{ID: "nothing"}, true, episode.Seed(1).Rand()); ok {
		t.Error("advice on a task that there is not")
	}
}

// adviceEffect plays the tasks that have both kinds of advice without any, with helpful and with unhelpful.
func adviceEffect(t *testing.T, s *Suite, tasks []episode.Task) (n int, none, helpful, unhelpful float64) {
	t.Helper()
	for i, task := range tasks {
		r := episode.Seed(i).Rand()
		good, ok := s.Advice(task, true, r)
		bad, also := s.Advice(task, false, r)
		if !ok || !also {
			continue
		}
		n++
		none += float64(len(play(t, s, task, env.Sees, nil, nil).steps))
		helpful += float64(len(play(t, s, task, env.Sees, []skill.Skill{good}, nil).steps))
		unhelpful += float64(len(play(t, s, task, env.Sees, []skill.Skill{bad}, nil).steps))
	}
	return n, none / float64(n), helpful / float64(n), unhelpful / float64(n)
}

func TestAdviceChangesTheSearch(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{"train": 300}})
	if err != nil {
		t.Fatal(err)
	}
	n, none, helpful, unhelpful := adviceEffect(t, s, everyTask(t, s, "train", 1))
	t.Logf("generated: %d tasks, mean steps without %.2f, helpful %.2f, unhelpful %.2f", n, none, helpful, unhelpful)
	if helpful > none-0.5 || unhelpful < none+0.5 {
		t.Error("advice changes the number of steps by less than half a step")
	}
	s = openData(t, Options{})
	n, none, helpful, unhelpful = adviceEffect(t, s, everyTask(t, s, "valid_unseen", 1))
	t.Logf("valid_unseen: %d tasks, mean steps without %.2f, helpful %.2f, unhelpful %.2f", n, none, helpful, unhelpful)
	if helpful > none-0.5 || unhelpful < none+0.5 {
		t.Error("advice changes the number of steps by less than half a step")
	}
}

// TestLessonHelpsAgain plays with what the first play taught: the same search is shorter.
// serves says whether a skill is of the kind that is retrieved for a task.
func serves(k skill.Skill, t episode.Task) bool {
	return (k.Category == skill.General || k.Category == t.Category) && k.Applies(t.Goal)
}

func TestLessonHelpsAgain(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{"train": 600}})
	if err != nil {
		t.Fatal(err)
	}
	learnt, before, after, orders := 0, 0, 0, 0
	for _, task := range everyTask(t, s, "train", 1) {
		first := play(t, s, task, env.Sees, nil, nil)
		l, ok := s.Lesson(task, first.steps)
		if !ok {
			continue
		}
		learnt++
		if h := parseHints(l); len(h) != 1 || !serves(l, task) || l.ID != "" {
			t.Fatalf("lesson %+v is understood as %+v", l, h)
		} else if h[0].object == "" {
			orders++
		}
		again := play(t, s, task, env.Sees, []skill.Skill{l}, nil)
		before += len(first.steps)
		after += len(again.steps)
		if len(again.steps) > len(first.steps)+6 {
			t.Errorf("%s: %d steps, with %q %d", task.ID, len(first.steps), l.Principle, len(again.steps))
		}
	}
	t.Logf("%d lessons, %d of them orders; mean steps %.2f before, %.2f after", learnt, orders, mean(before, learnt), mean(after, learnt))
	if learnt < 150 || orders == 0 || mean(after, learnt) > mean(before, learnt)-1.5 {
		t.Error("want 150 lessons, some of them orders, that save a step and a half on average")
	}
}

func mean(sum, n int) float64 { return float64(sum) / float64(n) }

func TestLessons(t *testing.T) {
	intro := "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see " +
		"a bed 1, a desk 1, a drawer 2, a drawer 1, and a shelf 1.\n\nYour task is to: "
	goTo := func(r, saw string) episode.Step {
		return episode.Step{Action: episode.Action("go to " + r), Observation: "You arrive at " + r + ". On the " + r + ", you see " + saw + "."}
	}
	for _, c := range []struct {
		name, task string
		steps      []episode.Step
		want       string // principle; "" for no lesson
	}{
		{
			"found after one", "put a pen in shelf.",
			[]episode.Step{goTo("desk 1", "a book 1"), goTo("drawer 1", "a pen 1, and a pen 2")},
			"Look for a pen in the drawer first.",
		},
		{"found at once", "put a pen in shelf.", []episode.Step{goTo("drawer 1", "a pen 1")}, ""},
		{"never found", "put a pen in shelf.", []episode.Step{goTo("desk 1", "nothing"), goTo("drawer 1", "nothing")}, ""},
		{"one type only", "put a pen in shelf.", []episode.Step{goTo("drawer 1", "nothing"), goTo("drawer 2", "a pen 1")}, ""},
		{"closed is not looked into", "put a pen in shelf.", []episode.Step{
			{Action: "go to drawer 2", Observation: "You arrive at drawer 2. The drawer 2 is closed."}, goTo("desk 1", "a pen 1"),
		}, ""},
		{
			"the second took longer", "find two pen and put them in shelf.",
			[]episode.Step{
				goTo("desk 1", "a pen 1"), goTo("bed 1", "nothing"), goTo("drawer 1", "nothing"), goTo("drawer 2", "a pen 2"),
			},
			"Look for the second pen in the drawer first.",
		},
		{"both at the first places", "find two pen and put them in shelf.", []episode.Step{
			goTo("desk 1", "a pen 1"), goTo("drawer 1", "a pen 2"),
		}, ""},
		{
			"the lamp took longer", "look at pen under the desklamp.",
			[]episode.Step{
				goTo("desk 1", "a pen 1"), goTo("drawer 1", "nothing"), goTo("shelf 1", "a desklamp 1"),
			},
			"Look for a desklamp in the shelf first.",
		},
		{"in the target it does not count", "put a pen in shelf.", []episode.Step{goTo("desk 1", "nothing"), goTo("shelf 1", "a pen 1")}, ""},
		{"another sentence", "tidy up.", nil, ""},
	} {
		got, ok := lesson(intro+c.task, c.steps, "x")
		if ok != (c.want != "") || got.Principle != c.want {
			t.Errorf("%s: lesson %q, %v; want %q", c.name, got.Principle, ok, c.want)
		}
	}
}

// TestNoiseChangesTheOrder checks that an expert with chance in it searches in several orders and still wins.
func TestNoiseChangesTheOrder(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{Splits: map[string]int{"train": 60}})
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, task := range everyTask(t, s, "train", 1) {
		plain := play(t, s, task, env.Sees, nil, nil)
		for seed := range 4 {
			noisy := play(t, s, task, env.Sees, nil, rand.New(rand.NewPCG(uint64(seed), 0)))
			if !noisy.success && plain.success {
				t.Logf("%s: lost with noise", task.ID)
			}
			if len(noisy.steps) != len(plain.steps) {
				changed++
			}
		}
	}
	if changed < 20 {
		t.Errorf("noise changed %d of 240 episodes", changed)
	}
}

func TestExpertRefusesOtherWorlds(t *testing.T) {
	s, err := NewGenerated(GeneratedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Expert(struct{ env.Env }{}, env.Sees, nil, nil); err == nil {
		t.Error("an expert for an episode of another world")
	}
	g := generated(t, 1, 0)[0]
	if _, err := s.Expert(newEnv(g.NewState(Move), 50), 99, nil, nil); err == nil {
		t.Error("an expert of unknown knowledge")
	}
}
