package track

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"skillmaster/store"

	"github.com/parquet-go/parquet-go"
)

// Row is a trajectory as a row of a Parquet file. nil is null: not measured, or there is none.
type Row struct {
	Run           string   `parquet:"run,dict"`
	Report        int64    `parquet:"report"` // the step of curves
	Phase         string   `parquet:"phase,dict"`
	Round         int64    `parquet:"round"` // within its phase, from 0
	Group         int64    `parquet:"group"`
	Member        int64    `parquet:"member"` // of the group
	Task          string   `parquet:"task,dict"`
	Split         string   `parquet:"split,dict"`
	Family        string   `parquet:"family,dict"`
	Category      string   `parquet:"category,dict"`
	Goal          string   `parquet:"goal,dict"`
	Seed          uint64   `parquet:"seed"`
	Bank          string   `parquet:"bank,dict"`
	PolicyVersion int64    `parquet:"policy_version"`
	ShownSkills   []string `parquet:"shown_skills,list"`
	Withhold      float64  `parquet:"withhold"`
	Withheld      []string `parquet:"withheld,list"`
	UsedSkills    []string `parquet:"used_skills,list"`
	Success       bool     `parquet:"success"`
	Stop          string   `parquet:"stop,dict"`
	EnvReturn     float64  `parquet:"env_return"`

	Outcome *string `parquet:"outcome,optional"` // of the review's edit; nil: no review
	Edit    *string `parquet:"edit,optional"`    // JSON
	Fault   *string `parquet:"fault,optional"`

	ActionReturn    *float64 `parquet:"action_return,optional"` // nil: nothing was learnt from it
	ActionAdvantage *float64 `parquet:"action_advantage,optional"`
	ReviewReturn    *float64 `parquet:"review_return,optional"` // nil: not measured, or as above
	ReviewAdvantage *float64 `parquet:"review_advantage,optional"`

	Turns []RowTurn `parquet:"turns,list"`
	Steps []RowStep `parquet:"steps,list"`
}

// RowTurn is a turn of a Row; its fields are those of episode.Turn.
type RowTurn struct {
	Kind       string    `parquet:"kind"` // "action" or "review"
	Continues  bool      `parquet:"continues"`
	Prompt     []int32   `parquet:"prompt,list"`
	Completion []int32   `parquet:"completion,list"`
	LogProbs   []float32 `parquet:"log_probs,optional,list"` // nil: not known
	Shown      string    `parquet:"shown"`
	Text       string    `parquet:"text"`
	Truncated  bool      `parquet:"truncated"`
	Noise      bool      `parquet:"noise"`
}

// RowStep is a step of a Row; its fields are those of episode.Step.
type RowStep struct {
	Action      string  `parquet:"action"`
	Observation string  `parquet:"observation"`
	Reward      float64 `parquet:"reward"`
	Admissible  bool    `parquet:"admissible"`
	Malformed   bool    `parquet:"malformed"`
}

// Trajectories are a run's trajectories; a *store.Run has them.
type Trajectories interface {
	Reports(ctx context.Context, after int) ([]store.Kept, error)
	Trajectories(ctx context.Context, report int) ([]store.Played, error)
	Trajectory(ctx context.Context, report, group, member int) (store.Recorded, error)
}

// rowsInGroup is how many rows are held in memory before they are written.
const rowsInGroup = 256

// WriteParquet writes every trajectory that a run keeps as a Row, in the order of reports, groups and members, packed with
// zstd, and returns how many there are. The same records give the same bytes. It reads one trajectory after another; a
// run that grows meanwhile is written as it was at the start, one that takes rounds back is an error.
func WriteParquet(ctx context.Context, w io.Writer, run Trajectories, name string) (rows int, err error) {
	reports, err := run.Reports(ctx, 0)
	if err != nil {
		return 0, err
	}
	out := parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowsInGroup))
	for _, r := range reports {
		heads, err := run.Trajectories(ctx, r.Report)
		if err != nil {
			return rows, err
		}
		for _, p := range heads {
			t, err := run.Trajectory(ctx, p.Report, p.Group, p.Member)
			if err != nil {
				return rows, err
			}
			row, err := rowOf(name, r, p, t)
			if err != nil {
				return rows, err
			}
			if _, err := out.Write([]Row{row}); err != nil {
				return rows, err
			}
			rows++
		}
	}
	now, err := run.Reports(ctx, 0)
	if err == nil && (len(now) < len(reports) || !slices.Equal(now[:len(reports)], reports)) {
		err = errors.New("the run took rounds back while they were read: try again")
	}
	return rows, errors.Join(err, out.Close())
}

func rowOf(name string, r store.Kept, p store.Played, t store.Recorded) (Row, error) {
	row := Row{
		Run: name, Report: int64(r.Report), Phase: r.Phase.String(), Round: int64(r.Round.Round), Group: int64(p.Group), Member: int64(p.Member),
		Task: t.Task.ID, Split: t.Task.Split, Family: t.Task.Family, Category: t.Task.Category, Goal: t.Task.Goal, Seed: uint64(t.Seed),
		Bank: t.BankHash, PolicyVersion: int64(t.PolicyVersion), ShownSkills: t.ShownSkills, Withhold: t.Withhold, Withheld: t.Withheld,
		UsedSkills: t.UsedSkills, Success: t.Success, Stop: t.Stop.String(), EnvReturn: t.EnvReturn,
	}
	if v := t.Review; v != nil {
		edit, err := json.Marshal(v.Edit)
		if err != nil {
			return row, fmt.Errorf("edit of trajectory %d of group %d of report %d: %w", p.Member, p.Group, r.Report, err)
		}
		row.Outcome, row.Edit = new(v.Outcome.String()), new(string(edit))
		if v.Fault != "" {
			row.Fault = &v.Fault
		}
	}
	if c := t.Credit; c != nil {
		row.ActionReturn, row.ActionAdvantage = &c.Action, &c.ActionAdvantage
		if c.Measured {
			row.ReviewReturn, row.ReviewAdvantage = &c.Review, &c.ReviewAdvantage
		}
	}
	for _, u := range t.Turns {
		row.Turns = append(row.Turns, RowTurn{u.Kind.String(), u.Continues, u.Prompt, u.Completion, u.LogProbs, u.Shown, u.Text, u.Truncated, u.Noise})
	}
	for _, s := range t.Steps {
		row.Steps = append(row.Steps, RowStep{string(s.Action), s.Observation, s.Reward, s.Admissible, s.Malformed})
	}
	return row, nil
}
