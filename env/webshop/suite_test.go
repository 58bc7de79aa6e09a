package webshop

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"skillmaster/env"
	"skillmaster/env/envtest"
	"skillmaster/episode"
)

func TestSuiteKeepsTheContract(t *testing.T) {
	shop := newShop(t, realCatalogue(t), GoalOptions{})
	for name, o := range map[string]Options{"line": {}, "rich, shaped": {Show: Rich, Pay: Shaped, StepLimit: 9}, "parts": {Show: Parts}, "brief": {Show: Brief}} {
		t.Run(name, func(t *testing.T) {
			envtest.Run(t, NewSuite(shop, o), envtest.Config{Splits: []string{reportSplit, trainSplit}, Seed: 5, Tasks: 3})
		})
	}
}

func TestSplits(t *testing.T) {
	s := NewSuite(newShop(t, realCatalogue(t), GoalOptions{}), Options{})
	families := map[string]int{}
	for split, want := range map[string]int{reportSplit: 500, trainSplit: 6410} {
		tasks, err := s.Tasks(split)
		if err != nil || len(tasks) != want {
			t.Fatalf("%s: %d tasks, %v, want %d", split, len(tasks), err, want)
		}
		for _, task := range tasks {
			families[task.Family]++
		}
	}
	// As measured on the original's own routing of the same goals, in hundredths.
	for f, want := range map[string]int{"apparel": 53, "other": 32, "home_decor": 5, "accessories": 4, "footwear": 4, "electronics": 2, "beauty_health": 1} {
		if got := (families[f]*100 + 3455) / 6910; got != want {
			t.Errorf("%s: %d %% of the goals, want %d", f, got, want)
		}
	}
	few := NewSuite(newShop(t, realCatalogue(t), GoalOptions{Human: true}), Options{})
	if tasks, err := few.Tasks(trainSplit); err != nil || len(tasks) != 0 {
		t.Errorf("13 goals: %d of them to train on, %v", len(tasks), err)
	}
}

func TestFamilies(t *testing.T) {
	for text, want := range map[string]string{
		"Find me a T-SHIRT": "apparel", "running shoes, shirt": "apparel", "a pair of boots": "footwear", "phone rings": "electronics",
		"string lights": "accessories", "shoulder rest": "other", "a rug": "home_decor", "face cream": "beauty_health", "tea": "other",
	} {
		if got := FamilyOf(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := Families(); len(got) != 7 || got[6] != "other" {
		t.Errorf("families %q", got)
	}
}

func TestUnknownGoals(t *testing.T) {
	shop := newShop(t, realCatalogue(t), GoalOptions{})
	s := NewSuite(shop, Options{})
	tasks, err := s.Tasks(reportSplit)
	if err != nil {
		t.Fatal(err)
	}
	id := tasks[0].ID
	for _, bad := range []string{"", "x", id + "0", strings.Replace(id, "/0", "/00", 1), strings.Replace(id, "B0", "B1", 1), "human" + id, strings.TrimSuffix(id, "0") + "-1"} {
		if _, err := s.Goal(bad); !errors.Is(err, ErrNoGoal) {
			t.Errorf("%q: got %v, want %v", bad, err, ErrNoGoal)
		}
	}
	other := NewSuite(newShop(t, realCatalogue(t), GoalOptions{Seed: 3, Order: Seeded}), Options{})
	if _, _, err := other.Open(t.Context(), tasks[0], 0); !errors.Is(err, ErrNoGoal) {
		t.Errorf("a task of another order: %v", err)
	}
}

// win plays a goal as somebody who knows its product does.
func win(t *testing.T, s *Suite, task episode.Task, last ...episode.Action) episode.StepResult {
	t.Helper()
	g, err := s.Goal(task.ID)
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := s.Open(t.Context(), task, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := s.shop.Product(g.Product)
	actions := []episode.Action{searchFor(p.Title), episode.Action("click[" + p.ASIN + "]")}
	for _, o := range g.Options {
		actions = append(actions, episode.Action("click["+o.Value+"]"))
	}
	var r episode.StepResult
	for _, a := range append(actions, last...) {
		if r, err = e.Step(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestPay(t *testing.T) {
	shop := newShop(t, realCatalogue(t), GoalOptions{})
	tasks, err := NewSuite(shop, Options{}).Tasks(reportSplit)
	if err != nil {
		t.Fatal(err)
	}
	for _, pay := range []Pay{Strict, Shaped} {
		s := NewSuite(shop, Options{Pay: pay})
		if r := win(t, s, tasks[0], "click[buy now]"); !r.Success || r.Reward != fullPay || !r.Done {
			t.Errorf("pay %d: %+v", pay, r)
		}
		// Without the option, 4 of 5 parts.
		r := win(t, s, tasks[0], "click[< prev]", "click[b0743jkhbv]", "click[buy now]")
		if want := map[Pay]float64{Strict: 0, Shaped: 8}[pay]; r.Success || r.Reward != want || !r.Done {
			t.Errorf("pay %d, option missing: got %+v, want %v", pay, r, want)
		}
	}
}

func TestForms(t *testing.T) {
	shop := newShop(t, realCatalogue(t), GoalOptions{})
	s := NewSuite(shop, Options{Show: Parts})
	tasks, _ := s.Tasks(reportSplit)
	e, first, err := s.Open(t.Context(), tasks[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Instruction: " + tasks[0].Goal + "\n'Search'"; first.Text != want {
		t.Errorf("got %q, want %q", first.Text, want)
	}
	r, err := e.Step(t.Context(), "search[zzzz]")
	if want := "'Back to Search' [SEP] 'Page 1 (Total results: 0)' [SEP] 'Next >'"; err != nil || r.Observation.Text != want {
		t.Errorf("got %q, %v, want %q", r.Observation.Text, err, want)
	}
}

// TestBrief: of a page that stays as it was, Brief says only what is chosen on it.
func TestBrief(t *testing.T) {
	s := NewSuite(newShop(t, realCatalogue(t), GoalOptions{}), Options{Show: Brief})
	task := reportTasks(t, s)[0]
	e, first, err := s.Open(t.Context(), task, 0)
	if err != nil || first.Text != task.Goal {
		t.Fatalf("got %q, %v, want %q", first.Text, err, task.Goal)
	}
	const results = "Back to Search\nPage 1 (Total results: 0)\nNext >"
	for _, step := range []struct {
		a    episode.Action
		want string
	}{
		{"search[zzzz]", results},
		{"click[zzzz]", "Nothing happened."},
		{"search[zzzz]", results},
		{searchFor(task.Goal), ""},
		{"click[b0743jkhbv]", ""},
		{`click[18 x 18-inch]`, "Chosen: size: 18 x 18-inch"},
		{`click[28" x 28"]`, `Chosen: size: 28" x 28"`},
		{"click[description]", ""},
		{"click[< prev]", ""},
		{"click[buy now]", "Purchased B0743JKHBV\nYour score (min 0.0, max 1.0) 1.0"},
	} {
		r, err := e.Step(t.Context(), step.a)
		if err != nil || step.want != "" && r.Observation.Text != step.want || strings.HasPrefix(r.Observation.Text, "Chosen") != strings.HasPrefix(step.want, "Chosen") {
			t.Errorf("%s: got %q, %v, want %q", step.a, r.Observation.Text, err, step.want)
		}
	}
}

// A search for 50 products at random is the same for the same seed, on every page, and another for another one.
func TestRandomResults(t *testing.T) {
	s := newShop(t, realCatalogue(t), GoalOptions{})
	find := func(seed episode.Seed) []int32 {
		v := s.NewSession(s.Goal(0), seed)
		v.Act("search[<r>]")
		return v.hits
	}
	if a, b := find(1), find(1); len(a) != 50 || !slices.Equal(a, b) || slices.Equal(a, find(2)) {
		t.Errorf("seed 1 finds %v, then %v; seed 2 %v", a, b, find(2))
	}
}

func TestSpecialSearches(t *testing.T) {
	s := newShop(t, realCatalogue(t), GoalOptions{})
	count := func(is func(p *Product) bool) (n int) {
		for i := range s.Len() {
			if is(s.product(i)) {
				n++
			}
		}
		return n
	}
	fashion := count(func(p *Product) bool { return p.Category == "fashion" })
	shorts := count(func(p *Product) bool { return p.Query == "men's shorts" })
	glutenFree := count(func(p *Product) bool { return slices.Contains(p.Attributes, "gluten free") })
	if fashion <= mostHits || shorts < 2 || glutenFree < 2 {
		t.Fatalf("%d, %d and %d products to find", fashion, shorts, glutenFree)
	}
	for query, want := range map[string]int{
		"<c> fashion": fashion, "<c> Fashion and more": fashion, "<q> men's shorts": shorts, "<q> MEN'S SHORTS ": shorts, "<a> gluten free": glutenFree,
		"<c>": 0, "<c>  fashion": 0, "<q>": 0, "<a>": 0, " shoes": 39, "<c>fashion": mostHits,
	} {
		v := s.NewSession(s.Goal(0), 0)
		if v.Act("search[" + query + "]"); len(v.hits) != want {
			t.Errorf("%q: %d products, want %d", query, len(v.hits), want)
		}
	}
}

// The goals of another shop are a split of their own; each task is played, advised and reviewed in its own shop.
func TestWithAnotherShop(t *testing.T) {
	other, err := Generate(t.Context(), GenerateOptions{Seed: 2, Products: 140})
	if err != nil {
		t.Fatal(err)
	}
	s := madeSuite(t, Options{Show: Parts}).With(newShop(t, other, GoalOptions{}))
	envtest.Run(t, s, envtest.Config{Splits: s.Splits(), Seed: 4, Tasks: 3})
	warm, err := s.Tasks(warmSplit)
	if err != nil || len(warm) == 0 {
		t.Fatalf("%d tasks, %v", len(warm), err)
	}
	if _, err := madeSuite(t, Options{}).Goal(warm[0].ID); !errors.Is(err, ErrNoGoal) {
		t.Errorf("a task of the other shop in one that has none: %v", err)
	}
	for _, task := range append(warm[:3], reportTasks(t, s)[:3]...) {
		if _, won, err := shopAlong(t.Context(), s, task, env.Knows, nil); err != nil || !won {
			t.Errorf("%s: won %v, %v", task.ID, won, err)
		}
		if a, ok := s.Advice(task, true, episode.Seed(1).Rand()); !ok || a.Category != task.Category {
			t.Errorf("%s: advice %+v, %v", task.ID, a, ok)
		}
	}
}

// The page of attributes is the original's: attributes, category, query and path. Without the option there is none.
func TestAttributesPage(t *testing.T) {
	shop := mugShop(t)
	page := []episode.Action{"search[mug]", "click[b000000001]", "click[attributes]"}
	for _, c := range []struct {
		on         bool
		text, rich string
	}{
		{false, "", ""},
		{
			true, "Back to Search [SEP] < Prev [SEP] dishwasher safe [SEP] garden [SEP] mugs [SEP] Home › Mugs",
			"[button] Back to Search [button_]\n[button] < Prev [button_]\n dishwasher safe\ngarden\nmugs\nHome › Mugs\n",
		},
	} {
		s := NewSuite(shop, Options{Attributes: c.on})
		e, _, err := s.Open(t.Context(), reportTasks(t, s)[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		var r episode.StepResult
		for _, a := range page {
			if r, err = e.Step(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		if r.Admissible != c.on {
			t.Fatalf("%v: the page of attributes can be opened: %v", c.on, r.Admissible)
		}
		v := e.(*Env).Session()
		if !c.on {
			if strings.Contains(v.Text(), "Attributes") || slices.Contains(v.Clickables(), "attributes") {
				t.Errorf("a page that there is not is offered: %s", v.Text())
			}
			continue
		}
		if !strings.HasSuffix(v.Text(), c.text) || !strings.HasSuffix(v.Rich(), c.rich) {
			t.Errorf("got %q\nand %q", v.Text(), v.Rich())
		}
		if r, err = e.Step(t.Context(), "click[< prev]"); err != nil || !r.Admissible || v.at != itemPage {
			t.Errorf("no way back: %+v, %v", r, err)
		}
		want := []string{"back to search", "< prev", "description", "features", "reviews", "attributes", "buy now", "1 | 2 l", "1 l"}
		if got := v.Clickables(); !slices.Equal(got, want) || !strings.HasSuffix(v.Text(), "Reviews [SEP] Attributes [SEP] Buy Now") {
			t.Errorf("got %q on %s", got, v.Text())
		}
	}
}

// As the wrapper does: any goal, drawn by weight with the seed; and the next visit's actions beside the receipt.
func TestWaysOfTheWrapper(t *testing.T) {
	shop := newShop(t, realCatalogue(t), GoalOptions{})
	s := NewSuite(shop, Options{AnyGoal: true, NextVisit: true})
	task := reportTasks(t, s)[0]
	goals := map[int]bool{}
	for seed := range episode.Seed(20) {
		e, first, err := s.Open(t.Context(), task, seed)
		if err != nil {
			t.Fatal(err)
		}
		_, again, err := s.Open(t.Context(), task, seed)
		if err != nil || again.Text != first.Text {
			t.Errorf("seed %d: %q, then %q, %v", seed, first.Text, again.Text, err)
		}
		goals[e.(*Env).visit.goal.Index] = true
	}
	if len(goals) < 15 {
		t.Errorf("20 seeds play goals %v", goals)
	}
	for _, next := range []bool{false, true} {
		r := win(t, NewSuite(shop, Options{NextVisit: next}), task, "click[buy now]")
		if !r.Done || len(r.Observation.Admissible) != map[bool]int{true: 1}[next] || !strings.HasPrefix(r.Observation.Text, "Thank you") {
			t.Errorf("next visit %v: %+v", next, r)
		}
	}
}

// A variation finds all that is not sold out, in the same order, and always the goal's product.
func TestVary(t *testing.T) {
	s := madeSuite(t, Options{Show: Parts})
	found := 0
	for seed, task := range reportTasks(t, s)[:40] {
		varied, err := s.Vary(task, episode.Seed(seed))
		if err != nil {
			t.Fatal(err)
		}
		var hits [2][]int32
		for i, id := range []episode.Task{task, varied} {
			e, _, err := s.Open(t.Context(), id, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Step(t.Context(), searchFor(task.Goal)); err != nil {
				t.Fatal(err)
			}
			hits[i] = e.(*Env).visit.hits
		}
		g, err := s.Goal(varied.ID)
		if err != nil || g.Index != seed {
			t.Fatalf("%s is goal %d, %v", varied.ID, g.Index, err)
		}
		left := slices.DeleteFunc(slices.Clone(hits[0]), func(p int32) bool { return !slices.Contains(hits[1], p) })
		if !slices.Equal(left, hits[1]) || slices.Contains(hits[0], int32(g.Product)) != slices.Contains(hits[1], int32(g.Product)) {
			t.Errorf("%s finds %v, usually %v", varied.ID, hits[1], hits[0])
		}
		found += len(hits[1])
		again, err := s.Vary(varied, 9)
		if err != nil || strings.Count(again.ID, variationMark) != 1 {
			t.Errorf("varied again: %s, %v", again.ID, err)
		}
		if _, won, err := shopAlong(t.Context(), s, varied, env.Knows, nil); err != nil || !won {
			t.Errorf("%s: won %v, %v", varied.ID, won, err)
		}
	}
	if found < 300 || found > 900 { // a quarter, about
		t.Errorf("variations find %d of 2000 products", found)
	}
	for _, bad := range []string{"~", "~x", "~01", "~1~2", "~11111111111111111"} {
		if _, err := s.Goal(reportTasks(t, s)[0].ID + bad); !errors.Is(err, ErrNoGoal) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestChoicesAsText(t *testing.T) {
	var o struct {
		Show  Show
		Pay   Pay
		Order Order
	}
	if err := json.Unmarshal([]byte(`{"Show":"rich","Pay":"shaped","Order":"seeded"}`), &o); err != nil || o.Show != Rich || o.Pay != Shaped || o.Order != Seeded {
		t.Errorf("got %+v, %v", o, err)
	}
	if text, err := json.Marshal(o); err != nil || string(text) != `{"Show":"rich","Pay":"shaped","Order":"seeded"}` {
		t.Errorf("got %s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"Pay":"much"}`), &o); err == nil || !strings.Contains(err.Error(), "strict, shaped") {
		t.Errorf("a pay that there is not: %v", err)
	}
}
