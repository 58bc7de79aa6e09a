package webshop

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// rewardCases are cases of the original's own tests, as tables, and more values of what it is built on.
type rewardCases struct {
	Tests struct {
		Paths []struct {
			Goal string `json:"goal_category"`
			Got  string `json:"purchased_category"`
			Like bool   `json:"category_match"`
		} `json:"type_reward_category"`
		Queries []struct {
			Goal string `json:"goal_query"`
			Got  string `json:"purchased_query"`
			Like bool   `json:"query_match"`
		} `json:"type_reward_query"`
		Identical struct {
			Name  string  `json:"name"`
			Query string  `json:"query"`
			Path  string  `json:"category"`
			Kind  float64 `json:"r_type"`
			Title float64 `json:"title_score"`
		} `json:"type_reward_identical"`
		Titles []struct {
			Goal  string  `json:"goal_name"`
			Got   string  `json:"purchased_name"`
			Score float64 `json:"title_score"`
			Below float64 `json:"title_score_below"`
		} `json:"type_reward_title_score_spacy"`
		Attributes []struct {
			Goal        []string `json:"goal"`
			Attributes  []string `json:"product_attributes"`
			Title       string   `json:"title"`
			Bullets     []string `json:"bullets"`
			Description string   `json:"description"`
			Matches     int      `json:"matches"`
		} `json:"attribute_reward"`
		Options []struct {
			Goal    []string `json:"goal"`
			Chosen  []string `json:"purchased"`
			Matches int      `json:"matches"`
		} `json:"option_reward"`
		Totals []struct {
			Attributes int               `json:"attrs"`
			Matched    int               `json:"attr_matches"`
			Options    map[string]string `json:"goal_options"`
			OptionsN   int               `json:"goal_options_n"`
			Chosen     int               `json:"option_matches"`
			Affordable bool              `json:"price_ok"`
			Kind       float64           `json:"r_type"`
			Total      float64           `json:"total"`
			Tolerance  float64           `json:"abs_tol"`
		} `json:"total_reward"`
		Colours [][2]string `json:"normalize_color"`
	} `json:"upstream_tests"`
	Ratios  [][]any `json:"token_set_ratio"`
	Choices []struct {
		Goal   map[string]string     `json:"goal_options"`
		Chosen map[string]string     `json:"purchased_options"`
		Dict   struct{ Matches int } `json:"as_dict (synthetic goals)"`
		List   struct{ Matches int } `json:"as_list (human goals)"`
	} `json:"option_reward_dict_vs_list"`
	Recorded struct {
		Cases []recordedReward `json:"cases"`
	} `json:"recorded_rewards_mturk_2022"`
	AgentQuest struct {
		Goal       string  `json:"goal_name"`
		Got        string  `json:"purchased_name"`
		Like       bool    `json:"category_match"`
		Attributes int     `json:"attr_matches"`
		OfAttrs    int     `json:"attrs"`
		Options    int     `json:"option_matches"`
		OfOptions  int     `json:"goal_options"`
		Affordable bool    `json:"price_ok"`
		Total      float64 `json:"reward"`
	} `json:"recorded_reward_agentquest"`
}

type recordedReward struct {
	Goal struct {
		Attributes []string `json:"attributes"`
		Options    []string `json:"goal_options"`
		Most       float64  `json:"price_upper"`
	} `json:"goal"`
	Name   string            `json:"goal_name"`
	Wanted string            `json:"goal_asin"`
	Got    string            `json:"purchased_asin"`
	Chosen map[string]string `json:"options"`
	Price  float64           `json:"price"`
	Total  float64           `json:"reward"`
	Info   struct {
		Kind      float64 `json:"r_type"`
		Attribute float64 `json:"r_att"`
		Query     bool    `json:"query_match"`
		Category  bool    `json:"category_match"`
		Title     float64 `json:"title_score"`
		Option    float64 `json:"r_option"`
		Price     bool    `json:"r_price"`
	} `json:"reward_info"`
}

func cases(t *testing.T) rewardCases {
	t.Helper()
	var c rewardCases
	readGolden(t, "golden/reward_cases.json", &c)
	return c
}

func TestSetRatio(t *testing.T) {
	c := cases(t)
	if len(c.Ratios) != 269 {
		t.Errorf("%d cases, want 269", len(c.Ratios))
	}
	for _, r := range c.Ratios {
		if got, want := setRatio(r[0].(string), r[1].(string)), int(r[2].(float64)); got != want {
			t.Errorf("%q and %q: got %d, want %d", r[0], r[1], got, want)
		}
	}
}

// TestRatioOfLongTexts compares with difflib (CPython 3.11), which skips frequent characters of 200 and more.
func TestRatioOfLongTexts(t *testing.T) {
	long := strings.Repeat("abcdefghij ", 20)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"abc", long, 3},
		{long, "abc", 3},
		{strings.Repeat("ab", 99), strings.Repeat("ba", 99), 99},
		{strings.Repeat("ab", 100), strings.Repeat("ba", 100), 0},
		{"xq" + long + "zk", "q" + long + "z", 100},
	} {
		if got := ratio(c.a, c.b); got != c.want {
			t.Errorf("%.20q… and %.20q…: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestOptionsOfTheOriginal(t *testing.T) {
	c := cases(t)
	if len(c.Choices) != 162 {
		t.Errorf("%d cases, want 162", len(c.Choices))
	}
	for _, o := range c.Choices {
		var pairs, values, chosen []GoalOption
		for k, v := range o.Goal {
			pairs, values = append(pairs, GoalOption{k, v}), append(values, GoalOption{Value: v})
		}
		for k, v := range o.Chosen {
			chosen = append(chosen, GoalOption{k, v})
		}
		if got := matchOptions(pairs, chosen); got != o.Dict.Matches {
			t.Errorf("%v for %v with groups: got %d, want %d", o.Chosen, o.Goal, got, o.Dict.Matches)
		}
		if got := matchOptions(values, chosen); got != o.List.Matches {
			t.Errorf("%v for %v without groups: got %d, want %d", o.Chosen, o.Goal, got, o.List.Matches)
		}
	}
	for _, o := range c.Tests.Options {
		if got := matchOptions(valuesOf(o.Goal), valuesOf(o.Chosen)); got != o.Matches {
			t.Errorf("%q for %q: got %d, want %d", o.Chosen, o.Goal, got, o.Matches)
		}
	}
}

func valuesOf(values []string) (out []GoalOption) {
	for _, v := range values {
		out = append(out, GoalOption{Value: v})
	}
	return out
}

func TestRewardCasesOfTheOriginal(t *testing.T) {
	c := cases(t)
	for _, p := range c.Tests.Paths {
		if got := likePaths(p.Got, p.Goal); got != p.Like {
			t.Errorf("%q and %q: got %v", p.Got, p.Goal, got)
		}
	}
	for _, a := range c.Tests.Attributes {
		p := Product{Title: a.Title, Attributes: a.Attributes, Bullets: a.Bullets, Description: a.Description}
		if got := matchAttributes(a.Goal, &p); got != a.Matches {
			t.Errorf("%+v: got %d", a, got)
		}
	}
	for _, n := range c.Tests.Colours {
		if got := colourOf(n[0]); got != n[1] {
			t.Errorf("colour of %q: got %q, want %q", n[0], got, n[1])
		}
	}
	for _, w := range c.Tests.Totals {
		of := max(len(w.Options), w.OptionsN)
		s := Score{Kind: w.Kind, Attributes: w.Matched, OfAttributes: w.Attributes, Options: w.Chosen, OfOptions: of, Affordable: w.Affordable}
		if got := s.total(); math.Abs(got-w.Total) > w.Tolerance {
			t.Errorf("%+v: got %v, want %v", w, got, w.Total)
		}
	}
	if len(c.Tests.Paths)*len(c.Tests.Attributes)*len(c.Tests.Colours)*len(c.Tests.Totals) == 0 {
		t.Error("no cases")
	}
}

// The kind of another product, by its query alone and where all is the same. Two more of the original's tests, of colours with
// sizes and of codes for paid workers, are of functions that neither its text pages nor its reward call.
func TestKindsOfTheOriginal(t *testing.T) {
	c := cases(t)
	if len(c.Tests.Queries) != 2 {
		t.Errorf("%d cases, want 2", len(c.Tests.Queries))
	}
	for _, q := range c.Tests.Queries {
		if got := bought(t, [3]string{"Mug", q.Goal, "a"}, [3]string{"Lamp", q.Got, "b"}); got.SameQuery != q.Like {
			t.Errorf("%q for %q: got %+v", q.Got, q.Goal, got)
		}
	}
	same := c.Tests.Identical
	all := [3]string{same.Name, same.Query, same.Path}
	if got := bought(t, all, all); got.Kind != same.Kind || got.Title != same.Title {
		t.Errorf("the same again: got %+v, want %+v", got, same)
	}
}

// bought scores the purchase of one product where another is the goal's; each has a name, a query and a category.
func bought(t *testing.T, wanted, got [3]string) Score {
	t.Helper()
	entry := func(asin string, p [3]string) string {
		return fmt.Sprintf(`{"asin":%q,"name":%q,"full_description":"","small_description":"","pricing":"$1","customization_options":"","category":"garden","query":%q,"product_category":%q}`,
			asin, p[0], p[1], p[2])
	}
	c, _, err := read(t, "["+entry("B000000001", wanted)+","+entry("B000000002", got)+"]", mugsAttr, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, c, GoalOptions{})
	return s.Score(s.Goal(0), 1, nil)
}

// A product of the same title and query is of the kind that was asked for; nouns are a file's before they are guessed.
func TestNouns(t *testing.T) {
	c, _, err := Read(t.Context(), Files{
		Products: strings.NewReader(`[` + mugJSON + `,` + lampJSON + `]`), Attributes: strings.NewReader(mugsAttr),
		Nouns: strings.NewReader(`{"asin":"B000000002","nouns":["Bulb","bulb"]}` + "\n"),
	}, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for asin, want := range map[string]string{"B000000001": "[blue mug]", "B000000002": "[bulb bulb]"} {
		p, _ := c.Find(asin)
		if got := fmt.Sprint(c.nounsOf(&p)); got != want {
			t.Errorf("%s: got %s, want %s", asin, got, want)
		}
	}
	name := Tagger{}.NounsOf("", "Name 1")
	if title := titleScore(name, name); title != 1 || kindScore(true, title) != 1 {
		t.Errorf("%q: title %v", name, title)
	}
	for title, want := range map[string]string{
		"Women's High-Waist Pants w/Pockets (2 Pack), 12oz": "[women high waist pants pockets pack]", "very softly made of wool": "[wool]", "": "[]", "5 x 7 ft": "[]",
		"U.S.A. Co. Café": "[u.s.a co café]",
	} {
		if got := fmt.Sprint(Tagger{}.NounsOf("", title)); got != want {
			t.Errorf("%q: got %s, want %s", title, got, want)
		}
	}
	if titleScore(nil, nil) != 0.2 {
		t.Errorf("a goal without nouns has a title score of %v, want 0.2", titleScore(nil, nil))
	}
}

// FuzzSetRatio: alike in 0 to 100, wholly like oneself, and never an endless loop.
func FuzzSetRatio(f *testing.F) {
	for _, p := range [][2]string{{"large", "x-large"}, {"", "!"}, {"café", "cafe"}, {strings.Repeat("ab ", 90), "ab"}, {"a\u00a0b", `\xa0`}} {
		f.Add(p[0], p[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if r := setRatio(a, b); r < 0 || r > 100 {
			t.Errorf("%q and %q: %d", a, b, r)
		}
		if r := setRatio(a, a); r != 100 && len(wordSet(a)) > 0 {
			t.Errorf("%q and itself: %d", a, r)
		}
		_ = printed(a)
	})
}

// FuzzOptions: whatever a goal asks for and whatever was chosen, as many options match as there are at most, nothing matches
// if nothing is chosen, and one more choice takes none away.
func FuzzOptions(f *testing.F) {
	f.Add("color", "blue", "sky blue", "size")
	f.Add("", "x-large", "large", "")
	f.Add("size", "10.5", "10", "it's")
	f.Add("\\'\x00", "İ\xff", strings.Repeat("a1 ", 90), "a1")
	f.Fuzz(func(t *testing.T, group, want, has, more string) {
		goal := []GoalOption{{group, want}, {Value: want}}
		one := []GoalOption{{group, has}}
		n, both := matchOptions(goal, one), matchOptions(goal, append(one, GoalOption{more, more}))
		if none := matchOptions(goal, nil); none != 0 || n < 0 || n > both || both > len(goal) {
			t.Errorf("%d match nothing, %d one choice, %d two", none, n, both)
		}
	})
}

// The word lists of the original.
func TestColourWords(t *testing.T) {
	var want struct {
		Colours []string  `json:"color_words_in_order"`
		Bounds  []float64 `json:"price_bounds"`
	}
	readGolden(t, "golden/tables.json", &want)
	equal(t, "colours", colours, want.Colours)
	if len(want.Bounds) != 99 || want.Bounds[98] != 990 {
		t.Errorf("bounds %v, want 10 to 990", want.Bounds)
	}
}

// TestTaggerIsNear compares what the built-in tagger gives with recordings of spaCy: it is an approximation.
func TestTaggerIsNear(t *testing.T) {
	c := cases(t)
	nouns := func(title string) []string { return Tagger{}.NounsOf("", title) }
	for _, w := range c.Tests.Titles {
		got := titleScore(nouns(w.Got), nouns(w.Goal))
		if w.Below > 0 && got >= w.Below || w.Below == 0 && (math.Abs(got-w.Score) > 0.12 || (got > 0.2) != (w.Score > 0.2) || (got < 0.1) != (w.Score < 0.1)) {
			t.Errorf("%q, %q: got %.3f, want about %.3f", w.Goal, w.Got, got, max(w.Score, w.Below))
		}
	}
	q := c.AgentQuest
	s := Score{
		Kind:       kindScore(q.Like, titleScore(nouns(q.Got), nouns(q.Goal))),
		Attributes: q.Attributes, OfAttributes: q.OfAttrs, Options: q.Options, OfOptions: q.OfOptions, Affordable: q.Affordable,
	}
	if got := s.total(); got != q.Total {
		t.Errorf("the recorded reward of another product: got %v of %+v, want %v", got, s, q.Total)
	}
}

// TestRecordedRewards takes recorded rewards apart and puts them together again.
func TestRecordedRewards(t *testing.T) {
	c := cases(t)
	if len(c.Recorded.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, w := range c.Recorded.Cases {
		var chosen []GoalOption
		for k, v := range w.Chosen {
			chosen = append(chosen, GoalOption{k, v})
		}
		s := Score{
			Kind: kindScore(w.Info.Query || w.Info.Category, w.Info.Title), OfAttributes: len(w.Goal.Attributes), OfOptions: len(w.Goal.Options),
			Attributes: int(math.Round(w.Info.Attribute * float64(len(w.Goal.Attributes)))),
			Options:    matchOptions(valuesOf(w.Goal.Options), chosen), Affordable: w.Price <= w.Goal.Most,
		}
		if s.Kind != w.Info.Kind || s.Affordable != w.Info.Price || s.total() != w.Total {
			t.Errorf("%s for %s: got %+v, %v, want %+v, %v", w.Got, w.Wanted, s, s.total(), w.Info, w.Total)
		}
	}
}

// TestTaggerOnRecordedPurchases buys what 413 recorded episodes won with, 35 of them with another product than the one
// asked for: the built-in tagger does not take a win away.
func TestTaggerOnRecordedPurchases(t *testing.T) {
	var want []recordedPurchase
	readGolden(t, "golden/agenttraj_terminal_rewards.json", &want)
	s := newShop(t, realCatalogue(t), GoalOptions{})
	others := 0
	for _, w := range want {
		product, _ := s.find(w.Purchased)
		s.prices[product] = w.Price
		if got := s.Score(bounded(s.Goal(w.Goal), w.Most), int(product), chosenOf(w.Options)); got.Total != 1 {
			t.Errorf("goal %d, %s: got %+v, want 1", w.Goal, w.Purchased, got)
		}
		if w.Purchased != w.ASIN {
			others++
		}
	}
	if len(want) != 413 || others != 35 {
		t.Errorf("%d purchases, %d of another product, want 413 and 35", len(want), others)
	}
}
