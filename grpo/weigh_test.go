package grpo

import (
	"math/rand/v2"
	"testing"
)

var small = []Counts{
	{Action: []int{3, 1}, Review: 2},
	{Action: []int{2}, Review: 0},
	{Action: []int{0, 6}, Review: 8},
	{},
}

func TestWeighByHand(t *testing.T) {
	const l = 0.2
	for _, c := range []struct {
		a    Aggregation
		want []Weights
	}{
		{TokenMean, []Weights{
			{[]float64{1. / 12, 1. / 12}, l / 10, 1}, {[]float64{1. / 12}, 0, 1}, {[]float64{0, 1. / 12}, l / 10, 1}, {nil, 0, 1},
		}},
		{TrajectoryMean, []Weights{
			{[]float64{1. / 12, 1. / 12}, l / 4, 1}, {[]float64{1. / 6}, 0, 1}, {[]float64{0, 1. / 18}, l / 16, 1}, {nil, 0, 1},
		}},
		{RowMix, []Weights{
			{[]float64{1. / 18, 1. / 6}, 1. / 12, l}, {[]float64{1. / 12}, 0, l}, {[]float64{0, 1. / 36}, 1. / 48, l}, {nil, 0, l},
		}},
	} {
		for i, got := range Weigh(small, c.a, l) {
			want := c.want[i]
			if !closeTo(got.Action, want.Action, 1e-15) || !near(got.Review, want.Review, 1e-15) || got.ReviewScale != want.ReviewScale {
				t.Errorf("%v: trajectory %d weighs %v, want %v", c.a, i, got, want)
			}
		}
	}
}

func randomCounts(r *rand.Rand) []Counts {
	batch := make([]Counts, 1+r.IntN(6))
	for i := range batch {
		batch[i].Review = r.IntN(20)
		for range r.IntN(9) {
			batch[i].Action = append(batch[i].Action, r.IntN(20))
		}
	}
	return batch
}

// Losses that are 1 everywhere have mean 1 in each stream: the weights of a stream sum to its share of the loss.
func TestWeightsSumToTheStreamsShare(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 500 {
		batch := randomCounts(r)
		n := count(batch)
		for _, a := range []Aggregation{TokenMean, TrajectoryMean} {
			act, rev := sums(batch, Weigh(batch, a, 0.2))
			if n.actionIDs > 0 && !near(act, 1, 1e-12) || n.actionIDs == 0 && act != 0 {
				t.Fatalf("%v: action weights of %v sum to %v", a, batch, act)
			}
			if n.reviewIDs > 0 && !near(rev, 0.2, 1e-12) || n.reviewIDs == 0 && rev != 0 {
				t.Fatalf("%v: review weights of %v sum to %v", a, batch, rev)
			}
		}
		act, rev := sums(batch, Weigh(batch, RowMix, 0.2))
		if n.actionIDs+n.reviewIDs > 0 && !near(act+rev, 1, 1e-12) {
			t.Fatalf("row mix: weights of %v sum to %v", batch, act+rev)
		}
	}
}

func sums(batch []Counts, w []Weights) (act, rev float64) {
	for i, c := range batch {
		for k, n := range c.Action {
			act += float64(n) * w[i].Action[k]
		}
		rev += float64(c.Review) * w[i].Review
	}
	return act, rev
}

// Ten times longer episodes leave the review stream's share alone, except under the release's mix.
func TestStreamWeightAndEpisodeLength(t *testing.T) {
	share := func(a Aggregation, turns int) float64 {
		batch := make([]Counts, 8)
		for i := range batch {
			batch[i].Review = 30
			for range turns {
				batch[i].Action = append(batch[i].Action, 10)
			}
		}
		act, rev := sums(batch, Weigh(batch, a, 0.2))
		if a == RowMix {
			rev *= 0.2
		}
		return rev / act
	}
	for _, a := range []Aggregation{TokenMean, TrajectoryMean} {
		if s, l := share(a, 5), share(a, 50); !near(s, 0.2, 1e-12) || !near(l, 0.2, 1e-12) {
			t.Errorf("%v: share %v of short episodes, %v of long ones", a, s, l)
		}
	}
	if s, l := share(RowMix, 5), share(RowMix, 50); !near(s, 10*l, 1e-12) {
		t.Errorf("row mix: share %v of short episodes, %v of long ones", s, l)
	}
}
