package report

import (
	"fmt"

	"skillmaster/plot"
	"skillmaster/probe"
	"skillmaster/store"
	"skillmaster/train"
)

// Fate is what became of an edit.
type Fate uint8

// The fates of an edit, from the first judgement to the bank.
const (
	NotMeasured Fate = iota // no probe could tell
	NotBetter               // the probes did not find it better than no edit
	NotTested               // better, but the gate had no room, no budget, or tests nothing
	UnderTest
	Rejected
	Committed
)

func (f Fate) String() string {
	switch f {
	case NotMeasured:
		return "not measured"
	case NotBetter:
		return "not better"
	case NotTested:
		return "not tested"
	case UnderTest:
		return "under test"
	case Rejected:
		return "rejected"
	case Committed:
		return "committed"
	default:
		return fmt.Sprintf("fate %d", uint8(f))
	}
}

// FateOf says what became of an edit, from its judgement and its tests at the gate.
func FateOf(j train.Judgement, tests []store.Tested) Fate {
	switch {
	case len(tests) > 0:
		return FateOfTests(tests)
	case !j.Verdict.Measured:
		return NotMeasured
	case j.Verdict.Mean <= 0 || j.Verdict.Wins <= j.Verdict.Losses:
		return NotBetter
	default:
		return NotTested
	}
}

// FateOfTests says what became of an edit under test.
func FateOfTests(tests []store.Tested) Fate {
	switch tests[len(tests)-1].Decision {
	case probe.Commit:
		return Committed
	case probe.Reject:
		return Rejected
	default:
		return UnderTest
	}
}

// Why says in a sentence why an edit was or was not committed.
func (h *History) Why(j train.Judgement, tests []store.Tested) string {
	v, gate := j.Verdict, h.Train.Gate
	switch f := FateOf(j, tests); f {
	case NotMeasured:
		return "Not committed: no probe could measure it (" + v.Why + ")."
	case NotBetter:
		return fmt.Sprintf("Not committed: on its probes it won %d and lost %d pairs, with a mean delta of %+.3f; only edits that win more than they lose, with a mean above 0, are put under test.", v.Wins, v.Losses, v.Mean)
	case NotTested:
		if gate.Rule == probe.Never {
			return "Not committed: the gate's rule is never, so the bank stays as it is."
		}
		return "Not committed: it looked better than no edit, but the gate tested others: it had no room or no budget left, or tested the same edit already."
	case UnderTest:
		last := tests[len(tests)-1].Pending
		return fmt.Sprintf("Under test: after %d pairs it has won %d and lost %d. %s", last.Pairs, last.Wins, last.Losses, h.rule(last))
	case Rejected:
		last := tests[len(tests)-1]
		return fmt.Sprintf("Rejected after %d pairs, %d won and %d lost: %s. %s", last.Pending.Pairs, last.Pending.Wins, last.Pending.Losses, last.Why, h.rule(last.Pending))
	default:
		last := tests[len(tests)-1].Pending
		return fmt.Sprintf("Committed after %d pairs, %d won and %d lost. %s", last.Pairs, last.Wins, last.Losses, h.rule(last))
	}
}

// rule says what the gate asks for, and what the edit has.
func (h *History) rule(p probe.Pending) string {
	gate := h.Train.Gate
	switch gate.Rule {
	case probe.EProcess:
		return fmt.Sprintf("The rule asks for evidence E of at least %s (1/α); it has %s.", plot.Short(1/gate.Alpha), plot.Short(probe.EValue(p.Wins, p.Losses)))
	case probe.LowerBound:
		return fmt.Sprintf("The rule asks for a mean delta of more than 1.645 standard errors above 0; its mean is %+.3f.", p.Mean())
	case probe.Always:
		return "The rule is always: whatever the probes found useful is committed, whatever the gate finds."
	case probe.Never:
		return "The rule is never: the bank stays as it is."
	default:
		return ""
	}
}

// Evidence draws how an edit's evidence grew over its tests.
func (h *History) Evidence(tests []store.Tested) []plot.Chart {
	e := plot.Chart{Title: "Evidence E", X: "iteration", Log: true}
	if h.Train.Gate.Rule == probe.EProcess {
		e.Rules = []plot.Rule{{Y: 1 / h.Train.Gate.Alpha, Name: "commit"}, {Y: 1, Name: "no evidence"}}
	}
	good, harm := plot.Series{Name: "better"}, plot.Series{Name: "harmful"}
	mean := plot.Series{Name: "delta"}
	for _, t := range tests {
		x, p := float64(t.Round.Round+1), t.Pending
		good.X, good.Y = append(good.X, x), append(good.Y, probe.EValue(p.Wins, p.Losses))
		harm.X, harm.Y = append(harm.X, x), append(harm.Y, probe.EValue(p.Losses, p.Wins))
		mean.X, mean.Y = append(mean.X, x), append(mean.Y, p.Mean())
	}
	e.Series = []plot.Series{good, harm}
	return []plot.Chart{e, {Title: "Mean delta so far", X: "iteration", Series: []plot.Series{mean}, Rules: []plot.Rule{{Y: 0, Name: "no effect"}}}}
}
