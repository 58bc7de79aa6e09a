package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"skillmaster/plot"
	"skillmaster/report"
	"skillmaster/store"
)

// reportCmd says what runs came to.
type reportCmd struct {
	Write   reportWriteCmd   `cmd:"" default:"withargs" help:"Write a report of one or several runs (what report does without a further word)."`
	Compare reportCompareCmd `cmd:"" help:"Test one run against another, task by task."`
}

// Help is shown under --help.
func (reportCmd) Help() string { return reportWriteCmd{}.Help() }

type reportWriteCmd struct {
	Runs     []string `arg:"" name:"run" help:"Run directories; the first is what the others are tested against." type:"existingdir"`
	HTML     string   `name:"html" help:"Write one HTML file that needs no other." placeholder:"FILE"`
	Markdown string   `help:"Write Markdown, with its plots in a folder beside it." placeholder:"FILE"`
	Digest   bool     `help:"Hash all records of each run, so that a reader can tell whether theirs are the same. Takes a while for a long run." default:"true" negatable:""`
}

// Help is shown under --help.
func (reportWriteCmd) Help() string {
	return `Panel scores with intervals, paired tests between runs, means over seeds, curves, the bank with its evidence, and the exact
commands, settings and hashes. Without --html and --markdown, Markdown without plots goes to stdout.

Examples:
  skillmaster report runs/first
  skillmaster report runs/first runs/second --html report.html --markdown report.md
  skillmaster report compare runs/first runs/second`
}

func (c *reportWriteCmd) Execute(ctx context.Context, command []string, stdout, stderr io.Writer) error {
	d := report.Document{Made: time.Now(), Program: version, Command: command}
	names := map[string]bool{}
	for _, dir := range c.Runs {
		h, digest, err := readHistory(ctx, dir, names, c.Digest)
		if err != nil {
			return err
		}
		d.Runs, d.Digests = append(d.Runs, h), append(d.Digests, digest)
	}
	if c.HTML == "" && c.Markdown == "" {
		return d.Markdown(stdout, "")
	}
	if c.HTML != "" {
		if err := writeReport(c.HTML, d.HTML); err != nil {
			return err
		}
		fmt.Fprintln(stderr, "written:", c.HTML)
	}
	if c.Markdown != "" {
		folder, err := writeFigures(c.Markdown, d)
		if err != nil {
			return err
		}
		if err := writeReport(c.Markdown, func(w io.Writer) error { return d.Markdown(w, folder) }); err != nil {
			return err
		}
		fmt.Fprintln(stderr, "written:", c.Markdown)
	}
	return nil
}

// writeReport makes a document before any of it is written. It may be looked at in a terminal.
func writeReport(path string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return writeWhole(path, func(w io.Writer) error { _, err := io.WriteString(w, plain(b.String())); return err })
}

// writeFigures writes the plots of a Markdown file into a folder beside it, and returns the folder's name.
func writeFigures(markdown string, d report.Document) (string, error) {
	folder := filepath.Base(markdown) + ".plots"
	at := filepath.Join(filepath.Dir(markdown), folder)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	for _, f := range d.Figures() {
		if err := writeWhole(filepath.Join(at, f.File), func(w io.Writer) error { _, err := io.WriteString(w, plain(plot.Standalone(f.SVG))); return err }); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// readHistory reads a run under a name that no other has, and with digest the hash over its records.
func readHistory(ctx context.Context, dir string, names map[string]bool, digest bool) (h *report.History, sum string, err error) {
	base := filepath.Base(filepath.Clean(dir))
	name := base
	for n := 2; names[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	names[name] = true
	err = withRun(ctx, dir, func(run *store.Run) error {
		if h, err = report.Read(ctx, run, name); err != nil || !digest {
			return err
		}
		sum, err = run.Digest(ctx)
		return err
	})
	return h, sum, err
}

type reportCompareCmd struct {
	A    string `arg:"" help:"Run directory that is compared with." type:"existingdir"`
	B    string `arg:"" help:"Run directory that is tested against it." type:"existingdir"`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Help is shown under --help.
func (reportCompareCmd) Help() string {
	return `Pairs the newest evaluations of both runs on the same panel, played in the same way, by task. Success: difference B − A in
points with Newcombe's 95 % interval, and the exact McNemar test. Steps (tasks that both solved) and returns: mean difference
with a bootstrap interval, and a sign-flip permutation test. Below stand the settings in which the runs differ. Exit code 1 if there is
nothing to pair.

Example:
  skillmaster report compare runs/first runs/second`
}

func (c *reportCompareCmd) Execute(ctx context.Context, stdout, _ io.Writer) error {
	names := map[string]bool{}
	a, _, err := readHistory(ctx, c.A, names, false)
	if err != nil {
		return err
	}
	b, _, err := readHistory(ctx, c.B, names, false)
	if err != nil {
		return err
	}
	found := compared{A: a.Name, B: b.Name, Tests: report.Compare(a, b)}
	if found.Settings, err = report.Differences([]*report.History{a, b}); err != nil {
		return err
	}
	if len(found.Tests) == 0 {
		return errors.New("the runs have no panel in common that both have played in the same way: play one with both (skillmaster eval --run DIR --panel report)")
	}
	if c.JSON {
		return printJSON(stdout, found)
	}
	return found.print(stdout)
}

// compared is what a comparison of two runs came to.
type compared struct {
	A, B     string           // names of the runs
	Tests    []report.Paired  // B against A
	Settings []report.Setting // those that differ
}

func (c compared) print(stdout io.Writer) error {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "panel\tcell\tfamily\ttasks\t%s\t%s\tdifference\t95 %% interval\tonly %s\tonly %s\tp\tsteps\tp\treturn\tp\t\n", c.A, c.B, c.A, c.B)
	for _, t := range c.Tests {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.1f %%\t%.1f %%\t%+.1f\t%+.1f to %+.1f\t%d\t%d\t%.3g\t%s\t%s\t%s\t%s\t\n", t.Panel, t.Cell, t.Family, t.Tasks, 100*t.Rate.A, 100*t.Rate.B,
			100*t.Rate.Value, 100*t.Rate.Low, 100*t.Rate.High, t.OnlyA, t.OnlyB, t.P, differs(t.Steps), chance(t.Steps), differs(t.Return), chance(t.Return))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(c.Settings) == 0 {
		_, err := fmt.Fprintf(stdout, "\n%s and %s have the same settings\n", c.A, c.B)
		return err
	}
	w = tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nsettings that differ\t%s\t%s\n", c.A, c.B)
	for _, s := range c.Settings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, orDash(s.Values[0]), orDash(s.Values[1]))
	}
	return w.Flush()
}

// orDash is a setting's value; a dash if the run does not have it.
func orDash(value string) string {
	if value == "" {
		return "–"
	}
	return value
}

// differs is a mean difference with its interval; a dash if there are no pairs.
func differs(d report.Difference) string {
	if d.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.2f (%+.2f to %+.2f)", d.Value, d.Low, d.High)
}

func chance(d report.Difference) string {
	if d.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g", d.P)
}
