package webshop

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"testing"
)

var realShop struct {
	once sync.Once
	c    *Catalogue
	got  Loaded
	err  error
}

// realCatalogue is the catalogue of 1,000 products, read once for all tests.
func realCatalogue(t testing.TB) *Catalogue {
	t.Helper()
	dataDir(t)
	realShop.once.Do(func() {
		realShop.c, realShop.got, realShop.err = Read(t.Context(), Files{
			Products:   openGolden(t, "items_shuffle_1000.json.gz"),
			Attributes: openGolden(t, "items_ins_v2_1000.json"),
			Human:      openGolden(t, "items_human_ins_subset13.json"),
		}, LoadOptions{})
	})
	if realShop.err != nil {
		t.Fatal(realShop.err)
	}
	return realShop.c
}

func newShop(t testing.TB, c *Catalogue, o GoalOptions) *Shop {
	t.Helper()
	s, err := NewShop(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRealCatalogue(t *testing.T) {
	c := realCatalogue(t)
	if want := (Loaded{Entries: 1000, Products: 1000}); realShop.got != want {
		t.Errorf("got %+v, want %+v", realShop.got, want)
	}
	instructed, ranged := 0, 0
	for i := range c.Len() {
		p := c.Product(i)
		if p.Instruction != "" {
			instructed++
		}
		if p.Price.Ranged {
			ranged++
		}
	}
	if instructed != 415 || ranged != 93 {
		t.Errorf("%d products with an instruction, %d with a range of prices, want 415 and 93", instructed, ranged)
	}
	for human, want := range map[bool]int{false: 6910, true: 13} {
		if got := newShop(t, c, GoalOptions{Human: human}).Goals(); got != want {
			t.Errorf("human %v: %d goals, want %d", human, got, want)
		}
	}
}

// TestSeedsOfTheWrapper compares hidden prices, bounds, order and the letters behind them.
func TestSeedsOfTheWrapper(t *testing.T) {
	var want map[string]json.RawMessage
	readGolden(t, "golden/verl_seeding.json", &want)
	for _, seed := range []string{"0", "1", "1000"} {
		var w struct {
			Goals   int            `json:"n_goals"`
			Prices  [][]any        `json:"sampled_prices_first10"`
			First   []recordedGoal `json:"first_goals"`
			Session string         `json:"session_after_init"`
		}
		if err := json.Unmarshal(want[seed], &w); err != nil {
			t.Fatal(err)
		}
		n := map[string]int64{"0": 0, "1": 1, "1000": 1000}[seed]
		s := newShop(t, realCatalogue(t), GoalOptions{Seed: n, Order: Seeded})
		if s.Goals() != w.Goals || len(w.First) == 0 || len(w.Prices) == 0 {
			t.Errorf("seed %s: got %d goals, want %d, and some of them", seed, s.Goals(), w.Goals)
		}
		for _, p := range w.Prices {
			product, _ := s.find(p[0].(string))
			if got := s.price(int(product)); got != p[2].(float64) {
				t.Errorf("seed %s: %s costs %v, want %v", seed, p[0], got, p[2])
			}
		}
		for i, g := range w.First {
			got := s.Goal(i)
			if s.Product(got.Product).ASIN != g.ASIN || got.Instruction != g.Instruction || got.Most != g.Most || s.Weight(i) != g.Weight {
				t.Errorf("seed %s, goal %d: got %+v, want %+v", seed, i, got, g)
			}
		}
		if got := s.drawn.letters(10); got != w.Session {
			t.Errorf("seed %s: letters %q behind the order, want %q", seed, got, w.Session)
		}
	}
}

// The wrapper draws the goals of a reset with one generator of numpy.
func TestGoalsOfAResetOfTheWrapper(t *testing.T) {
	var want struct {
		Choice map[string]json.RawMessage `json:"wrapper_reset_choice"`
	}
	readGolden(t, "golden/verl_seeding.json", &want)
	for _, c := range []struct {
		key      string
		seed     uint32
		first, n int
	}{
		{"train seed=0 env_num=8 goal_idxs=range(500,6910), first 3 resets", 0, 500, 6410},
		{"val seed=1000 env_num=8 goal_idxs=range(500), first 3 resets", 1000, 0, 500},
	} {
		var resets [][]int
		if err := json.Unmarshal(want.Choice[c.key], &resets); err != nil {
			t.Fatalf("%s: %v in %s", c.key, err, want.Choice)
		}
		r := numpyTwister(c.seed)
		for i, w := range resets {
			got := r.permutation(c.n)[:8]
			for j := range got {
				got[j] += c.first
			}
			if !slices.Equal(got, w) {
				t.Errorf("%s: reset %d: got %v, want %v", c.key, i+1, got, w)
			}
		}
	}
}

// TestPick compares with the original's own test of its draw by weight.
func TestPick(t *testing.T) {
	var want struct {
		Tests struct {
			Pick struct {
				Seed    int64 `json:"seed"`
				Want    []int `json:"expected_first_three"`
				Weights []int `json:"weights_values"`
			} `json:"random_idx"`
		} `json:"upstream_tests"`
	}
	readGolden(t, "golden/reward_cases.json", &want)
	w := want.Tests.Pick
	r := pythonTwister(w.Seed)
	weights := make([]int, len(w.Weights))
	for i := range weights {
		weights[i] = r.below(11)
	}
	equal(t, "weights", weights, w.Weights)
	sums := cumulative(len(weights), func(i int) float64 { return float64(weights[i]) })
	for i, want := range w.Want {
		if got := pick(sums, r); got != want {
			t.Errorf("draw %d: got %d, want %d", i+1, got, want)
		}
	}
}

func TestShopIsTheSameEveryTime(t *testing.T) {
	c := realCatalogue(t)
	a, b := newShop(t, c, GoalOptions{Seed: 7}), newShop(t, c, GoalOptions{Seed: 7})
	if !reflect.DeepEqual(a.goals, b.goals) || !slices.Equal(a.prices, b.prices) {
		t.Error("two shops of one seed differ")
	}
}
