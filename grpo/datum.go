// Package grpo is the arithmetic of group-relative policy optimisation with two streams (DualAdv-GRPO): advantages,
// token losses, KL estimators, aggregation. Pure functions of numbers; it knows no model and no world.
package grpo

import "fmt"

// Stream says which of the two kinds of turn a token belongs to.
type Stream uint8

// The streams of a datum's tokens.
const (
	Context Stream = iota // not chosen by the policy
	Action
	Review
)

// Datum is one training row: one token sequence with what is to be learnt at each position. All slices have the
// length T of IDs (LogProb and Ref may be nil). Position t speaks of predicting IDs[t] from IDs[:t]; position 0 is
// never predicted and has weight 0.
type Datum struct {
	IDs       []int32   // [T]
	Stream    []Stream  // [T] Context where the policy did not choose the id
	Weight    []float32 // [T] weight of the position's loss, the divisor of the mean included; 0 leaves it out
	Advantage []float32 // [T]
	LogProb   []float32 // [T] sampling log-probabilities (natural log); nil: taken from the policy being trained, ratio 1
	Ref       []float32 // [T] log-probabilities under the reference policy; nil: no KL term
}

// Check reports the first way in which d is not well formed.
func (d Datum) Check() error {
	n := len(d.IDs)
	if n < 2 {
		return fmt.Errorf("datum has %d ids, at least 2 are needed", n)
	}
	for _, f := range []struct {
		name string
		n    int
		must bool
	}{
		{"stream", len(d.Stream), true},
		{"weight", len(d.Weight), true},
		{"advantage", len(d.Advantage), true},
		{"log-probability", len(d.LogProb), d.LogProb != nil},
		{"reference", len(d.Ref), d.Ref != nil},
	} {
		if f.must && f.n != n {
			return fmt.Errorf("datum has %d ids and %d %s entries", n, f.n, f.name)
		}
	}
	if d.Weight[0] != 0 {
		return fmt.Errorf("datum gives weight %v to its first id, which nothing predicts", d.Weight[0])
	}
	for t := range n {
		for name, v := range map[string]float32{"weight": d.Weight[t], "advantage": d.Advantage[t]} {
			if v != v || v-v != 0 {
				return fmt.Errorf("datum has %s %v at position %d", name, v, t)
			}
		}
	}
	return nil
}
