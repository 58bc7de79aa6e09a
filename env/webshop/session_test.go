package webshop

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// lettered are the nouns that the recorded episodes were judged with: what stands between white space and has an ASCII
// letter.
type lettered struct{}

func (lettered) NounsOf(_, title string) []string {
	var nouns []string
	for _, w := range strings.FieldsFunc(title, isSpace) {
		if strings.ContainsFunc(w, func(r rune) bool { return r < 128 && (r|0x20) >= 'a' && (r|0x20) <= 'z' }) {
			nouns = append(nouns, lower(w))
		}
	}
	return nouns
}

// recordedShop is the shop of the recorded episodes.
func recordedShop(t testing.TB) *Shop {
	t.Helper()
	c := *realCatalogue(t)
	c.nouns = lettered{}
	s := newShop(t, &c, GoalOptions{})
	var prices map[string]float64
	readGolden(t, "golden/episodes_sampled_prices.json", &prices)
	for asin, p := range prices {
		s.prices[s.numbers[asin]] = p
	}
	return s
}

type goldenStep struct {
	Action     *string  `json:"action"`
	Text       string   `json:"obs"`
	Reward     float64  `json:"reward"`
	Done       bool     `json:"done"`
	Search     bool     `json:"has_search_bar"`
	Clickables []string `json:"clickables"`
	Exception  string   `json:"exception"`
}

type goldenEpisode struct {
	Tag       string          `json:"tag"`
	GoalIndex int             `json:"goal_idx"`
	Text      []goldenStep    `json:"steps_text"`
	Rich      []goldenStep    `json:"steps_text_rich"`
	Goal      goldenGoal      `json:"goal"`
	Score     json.RawMessage `json:"verbose_info"`
}

// TestEpisodesOfTheOriginal plays its recorded episodes and compares every page in both forms, what can be clicked,
// and the parts of the reward.
func TestEpisodesOfTheOriginal(t *testing.T) {
	s := recordedShop(t)
	episodes := readLines[goldenEpisode](t, "golden/episodes_1k.jsonl.gz")
	if len(episodes) != 58 {
		t.Errorf("%d episodes, want 58", len(episodes))
	}
	for _, e := range episodes {
		e.Goal.Index = e.GoalIndex
		compareGoal(t, s, e.Goal)
		g := s.Goal(e.GoalIndex)
		g.Instruction = strings.TrimSuffix(g.Instruction, boundText(g.Most)) + boundText(e.Goal.Most)
		g.Most = e.Goal.Most
		playGolden(t, s, g, e, e.Text, (*Session).Text)
		v := playGolden(t, s, g, e, e.Rich, (*Session).Rich)
		if score, bought := v.Bought(); bought {
			compareScore(t, e.Tag, score, e.Score)
		}
	}
}

func playGolden(t *testing.T, s *Shop, g Goal, e goldenEpisode, steps []goldenStep, show func(*Session) string) *Session {
	t.Helper()
	v := s.NewSession(g, 0)
	for i, want := range steps {
		took, reward := true, 0.0
		if want.Action != nil {
			_, before := v.Bought()
			took = v.Act(*want.Action)
			if score, bought := v.Bought(); bought && (!before || v.at == donePage) {
				reward = score.Total
			}
		}
		if want.Exception != "" {
			if len(v.hits) == 0 || v.at != resultsPage {
				t.Errorf("%s: %q, which the original fails at, finds nothing", e.Tag, *want.Action)
			}
			return v
		}
		if got := show(v); got != want.Text {
			t.Errorf("goal %d (%s), step %d (%s): got\n%q\nwant\n%q", e.GoalIndex, e.Tag, i, deref(want.Action), got, want.Text)
			return v
		}
		if got := v.Clickables(); !slices.Equal(got, want.Clickables) || v.HasSearchBar() != want.Search {
			t.Errorf("goal %d, step %d (%s): got %q, %v, want %q, %v", e.GoalIndex, i, deref(want.Action), got, v.HasSearchBar(), want.Clickables, want.Search)
		}
		if took && (v.at == donePage) != want.Done || want.Done && reward != want.Reward {
			t.Errorf("goal %d, step %d (%s): done %v, reward %v, want %v, %v", e.GoalIndex, i, deref(want.Action), v.at == donePage, reward, want.Done, want.Reward)
		}
	}
	return v
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// compareScore compares the parts that a record names.
func compareScore(t *testing.T, what string, got Score, want json.RawMessage) {
	t.Helper()
	parts := scoreParts(got)
	var w map[string]any
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if len(w) == 0 {
		t.Errorf("%s: nothing to compare", what)
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if parts[name] != w[name] {
			t.Errorf("%s: %s is %v, want %v", what, name, parts[name], w[name])
		}
	}
}

func TestParseAction(t *testing.T) {
	for action, want := range map[string][2]string{
		"search[red shoes]": {"search", "red shoes"}, "click[a] b": {"click", "a"}, "search[a[b]]": {"search[a", "b]"}, "search[a[]": {"search", "a["},
		"click[x]]": {"click", "x]"}, "a[b]\n[c]": {"a", "b"}, "a[[": {}, "a[b\n]": {}, "[b]": {}, "a[]": {}, "a[": {}, "]": {}, "": {}, "a[]]": {"a", "]"},
		"[[b]": {"[", "b"}, "a[b][c]": {"a[b]", "c"},
	} {
		name, argument, ok := parseAction(action)
		if [2]string{name, argument} != want || ok != (want[0] != "") {
			t.Errorf("%q: got %q, %q, %v, want %q", action, name, argument, ok, want)
		}
	}
}
