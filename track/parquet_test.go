package track

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skillmaster/episode"
	"skillmaster/skill"
	"skillmaster/store"
	"skillmaster/store/storetest"
	"skillmaster/train"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

func rowsOf(t *testing.T, run Trajectories) (file []byte, rows []Row) {
	t.Helper()
	var b bytes.Buffer
	n, err := WriteParquet(t.Context(), &b, run, "made")
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = parquet.Read[Row](bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil || len(rows) != n {
		t.Fatalf("%d rows of %d, %v", len(rows), n, err)
	}
	return b.Bytes(), rows
}

// byHand is a run of two trajectories, of which one has everything and the other nothing that can be absent.
func byHand(t *testing.T) *store.Run {
	t.Helper()
	run, err := store.Create(t.Context(), filepath.Join(t.TempDir(), "run"), store.Manifest{Config: json.RawMessage("{}")}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	task := episode.Task{ID: "t1", Split: "train", Family: "heat", Category: "place", Goal: "heat an apple"}
	whole := episode.Trajectory{
		Task: task, Seed: 1<<64 - 1, BankHash: "b", PolicyVersion: 7, ShownSkills: []string{"s1", "s2"}, Withhold: 0.5, Withheld: []string{"s3"}, UsedSkills: []string{"s1"},
		Turns: []episode.Turn{
			{Prompt: []int32{1, 2}, Completion: []int32{3}, LogProbs: []float32{-0.25}, Shown: "a room", Text: "go", Truncated: true},
			{Kind: episode.ReviewTurn, Continues: true, Prompt: []int32{4}, Completion: []int32{5, 6}, Shown: "review", Text: "keep", Noise: true},
		},
		Steps:     []episode.Step{{Action: "go", Observation: "there", Reward: 0.5, Admissible: true}, {Action: "stay", Observation: "here", Malformed: true}},
		EnvReturn: 0.5, Success: true, Stop: episode.Succeeded,
		Review: &episode.Review{Edit: skill.Edit{Op: skill.Keep}, Outcome: skill.Kept, Fault: "none of note"},
	}
	r := train.Report{
		Phase: train.Learning, Round: 0, Bank: skill.Bank{}.Hash(),
		Groups:  []episode.Group{{Task: task, Trajectories: []episode.Trajectory{whole, {Task: task, Stop: episode.Horizon}}}},
		Credits: [][]train.Credit{{{Action: 10, Review: 1, Measured: true, ActionAdvantage: 1.5, ReviewAdvantage: -0.5}, {Action: -1, ActionAdvantage: -1.5}}},
	}
	bare := train.Report{Phase: train.Learning, Round: 1, Bank: skill.Bank{}.Hash(), Groups: []episode.Group{{Task: task, Trajectories: []episode.Trajectory{{Task: task}}}}}
	for _, r := range []train.Report{r, bare} {
		if err := run.Keep(t.Context(), r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

func TestParquetByHand(t *testing.T) {
	file, got := rowsOf(t, byHand(t))
	keepFor(t, "hand.parquet", file)
	head := Row{Run: "made", Report: 1, Phase: "learning", Task: "t1", Split: "train", Family: "heat", Category: "place", Goal: "heat an apple"}
	first, second, third := head, head, head
	first.Seed, first.Bank, first.PolicyVersion, first.Withhold = 1<<64-1, "b", 7, 0.5
	first.ShownSkills, first.Withheld, first.UsedSkills = []string{"s1", "s2"}, []string{"s3"}, []string{"s1"}
	first.Success, first.Stop, first.EnvReturn = true, "succeeded", 0.5
	first.Outcome, first.Edit, first.Fault = new("kept"), new(`{"op":"keep"}`), new("none of note")
	first.ActionReturn, first.ActionAdvantage, first.ReviewReturn, first.ReviewAdvantage = new(10.0), new(1.5), new(1.0), new(-0.5)
	first.Turns = []RowTurn{
		{Kind: "action", Prompt: []int32{1, 2}, Completion: []int32{3}, LogProbs: []float32{-0.25}, Shown: "a room", Text: "go", Truncated: true},
		{Kind: "review", Continues: true, Prompt: []int32{4}, Completion: []int32{5, 6}, Shown: "review", Text: "keep", Noise: true},
	}
	first.Steps = []RowStep{{Action: "go", Observation: "there", Reward: 0.5, Admissible: true}, {Action: "stay", Observation: "here", Malformed: true}}
	second.Member, second.Stop, second.ActionReturn, second.ActionAdvantage = 1, "horizon", new(-1.0), new(-1.5)
	third.Report, third.Round, third.Stop = 2, 1, "unfinished"
	if diff := cmp.Diff([]Row{first, second, third}, got, emptyIsNil); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if got[0].Turns[1].LogProbs != nil {
		t.Error("log-probabilities that nobody knows are not null")
	}
}

// emptyIsNil takes lists that must be there (they are never null) as equal where they are empty.
var emptyIsNil = cmp.FilterValues(func(a, b any) bool {
	empty := func(v any) bool {
		switch v := v.(type) {
		case []string:
			return len(v) == 0
		case []RowTurn:
			return len(v) == 0
		case []RowStep:
			return len(v) == 0
		default:
			return false
		}
	}
	return empty(a) && empty(b)
}, cmp.Comparer(func(any, any) bool { return true }))

// Every trajectory of a run comes back as it was, over several groups of rows, and twice the same run is the same file.
func TestParquetHasEveryTrajectory(t *testing.T) {
	run := made(t, storetest.Shape{Seed: 8, Iterations: 12, Tasks: 6, Group: 4, Text: "\x00ü"})
	file, rows := rowsOf(t, run)
	keepFor(t, "made.parquet", file)
	if again, _ := rowsOf(t, run); !bytes.Equal(file, again) {
		t.Error("the same run gives another file")
	}
	heads, err := run.Trajectories(t.Context(), 0)
	if err != nil || len(heads) != len(rows) || len(rows) <= rowsInGroup {
		t.Fatalf("%d rows of %d trajectories, %v; more than %d are wanted", len(rows), len(heads), err, rowsInGroup)
	}
	reports, err := run.Reports(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range heads {
		whole, err := run.Trajectory(t.Context(), p.Report, p.Group, p.Member)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(reports, func(k store.Kept) bool { return k.Report == p.Report })
		want, err := rowOf("made", reports[at], p, whole)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rows[i], emptyIsNil); diff != "" {
			t.Fatalf("row %d: want -, got +\n%s", i, diff)
		}
	}
}

// rewinding takes its last round back, and does it again, while it is read.
type rewinding struct {
	*store.Run
	asked int
}

func (r *rewinding) Reports(ctx context.Context, after int) ([]store.Kept, error) {
	ks, err := r.Run.Reports(ctx, after)
	if r.asked++; r.asked > 1 {
		ks[len(ks)-1].Kept = ks[len(ks)-1].Kept.Add(time.Minute)
	}
	return ks, err
}

func TestParquetOfARunThatGoesBack(t *testing.T) {
	_, err := WriteParquet(t.Context(), &bytes.Buffer{}, &rewinding{Run: byHand(t)}, "made")
	if err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("got %v", err)
	}
}

// keepFor puts a file where testdata/python/parquet.py reads it, if SKILLMASTER_PARQUET names a folder.
func keepFor(t *testing.T, name string, file []byte) {
	t.Helper()
	if dir := os.Getenv("SKILLMASTER_PARQUET"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
