package tinker

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"skillmaster/grpo"
)

// The losses that the Server knows, of the log-probability ℓ of an id, with q and A what came as logprobs and advantages, w
// as weights, and r = exp(ℓ − q):
//
//	cross_entropy        −w·ℓ
//	importance_sampling  −r·A
//	ppo                  −min(r·A, clip(r, low, high)·A)
//	cispo                −clip(r, low, high)·ℓ·A, the factor without a gradient
//	dro                  −(ℓ·A − β/2·(ℓ − q)²)
//
// All are summed over positions and sequences and divided by nothing. Of all but cross_entropy, weights are a mask.
type loss struct {
	name      string
	low, high float64
	beta      float64
}

// settings are those of each loss.
var settings = map[string][]string{
	"cross_entropy": nil, "importance_sampling": nil, "ppo": {"clip_low_threshold", "clip_high_threshold"},
	"cispo": {"clip_low_threshold", "clip_high_threshold"}, "dro": {"beta"},
}

func newLoss(name string, config map[string]float64) (loss, error) {
	l := loss{name: name, low: 0.8, high: 1.2, beta: 0.01}
	if name == "cispo" {
		l.low, l.high = 0, 4
	}
	known, ok := settings[name]
	if !ok {
		return l, fmt.Errorf("there is no loss %q here, but cross_entropy, importance_sampling, ppo, cispo and dro", name)
	}
	for key, v := range config {
		if !slices.Contains(known, key) {
			return l, fmt.Errorf("%s has no setting %q (it has: %s)", name, key, strings.Join(known, ", "))
		}
		if !(v >= 0) || math.IsInf(v, 0) {
			return l, fmt.Errorf("%s is %v", key, v)
		}
		*map[string]*float64{"clip_low_threshold": &l.low, "clip_high_threshold": &l.high, "beta": &l.beta}[key] = v
	}
	return l, nil
}

// at returns the loss of one id and its slope in ℓ.
func (l loss) at(logp, q, a, w float64) (value, slope float64) {
	switch l.name {
	case "cross_entropy":
		return -w * logp, -w
	case "importance_sampling":
		r := math.Exp(logp - q)
		return -w * r * a, -w * r * a
	case "ppo":
		r := math.Exp(logp - q)
		if cut := min(max(r, l.low), l.high); r*a > cut*a {
			return -w * cut * a, 0
		}
		return -w * r * a, -w * r * a
	case "cispo":
		c := min(max(math.Exp(logp-q), l.low), l.high)
		return -w * c * logp * a, -w * c * a
	case "dro":
		d := logp - q
		return -w * (logp*a - l.beta/2*d*d), -w * (a - l.beta*d)
	}
	panic("tinker: loss " + l.name)
}

// row is a sequence as it is learnt from: inputs by position of the whole sequence, position 0 is never predicted.
type row struct {
	ids     []int32
	q, a, w []float32 // [T]
}

// readRow checks a datum.
func readRow(d datum, l loss) (r row, err error) {
	ids, err := d.Input.ids()
	if err != nil {
		return r, err
	}
	n := len(ids)
	target, given := d.Inputs["target_tokens"]
	if n == 0 || !given {
		return r, fmt.Errorf("%d ids, and target_tokens that are there: %v", n, given)
	}
	if err := target.list(n); err != nil {
		return r, fmt.Errorf("target_tokens: %w", err)
	}
	targets, err := target.ints()
	if err != nil {
		return r, fmt.Errorf("target_tokens: %w", err)
	}
	if !slices.Equal(ids[1:], targets[:n-1]) {
		return r, errors.New("target_tokens are not the ids of model_input moved by one: the engine predicts what follows in a sequence, and nothing else")
	}
	r.ids = append(slices.Clone(ids), targets[n-1])
	if err := checkIDs(r.ids); err != nil {
		return r, err
	}
	for name, need := range map[string]struct {
		to   *[]float32
		must bool
	}{
		"logprobs": {&r.q, l.name != "cross_entropy"}, "advantages": {&r.a, l.name != "cross_entropy"}, "weights": {&r.w, false},
	} {
		*need.to = make([]float32, n+1)
		t, given := d.Inputs[name]
		switch {
		case !given && need.must:
			return r, fmt.Errorf("%s needs %s", l.name, name)
		case !given:
			continue
		}
		if err := t.list(n); err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		values, err := t.singles()
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		copy((*need.to)[1:], values)
	}
	for name := range d.Inputs {
		if !slices.Contains([]string{"target_tokens", "logprobs", "advantages", "weights"}, name) {
			return r, fmt.Errorf("there is no use for %q here", name)
		}
	}
	if _, given := d.Inputs["weights"]; !given {
		for t := range r.w[1:] {
			r.w[t+1] = 1
		}
	}
	return r, nil
}

// learn turns a row and its log-probabilities into a datum whose loss, at ratio 1, has the same gradient, and adds up the
// loss. Positions of weight 0 are left out.
func (r row) learn(l loss, logProbs []float32) (grpo.Datum, float64, error) {
	n := len(r.ids)
	d := grpo.Datum{IDs: r.ids, Stream: make([]grpo.Stream, n), Weight: make([]float32, n), Advantage: make([]float32, n)}
	total := 0.0
	for t := 1; t < n; t++ {
		if r.w[t] == 0 {
			continue
		}
		value, slope := l.at(float64(logProbs[t]), float64(r.q[t]), float64(r.a[t]), float64(r.w[t]))
		d.Stream[t], d.Weight[t], d.Advantage[t] = grpo.Action, 1, float32(-slope)
		total += value
		if bad := float64(d.Advantage[t]); math.IsNaN(bad) || math.IsInf(bad, 0) {
			return d, 0, fmt.Errorf("the loss has slope %v at position %d", slope, t-1)
		}
	}
	return d, total, nil
}
