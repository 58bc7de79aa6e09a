package grpo

import "fmt"

// Aggregation says how token losses add up to the loss of a batch.
type Aggregation uint8

// The aggregations; λ is the weight of the review stream.
const (
	// TokenMean is L_act + λ·L_rev, each a mean over the tokens of its own stream in the batch. Every token of a
	// stream weighs the same and λ does not depend on how long episodes are.
	TokenMean Aggregation = iota
	// TrajectoryMean is L_act + λ·L_rev, each a mean over trajectories of the mean over their tokens in the stream
	// (the 1/G·1/|o| of Shao et al. 2024, "DeepSeekMath", eq. 3).
	TrajectoryMean
	// RowMix is the public release: one mean over turns of both streams of the mean over their tokens, with the
	// review advantages scaled by λ. The share of the review stream shrinks as episodes grow.
	RowMix
	aggregations
)

var aggregationNames = [aggregations]string{"token_mean", "trajectory_mean", "row_mix"}

// String returns the aggregation's name.
func (a Aggregation) String() string {
	if a < aggregations {
		return aggregationNames[a]
	}
	return fmt.Sprintf("Aggregation(%d)", uint8(a))
}

// MarshalText writes the aggregation's name.
func (a Aggregation) MarshalText() ([]byte, error) {
	if a >= aggregations {
		return nil, fmt.Errorf("unknown aggregation %d", uint8(a))
	}
	return []byte(aggregationNames[a]), nil
}

// UnmarshalText reads an aggregation's name.
func (a *Aggregation) UnmarshalText(text []byte) error {
	for i, name := range aggregationNames {
		if name == string(text) {
			*a = Aggregation(i)
			return nil
		}
	}
	return fmt.Errorf("unknown aggregation %q, known are %v", text, aggregationNames)
}

// Counts says how many ids of a trajectory are trained on.
type Counts struct {
	Action []int // [action turns]
	Review int   // 0: no review turn, or one that is not measured
}

// Weights are what each trained id of a trajectory weighs.
type Weights struct {
	Action      []float64 // [action turns] of every id of the turn; 0 where the turn has none
	Review      float64   // of every id of the review turn
	ReviewScale float64   // multiplies the review advantage: λ under RowMix, 1 else (there λ is in the weight)
}

// Weigh returns the weights of a batch of trajectories [B], divisors included, so that the batch loss is the plain
// sum of weight × token loss and a batch may be cut into parts whose gradients are added.
//
// Divisors count every trained id, those with advantage 0 too: a dead group's tokens still carry their KL term, and
// leaving them out would raise the learning rate of the rest. Turns and trajectories without ids count nowhere. A
// stream without ids has no loss. lambda must not be negative and counts not below 0: both are panics.
func Weigh(batch []Counts, a Aggregation, lambda float64) []Weights {
	if !(lambda >= 0) {
		panic(fmt.Sprintf("grpo: stream weight %v", lambda))
	}
	inLoss, inAdvantage := lambda, 1.0
	if a == RowMix {
		inLoss, inAdvantage = 1, lambda
	}
	t := count(batch)
	out := make([]Weights, len(batch))
	for i, c := range batch {
		w := Weights{Action: make([]float64, len(c.Action)), ReviewScale: inAdvantage}
		for k, n := range c.Action {
			if n > 0 {
				w.Action[k] = 1 / t.action(a, c, n)
			}
		}
		if c.Review > 0 {
			w.Review = inLoss / t.review(a, c.Review)
		}
		out[i] = w
	}
	return out
}

// totals are the sizes of a batch.
type totals struct {
	actionIDs, reviewIDs     int
	actionTurns, reviewTurns int // with ids
	acting                   int // trajectories with action ids
}

func count(batch []Counts) totals {
	var t totals
	for i, c := range batch {
		n := ids(c)
		for _, k := range c.Action {
			if k < 0 {
				panic(fmt.Sprintf("grpo: trajectory %d has a turn of %d ids", i, k))
			}
			t.actionTurns += min(k, 1)
		}
		if c.Review < 0 {
			panic(fmt.Sprintf("grpo: trajectory %d has a review of %d ids", i, c.Review))
		}
		t.actionIDs += n
		t.acting += min(n, 1)
		t.reviewIDs += c.Review
		t.reviewTurns += min(c.Review, 1)
	}
	return t
}

func ids(c Counts) int {
	n := 0
	for _, k := range c.Action {
		n += k
	}
	return n
}

// action returns the divisor of an id in an action turn of n ids.
func (t totals) action(a Aggregation, c Counts, n int) float64 {
	switch a {
	case TokenMean:
		return float64(t.actionIDs)
	case TrajectoryMean:
		return float64(t.acting) * float64(ids(c))
	case RowMix:
		return float64(t.actionTurns+t.reviewTurns) * float64(n)
	}
	panic(fmt.Sprintf("grpo: unknown aggregation %d", a))
}

// review returns the divisor of an id in a review turn of n ids.
func (t totals) review(a Aggregation, n int) float64 {
	switch a {
	case TokenMean:
		return float64(t.reviewIDs)
	case TrajectoryMean:
		return float64(t.reviewTurns) * float64(n)
	case RowMix:
		return float64(t.actionTurns+t.reviewTurns) * float64(n)
	}
	panic(fmt.Sprintf("grpo: unknown aggregation %d", a))
}
