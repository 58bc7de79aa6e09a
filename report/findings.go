package report

import (
	"fmt"
	"slices"
	"time"

	"skillmaster/plot"
	"skillmaster/store"
	"skillmaster/train"
)

// Severity says how much a finding matters.
type Severity uint8

// The severities.
const (
	Note    Severity = iota // worth knowing
	Warning                 // the run may come to nothing
	Failure                 // something is wrong
)

func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	case Failure:
		return "error"
	default:
		return fmt.Sprintf("severity %d", uint8(s))
	}
}

// Finding is something about a run that a person should know, and what to do about it.
type Finding struct {
	Severity Severity
	Title    string
	Detail   string // with the numbers
	Remedy   string
	Metric   string // that shows it; empty: none does
}

// recent is over how many iterations findings look.
const recent = 5

// limit is a metric with a range that a healthy run stays in. The ranges are rules of thumb, as in docs/metrics.md.
type limit struct {
	severity Severity
	key      string
	title    string
	bad      func(v float64) bool
	after    int // iterations that must be done before it is asked
	remedy   string
}

func above(x float64) func(float64) bool { return func(v float64) bool { return v > x } }
func below(x float64) func(float64) bool { return func(v float64) bool { return v < x } }

var limits = []limit{
	{Warning, "action/dead_share", "Nearly all groups are dead", above(0.9), 3, "All episodes of a group are worth the same, so acting learns nothing. Use larger groups (train.group), easier or harder tasks, or a higher train.rollout.temperature."},
	{Warning, "action/success", "Nothing succeeds", func(v float64) bool { return v == 0 }, 3, "There is nothing to learn from. Give the warm start more updates (train.warm.updates), or take easier tasks (world.difficulty)."},
	{Note, "action/success", "Nearly everything succeeds", above(0.98), 5, "The tasks teach nothing more. Take harder ones (world.difficulty), or stop here."},
	{Warning, "action/malformed_share", "Replies without a well-formed action", above(0.1), 1, "The reply format is being forgotten, or replies are cut off. Lower train.learn.rate; look at rollout/stop_degenerate; perhaps raise train.rollout.action_tokens."},
	{Warning, "action/inadmissible_share", "Many actions are not possible", above(0.4), 1, "The policy does not track what it sees. Give the warm start more updates, or raise train.warm.observation."},
	{Warning, "review/lone_share", "Most groups have fewer than two measured reviews", above(0.8), 3, "The review stream learns nothing. Raise train.probe.candidates."},
	{Note, "review/dead_share", "Reviews of a group are all worth the same", above(0.9), 5, "The review stream learns nothing just now. The review mix shows which outcome is everywhere."},
	{Warning, "probe/hidden", "Edited skills do not stand in the prompts of their probes", above(0), 1, "Those probes measured nothing. Look at categories and train.rollout.max_skills."},
	{Warning, "learn/clip_share", "Many positions are clipped", above(0.3), 1, "Later updates go far from what was sampled. Fewer train.learn.updates, or a lower train.learn.rate."},
	{Warning, "learn/entropy", "The policy hardly tries anything else any more", below(0.02), 3, "Groups die when every episode is the same. Lower train.learn.rate, or train.learn.entropy above 0."},
	{Failure, "rollout/groups_dropped", "Groups were left out because their world broke", above(0), 1, "The log names task and error of each. Check the data (skillmaster data verify)."},
	{Warning, "warm/cut", "Demonstrations are longer than the context", above(0), 1, "Their tails, which hold the reviews, are lost. Raise model.context."},
	{Warning, "warm/expert_success", "The expert often fails", below(0.5), 1, "Lower train.warm.noise; look at train.warm.helpful."},
}

// Findings are what a run's records say should be looked at, the gravest first. now is asked whether it still moves;
// a run that nobody is training is told by its silence alone.
func (h *History) Findings(now time.Time) []Finding {
	var out []Finding
	l := h.Learning()
	for _, r := range limits {
		rounds := l
		if r.key[:5] == "warm/" {
			rounds = h.Warm()
		}
		if len(rounds) < r.after {
			continue
		}
		v, n := meanOf(rounds[max(0, len(rounds)-recent):], r.key)
		if n > 0 && r.bad(v) {
			out = append(out, Finding{r.severity, r.title, fmt.Sprintf("%s is %s on average over the last %d rounds.", r.key, plot.Short(v), n), r.remedy, r.key})
		}
	}
	out = append(out, h.notFinite()...)
	for _, f := range []func(time.Time) (Finding, bool){h.silent, h.drift, h.exhausted, h.contexts, h.declining} {
		if x, ok := f(now); ok {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return out
}

func meanOf(rounds []store.Numbers, key string) (mean float64, n int) {
	for _, r := range rounds {
		if v, ok := r.Metrics[key]; ok {
			mean += v
			n++
		}
	}
	return mean / float64(max(1, n)), n
}

// notFinite names metrics that some round should have and has not: they are stored as absent if they are no number.
func (h *History) notFinite() []Finding {
	var out []Finding
	for _, key := range []string{"learn/loss", "learn/grad_norm"} {
		for _, r := range h.Learning() {
			if _, ok := r.Metrics[key]; !ok && r.Metrics["learn/updates"] > 0 {
				out = append(out, Finding{Failure, "An update gave no number", fmt.Sprintf("%s of iteration %d is not a finite number, though there were updates.", key, r.Round.Round+1), "Lower train.learn.rate and start again from a checkpoint before it.", key})
				break
			}
		}
	}
	return out
}

func (h *History) silent(now time.Time) (Finding, bool) {
	if h.Finished() {
		return Finding{}, false
	}
	var longest float64
	for _, r := range h.Rounds[max(0, len(h.Rounds)-10):] {
		s := 0.0
		for _, v := range r.Seconds {
			s += v
		}
		longest = max(longest, s)
	}
	quiet := now.Sub(h.Last())
	if quiet < 10*time.Minute || quiet.Seconds() < 5*longest {
		return Finding{}, false
	}
	return Finding{
		Warning, "The run is not finished and has recorded nothing for a while", fmt.Sprintf("The last round was kept %s ago.", quiet.Round(time.Minute)),
		"If nobody is training it, go on with: skillmaster train --run DIR --resume", "",
	}, true
}

func (h *History) drift(time.Time) (Finding, bool) {
	l := h.Learning()
	v, n := meanOf(l[max(0, len(l)-recent):], "learn/drift")
	if n == 0 || h.Train.Learn.Updates > 1 || v < 0.05 {
		return Finding{}, false
	}
	return Finding{
		Failure, "Sampler and learner disagree", fmt.Sprintf("learn/drift is %s nats on average over the last %d rounds; with one update an iteration it should be near 0.", plot.Short(v), n),
		"This is a defect, or precision that is too low: try model.precision=float32, and report it if that does not help.", "learn/drift",
	}, true
}

func (h *History) exhausted(time.Time) (Finding, bool) {
	l, g := h.Learning(), h.Train.Gate
	if len(l) == 0 || g.Budget == 0 {
		return Finding{}, false
	}
	spent, ok := l[len(l)-1].Metrics["gate/spent"]
	if !ok || spent+g.Alpha <= g.Budget+1e-9 {
		return Finding{}, false
	}
	return Finding{
		Note, "The gate's budget is spent", fmt.Sprintf("%s of %s: no further edit is tested, the bank stays as it is.", plot.Short(spent), plot.Short(g.Budget)),
		"A larger train.gate.budget tests more edits; more useless ones may pass.", "gate/spent",
	}, true
}

func (h *History) contexts(time.Time) (Finding, bool) {
	l := h.Learning()
	last := l[max(0, len(l)-recent):]
	full, n := 0.0, 0.0
	for _, r := range last {
		full += r.Metrics["rollout/stop_context full"]
		n += r.Metrics["rollout/episodes"]
	}
	if n == 0 || full/n < 0.05 {
		return Finding{}, false
	}
	return Finding{Warning, "Episodes end for lack of room", fmt.Sprintf("%.0f of the last %.0f episodes filled the context.", full, n), "Raise model.context.", "rollout/stop_context full"}, true
}

// declining compares the held-out panel now with its best.
func (h *History) declining(time.Time) (Finding, bool) {
	v := h.Valid()
	if len(v) < 3 {
		return Finding{}, false
	}
	var best train.Summary
	for _, e := range v {
		if s := e.Summary(); s.Rate > best.Rate {
			best = s
		}
	}
	now := v[len(v)-1].Summary()
	if now.High >= best.Low {
		return Finding{}, false
	}
	return Finding{
		Warning, "The held-out panel has fallen", fmt.Sprintf("It was %.0f %% at best and is %.0f %% now; the intervals do not meet.", 100*best.Rate, 100*now.Rate),
		"Lower train.learn.rate. The best checkpoint is kept: skillmaster eval --checkpoint best.", "",
	}, true
}
