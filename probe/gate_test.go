package probe

import (
	"math"
	"testing"

	"skillmaster/skill"
)

func TestEValueByHand(t *testing.T) {
	for _, c := range []struct {
		wins, losses int
		want         float64
	}{
		{0, 0, 1},
		{1, 0, 1.5},                    // ∫ 1+b
		{0, 1, 0.5},                    // ∫ 1−b
		{1, 1, 2.0 / 3},                // ∫ 1−b²
		{6, 0, (128 - 1) / 7.0},        // (2⁷−1)/7: not enough at 5 %
		{7, 0, (256 - 1) / 8.0},        // enough
		{2, 1, 1 + 0.5 - 1.0/3 - 0.25}, // ∫ (1+b)²(1−b) = ∫ 1+b−b²−b³
	} {
		if got := EValue(c.wins, c.losses); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("EValue(%d, %d) = %v, want %v", c.wins, c.losses, got, c.want)
		}
	}
}

// The sum is the integral of the doc comment, by Simpson's rule.
func TestEValueIsTheIntegral(t *testing.T) {
	const n = 2000
	for wins := range 30 {
		for losses := range 30 {
			sum := 0.0
			for i := range n + 1 {
				b, w := float64(i)/n, 2.0
				if i%2 == 1 {
					w = 4
				}
				if i == 0 || i == n {
					w = 1
				}
				sum += w * math.Pow(1+b, float64(wins)) * math.Pow(1-b, float64(losses)) / (3 * n)
			}
			if got := EValue(wins, losses); math.Abs(got-sum) > 1e-8*sum {
				t.Fatalf("EValue(%d, %d) = %v, the integral is %v", wins, losses, got, sum)
			}
		}
	}
}

// A useless edit wins a discordant pair with chance one half at most; the e-value's expectation is then 1, whatever the
// number of pairs.
func TestEValueIsFairUnderTheNull(t *testing.T) {
	for n := 1; n <= 40; n++ {
		expectation, ways := 0.0, 1.0
		for w := 0; w <= n; w++ {
			expectation += ways * math.Pow(0.5, float64(n)) * EValue(w, n-w)
			ways *= float64(n-w) / float64(w+1)
		}
		if math.Abs(expectation-1) > 1e-9 {
			t.Errorf("with %d pairs the expectation is %v, want 1", n, expectation)
		}
	}
}

func TestDecide(t *testing.T) {
	c := DefaultGate()
	rule := func(r Rule) GateConfig { d := c; d.Rule = r; return d }
	for name, x := range map[string]struct {
		c    GateConfig
		p    Pending
		want Decision
	}{
		"six of six is not enough":     {c, Pending{Pairs: 6, Wins: 6}, Undecided},
		"seven of seven is":            {c, Pending{Pairs: 7, Wins: 7}, Commit},
		"ties say nothing":             {c, Pending{Pairs: 60}, Undecided},
		"seven losses":                 {c, Pending{Pairs: 7, Losses: 7}, Reject},
		"out of patience":              {c, Pending{Pairs: 96, Wins: 6, Losses: 3}, Reject},
		"never":                        {rule(Never), Pending{Pairs: 9, Wins: 9}, Reject},
		"always":                       {rule(Always), Pending{Pairs: 9, Losses: 9}, Commit},
		"lower bound above 0":          {rule(LowerBound), Pending{Pairs: 4, Sum: 4, Squares: 4.1}, Commit},
		"lower bound with three pairs": {rule(LowerBound), Pending{Pairs: 3, Sum: 3, Squares: 3}, Undecided},
		"lower bound straddles 0":      {rule(LowerBound), Pending{Pairs: 4, Sum: 0.4, Squares: 4}, Undecided},
		"lower bound below 0":          {rule(LowerBound), Pending{Pairs: 4, Sum: -4, Squares: 4.1}, Reject},
	} {
		if got := x.c.Decide(x.p); got != x.want {
			t.Errorf("%s: got %v, want %v", name, got, x.want)
		}
	}
}

func TestAdmit(t *testing.T) {
	edit := func(title string) Pending {
		return Pending{Edit: skill.Edit{Op: skill.Propose, Title: title, Reason: "of " + title}}
	}
	c := GateConfig{Rule: EProcess, Alpha: 0.05, Budget: 0.1, Tasks: 1, Pending: 3, Pairs: 9}
	var s GateState
	s, first := s.Admit(c, edit("a"))
	same := edit("a")
	same.Edit.Reason = "another author"
	s, again := s.Admit(c, same)
	s, second := s.Admit(c, edit("b"))
	s, third := s.Admit(c, edit("c"))
	if !first || again || !second || third {
		t.Errorf("admitted %v %v %v %v, want an edit once and two edits for the budget", first, again, second, third)
	}
	if len(s.Pending) != 2 || math.Abs(s.Spent-0.1) > 1e-12 {
		t.Errorf("%d pending, %v spent", len(s.Pending), s.Spent)
	}
	c.Pending = 2
	c.Budget = 0
	if _, ok := s.Admit(c, edit("d")); ok {
		t.Error("admitted beyond the room")
	}
}
