package webshop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/episode"
	"skillmaster/skill"
)

// shopAlong plays a task with an expert and returns its steps.
func shopAlong(ctx context.Context, s *Suite, task episode.Task, k env.Knowledge, advice []skill.Skill) (steps []episode.Step, won bool, err error) {
	e, _, err := s.Open(ctx, task, 0)
	if err != nil {
		return nil, false, err
	}
	x, err := s.Expert(e, k, advice, nil)
	if err != nil {
		return nil, false, err
	}
	for {
		a, more := x.Next()
		if !more {
			return steps, false, nil
		}
		r, err := e.Step(ctx, a)
		if err != nil {
			return nil, false, err
		}
		if !r.Admissible {
			return nil, false, fmt.Errorf("%q is not admissible", a)
		}
		steps = append(steps, episode.Step{Action: a, Observation: r.Observation.Text, Reward: r.Reward, Admissible: true})
		if r.Done {
			return steps, r.Success, nil
		}
		x.Observe(a, r)
	}
}

func madeSuite(t testing.TB, o Options) *Suite {
	return NewSuite(newShop(t, made(t), GoalOptions{}), o)
}

func reportTasks(t testing.TB, s *Suite) []episode.Task {
	t.Helper()
	tasks, err := s.Tasks(reportSplit)
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

func TestGeneratedSuiteKeepsTheContract(t *testing.T) {
	envtest.Run(t, madeSuite(t, Options{Show: Parts}), envtest.Config{Splits: []string{reportSplit, trainSplit}, Seed: 8})
}

// TestKnowerWins: in the fewest steps there are, a search, a click on the product, one for each option, and the purchase.
func TestKnowerWins(t *testing.T) {
	s := madeSuite(t, Options{})
	for _, task := range reportTasks(t, s) {
		steps, won, err := shopAlong(t.Context(), s, task, env.Knows, nil)
		g, _ := s.Goal(task.ID)
		if err != nil || !won || len(steps) != 3+len(g.Options) {
			t.Errorf("%s: %q: won %v in %d steps, %v", task.ID, g.Instruction, won, len(steps), err)
		}
	}
}

func TestShopper(t *testing.T) {
	for name, c := range map[string]struct {
		suite *Suite
		least float64
	}{
		"line":  {madeSuite(t, Options{}), 0.5},
		"rich":  {madeSuite(t, Options{Show: Rich}), 0.5},
		"parts": {madeSuite(t, Options{Show: Parts}), 0.5},
		"brief": {madeSuite(t, Options{Show: Brief}), 0.5},
		"real":  {NewSuite(newShop(t, realCatalogue(t), GoalOptions{}), Options{}), 0.1},
		"told":  {NewSuite(newShop(t, realCatalogue(t), GoalOptions{}), Options{Show: Brief, Told: true}), 0.9},
	} {
		won, n, total := 0, 0, 0
		every := sparse(t, 3)
		for i, task := range reportTasks(t, c.suite) {
			if i%every > 0 {
				continue
			}
			steps, w, err := shopAlong(t.Context(), c.suite, task, env.Sees, nil)
			if err != nil {
				t.Fatal(err)
			}
			n++
			total += len(steps)
			if w {
				won++
			}
		}
		t.Logf("%s: %d of %d, %.2f steps", name, won, n, float64(total)/float64(n))
		if float64(won) < c.least*float64(n) {
			t.Errorf("%s: %d of %d won, want %v", name, won, n, c.least)
		}
	}
}

// TestTold: who knows the right product when he sees it opens no other, but what advice praises.
func TestTold(t *testing.T) {
	s := NewSuite(newShop(t, realCatalogue(t), GoalOptions{}), Options{Show: Brief, Told: true})
	misled := 0
	for i, task := range reportTasks(t, s) {
		g, err := s.Goal(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		if i%sparse(t, 5) > 0 {
			continue
		}
		steps, _, err := shopAlong(t.Context(), s, task, env.Sees, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := opened(steps); len(got) > 1 || len(got) == 1 && got[0] != s.shop.asin(g.Product) {
			t.Errorf("%s: opened %q", task.ID, got)
		}
		wrong, ok := s.Advice(task, false, episode.Seed(i).Rand())
		if !ok {
			continue
		}
		if steps, _, err = shopAlong(t.Context(), s, task, env.Sees, []skill.Skill{wrong}); err != nil {
			t.Fatal(err)
		}
		if len(opened(steps)) > 1 {
			misled++
		}
	}
	if misled == 0 {
		t.Error("wrong advice led nobody astray")
	}
}

// opened are the products that were opened, in their order.
func opened(steps []episode.Step) (asins []string) {
	for _, step := range steps {
		if name, button, _ := parseAction(string(step.Action)); name == "click" && len(button) == 10 && strings.HasPrefix(button, "B0") {
			asins = append(asins, button)
		}
	}
	return asins
}

// TestAdviceMatters: what is said to the expert that sees changes what it does, for better and for worse.
func TestAdviceMatters(t *testing.T) {
	s := madeSuite(t, Options{Show: Brief})
	var won, steps [3]int // without advice, with helpful and with wrong advice
	every := sparse(t, 4)
	for i, task := range reportTasks(t, s) {
		if i%every > 0 {
			continue
		}
		for mode := range won {
			var advice []skill.Skill
			if mode > 0 {
				a, ok := s.Advice(task, mode == 1, episode.Seed(i).Rand())
				if !ok {
					t.Errorf("no advice for %q", task.Goal)
					continue
				}
				advice = append(advice, a)
			}
			done, w, err := shopAlong(t.Context(), s, task, env.Sees, advice)
			if err != nil {
				t.Fatal(err)
			}
			steps[mode] += len(done)
			if w {
				won[mode]++
			}
		}
	}
	t.Logf("without, helpful, wrong: won %v, steps %v", won, steps)
	if !(won[1] >= won[0] && won[0] >= won[2] && steps[1] < steps[0] && steps[0] < steps[2]) {
		t.Errorf("won %v, steps %v: want helpful advice to be best and wrong advice worst", won, steps)
	}
}

// TestLessonsHold: what visits taught helps on other goals of the same family that name the attribute.
func TestLessonsHold(t *testing.T) {
	s := madeSuite(t, Options{Show: Parts})
	lessons := map[string]skill.Skill{} // by family and phrase
	tasks, err := s.Tasks(trainSplit)
	if err != nil {
		t.Fatal(err)
	}
	every := sparse(t, 3)
	for i, task := range tasks {
		if i%every > 0 {
			continue
		}
		steps, _, err := shopAlong(t.Context(), s, task, env.Sees, nil)
		if err != nil {
			t.Fatal(err)
		}
		if l, ok := s.Lesson(task, steps); ok {
			lessons[task.Family+" "+lower(l.Title)] = l
		}
	}
	n, won, usual := 0, 0, 0
	var steps, usualSteps int
	for i, task := range reportTasks(t, s) {
		if i%(every/3) > 0 {
			continue
		}
		g, err := s.Goal(task.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range g.Attributes {
			l, ok := lessons[task.Family+" "+a]
			if !ok {
				continue
			}
			n++
			for _, advice := range [][]skill.Skill{nil, {l}} {
				done, w, err := shopAlong(t.Context(), s, task, env.Sees, advice)
				switch {
				case err != nil:
					t.Fatal(err)
				case advice == nil:
					usualSteps += len(done)
					usual += map[bool]int{true: 1}[w]
				default:
					steps += len(done)
					won += map[bool]int{true: 1}[w]
				}
			}
			break
		}
	}
	t.Logf("%d lessons, used on %d goals: %d won in %d steps, without %d in %d", len(lessons), n, won, steps, usual, usualSteps)
	if len(lessons) < 12 || n < 20 || steps >= usualSteps {
		t.Errorf("%d lessons, used on %d goals: %d steps with them, %d without", len(lessons), n, steps, usualSteps)
	}
}

func TestHints(t *testing.T) {
	h := hint{"long lasting", "Velora"}
	s := h.skill("beauty_health")
	if want := (skill.Skill{Category: "beauty_health", Title: "Long lasting", Principle: "For long lasting choose Velora.", When: "the instruction says long lasting"}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	for text, want := range map[string][]hint{
		s.Principle: {{"long lasting", "velora"}}, "for a choose b. FOR C CHOOSE D": {{"a", "b"}, {"c", "d"}}, "For choose.": nil, "Choose Velora.": nil, "": nil,
	} {
		got := parseHints(skill.Skill{Principle: text})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestWish(t *testing.T) {
	queries := []string{"shirts", "men's shirts", "tea"}
	for text, want := range map[string]wish{
		"Find me slim fit men's shirts with long sleeve with color: dark blue, and size: x-large, and price lower than 30.00 dollars": {
			body: "slim fit men's shirts with long sleeve", options: "color: dark blue, and size: x-large,", groups: []string{"color", "size"}, most: 30,
		},
		"Find me tea": {body: "tea", most: unbounded},
	} {
		got := parseWish(text, queries)
		if got.body != want.body || got.options != want.options || fmt.Sprint(got.groups) != fmt.Sprint(want.groups) || got.most != want.most {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
	w := parseWish("Find me slim fit men's shirts with long sleeve with color: dark blue, and size: x-large", queries)
	if fmt.Sprint(w.terms) != "[fit long sleev slim]" || fmt.Sprint(w.kind) != "[men shirt]" {
		t.Errorf("terms %q, kind %q", w.terms, w.kind)
	}
	for _, g := range []struct {
		group OptionGroup
		want  string
	}{{OptionGroup{"color", []string{"blue", "dark blue"}}, "dark blue"}, {OptionGroup{"size", []string{"large"}}, ""}, {OptionGroup{"style", []string{"large"}}, ""}} {
		if got, ok := w.value(g.group); got != g.want || ok != (g.want != "") {
			t.Errorf("%v: got %q, want %q", g.group, got, g.want)
		}
	}
	human := parseWish("i need slim fit men's shirts. it should be in blue and large", queries)
	if got, ok := human.value(OptionGroup{"color", []string{"dark blue", "blue"}}); got != "blue" || !ok {
		t.Errorf("human wish: got %q, %v", got, ok)
	}
}

func TestExpertIsOfThisShop(t *testing.T) {
	s := madeSuite(t, Options{})
	if _, err := s.Expert(nil, env.Knows, nil, nil); err == nil {
		t.Error("an expert without a shop")
	}
	task := reportTasks(t, s)[0]
	e, _, err := s.Open(t.Context(), task, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Expert(e, env.Knowledge(9), nil, nil); err == nil {
		t.Error("an expert of unknown knowledge")
	}
	if _, ok := s.Advice(episode.Task{ID: "x"}, true, episode.Seed(1).Rand()); ok {
		t.Error("advice for no task")
	}
	if _, ok := s.Lesson(task, nil); ok {
		t.Error("a lesson of nothing")
	}
}

// FuzzShopper lets the expert read whatever: it does not fall, and says something or nothing.
func FuzzShopper(f *testing.F) {
	f.Add("Find me tea", "Instruction: [SEP] x [SEP] Back to Search [SEP] Page 1 (Total results: 3) [SEP] Next > [SEP] B000000001 [SEP] Tea [SEP] $3 to $4", uint8(0))
	f.Add("a with b: c, and price lower than 4.00 dollars", "'Back to Search' [SEP] '< Prev' [SEP] 'b' [SEP] 'c' [SEP] 'T' [SEP] 'Price: $1' [SEP] 'Buy Now'", uint8(2))
	f.Add("0 with 0: 0", "Back to Search [SEP]  [SEP] Price:  [SEP] Buy Now", uint8(0))
	f.Add("Find me tea", "Back to Search\nPage 1 (Total results: 3)\nNext >\nB000000001\nTea\n$3 to $4", uint8(7))
	f.Add("İ tea İ", "[button] Back to Search [button_]\n[button] < Prev [button_]\nPrice: \nBuy Now", uint8(1))
	f.Fuzz(func(t *testing.T, instruction, text string, show uint8) {
		x := newShopper(instruction, Options{Show: Show(show % 4), StepLimit: 5}, []string{"tea"}, []skill.Skill{{Principle: instruction}}, nil)
		if show > 3 {
			x.right = "b000000001"
		}
		for range 3 {
			a, _ := x.Next()
			x.Observe(a, episode.StepResult{Observation: episode.Observation{Text: text}})
		}
	})
}

func TestSort(t *testing.T) {
	s := madeSuite(t, Options{})
	for action, want := range map[episode.Action]string{
		"search[red shoes]": "search", "click[B0743JKHBV]": "product", "click[Buy Now]": "buy", "click[buy now]": "buy",
		"click[Next >]": "page", "click[< Prev]": "page", "click[Features]": "page", "click[xx-large]": "option",
		"click[28\" x 28\"]": "option", "click": "other", "": "other",
	} {
		if got := s.Sort(action); got != want {
			t.Errorf("%q is of kind %q, want %q", action, got, want)
		}
	}
}

// The expert chooses options in the order in which the instruction names them, so that an action copies what comes next in it.
func TestShopperChoosesInOrder(t *testing.T) {
	s := NewSuite(newShop(t, realCatalogue(t), GoalOptions{}), Options{Show: Brief, Told: true})
	several := 0
	for _, task := range reportTasks(t, s)[:200] {
		steps, won, err := shopAlong(t.Context(), s, task, env.Sees, nil)
		if err != nil {
			t.Fatal(err)
		}
		at, options := -1, 0
		for _, step := range steps {
			if s.Sort(step.Action) != "option" || !won {
				continue
			}
			_, value, _ := parseAction(string(step.Action))
			i := strings.Index(lower(task.Goal)+",", ": "+value+",")
			if options++; i < at {
				t.Errorf("%q: %q is chosen after what stands behind it", task.Goal, value)
			}
			at = i
		}
		if options > 1 {
			several++
		}
	}
	if several < 20 {
		t.Errorf("%d of the goals have several options: nothing was tested", several)
	}
}
