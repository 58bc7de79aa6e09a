package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skillmaster/policy/remote"
	"skillmaster/report"
	"skillmaster/store"
	"skillmaster/track"
)

// exportCmd writes a run's records for other tools.
type exportCmd struct {
	TensorBoard exportTensorBoardCmd `cmd:"" name:"tensorboard" help:"Metrics as an event file for TensorBoard."`
	JSONL       exportJSONLCmd       `cmd:"" name:"jsonl" help:"Metrics as JSON lines, for pandas, DuckDB, Weights & Biases and others."`
	Parquet     exportParquetCmd     `cmd:"" name:"parquet" help:"Trajectories as a Parquet file, for pyarrow, DuckDB, datasets and others."`
	MLflow      exportMLflowCmd      `cmd:"" name:"mlflow" help:"Metrics and settings to an MLflow tracking server."`
}

// Help is shown under --help.
func (exportCmd) Help() string {
	return `Any of them may be repeated, also while the run trains: nothing is doubled, and what came since is added.

Examples:
  skillmaster export tensorboard --run runs/first --to tb
  skillmaster export jsonl --run runs/first --to first.jsonl
  skillmaster export parquet --run runs/first --to first.parquet
  skillmaster export mlflow --run runs/first --to http://127.0.0.1:5000`
}

// runFlag names the run whose records are taken, and says how to tell what came of it.
type runFlag struct {
	Run  string `help:"Run directory." type:"existingdir" required:"" placeholder:"DIR"`
	JSON bool   `help:"Say what was written as JSON, on stdout." name:"json"`
}

// written is what an export came to; it leaves out what does not concern its form.
type written struct {
	To           string `json:"to"`
	Rounds       *int   `json:"rounds,omitempty"` // that the run has
	New          *int   `json:"new,omitempty"`    // of them, that were not there yet
	Trajectories *int   `json:"trajectories,omitempty"`
	Outdated     bool   `json:"outdated,omitempty"` // points of rounds that the run took back are still there
}

// tell says what came of an export: text to stderr, or JSON to stdout.
func (f runFlag) tell(stdout, stderr io.Writer, e written, text string, args ...any) error {
	if f.JSON {
		return printJSON(stdout, e)
	}
	_, err := fmt.Fprintf(stderr, text+"\n", args...)
	return err
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

func (c *exportTensorBoardCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(c.To, h.Name)
	n, err := track.TensorBoard(folder, h)
	if err != nil {
		return err
	}
	return c.tell(stdout, stderr, written{To: folder, Rounds: new(len(h.Rounds)), New: &n},
		"%s: %d of %d rounds were new (look: tensorboard --logdir %s)", folder, n, len(h.Rounds), c.To)
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
	if c.JSON && c.To == "" {
		return usage(errors.New("--json says what was written to a file: it needs --to FILE (the lines themselves are JSON)"))
	}
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
	return c.tell(stdout, stderr, written{To: c.To, Rounds: new(len(rounds))}, "%s: %d rounds", c.To, len(rounds))
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

func (c *exportParquetCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	return withRun(ctx, c.Run, func(run *store.Run) error {
		rows := 0
		err := writeWhole(c.To, func(w io.Writer) (err error) {
			rows, err = track.WriteParquet(ctx, w, run, runName(c.Run))
			return err
		})
		if err != nil {
			return err
		}
		return c.tell(stdout, stderr, written{To: c.To, Trajectories: &rows}, "%s: %d trajectories", c.To, rows)
	})
}

type exportMLflowCmd struct {
	runFlag
	To string `help:"Address of the tracking server, such as http://127.0.0.1:5000." required:"" placeholder:"URL"`
	mlflowFlags
}

// mlflowFlags say how a tracking server is used.
type mlflowFlags struct {
	Experiment string `help:"Experiment of the run; made if there is none of the name." default:"skillmaster" placeholder:"NAME"`
	TokenFile  string `help:"File with the server's token, or with the password of the user MLFLOW_TRACKING_USERNAME, if not the environment variables MLFLOW_TRACKING_TOKEN or MLFLOW_TRACKING_PASSWORD hold it." type:"existingfile" placeholder:"FILE"`
}

// Help is shown under --help.
func (exportMLflowCmd) Help() string {
	return `Metrics as metrics, settings as params, the round's number as step. The run is found again by a tag, so that each time only what is
new is sent. MLflow cannot forget points: rounds that the run took back stay there, and are not sent again when they are done
again. To send while training: train --mlflow URL.

Examples:
  skillmaster export mlflow --run runs/first --to http://127.0.0.1:5000
  MLFLOW_TRACKING_TOKEN=… skillmaster export mlflow --run runs/first --to https://HOST --experiment alfworld`
}

func (c *exportMLflowCmd) Execute(ctx context.Context, stdout, stderr io.Writer) error {
	server, err := c.open(c.To, notices(stderr))
	if err != nil {
		return usage(err)
	}
	h, err := c.history(ctx)
	if err != nil {
		return err
	}
	sent, err := server.Send(ctx, h)
	if err != nil {
		return err
	}
	if sent.Outdated {
		notices(stderr)(outdated)
	}
	return c.tell(stdout, stderr, written{To: c.To, Rounds: new(len(h.Rounds)), New: &sent.Rounds, Outdated: sent.Outdated},
		"experiment %s: %d of %d rounds were new", c.Experiment, sent.Rounds, len(h.Rounds))
}

const outdated = "the run took rounds back that MLflow has: it keeps the points of those, and gets only rounds after them"

// open makes a client of a tracking server. Secrets come from where MLflow's own clients look for them, or from a file.
func (f mlflowFlags) open(url string, notice func(text string)) (*track.MLflow, error) {
	o := track.MLflowOptions{URL: url, Experiment: f.Experiment, User: os.Getenv("MLFLOW_TRACKING_USERNAME"), Notice: notice}
	variable := "MLFLOW_TRACKING_TOKEN"
	if o.User != "" {
		variable = "MLFLOW_TRACKING_PASSWORD"
	}
	switch {
	case f.TokenFile != "":
		o.Key = remote.FileKey(f.TokenFile)
	case o.User != "" || os.Getenv(variable) != "":
		o.Key = remote.EnvKey(variable)
	}
	return track.NewMLflow(o)
}
