package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"skillmaster/plot"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/train"
)

// series takes one number from each round.
func series(name string, rounds []store.Numbers, of func(store.Numbers) (float64, bool)) plot.Series {
	s := plot.Series{Name: name, X: make([]float64, len(rounds)), Y: make([]float64, len(rounds))}
	for i, r := range rounds {
		s.X[i], s.Y[i] = float64(r.Round.Round+1), math.NaN()
		if v, ok := of(r); ok {
			s.Y[i] = v
		}
	}
	return s
}

func metric(key string) func(store.Numbers) (float64, bool) {
	return func(r store.Numbers) (float64, bool) { v, ok := r.Metrics[key]; return v, ok }
}

// band adds mean ± deviation to a series.
func band(s plot.Series, rounds []store.Numbers, deviation string) plot.Series {
	s.Low, s.High = make([]float64, len(s.Y)), make([]float64, len(s.Y))
	for i, r := range rounds {
		d, ok := r.Metrics[deviation]
		if !ok {
			d = math.NaN()
		}
		s.Low[i], s.High[i] = s.Y[i]-d, s.Y[i]+d
	}
	return s
}

func at(v float64) *float64 { return &v }

// Curve is one number of each iteration; NaN where it was not measured.
func (h *History) Curve(key string) []float64 { return series("", h.Learning(), metric(key)).Y }

// Charts are the curves of a run, those most looked at first.
func (h *History) Charts() []plot.Chart {
	l := h.Learning()
	line := func(name, key string) plot.Series { return series(name, l, metric(key)) }
	marks := h.commitMarks()
	out := []plot.Chart{
		h.successChart(),
		h.validChart(),
		{Title: "Action return, mean and deviation", Series: []plot.Series{band(line("return", "action/return_mean"), l, "action/return_sd")}},
		h.reviewChart(),
		{Title: "What edits are worth on probes", Series: []plot.Series{line("utility", "probe/utility_mean"), line("delta", "probe/delta_mean")}, Rules: []plot.Rule{{Y: 0, Name: "no effect"}}, Marks: marks},
		{Title: "Skills in the bank", Series: []plot.Series{line("skills", "bank/skills")}, From: at(0), Marks: marks},
		{Title: "Groups without a gradient", Unit: "%", Scale: 100, From: at(0), To: at(100), Series: []plot.Series{line("action", "action/dead_share"), line("review", "review/dead_share"), line("review, lone", "review/lone_share")}},
		{Title: "Entropy and KL, nats", From: at(0), Series: []plot.Series{line("entropy", "learn/entropy"), line("KL (k3)", "learn/kl_k3")}},
		{Title: "Steps of an episode", From: at(0), Series: []plot.Series{line("steps", "action/steps_mean")}},
		{Title: "Faulty actions", Unit: "%", Scale: 100, From: at(0), Series: []plot.Series{line("inadmissible", "action/inadmissible_share"), line("malformed", "action/malformed_share")}},
		{Title: "Gradient, and loss", Series: []plot.Series{line("gradient", "learn/grad_norm"), line("loss", "learn/loss")}},
		{Title: "Clipped positions", Unit: "%", Scale: 100, From: at(0), Series: []plot.Series{line("clipped", "learn/clip_share")}},
		{Title: "Tokens per second", From: at(0), Series: []plot.Series{series("playing", l, speed("rollout/tokens", "rollout")), series("learning", l, speed("learn/tokens", "update"))}},
		h.timeChart(),
	}
	if h.warmed() || len(l) == 0 {
		out = append(out, plot.Chart{Title: "Warm start: loss", X: "round", Series: []plot.Series{series("loss", h.Warm(), metric("learn/loss"))}})
	}
	for i := range out {
		if out[i].X == "" {
			out[i].X = "iteration"
		}
	}
	return out
}

// warmed says whether the run's warm start is its own: one taken from another run, or none, has no losses.
func (h *History) warmed() bool {
	return slices.ContainsFunc(h.Warm(), func(n store.Numbers) bool { _, ok := n.Metrics["learn/loss"]; return ok })
}

// speed is tokens in a second of a part; not measured in a round that had none to work on.
func speed(tokens, part string) func(store.Numbers) (float64, bool) {
	return func(r store.Numbers) (float64, bool) {
		n, s := r.Metrics[tokens], r.Seconds["time/"+part+"_seconds"]
		return n / s, n > 0 && s > 0
	}
}

// Speed is tokens played and learnt from in a second, over the last iterations; false before the first.
func (h *History) Speed() (float64, bool) {
	l := h.Learning()
	if len(l) == 0 {
		l = h.Warm()
	}
	var tokens, seconds float64
	for _, r := range l[max(0, len(l)-5):] {
		tokens += r.Metrics["rollout/tokens"] + r.Metrics["learn/tokens"]
		seconds += r.Seconds["time/rollout_seconds"] + r.Seconds["time/update_seconds"]
	}
	return tokens / seconds, seconds > 0
}

// window is over how many iterations success by family is pooled: families are small.
func window(n int) int { return max(1, min(20, n/10)) }

// successChart shows the share of successes by family, pooled over some iterations.
func (h *History) successChart() plot.Chart {
	l := h.Learning()
	w := window(len(l))
	c := plot.Chart{Title: "Success while training", Unit: "%", Scale: 100, From: at(0), To: at(100), Marks: h.commitMarks()}
	if w > 1 {
		c.Title += fmt.Sprintf(" (%d iterations)", w)
	}
	place := make(map[int]int, len(l))
	for i, r := range l {
		place[r.Report] = i
	}
	type sums struct{ n, won []float64 }
	by := map[string]*sums{}
	add := func(name string, i int, t store.Tally) {
		s := by[name]
		if s == nil {
			s = &sums{make([]float64, len(l)), make([]float64, len(l))}
			by[name] = s
		}
		s.n[i] += float64(t.Episodes)
		s.won[i] += float64(t.Success)
	}
	for _, t := range h.Families {
		if i, ok := place[t.Report]; ok {
			add("", i, t)
			add(t.Family, i, t)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		s, out := by[name], plot.Series{Name: strings.ReplaceAll(name, "_", " "), X: make([]float64, len(l)), Y: make([]float64, len(l))}
		if name == "" {
			out.Name, out.Strong = "all", true
		}
		var n, won float64
		for i := range l {
			n, won = n+s.n[i], won+s.won[i]
			if i >= w {
				n, won = n-s.n[i-w], won-s.won[i-w]
			}
			out.X[i], out.Y[i] = float64(l[i].Round.Round+1), won/n
		}
		c.Series = append(c.Series, out)
	}
	return c
}

// validChart shows the held-out panel while training, with its intervals.
func (h *History) validChart() plot.Chart {
	c := plot.Chart{Title: "Held-out panel, 95 % intervals", Unit: "%", Scale: 100, From: at(0), To: at(100)}
	s := plot.Series{}
	for _, e := range h.Valid() {
		x := 0.0
		if i, ok := h.Iteration(e.Report); ok {
			x = float64(i + 1)
		}
		all := e.Summary()
		s.Name = e.Panel
		s.X, s.Y = append(s.X, x), append(s.Y, all.Rate)
		s.Low, s.High = append(s.Low, all.Low), append(s.High, all.High)
	}
	if len(s.X) > 0 {
		c.Series = []plot.Series{s}
	}
	return c
}

// reviewShares are the slices of the review mix: outcomes that came to something, and two sorts of fault.
var reviewShares = []struct {
	name string
	of   []skill.Outcome
}{
	{"kept", []skill.Outcome{skill.Kept}},
	{"added", []skill.Outcome{skill.Added}},
	{"updated", []skill.Outcome{skill.Updated}},
	{"retired", []skill.Outcome{skill.Retired}},
	{"nothing new", []skill.Outcome{skill.Unchanged, skill.Duplicate}},
	{"wrong call", []skill.Outcome{skill.NotFound, skill.Ambiguous, skill.InvalidArguments, skill.UnknownTool}},
	{"unreadable", []skill.Outcome{skill.MultipleCalls, skill.Unparsable}},
}

func (h *History) reviewChart() plot.Chart {
	c := plot.Chart{Title: "What reviews came to", Stacked: true}
	l := h.Learning()
	for _, share := range reviewShares {
		of := func(r store.Numbers) (float64, bool) {
			var part, all float64
			for _, o := range skill.Outcomes() {
				n := r.Metrics["review/outcome_"+o.String()]
				all += n
				if slices.Contains(share.of, o) {
					part += n
				}
			}
			return part / all, all > 0
		}
		c.Series = append(c.Series, series(share.name, l, of))
	}
	return c
}

func (h *History) timeChart() plot.Chart {
	c := plot.Chart{Title: "Where the time goes", Stacked: true}
	l := h.Learning()
	for _, part := range []string{"rollout", "probe", "gate", "update", "evaluate"} {
		c.Series = append(c.Series, series(part, l, func(r store.Numbers) (float64, bool) {
			all := 0.0
			for _, s := range r.Seconds {
				all += s
			}
			return r.Seconds["time/"+part+"_seconds"] / all, all > 0
		}))
	}
	return c
}

// commitMarks are the iterations at which the bank changed.
func (h *History) commitMarks() []plot.Mark {
	var out []plot.Mark
	for _, c := range h.Commits {
		if i, ok := h.Iteration(c.Report); ok {
			out = append(out, plot.Mark{X: float64(i + 1), Name: fmt.Sprintf("%s: %s", c.Kind, c.Edit.Title)})
		}
	}
	return out
}

// Overlay draws the curves that runs share, one line for each run.
func Overlay(hs []*History) []plot.Chart {
	type curve struct {
		title, key, unit string
		scale            float64
	}
	var out []plot.Chart
	valid := plot.Chart{Title: "Held-out panel", Unit: "%", Scale: 100, From: at(0), To: at(100)}
	for _, h := range hs {
		for _, s := range h.validChart().Series {
			s.Name = h.Name
			valid.Series = append(valid.Series, s)
		}
	}
	out = append(out, valid)
	for _, c := range []curve{
		{"Success while training", "action/success", "%", 100},
		{"Action return", "action/return_mean", "", 1},
		{"Review return", "review/return_mean", "", 1},
		{"Steps of an episode", "action/steps_mean", "", 1},
		{"Probe utility", "probe/utility_mean", "", 1},
		{"Skills in the bank", "bank/skills", "", 1},
		{"Dead action groups", "action/dead_share", "%", 100},
		{"Entropy, nats", "learn/entropy", "", 1},
		{"Gradient", "learn/grad_norm", "", 1},
	} {
		chart := plot.Chart{Title: c.title, Unit: c.unit, Scale: c.scale}
		if c.unit == "%" {
			chart.From, chart.To = at(0), at(100)
		}
		for _, h := range hs {
			s := series(h.Name, h.Learning(), metric(c.key))
			s.Y = smoothed(s.Y, window(len(s.Y)))
			chart.Series = append(chart.Series, s)
		}
		out = append(out, chart)
	}
	for i := range out {
		out[i].X = "iteration"
	}
	return out
}

// smoothed is the moving mean over the last n values.
func smoothed(vs []float64, n int) []float64 {
	out := make([]float64, len(vs))
	for i := range vs {
		sum, count := 0.0, 0.0
		for _, v := range vs[max(0, i-n+1) : i+1] {
			if !math.IsNaN(v) {
				sum += v
				count++
			}
		}
		out[i] = sum / count
	}
	return out
}

// Score is a panel's summaries as rows of a drawing: all tasks first, then the families.
func Score(e train.Evaluation, class int) []plot.Interval {
	var out []plot.Interval
	for _, s := range e.Summaries() {
		out = append(out, plot.Interval{
			Name: strings.ReplaceAll(s.Family, "_", " "), Value: s.Rate, Low: s.Low, High: s.High, Class: class,
			Note: fmt.Sprintf("%d of %d", s.Success, s.Tasks),
		})
	}
	if len(out) > 1 {
		out[1].Apart = true
	}
	return out
}
