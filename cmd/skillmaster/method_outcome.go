package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skillmaster/store"
	"skillmaster/train"
)

// outcome is what one way to train came to under one seed: all that tables are made of, in a file small enough to be kept
// with the program.
type outcome struct {
	Row        string             `json:"row"`
	Seed       uint64             `json:"seed"`
	Settings   []string           `json:"settings"` // options of train that all rows share
	Iterations int                `json:"iterations"`
	Weights    string             `json:"weights,omitempty"` // hash of the last checkpoint's file; "" in files made before it was kept
	Machine    machine            `json:"machine"`
	Day        string             `json:"day"`
	Minutes    map[string]float64 `json:"minutes"` // wall time by part, the warm start's own for cloned alone
	Trained    int64              `json:"trained_tokens"`
	Played     int64              `json:"played_tokens"`
	Commits    int                `json:"commits"` // to the bank
	Reviews    map[string]float64 `json:"reviews"` // of the last ten iterations: see count
	Learning   []progress         `json:"learning"`
	Cells      []panelResult      `json:"cells"`

	// Of the run, while it is at hand: the bank that it ended with, its policy version and its panels.
	bank    string
	version int
	panels  []store.Panel
}

// progress is the held-out panel at one moment of a run.
type progress struct {
	Iteration int     `json:"iteration"`
	Minutes   float64 `json:"minutes"` // since the run began
	Success   float64 `json:"success"` // share
}

// panelResult is a panel under a run's last policy.
type panelResult struct {
	Panel         string            `json:"panel"`
	Cell          string            `json:"cell"`
	PanelHash     string            `json:"panel_hash"`
	Bank          string            `json:"bank"`
	PolicyVersion int               `json:"policy_version"`
	Seed          uint64            `json:"seed"`
	Temperature   float64           `json:"temperature"`
	Won           string            `json:"won"`               // a task a digit, in the panel's order
	Steps         []int             `json:"steps"`             // by task
	Returns       []float64         `json:"returns,omitempty"` // by task, where they say more than Won does
	Families      map[string][2]int `json:"families"`          // tasks won, tasks
}

func (p *panelResult) tasks() int { return len(p.Won) }
func (p *panelResult) won() int   { return strings.Count(p.Won, "1") }

// success is the share of tasks won.
func (p *panelResult) success() float64 { return float64(p.won()) / float64(p.tasks()) }

func (p *panelResult) meanSteps() float64 {
	n := 0
	for _, s := range p.Steps {
		n += s
	}
	return float64(n) / float64(p.tasks())
}

// cell is a panel under the run's policy, nil if it was not played so.
func (o *outcome) cell(p panelCell) *panelResult {
	for i := range o.Cells {
		if o.Cells[i].Panel == p.panel && o.Cells[i].Cell == p.cell {
			return &o.Cells[i]
		}
	}
	return nil
}

// minutes is the wall time of the whole run.
func (o *outcome) minutes() (sum float64) {
	for _, m := range o.Minutes {
		sum += m
	}
	return sum
}

// last is how many iterations at the end the reviews are counted of.
const last = 10

// count counts reviews of the last iterations: by what became of them, "all", "measured", and "delta" (mean delta times
// measured).
func (o *outcome) count(points []store.Point) {
	o.Reviews = map[string]float64{}
	rounds := 0
	for _, p := range points {
		if p.Phase == train.Learning {
			rounds = max(rounds, p.Round.Round+1)
		}
	}
	o.Iterations = rounds
	measured := map[int]float64{}
	for _, p := range points {
		if p.Key == "rollout/tokens" {
			o.Played += int64(p.Value)
		}
		if p.Phase != train.Learning || p.Round.Round < rounds-last {
			continue
		}
		switch name, of := strings.CutPrefix(p.Key, "review/outcome_"); {
		case of:
			o.Reviews[name] += p.Value
			o.Reviews["all"] += p.Value
		case p.Key == "probe/measured":
			measured[p.Round.Round] = p.Value
			o.Reviews["measured"] += p.Value
		}
	}
	for _, p := range points {
		if p.Phase == train.Learning && p.Key == "probe/delta_mean" {
			o.Reviews["delta"] += p.Value * measured[p.Round.Round] // 0 of rounds before the last
		}
	}
}

func (c *benchMethodCmd) file(seed uint64, row string) string {
	return filepath.Join(c.Keep, fmt.Sprintf("%s-%d.json", row, seed))
}

// kept is what a row came to under a seed, nil if that is not known yet.
func (c *benchMethodCmd) kept(seed uint64, row string) (*outcome, error) {
	path := c.file(seed, row)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := new(outcome)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		return nil, fmt.Errorf("%s: %w; take it away to have it made again", path, err)
	}
	if o.Row != row || o.Seed != seed {
		return nil, fmt.Errorf("%s is of row %s and seed %d", path, o.Row, o.Seed)
	}
	iterations := row == cloned || c.Iterations == 0 || o.Iterations == c.Iterations
	if !slices.Equal(o.Settings, c.common()) || !iterations {
		return nil, fmt.Errorf("%s was made with %s and %d iterations, not with %s and %d: take it away, or keep the others elsewhere with --keep",
			path, strings.Join(o.Settings, " "), o.Iterations, strings.Join(c.common(), " "), c.Iterations)
	}
	for _, p := range o.Cells {
		if p.tasks() == 0 || len(p.Steps) != p.tasks() {
			return nil, fmt.Errorf("%s: panel %s has %d results and %d numbers of steps", path, p.Panel, p.tasks(), len(p.Steps))
		}
	}
	return o, nil
}

// outcome is what a run came to, before any panel is played.
func (c *benchMethodCmd) outcome(ctx context.Context, dir string, seed uint64, row string) (*outcome, error) {
	o := &outcome{
		Row: row, Seed: seed, Settings: c.common(), Machine: thisMachine(), Day: time.Now().UTC().Format(time.DateOnly),
		Minutes: map[string]float64{},
	}
	o.Machine.Load = "" // of this moment, not of the run's
	return o, withRun(ctx, dir, func(run *store.Run) error {
		saved, _, err := run.Latest(ctx)
		if err != nil {
			return err
		}
		o.Trained, o.Weights, o.bank, o.version = saved.Checkpoint.Tokens, saved.Hash(), saved.Bank.Hash(), saved.PolicyVersion
		m, err := run.Manifest(ctx)
		if err != nil {
			return err
		}
		o.panels = m.Panels
		points, err := run.Metrics(ctx, "")
		if err != nil {
			return err
		}
		o.count(points)
		commits, err := run.Commits(ctx)
		if err != nil {
			return err
		}
		o.Commits = len(commits)
		return o.time(ctx, run)
	})
}

// with are the panels and cells that are kept, and after them those that are not and are wanted. The outcome may be nil.
func (o *outcome) with(wanted []panelCell) []panelCell {
	var out []panelCell
	if o != nil {
		for _, p := range o.Cells {
			out = append(out, panelCell{p.Panel, p.Cell})
		}
	}
	for _, p := range wanted {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// take takes over what was kept of the same run: its cells, and day, machine and times, so that a run that had to be made
// again counts as it did at first. What is of other weights, another bank or another panel is left, and said: it will be played again.
// Files without a hash of the weights are told by the ids that were trained on.
func (o *outcome) take(kept *outcome, stderr io.Writer) {
	if kept == nil {
		return
	}
	if kept.Trained != o.Trained || kept.Weights != "" && kept.Weights != o.Weights {
		fmt.Fprintf(stderr, "%s, seed %d: the run was made again and has other weights: all of its panels are played again\n", o.Row, o.Seed)
		return
	}
	o.Machine, o.Day, o.Minutes, o.Learning = kept.Machine, kept.Day, kept.Minutes, kept.Learning
	for _, p := range kept.Cells {
		same := func(q store.Panel) bool { return q.Name == p.Panel && q.Hash == p.PanelHash }
		if p.Bank == o.bank && p.PolicyVersion == o.version && slices.ContainsFunc(o.panels, same) {
			o.Cells = append(o.Cells, p)
			continue
		}
		fmt.Fprintf(stderr, "%s, seed %d: panel %s (%s) was of another bank or other tasks: it is played again\n", o.Row, o.Seed, p.Panel, p.Cell)
	}
}

// keep writes what a run came to.
func (c *benchMethodCmd) keep(o *outcome) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Keep, 0o755); err != nil {
		return err
	}
	return writeWhole(c.file(o.Seed, o.Row), func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

func resultOf(e train.Evaluation, p panelCell) panelResult {
	out := panelResult{
		Panel: p.panel, Cell: p.cell, PanelHash: e.PanelHash, Bank: e.Bank, PolicyVersion: e.PolicyVersion, Seed: uint64(e.Seed), Temperature: e.Temperature,
		Families: map[string][2]int{},
	}
	var won strings.Builder
	paid := false
	for _, r := range e.Results {
		digit, f := byte('0'), out.Families[r.Family]
		if f[1]++; r.Success {
			f[0]++
			digit = '1'
		}
		won.WriteByte(digit)
		out.Families[r.Family] = f
		out.Steps = append(out.Steps, r.Steps)
		out.Returns = append(out.Returns, r.Return)
		paid = paid || !r.Success && r.Return != 0
	}
	if out.Won = won.String(); !paid {
		out.Returns = nil
	}
	return out
}

// time reads how long the run took, and how its held-out score went meanwhile.
func (o *outcome) time(ctx context.Context, run *store.Run) error {
	seconds, err := run.Seconds(ctx, "")
	if err != nil {
		return err
	}
	at := map[int]float64{} // minutes by report
	for _, p := range seconds {
		o.Minutes[strings.TrimSuffix(strings.TrimPrefix(p.Key, "time/"), "_seconds")] += p.Value / 60
		at[p.Report] += p.Value / 60
	}
	evaluations, err := run.Evaluations(ctx)
	if err != nil {
		return err
	}
	reports, err := run.Reports(ctx, 0)
	if err != nil {
		return err
	}
	sum := 0.0
	for _, r := range reports {
		sum += at[r.Report]
		for _, e := range evaluations {
			if e.Report == r.Report {
				o.Learning = append(o.Learning, progress{Iteration: r.Round.Round, Minutes: sum, Success: e.Summary().Rate})
			}
		}
	}
	return nil
}

// played is what a panel gave, played so under the policy and the bank that a run ended with; nil if nobody has.
func (c *benchMethodCmd) played(ctx context.Context, dir string, p panelCell) (r *panelResult, err error) {
	err = withRun(ctx, dir, func(run *store.Run) error {
		saved, _, err := run.Latest(ctx)
		if err != nil {
			return err
		}
		all, err := run.Evaluations(ctx)
		if err != nil {
			return err
		}
		way := cells[p.cell]
		for _, e := range slices.Backward(all) {
			if e.Panel == p.panel && e.Retrieval == (way.retrieval == "on") && e.Online == (way.bank == "online") && e.Constrained == (way.decoding == "constrained") &&
				e.PolicyVersion == saved.Checkpoint.PolicyVersion && e.Evaluation.Bank == saved.Bank.Hash() {
				result := resultOf(e.Evaluation, p)
				r = &result
				return nil
			}
		}
		return nil
	})
	return r, err
}
