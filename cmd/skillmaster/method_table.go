package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"skillmaster/episode"
	"skillmaster/store"
	"skillmaster/train"
)

// methodTable is what runs with and without parts of the method came to.
type methodTable struct {
	panel string
	rows  []methodRow
}

// methodRow is one way to train, under several seeds.
type methodRow struct {
	name string
	runs []methodRun
}

// methodRun is one run.
type methodRun struct {
	seed       uint64
	evaluation train.Evaluation
	commits    int
	minutes    float64
	reviews    map[string]float64 // over the last ten iterations: by outcome, and "measured", "delta" (mean delta × measured), "played"
}

// withoutSkills is the row of full's policies, played without skills in their prompts.
const withoutSkills = "full, tested without skills"

// last is how many iterations at the end the reviews are counted of.
const last = 10

func (x *methodRun) metrics(points []store.Point) {
	x.reviews = map[string]float64{}
	rounds := 0
	for _, p := range points {
		if p.Phase == train.Learning {
			rounds = max(rounds, p.Round.Round+1)
		}
	}
	measured := map[int]float64{}
	for _, p := range points {
		if p.Phase != train.Learning || p.Round.Round < rounds-last {
			continue
		}
		switch outcome, of := strings.CutPrefix(p.Key, "review/outcome_"); {
		case of:
			x.reviews[outcome] += p.Value
			x.reviews["all"] += p.Value
		case p.Key == "probe/measured":
			measured[p.Round.Round] = p.Value
			x.reviews["measured"] += p.Value
		}
	}
	for _, p := range points {
		if p.Phase == train.Learning && p.Key == "probe/delta_mean" {
			x.reviews["delta"] += p.Value * measured[p.Round.Round] // 0 of rounds before the last
		}
	}
}

// edits is the share of reviews that changed the bank, on the last iterations; NaN if there were none.
func (x methodRun) edits() float64 {
	return (x.reviews["added"] + x.reviews["updated"]) / x.reviews["all"]
}

// delta is the mean effect of edits on probes, on the last iterations; NaN if none was measured.
func (x methodRun) delta() float64 { return x.reviews["delta"] / x.reviews["measured"] }

func (x methodRun) success() float64 { return x.evaluation.Summaries()[0].Rate }

func (t methodTable) print(w io.Writer, command []string) error {
	var b strings.Builder
	m := thisMachine()
	fmt.Fprintf(&b, `# The method against its ablations

Made by `+"`%s`"+` on %s (%s, %d cores, %s).
Every run of a seed starts from the same clone, and every task of panel %s is played once with each policy. A share's interval is Wilson's
(tasks alone). *Difference* is to the run "full" of the same seed: its first interval is Student's over seeds (training noise and all, wide
for so few), the second a paired bootstrap over tasks (of these policies alone). An interval with 0 in it says that no difference can be told.

`, strings.Join(command, " "), time.Now().Format("2 January 2006"), m.CPU, m.Cores, m.Go, t.panel)
	fmt.Fprintf(&b, "| | seeds | tasks | success | by seed | difference, over seeds | over tasks | steps | minutes a run |\n|---|---|---|---|---|---|---|---|---|\n")
	base := t.row(full)
	for _, r := range t.rows {
		r.printSuccess(&b, base)
	}
	fmt.Fprintf(&b, "\nReviews of the last %d iterations, and what became of the bank (mean over seeds):\n\n| | edits among reviews | their mean delta on probes | kept | faulty | committed in the run |\n|---|---|---|---|---|---|\n", last)
	for _, r := range t.rows {
		if r.name != withoutSkills {
			r.printReviews(&b)
		}
	}
	fmt.Fprintf(&b, "\nRun by run, with what is needed to find them again:\n\n| | seed | policy version | bank | panel hash | success |\n|---|---|---|---|---|---|\n")
	for _, r := range t.rows {
		for _, x := range r.runs {
			s := x.evaluation.Summaries()[0]
			fmt.Fprintf(&b, "| %s | %d | %d | %.12s | %s | %d of %d |\n", r.name, x.seed, x.evaluation.PolicyVersion, x.evaluation.Bank, x.evaluation.PanelHash, s.Success, s.Tasks)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t methodTable) row(name string) methodRow {
	for _, r := range t.rows {
		if r.name == name {
			return r
		}
	}
	return methodRow{}
}

func (r methodRow) printSuccess(b *strings.Builder, base methodRow) {
	won, tasks := 0, 0
	var bySeed []string
	var steps, minutes float64
	for _, x := range r.runs {
		s := x.evaluation.Summaries()[0]
		won, tasks = won+s.Success, tasks+s.Tasks
		bySeed = append(bySeed, fmt.Sprintf("%.1f", 100*s.Rate))
		steps, minutes = steps+s.Steps, minutes+x.minutes
	}
	n := float64(len(r.runs))
	low, high := train.Wilson(won, tasks)
	fmt.Fprintf(b, "| %s | %d | %d | %.1f %% [%.1f, %.1f] | %s | ", r.name, len(r.runs), tasks, 100*float64(won)/float64(tasks), 100*low, 100*high, strings.Join(bySeed, ", "))
	if r.name == full {
		fmt.Fprintf(b, "– | – | ")
	} else {
		over, tasks := differences(r, base)
		fmt.Fprintf(b, "%s | %s | ", over, tasks)
	}
	fmt.Fprintf(b, "%.1f | %.1f |\n", steps/n, minutes/n)
}

func (r methodRow) printReviews(b *strings.Builder) {
	var edits, delta, kept, faulty, commits []float64
	for _, x := range r.runs {
		if x.reviews["all"] == 0 {
			continue
		}
		edits = append(edits, 100*x.edits())
		if d := x.delta(); !math.IsNaN(d) {
			delta = append(delta, d)
		}
		all := x.reviews["all"]
		kept = append(kept, 100*x.reviews["kept"]/all)
		faulty = append(faulty, 100*(1-(x.reviews["kept"]+x.reviews["added"]+x.reviews["updated"])/all))
		commits = append(commits, float64(x.commits))
	}
	if len(edits) == 0 {
		return
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", r.name, average(edits, "%.1f %%"), average(delta, "%+.3f"), average(kept, "%.1f %%"), average(faulty, "%.1f %%"), average(commits, "%.1f"))
}

// average is the mean with the smallest and the largest, or a dash.
func average(xs []float64, format string) string {
	if len(xs) == 0 {
		return "–"
	}
	mean, _ := meanSD(xs)
	return fmt.Sprintf(format+" ("+format+" to "+format+")", mean, slices.Min(xs), slices.Max(xs))
}

// differences are the differences of success between two rows, in points, over the seeds that both have: with Student's
// interval over seeds, and with a paired bootstrap over tasks.
func differences(r, base methodRow) (seeds, tasks string) {
	var bySeed []float64
	byTask := map[string]float64{} // sum over seeds
	for _, x := range r.runs {
		i := slices.IndexFunc(base.runs, func(y methodRun) bool { return y.seed == x.seed })
		if i < 0 {
			continue
		}
		bySeed = append(bySeed, 100*(x.success()-base.runs[i].success()))
		for _, y := range base.runs[i].evaluation.Results {
			byTask[y.Task] -= won(y)
		}
		for _, y := range x.evaluation.Results {
			byTask[y.Task] += won(y)
		}
	}
	if len(bySeed) == 0 {
		return "–", "–"
	}
	mean, sd := meanSD(bySeed)
	seeds = fmt.Sprintf("%+.1f", mean)
	if n := len(bySeed); n > 1 {
		half := student(n-1) * sd / math.Sqrt(float64(n))
		seeds += fmt.Sprintf(" [%+.1f, %+.1f]", mean-half, mean+half)
	}
	low, high := bootstrap(byTask)
	n := float64(len(bySeed))
	return seeds, fmt.Sprintf("[%+.1f, %+.1f]", 100*low/n, 100*high/n)
}

func won(r train.Result) float64 {
	if r.Success {
		return 1
	}
	return 0
}

// bootstrap is the 95 % percentile interval of the mean of numbers, 4,000 draws, always the same ones.
func bootstrap(of map[string]float64) (low, high float64) {
	keys := make([]string, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	const draws = 4000
	means := make([]float64, draws)
	r := episode.Seed(1).Derive("bootstrap").Rand()
	for i := range means {
		for range keys {
			means[i] += of[keys[r.IntN(len(keys))]] / float64(len(keys))
		}
	}
	slices.Sort(means)
	return means[draws/40], means[draws-draws/40-1]
}

// student is the 97.5 % quantile of Student's distribution with so many degrees of freedom; beyond ten, a little more
// than it.
func student(degrees int) float64 {
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}
	return table[min(degrees, len(table))-1]
}
