package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	Dir        string   `help:"Where the runs are kept." default:"runs/method" placeholder:"DIR"`
	Seeds      []uint64 `help:"Root seeds: each has one warm start, which all its runs share." default:"1,2,3"`
	Ablations  []string `help:"What full is compared with: names of train --ablation." default:"joint,clip-zero,no-skills"`
	Env        string   `help:"World: household or shop (generated), alfworld or webshop." default:"household" enum:"household,shop,alfworld,webshop"`
	Data       string   `help:"Folder of the real games." default:"${data}" placeholder:"DIR"`
	Preset     string   `help:"Settings to start from, as for train." default:"default"`
	Set        []string `help:"One setting for all runs, as for train. May be repeated." sep:"none" placeholder:"KEY=VALUE"`
	Iterations int      `help:"Iterations of a run after the warm start. 0: as many as the settings say." default:"0"`
	Panel      string   `help:"Panel to compare on." default:"report"`
	Workers    int      `help:"Cores to use. Results do not depend on it. Default: all." default:"0"`
	Table      bool     `help:"Play nothing: print the table of what there is."`
}

// Help is shown under --help.
func (benchMethodCmd) Help() string {
	return `For each seed: one warm start; from it a run of the whole method (full) and one of each ablation; then the panel, played
with every policy. What is there already is not done again, and a run that was stopped goes on: the same command finishes what is left.
Prints tables in Markdown, with intervals. Every command that it gives is printed to stderr.

Examples:
  skillmaster bench method > docs/results.md
  skillmaster bench method --table
  skillmaster bench method --preset smoke --seeds 1,2 --dir /tmp/method`
}

// full is the method with nothing left out.
const full = "full"

func (c *benchMethodCmd) Execute(ctx context.Context, command []string, stdout, stderr io.Writer) error {
	for _, name := range c.Ablations {
		if err := new(runConfig).ablate(name); err != nil {
			return usage(err)
		}
	}
	if len(c.Seeds) == 0 {
		return usage(errors.New("--seeds needs one"))
	}
	if !c.Table {
		for _, seed := range c.Seeds {
			if err := c.train(ctx, seed, stderr); err != nil {
				return err
			}
		}
	}
	t, err := c.collect(ctx)
	if err != nil {
		return err
	}
	return t.print(stdout, command)
}

// names are the runs of a seed.
func (c *benchMethodCmd) names() []string { return append([]string{full}, c.Ablations...) }

func (c *benchMethodCmd) run(seed uint64, name string) string {
	return filepath.Join(c.Dir, fmt.Sprintf("seed-%d", seed), name)
}

// train makes what is missing of a seed's runs and plays the panel with each.
func (c *benchMethodCmd) train(ctx context.Context, seed uint64, stderr io.Writer) error {
	warm := c.run(seed, "warm")
	if err := c.finish(ctx, seed, warm, []string{"--iterations", "0"}, stderr); err != nil {
		return err
	}
	if err := c.eval(ctx, warm, "on", stderr); err != nil {
		return err
	}
	for _, name := range c.names() {
		args := []string{"--warm-from", warm}
		if name != full {
			args = append(args, "--ablation", name)
		}
		if c.Iterations > 0 {
			args = append(args, "--iterations", strconv.Itoa(c.Iterations))
		}
		if err := c.finish(ctx, seed, c.run(seed, name), args, stderr); err != nil {
			return err
		}
		retrieval := []string{"on"}
		switch name {
		case "no-skills":
			retrieval = []string{"off"}
		case full:
			retrieval = []string{"on", "off"}
		}
		for _, r := range retrieval {
			if err := c.eval(ctx, c.run(seed, name), r, stderr); err != nil {
				return err
			}
		}
	}
	return nil
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
		args = append(args, "--env", c.Env, "--preset", c.Preset, "--seed", strconv.FormatUint(seed, 10))
		for _, s := range c.Set {
			args = append(args, "--set", s)
		}
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

// eval plays the panel with a run's policy, if nobody has.
func (c *benchMethodCmd) eval(ctx context.Context, dir, retrieval string, stderr io.Writer) error {
	var played bool
	err := withRun(ctx, dir, func(run *store.Run) (err error) {
		_, played, err = c.evaluation(ctx, run, retrieval == "on")
		return err
	})
	if err != nil || played {
		return err
	}
	return c.give(ctx, []string{"eval", "--run", dir, "--panel", c.Panel, "--retrieval", retrieval, "--data", c.Data, "--workers", strconv.Itoa(c.Workers)}, stderr)
}

// evaluation is what the panel gave under the policy that a run ended with.
func (c *benchMethodCmd) evaluation(ctx context.Context, run *store.Run, retrieval bool) (train.Evaluation, bool, error) {
	saved, _, err := run.Latest(ctx)
	if err != nil {
		return train.Evaluation{}, false, err
	}
	all, err := run.Evaluations(ctx)
	if err != nil {
		return train.Evaluation{}, false, err
	}
	for _, e := range slices.Backward(all) {
		if e.Panel == c.Panel && e.Retrieval == retrieval && !e.Online && !e.Constrained && e.PolicyVersion == saved.Checkpoint.PolicyVersion && e.Evaluation.Bank == saved.Bank.Hash() {
			return e.Evaluation, true, nil
		}
	}
	return train.Evaluation{}, false, nil
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

// collect reads what there is of the runs.
func (c *benchMethodCmd) collect(ctx context.Context) (methodTable, error) {
	t := methodTable{panel: c.Panel}
	add := func(label, name string, retrieval bool) error {
		row := methodRow{name: label}
		for _, seed := range c.Seeds {
			dir := c.run(seed, name)
			if _, err := os.Stat(filepath.Join(dir, "run.db")); err != nil {
				continue
			}
			if err := withRun(ctx, dir, func(run *store.Run) error { return c.read(ctx, run, seed, retrieval, &row) }); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
		}
		if len(row.runs) > 0 {
			t.rows = append(t.rows, row)
		}
		return nil
	}
	err := add("cloned", "warm", true)
	for _, name := range c.names() {
		err = errors.Join(err, add(name, name, name != "no-skills"))
		if name == full {
			err = errors.Join(err, add(withoutSkills, full, false))
		}
	}
	if err == nil && len(t.rows) == 0 {
		err = fmt.Errorf("nothing was played yet under %s", c.Dir)
	}
	return t, err
}

// read adds a seed's run to a row, if its panel was played.
func (c *benchMethodCmd) read(ctx context.Context, run *store.Run, seed uint64, retrieval bool, row *methodRow) error {
	e, ok, err := c.evaluation(ctx, run, retrieval)
	if err != nil || !ok {
		return err
	}
	x := methodRun{seed: seed, evaluation: e}
	points, err := run.Metrics(ctx, "")
	if err != nil {
		return err
	}
	x.metrics(points)
	commits, err := run.Commits(ctx)
	if err != nil {
		return err
	}
	x.commits = len(commits)
	seconds, err := run.Seconds(ctx, "")
	if err != nil {
		return err
	}
	for _, p := range seconds {
		x.minutes += p.Value / 60
	}
	row.runs = append(row.runs, x)
	return nil
}
