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
	Machine    machine            `json:"machine"`
	Day        string             `json:"day"`
	Minutes    map[string]float64 `json:"minutes"` // wall time by part, the warm start's own for cloned alone
	Trained    int64              `json:"trained_tokens"`
	Played     int64              `json:"played_tokens"`
	Commits    int                `json:"commits"` // to the bank
	Reviews    map[string]float64 `json:"reviews"` // of the last ten iterations: see count
	Learning   []progress         `json:"learning"`
	Cells      []panelResult      `json:"cells"`
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
	if !slices.Equal(o.Settings, c.common(c.Preset)) || !iterations {
		return nil, fmt.Errorf("%s was made with %s and %d iterations, not with %s and %d: take it away, or keep the others elsewhere with --keep",
			path, strings.Join(o.Settings, " "), o.Iterations, strings.Join(c.common(c.Preset), " "), c.Iterations)
	}
	for _, p := range o.Cells {
		if p.tasks() == 0 || len(p.Steps) != p.tasks() {
			return nil, fmt.Errorf("%s: panel %s has %d results and %d numbers of steps", path, p.Panel, p.tasks(), len(p.Steps))
		}
	}
	return o, nil
}

// keep writes what a run came to.
func (c *benchMethodCmd) keep(ctx context.Context, run *store.Run, seed uint64, row string) error {
	saved, _, err := run.Latest(ctx)
	if err != nil {
		return err
	}
	o := outcome{
		Row: row, Seed: seed, Settings: c.common(c.Preset), Machine: thisMachine(), Day: time.Now().UTC().Format(time.DateOnly),
		Minutes: map[string]float64{}, Trained: saved.Checkpoint.Tokens,
	}
	o.Machine.Load = "" // of this moment, not of the run's
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
	if err := o.time(ctx, run); err != nil {
		return err
	}
	for _, p := range c.panelCells(row) {
		e, ok, err := evaluation(ctx, run, p)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s: panel %s was not played as %s", run.Dir(), p.panel, p.cell)
		}
		o.Cells = append(o.Cells, resultOf(e, p))
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Keep, 0o755); err != nil {
		return err
	}
	return writeWhole(c.file(seed, row), func(w io.Writer) error {
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

// evaluation is what a panel gave, played so under the policy and the bank that a run ended with.
func evaluation(ctx context.Context, run *store.Run, p panelCell) (train.Evaluation, bool, error) {
	saved, _, err := run.Latest(ctx)
	if err != nil {
		return train.Evaluation{}, false, err
	}
	all, err := run.Evaluations(ctx)
	if err != nil {
		return train.Evaluation{}, false, err
	}
	way := cells[p.cell]
	for _, e := range slices.Backward(all) {
		if e.Panel == p.panel && e.Retrieval == (way.retrieval == "on") && e.Online == (way.bank == "online") && e.Constrained == (way.decoding == "constrained") &&
			e.PolicyVersion == saved.Checkpoint.PolicyVersion && e.Evaluation.Bank == saved.Bank.Hash() {
			return e.Evaluation, true, nil
		}
	}
	return train.Evaluation{}, false, nil
}
