package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// tableRuns are the shapes of a table, each with one worker and, if there are more, with all.
func (c *benchEngineCmd) tableRuns() []engineRun {
	var rows []engineRun
	row := func(name string, change func(c *benchEngineCmd)) {
		r := engineRun{name: name, command: *c}
		change(&r.command)
		rows = append(rows, r)
	}
	switch c.Table {
	case "context":
		for _, n := range []int{256, 512, 1024, 2048, 4096} {
			row(strconv.Itoa(n), func(r *benchEngineCmd) {
				r.Length, r.Batch, r.Prompt = n, max(1, c.Batch*c.Length/n), max(1, n-c.Sampled)
			})
		}
	case "batch":
		for n := 1; n <= 64; n *= 2 {
			row(strconv.Itoa(n), func(r *benchEngineCmd) { r.Batch, r.Sequences = n, n })
		}
	case "width":
		for n := 64; n <= 512; n *= 2 {
			row(strconv.Itoa(n), func(r *benchEngineCmd) {
				scale := func(v int) int { return max(1, v*n/c.Width) }
				r.Width, r.Hidden, r.Heads, r.KVHeads = n, scale(c.Hidden), scale(c.Heads), scale(c.KVHeads)
			})
		}
	case "size":
		for _, s := range []struct{ width, layers, vocab int }{{128, 4, 2048}, {256, 4, 4096}, {512, 5, 8192}} {
			row(strconv.Itoa(s.width), func(r *benchEngineCmd) {
				r.Width, r.Layers, r.Vocab, r.Hidden, r.Heads, r.KVHeads = s.width, s.layers, s.vocab, 4*s.width, 4, 4
			})
		}
	}
	var runs []engineRun
	for _, r := range rows {
		workers := slices.Compact([]int{1, c.Workers})
		for _, n := range workers {
			r.command.Workers = n
			runs = append(runs, r)
		}
	}
	return runs
}

// printEngineTable prints the rows that tableRuns made, float32 first.
func printEngineTable(out io.Writer, table string, runs []engineRun) error {
	last := runs[len(runs)-1]
	per := 1
	if last.command.Workers > 1 {
		per = 2
	}
	fmt.Fprintf(out, "%s\n", last.bench.Machine)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tprecision\tparameters\ttrained x length\ttrain tokens/s, 1 worker\t%d workers\ttimes\tof peak\tsampled x prompt+ids\tsampled tokens/s, 1 worker\t%[2]d workers\ttimes\tfirst token s\tstep MB\t\n",
		table, last.command.Workers)
	for i := 0; i < len(runs); i += per {
		one, all := runs[i], runs[i+per-1]
		for q, a := range all.bench.Precisions {
			o, c := one.bench.Precisions[q], all.command
			fmt.Fprintf(w, "%s\t%v\t%.1fM\t%dx%d\t%.0f\t%.0f\t%.2f\t%s\t%dx(%d+%d)\t%.0f\t%.0f\t%.2f\t%.3f\t%s\t\n", all.name, a.Precision,
				float64(all.bench.Parameters)/1e6, c.Batch, c.Length, o.Train, a.Train, a.Train/o.Train, measured("%.0f %%", a.PeakFraction, 100),
				c.Sequences, c.Prompt, c.Sampled, o.Sample, a.Sample, a.Sample/o.Sample, a.First, measured("%.0f", a.Resident, 1e-6))
		}
	}
	return w.Flush()
}
