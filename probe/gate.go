package probe

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"skillmaster/skill"
)

// Rule turns evidence into a decision.
type Rule string

// The rules of the gate.
const (
	EProcess   Rule = "e-process"   // anytime-valid test on discordant pairs
	LowerBound Rule = "lower-bound" // the mean delta is more than 1.645 standard errors above 0
	Always     Rule = "always"      // every edit that was measured as useful
	Never      Rule = "never"       // the bank stays as it is
)

// GateConfig says when an edit becomes part of the bank.
type GateConfig struct {
	Rule    Rule    `json:"rule"`
	Alpha   float64 `json:"alpha"`   // chance at which a useless edit may pass, for each edit
	Budget  float64 `json:"budget"`  // sum of Alpha over the edits a run may test; 0: no limit
	Tasks   int     `json:"tasks"`   // gate probes of a pending edit in one iteration
	Pending int     `json:"pending"` // most edits under test at once
	Pairs   int     `json:"pairs"`   // an edit that has not passed after so many pairs is rejected
}

// DefaultGate is this project's gate.
func DefaultGate() GateConfig {
	return GateConfig{Rule: EProcess, Alpha: 0.05, Budget: 4, Tasks: 8, Pending: 6, Pairs: 96}
}

// Validate reports the first setting that cannot be.
func (c GateConfig) Validate() error {
	switch c.Rule {
	case EProcess, LowerBound, Always, Never:
	default:
		return fmt.Errorf("gate.rule is %q: it is one of %s, %s, %s, %s", c.Rule, EProcess, LowerBound, Always, Never)
	}
	if c.Alpha <= 0 || c.Alpha >= 1 {
		return fmt.Errorf("gate.alpha is %v, it lies between 0 and 1", c.Alpha)
	}
	if c.Tasks < 1 || c.Pending < 0 || c.Pairs < 1 || c.Budget < 0 {
		return errors.New("gate.tasks and gate.pairs must be positive, gate.pending and gate.budget not negative")
	}
	return nil
}

// Decision is what the gate says of a pending edit.
type Decision uint8

// The decisions.
const (
	Undecided Decision = iota
	Commit
	Reject
)

func (d Decision) String() string {
	switch d {
	case Undecided:
		return "undecided"
	case Commit:
		return "commit"
	case Reject:
		return "reject"
	default:
		return "decision " + strconv.Itoa(int(d))
	}
}

// MarshalText writes the decision by name.
func (d Decision) MarshalText() ([]byte, error) {
	if d > Reject {
		return nil, fmt.Errorf("no such decision: %d", uint8(d))
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (d *Decision) UnmarshalText(text []byte) error {
	for _, o := range []Decision{Undecided, Commit, Reject} {
		if o.String() == string(text) {
			*d = o
			return nil
		}
	}
	return fmt.Errorf("no such decision: %q", text)
}

// Pending is an edit under test with the evidence so far, over all iterations it was tested in.
type Pending struct {
	Edit       skill.Edit       `json:"edit"`
	Provenance skill.Provenance `json:"provenance"`
	Pairs      int              `json:"pairs"`
	Wins       int              `json:"wins"`
	Losses     int              `json:"losses"`
	Sum        float64          `json:"sum"`     // of the deltas
	Squares    float64          `json:"squares"` // of the deltas
}

// Key tells edits apart by what they would change; who wrote them and why does not matter.
func Key(e skill.Edit) string {
	return fmt.Sprintf("%d\x00%s\x00%s\x00%s\x00%s\x00%s", e.Op, e.ID, e.Category, e.Title, e.Principle, e.When)
}

// Add returns p with the evidence of a measured verdict added.
func (p Pending) Add(v Verdict) Pending {
	for _, x := range v.Pairs {
		p.Pairs++
		p.Sum += x.Delta
		p.Squares += x.Delta * x.Delta
		switch {
		case x.Delta > 0:
			p.Wins++
		case x.Delta < 0:
			p.Losses++
		}
	}
	return p
}

// Mean is the mean delta, or NaN before the first pair.
func (p Pending) Mean() float64 { return p.Sum / float64(p.Pairs) }

// EValue is the evidence against "a pair is at least as likely to be lost as won": the wealth of a gambler who bets the
// share b of it on every discordant pair to be a win, averaged over b uniform in [0, 1]:
// E = ∫ (1+b)^wins (1−b)^losses db. Its expectation is at most 1 if the edit is useless, at any time it is looked at, so
// E ≥ 1/α happens with chance at most α (Ville). No pairs: 1. Seven wins without a loss are the least that pass at 5 %.
func EValue(wins, losses int) float64 {
	// With n = wins + losses this is Σ over k ≤ wins of C(n+1, k), over (n+1)·C(n, wins): the incomplete beta integral.
	term := 1 / float64(losses+1)
	sum := term
	for k := wins; k > 0; k-- {
		term *= float64(k) / float64(wins+losses+2-k)
		sum += term
	}
	return sum
}

// Decide says what becomes of a pending edit.
func (c GateConfig) Decide(p Pending) Decision {
	var pass, hopeless bool
	switch c.Rule {
	case Never:
		return Reject
	case Always:
		return Commit
	case EProcess:
		pass = EValue(p.Wins, p.Losses) >= 1/c.Alpha
		hopeless = EValue(p.Losses, p.Wins) >= 1/c.Alpha
	case LowerBound:
		if p.Pairs >= 4 {
			n := float64(p.Pairs)
			variance := (p.Squares - p.Sum*p.Sum/n) / (n - 1)
			bound := 1.645 * math.Sqrt(max(0, variance)/n)
			pass, hopeless = p.Mean() > bound, p.Mean() < -bound
		}
	}
	switch {
	case pass:
		return Commit
	case hopeless || p.Pairs >= c.Pairs:
		return Reject
	default:
		return Undecided
	}
}

// GateState is what a gate remembers between iterations.
type GateState struct {
	Pending []Pending `json:"pending,omitempty"`
	Spent   float64   `json:"spent"` // of the budget
}

// Admit returns the state with an edit put under test, and whether there was room and budget for it. An edit that is
// under test already is not admitted again.
func (s GateState) Admit(c GateConfig, p Pending) (GateState, bool) {
	if c.Rule == Never || len(s.Pending) >= c.Pending || (c.Budget > 0 && s.Spent+c.Alpha > c.Budget+1e-9) {
		return s, false
	}
	for _, q := range s.Pending {
		if Key(q.Edit) == Key(p.Edit) {
			return s, false
		}
	}
	s.Pending = append(s.Pending[:len(s.Pending):len(s.Pending)], p)
	s.Spent += c.Alpha
	return s, true
}
