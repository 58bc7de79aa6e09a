package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/track"
)

// exportCmd writes a run's records for other tools.
type exportCmd struct {
	TensorBoard exportTensorBoardCmd `cmd:"" name:"tensorboard" help:"Metrics as an event file for TensorBoard."`
	JSONL       exportJSONLCmd       `cmd:"" name:"jsonl" help:"Metrics as JSON lines, for pandas, DuckDB, Weights & Biases and others."`
	Parquet     exportParquetCmd     `cmd:"" name:"parquet" help:"Trajectories as a Parquet file, for pyarrow, DuckDB, datasets and others."`
}

// Help is shown under --help.
func (exportCmd) Help() string {
	return `Any of them may be repeated, also while the run trains: nothing is doubled, and what came since is added.

Examples:
  skillmaster export tensorboard --run runs/first --to tb
  skillmaster export jsonl --run runs/first --to first.jsonl
  skillmaster export parquet --run runs/first --to first.parquet`
}

// runFlag names the run whose records are taken.
type runFlag struct {
	Run string `help:"Run directory." type:"existingdir" required:"" placeholder:"DIR"`
}

// history is what the run has recorded; its name is that of its directory.
func (f runFlag) history(ctx context.Context) (h *report.History, err error) {
	err = withRun(ctx, f.Run, func(run *store.Run) error {
		h, err = report.Read(ctx, run, runName(f.Run))
		return err
	})
	return h, err
}

// runName is what other tools call a run: its directory's name.
func runName(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return filepath.Base(dir)
}

type exportTensorBoardCmd struct {
	runFlag
	To string `help:"TensorBoard's log folder. The run has a folder of its own in it, by its name." required:"" placeholder:"DIR"`
}

// Help is shown under --help.
func (exportTensorBoardCmd) Help() string {
	return `A point's step is the number of its round, those of the warm start counted too. What was not measured has no point. Rounds
that the run took back, because it went on from an earlier checkpoint, are taken back in the file as well. To write it while
training: train --tensorboard DIR.

Example:
  skillmaster export tensorboard --run runs/first --to tb
  tensorboard --logdir tb`
}

func (c *exportTensorBoardCmd) Execute(ctx context.Context, _, stderr io.Writer) error {
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(c.To, h.Name)
	n, err := track.TensorBoard(folder, h)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s: %d of %d rounds were new (look: tensorboard --logdir %s)\n", folder, n, len(h.Rounds), c.To)
	return nil
}

type exportJSONLCmd struct {
	runFlag
	To string `help:"File to write, whole or not at all. Default: stdout." placeholder:"FILE"`
}

// Help is shown under --help.
func (exportJSONLCmd) Help() string {
	return `One object for each round: step, phase, round, policy_version, bank, time, then its numbers by key. What was not measured is
not there; what was measured and is no finite number is null.

Examples:
  skillmaster export jsonl --run runs/first --to first.jsonl
  skillmaster export jsonl --run runs/first | python3 -c "import pandas, sys; print(pandas.read_json(sys.stdin, lines=True)['action/success'])"`
}

func (c *exportJSONLCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	rounds := track.Rounds(h)
	if c.To == "" {
		return track.WriteJSONL(stdout, rounds)
	}
	if err := writeWhole(c.To, func(w io.Writer) error { return track.WriteJSONL(w, rounds) }); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s: %d rounds\n", c.To, len(rounds))
	return nil
}

type exportParquetCmd struct {
	runFlag
	To string `help:"File to write, whole or not at all." required:"" placeholder:"FILE"`
}

// Help is shown under --help.
func (exportParquetCmd) Help() string {
	return `One row for each trajectory, with its turns (ids, log-probabilities and text) and its steps as lists in it; docs/tracking.md
lists the columns. What was not measured is null.

Examples:
  skillmaster export parquet --run runs/first --to first.parquet
  duckdb -c "SELECT family, avg(success::INT), avg(len(steps)) FROM 'first.parquet' GROUP BY family"`
}

func (c *exportParquetCmd) Execute(ctx context.Context, _, stderr io.Writer) error {
	return withRun(ctx, c.Run, func(run *store.Run) error {
		rows := 0
		err := writeWhole(c.To, func(w io.Writer) (err error) {
			rows, err = track.WriteParquet(ctx, w, run, runName(c.Run))
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%s: %d trajectories\n", c.To, rows)
		return nil
	})
}
