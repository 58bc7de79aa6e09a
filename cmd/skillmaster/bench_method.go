package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"skillmaster/store"
	"skillmaster/train"
)

// benchMethodCmd compares the method with its ablations.
type benchMethodCmd struct {
	Dir        string   `help:"Where the runs are kept while they are needed." default:"runs/method" placeholder:"DIR"`
	Keep       string   `help:"Where what each run came to is kept, in small files." default:"docs/results/method" placeholder:"DIR"`
	Seeds      []uint64 `help:"Root seeds: each has one warm start, which all its runs share." default:"1,2,3"`
	Rows       []string `help:"Ways to train: cloned (the warm start alone), full, and names of train --ablation." default:"cloned,full,joint,clip-zero,no-skills"`
	Env        string   `help:"World: household or shop (generated), alfworld or webshop." default:"household" enum:"household,shop,alfworld,webshop"`
	Data       string   `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Preset     string   `help:"Settings to start from, as for train." default:"default"`
	Set        []string `help:"One setting for all runs, as for train. May be repeated." sep:"none" placeholder:"KEY=VALUE"`
	Iterations int      `help:"Iterations of a run after the warm start. 0: as many as the settings say." default:"0"`
	Panels     []string `help:"Panels to compare on." default:"report"`
	Cells      []string `help:"Ways to play them: ${cells}." default:"on,off"`
	Workers    int      `help:"Cores to use. Results do not depend on it. Default: all." default:"0"`
	Table      bool     `help:"Play nothing: print the table of what there is."`
}

// Help is shown under --help.
func (benchMethodCmd) Help() string {
	return `For each seed: one warm start; from it a run for each row; then the panels, played with every policy in every cell.
Prints tables in Markdown, with intervals. What a run came to is written to a small file under --keep as soon as it is known, and the
tables are made from these files alone: what has one is not done again, whether or not its run is still there. A run that was stopped goes
on. So the same command finishes what is left, on another day or another machine. Other panels and cells can be asked for later: they are added to
what is kept. Every command that it gives is printed to stderr.

Cells: on and off (skills in the prompts or not), constrained and constrained-off (the same, choosing among the admissible actions), online
(the bank is edited between tasks). The warm start and plain GRPO know no skills: they are played without.

Examples:
  skillmaster bench method > docs/results.md
  skillmaster bench method --table
  skillmaster bench method --preset quick --seeds 1 --dir runs/quick --keep runs/quick/kept
  skillmaster bench method --env alfworld --rows cloned,full --panels valid_seen,valid_unseen --cells on,off,constrained,online --keep docs/results/alfworld`
}

const (
	cloned   = "cloned"    // the warm start alone
	full     = "full"      // the method with nothing left out
	noSkills = "no-skills" // plain GRPO
)

// cells are the ways to play a panel.
var cells = map[string]struct{ retrieval, bank, decoding string }{
	"on":              {"on", "frozen", "free"},
	"off":             {"off", "frozen", "free"},
	"constrained":     {"on", "frozen", "constrained"},
	"constrained-off": {"off", "frozen", "constrained"},
	"online":          {"on", "online", "free"},
}

// skillless says whether a row's policy knows no skills.
func skillless(row string) bool { return row == cloned || row == noSkills }

// without is the cell in place of another for a policy that knows no skills; "" if there is none.
var without = map[string]string{"on": "off", "off": "off", "constrained": "constrained-off", "constrained-off": "constrained-off"}

func (c *benchMethodCmd) validate() error {
	for _, name := range c.Rows {
		if name == cloned || name == full {
			continue
		}
		if err := new(runConfig).ablate(name); err != nil {
			return err
		}
	}
	for _, name := range c.Cells {
		if _, ok := cells[name]; !ok {
			return fmt.Errorf("there is no cell %q: it is one of %s", name, strings.Join(slices.Sorted(maps.Keys(cells)), ", "))
		}
	}
	for name, list := range map[string]int{"--seeds": len(c.Seeds), "--rows": len(c.Rows), "--panels": len(c.Panels), "--cells": len(c.Cells)} {
		if list == 0 {
			return fmt.Errorf("%s needs one", name)
		}
	}
	return nil
}

func (c *benchMethodCmd) Execute(ctx context.Context, command []string, stdout, stderr io.Writer) error {
	if err := c.validate(); err != nil {
		return usage(err)
	}
	if !c.Table {
		for _, seed := range c.Seeds {
			for _, row := range c.Rows {
				if err := c.make(ctx, seed, row, stderr); err != nil {
					return err
				}
			}
		}
	}
	t := methodTable{panels: c.Panels, cells: c.Cells}
	for _, row := range c.Rows {
		r := methodRow{name: row}
		for _, seed := range c.Seeds {
			o, err := c.kept(seed, row)
			if err != nil {
				return err
			}
			if o != nil {
				r.runs = append(r.runs, o)
			}
		}
		if len(r.runs) > 0 {
			t.rows = append(t.rows, r)
		}
	}
	if len(t.rows) == 0 {
		return fmt.Errorf("nothing was played yet: there is no result under %s", c.Keep)
	}
	return t.print(stdout, command)
}

// cellsOf are the cells that a row is played in, of those wanted.
func cellsOf(row string, wanted []string) []string {
	if !skillless(row) {
		return wanted
	}
	var out []string
	for _, name := range wanted {
		if w := without[name]; w != "" && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

func (c *benchMethodCmd) run(seed uint64, row string) string {
	if row == cloned {
		row = "warm"
	}
	return filepath.Join(c.Dir, fmt.Sprintf("seed-%d", seed), row)
}

// common are the options of train that all rows share.
func (c *benchMethodCmd) common() []string {
	args := []string{"--env", c.Env, "--preset", c.Preset}
	for _, s := range c.Set {
		args = append(args, "--set", s)
	}
	return args
}

// make trains what is missing of a row under one seed, plays what was not played, and keeps what came of it beside what was
// kept before.
func (c *benchMethodCmd) make(ctx context.Context, seed uint64, row string, stderr io.Writer) error {
	o, err := c.kept(seed, row)
	if err != nil {
		return err
	}
	wanted := o.with(c.panelCells(row))
	if o != nil && len(wanted) == len(o.Cells) {
		return nil
	}
	warm, dir := c.run(seed, cloned), c.run(seed, row)
	args := []string{"--iterations", "0"}
	if row != cloned {
		if err := c.finish(ctx, seed, warm, args, stderr); err != nil {
			return err
		}
		args = []string{"--warm-from", warm}
		if c.Iterations > 0 {
			args = append(args, "--iterations", strconv.Itoa(c.Iterations))
		}
	}
	if row != cloned && row != full {
		args = append(args, "--ablation", row)
	}
	if err := c.finish(ctx, seed, dir, args, stderr); err != nil {
		return err
	}
	now, err := c.outcome(ctx, dir, seed, row)
	if err != nil {
		return err
	}
	now.take(o, stderr)
	for _, p := range wanted {
		if now.cell(p) != nil {
			continue
		}
		r, err := c.eval(ctx, dir, p, stderr)
		if err != nil {
			return err
		}
		now.Cells = append(now.Cells, *r)
	}
	return c.keep(now)
}

// panelCell is one way to play one panel.
type panelCell struct{ panel, cell string }

func (c *benchMethodCmd) panelCells(row string) []panelCell {
	var out []panelCell
	for _, p := range c.Panels {
		for _, name := range cellsOf(row, c.Cells) {
			out = append(out, panelCell{p, name})
		}
	}
	return out
}

// finish trains a run to its end, from where it is.
func (c *benchMethodCmd) finish(ctx context.Context, seed uint64, dir string, more []string, stderr io.Writer) error {
	args := []string{"train", "--run", dir, "--data", c.Data, "--workers", strconv.Itoa(c.Workers)}
	done, err := c.finished(ctx, dir)
	switch {
	case err == nil && done:
		return nil
	case err == nil:
		args = append(args, "--resume")
	case errors.Is(err, store.ErrNoRun):
		args = append(append(args, c.common()...), "--seed", strconv.FormatUint(seed, 10))
		args = append(args, more...)
	default:
		return err
	}
	return c.give(ctx, args, stderr)
}

// finished says whether a run has come to its end.
func (c *benchMethodCmd) finished(ctx context.Context, dir string) (done bool, err error) {
	err = withRun(ctx, dir, func(run *store.Run) error {
		saved, _, err := run.Latest(ctx)
		if errors.Is(err, store.ErrNoCheckpoint) {
			return nil
		}
		done = saved.Checkpoint.Phase == train.Finished
		return err
	})
	return done, err
}

// eval is what a panel gives with a run's policy. It is played if nobody has.
func (c *benchMethodCmd) eval(ctx context.Context, dir string, p panelCell, stderr io.Writer) (*panelResult, error) {
	r, err := c.played(ctx, dir, p)
	if err != nil || r != nil {
		return r, err
	}
	way := cells[p.cell]
	if err := c.give(ctx, []string{
		"eval", "--run", dir, "--panel", p.panel, "--retrieval", way.retrieval, "--bank", way.bank, "--decoding", way.decoding,
		"--data", c.Data, "--workers", strconv.Itoa(c.Workers),
	}, stderr); err != nil {
		return nil, err
	}
	if r, err = c.played(ctx, dir, p); err == nil && r == nil {
		err = fmt.Errorf("%s: panel %s was not played as %s", dir, p.panel, p.cell)
	}
	return r, err
}

// give is a command of this program.
func (c *benchMethodCmd) give(ctx context.Context, args []string, stderr io.Writer) error {
	fmt.Fprintf(stderr, "%s  skillmaster %s\n", time.Now().Format("15:04:05"), strings.Join(args, " "))
	switch code := execute(ctx, args, strings.NewReader(""), io.Discard, stderr); {
	case ctx.Err() != nil:
		return ctx.Err()
	case code != exitDone:
		return fmt.Errorf("skillmaster %s ended with exit code %d", args[0], code)
	}
	return nil
}
