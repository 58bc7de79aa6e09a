package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"skillmaster/episode"
	"skillmaster/train"
)

// methodTable compares ways to train.
type methodTable struct {
	panels, cells []string
	rows          []methodRow
}

// methodRow is one way to train, under several seeds.
type methodRow struct {
	name string
	runs []*outcome
}

// cellTitles say how a panel was played.
var cellTitles = map[string]string{
	"on":              "with the bank's skills in the prompts",
	"off":             "without skills in the prompts",
	"constrained":     "with skills, choosing among the admissible actions",
	"constrained-off": "without skills, choosing among the admissible actions",
	"online":          "with skills, the bank edited between tasks",
}

// edits is the share of reviews that changed the bank, on the last iterations; NaN if there were none.
func (o *outcome) edits() float64 {
	return (o.Reviews["added"] + o.Reviews["updated"]) / o.Reviews["all"]
}

// delta is the mean effect of edits on probes, on the last iterations; NaN if none was measured.
func (o *outcome) delta() float64 { return o.Reviews["delta"] / o.Reviews["measured"] }

func (t methodTable) print(w io.Writer, command []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, `Printed by `+"`%s`"+`.
Every run of a seed starts from the same clone, and every task of a panel is played once with each policy, free-form unless it says otherwise. A
share's interval is Wilson's (tasks alone). *Difference* is to the run "full" of the same seed: its first interval is Student's over seeds
(training noise and all, wide for so few), the second a paired bootstrap over tasks (of these policies alone). An interval with 0 in it says
that no difference can be told. The warm start and plain GRPO know no skills and are played without; they stand in both tables.
`, strings.Join(command, " "))
	for _, panel := range t.panels {
		for _, cell := range t.cells {
			t.printCell(&b, panel, cell)
		}
	}
	t.printCost(&b)
	t.printReviews(&b)
	t.printRuns(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// seen is a row in one cell: what was played of it, by run.
type seen struct {
	name    string
	seeds   []uint64
	results []*panelResult
}

// in returns a row in a cell, or in the one in place of it if the row knows no skills.
func (r methodRow) in(panel, cell string) seen {
	s := seen{name: r.name}
	for _, o := range r.runs {
		p := o.cell(panelCell{panel, cell})
		if p == nil && skillless(r.name) {
			p = o.cell(panelCell{panel, without[cell]})
		}
		if p != nil {
			s.seeds, s.results = append(s.seeds, o.Seed), append(s.results, p)
		}
	}
	return s
}

func (t methodTable) row(name string) methodRow {
	for _, r := range t.rows {
		if r.name == name {
			return r
		}
	}
	return methodRow{}
}

func (t methodTable) printCell(b *strings.Builder, panel, cell string) {
	base := t.row(full).in(panel, cell)
	head := false
	for _, r := range t.rows {
		s := r.in(panel, cell)
		if len(s.results) == 0 {
			continue
		}
		if !head {
			fmt.Fprintf(b, "\n### Panel %s, %s\n\n", panel, cellTitles[cell])
			fmt.Fprintf(b, "| | seeds | tasks | success | by seed | difference, over seeds | over tasks | steps | mean return |\n|---|---|---|---|---|---|---|---|---|\n")
			head = true
		}
		s.print(b, base)
	}
}

func (s seen) print(b *strings.Builder, base seen) {
	won, tasks := 0, 0
	var bySeed []string
	steps, returns, paid := 0.0, 0.0, false
	for _, p := range s.results {
		won, tasks = won+p.won(), tasks+p.tasks()
		bySeed = append(bySeed, fmt.Sprintf("%.1f", 100*p.success()))
		steps += p.meanSteps()
		for _, r := range p.Returns {
			returns, paid = returns+r, true
		}
	}
	low, high := train.Wilson(won, tasks)
	fmt.Fprintf(b, "| %s | %d | %d | %.1f %% [%.1f, %.1f] | %s | ", s.name, len(s.results), tasks, 100*float64(won)/float64(tasks), 100*low, 100*high, strings.Join(bySeed, ", "))
	if s.name == full {
		fmt.Fprintf(b, "– | – | ")
	} else {
		over, tasks := differences(s, base)
		fmt.Fprintf(b, "%s | %s | ", over, tasks)
	}
	fmt.Fprintf(b, "%.1f | ", steps/float64(len(s.results)))
	if paid {
		fmt.Fprintf(b, "%.2f |\n", returns/float64(tasks))
	} else {
		fmt.Fprintf(b, "– |\n") // it is told by success
	}
}

// levels of held-out success that the cost table names.
var levels = []float64{0.5, 0.8, 0.9, 0.95}

// printCost says how long runs took, and how long until the held-out panel was won so often. A run's warm start, which the
// rows of a seed share, is counted in.
func (t methodTable) printCost(b *strings.Builder) {
	fmt.Fprintf(b, "\n### Cost\n\nMeans over seeds, the warm start included; *probes* is the share of the time after it that went into judging and testing edits. *To* is when the "+
		"held-out panel was first won so often, in the runs that came so far.\n\n| | minutes | ids trained on, millions | ids played, millions | probes |")
	for _, l := range levels {
		fmt.Fprintf(b, " to %.0f %%, minutes |", 100*l)
	}
	fmt.Fprintf(b, "\n|---|---|---|---|---|%s\n", strings.Repeat("---|", len(levels)))
	for _, r := range t.rows {
		var minutes, trained, played, probes []float64
		to := make([][]float64, len(levels))
		for _, o := range r.runs {
			before := 0.0
			if r.name != cloned {
				for _, w := range t.row(cloned).runs {
					if w.Seed == o.Seed {
						before = w.minutes()
					}
				}
				probes = append(probes, 100*(o.Minutes["probe"]+o.Minutes["gate"])/o.minutes())
			}
			minutes = append(minutes, before+o.minutes())
			trained, played = append(trained, float64(o.Trained)/1e6), append(played, float64(o.Played)/1e6)
			for i, l := range levels {
				for _, p := range o.Learning {
					if p.Success >= l {
						to[i] = append(to[i], before+p.Minutes)
						break
					}
				}
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |", r.name, mean(minutes, "%.1f"), mean(trained, "%.1f"), mean(played, "%.1f"), mean(probes, "%.0f %%"))
		for _, x := range to {
			fmt.Fprintf(b, " %s", mean(x, "%.1f"))
			if n := len(x); n > 0 && n < len(r.runs) {
				fmt.Fprintf(b, " (%d of %d runs)", n, len(r.runs))
			}
			fmt.Fprintf(b, " |")
		}
		fmt.Fprintln(b)
	}
}

// mean is the mean of what there is, or a dash.
func mean(xs []float64, format string) string {
	if len(xs) == 0 {
		return "–"
	}
	m, _ := meanSD(xs)
	return fmt.Sprintf(format, m)
}

func (t methodTable) printReviews(b *strings.Builder) {
	fmt.Fprintf(b, "\n### Reviews\n\nOf the last %d iterations, and what became of the bank (means over seeds, smallest to largest):\n\n"+
		"| | edits among reviews | their mean delta on probes | kept | faulty | committed in the run |\n|---|---|---|---|---|---|\n", last)
	for _, r := range t.rows {
		var edits, delta, kept, faulty, commits []float64
		for _, o := range r.runs {
			all := o.Reviews["all"]
			if all == 0 {
				continue
			}
			edits = append(edits, 100*o.edits())
			if d := o.delta(); !math.IsNaN(d) {
				delta = append(delta, d)
			}
			kept = append(kept, 100*o.Reviews["kept"]/all)
			faulty = append(faulty, 100*(1-(o.Reviews["kept"]+o.Reviews["added"]+o.Reviews["updated"])/all))
			commits = append(commits, float64(o.Commits))
		}
		if len(edits) > 0 {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", r.name, average(edits, "%.1f %%"), average(delta, "%+.3f"), average(kept, "%.1f %%"), average(faulty, "%.1f %%"), average(commits, "%.1f"))
		}
	}
}

func (t methodTable) printRuns(b *strings.Builder) {
	fmt.Fprintf(b, "\n### Run by run\n\n| | seed | iterations | day, machine | minutes | policy version | bank | panels: hash, tasks won |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range t.rows {
		for _, o := range r.runs {
			var panels []string
			version, bank := 0, ""
			for _, p := range o.Cells {
				version, bank = p.PolicyVersion, p.Bank
				if slices.Contains(t.panels, p.Panel) && slices.Contains(cellsOf(r.name, t.cells), p.Cell) {
					panels = append(panels, fmt.Sprintf("%s (%s) %s %d of %d", p.Panel, p.Cell, p.PanelHash, p.won(), p.tasks()))
				}
			}
			fmt.Fprintf(b, "| %s | %d | %d | %s, %s, %d cores | %.1f | %d | %.12s | %s |\n", r.name, o.Seed, o.Iterations, o.Day, o.Machine.CPU, o.Machine.Cores, o.minutes(), version, bank,
				strings.Join(panels, "; "))
		}
	}
	if len(t.rows) > 0 {
		fmt.Fprintf(b, "\nSettings, besides those of the row: `train %s`.\n", strings.Join(t.rows[0].runs[0].Settings, " "))
	}
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
func differences(s, base seen) (seeds, tasks string) {
	var bySeed []float64
	byTask := map[string]float64{} // sum over seeds
	for i, x := range s.results {
		j := slices.Index(base.seeds, s.seeds[i])
		if j < 0 || base.results[j].PanelHash != x.PanelHash {
			continue
		}
		y := base.results[j]
		bySeed = append(bySeed, 100*(x.success()-y.success()))
		for k := range x.Won {
			byTask[strconv.Itoa(k)] += float64(x.Won[k]) - float64(y.Won[k])
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
