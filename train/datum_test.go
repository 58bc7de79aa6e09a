package train

import (
	"math"
	"slices"
	"testing"

	"skillmaster/episode"
	"skillmaster/grpo"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// reviewed is a trajectory of two action turns and a review turn in one sequence; ids are 1, 2, 3, … in order.
func reviewed() episode.Trajectory {
	return episode.Trajectory{Task: episode.Task{ID: "t"}, Turns: []episode.Turn{
		{Kind: episode.ActionTurn, Prompt: []int32{1, 2}, Completion: []int32{3, 4}, LogProbs: []float32{-0.3, -0.4}},
		{Kind: episode.ActionTurn, Continues: true, Prompt: []int32{5}, Completion: []int32{6}, LogProbs: []float32{-0.6}},
		{Kind: episode.ReviewTurn, Continues: true, Prompt: []int32{7}, Completion: []int32{8, 9}, LogProbs: []float32{-0.8, -0.9}},
	}}
}

var near = cmpopts.EquateApprox(0, 1e-6)

func TestPolicyData(t *testing.T) {
	adv := []grpo.Advantage{{Action: 2, Review: -1, ReviewMeasured: true}}
	data, err := policyData([]episode.Trajectory{reviewed()}, adv, grpo.TokenMean, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	want := grpo.Datum{
		IDs:       []int32{1, 2, 3, 4, 5, 6, 7, 8, 9},
		Stream:    []grpo.Stream{0, 0, grpo.Action, grpo.Action, 0, grpo.Action, 0, grpo.Review, grpo.Review},
		Weight:    []float32{0, 0, 1. / 3, 1. / 3, 0, 1. / 3, 0, 0.25, 0.25}, // means over 3 and 2 ids, λ = 0.5
		Advantage: []float32{0, 0, 2, 2, 0, 2, 0, -1, -1},
		LogProb:   []float32{0, 0, -0.3, -0.4, 0, -0.6, 0, -0.8, -0.9},
	}
	if diff := cmp.Diff([]grpo.Datum{want}, data, near); diff != "" {
		t.Error(diff)
	}
	if err := data[0].Check(); err != nil {
		t.Error(err)
	}
}

// A review that was not measured is masked, not paid 0: it has no weight, and it does not count in the divisor.
func TestUnmeasuredReviewIsMasked(t *testing.T) {
	ts := []episode.Trajectory{reviewed(), reviewed()}
	adv := []grpo.Advantage{{Action: 1}, {Action: -1, Review: 1, ReviewMeasured: true}}
	data, err := policyData(ts, adv, grpo.TokenMean, 1)
	if err != nil {
		t.Fatal(err)
	}
	if w := data[0].Weight[7:]; w[0] != 0 || w[1] != 0 {
		t.Errorf("the unmeasured review weighs %v", w)
	}
	if w := data[1].Weight[7:]; w[0] != 0.5 || w[1] != 0.5 {
		t.Errorf("the measured review weighs %v, want a mean over its own two ids", w)
	}
}

func TestRebuiltPromptsMakeRowsOfTheirOwn(t *testing.T) {
	tr := reviewed()
	tr.Turns[1].Continues = false
	data, err := policyData([]episode.Trajectory{tr}, []grpo.Advantage{{Action: 1}}, grpo.TrajectoryMean, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) != 2 || !slices.Equal(data[0].IDs, []int32{1, 2, 3, 4}) || !slices.Equal(data[1].IDs, []int32{5, 6, 7, 8, 9}) {
		t.Errorf("rows %+v", data)
	}
	var sum float32
	for _, d := range data {
		for _, w := range d.Weight {
			sum += w
		}
	}
	if math.Abs(float64(sum-1)) > 1e-6 {
		t.Errorf("the weights of a trajectory sum to %v, want 1", sum)
	}
}

func TestNothingToLearnFromMessages(t *testing.T) {
	tr := reviewed()
	tr.Turns[1].LogProbs = nil
	if _, err := policyData([]episode.Trajectory{tr}, []grpo.Advantage{{}}, grpo.TokenMean, 1); err == nil {
		t.Error("a turn without log-probabilities was laid out")
	}
}

func TestCloneData(t *testing.T) {
	tr := reviewed()
	tr.Turns[1].Noise = true
	data, cut := cloneData([]episode.Trajectory{tr}, 0.5, 8)
	// First prompt 0, expert's ids 1, world's answers 0.5, the mistake 0, the last id is beyond the context: sum 4.
	want := []float32{0, 0, 0.25, 0.25, 0.125, 0, 0.125, 0.25}
	if diff := cmp.Diff(want, data[0].Weight, near); diff != "" || cut != 1 {
		t.Errorf("%d cut, weights:\n%s", cut, diff)
	}
	if err := data[0].Check(); err != nil {
		t.Error(err)
	}
}

func TestLive(t *testing.T) {
	dead := grpo.Datum{IDs: []int32{1, 2}, Advantage: []float32{0, 0}}
	alive := grpo.Datum{IDs: []int32{3, 4}, Advantage: []float32{0, -1}}
	if got := live([]grpo.Datum{dead, alive, dead}); len(got) != 1 || got[0].IDs[0] != 3 {
		t.Errorf("kept %v", got)
	}
}
