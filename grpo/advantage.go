package grpo

import (
	"fmt"
	"math"
)

// Rule says how a return becomes an advantage within its group.
type Rule uint8

// The rules, for a return R among n with mean m and standard deviation s (divisor n−1).
const (
	Standardise Rule = iota // (R − m)/(s + floor): Shao et al. 2024, "DeepSeekMath", section 4.1.2
	Centre                  // R − m: Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO), section 3
	LeaveOneOut             // R − mean of the others = (R − m)·n/(n−1): Ahmadian et al. 2024, "Back to Basics" (RLOO), eq. 6
)

// Norm says how one stream of one group is normalised.
type Norm struct {
	Rule Rule
	// Floor is added to the standard deviation by Standardise, in the unit of the returns. It keeps a group whose
	// returns differ by noise alone from being blown up to advantages of ±1.
	Floor float64
	// RawSingleton gives the only measured return of a group as its advantage, as the public release does
	// (mean 0, deviation 1). Off: such a row says nothing and gets 0.
	RawSingleton bool
}

// equalShare is the largest spread, relative to the largest magnitude, at which returns count as equal: sums of the
// same float32 rewards in another order differ by less.
const equalShare = 1e-6

// Population describes the returns of one stream of one group.
type Population struct {
	Rows       int     // measured trajectories
	Unmeasured int     // trajectories left out
	Mean, Std  float64 // of the measured returns, each weighing its turns; divisor n−1; NaN for n = 0 (mean), n < 2 (std)
	Singleton  bool    // one row: nothing to compare it with
	Dead       bool    // two rows or more, all returns equal: no gradient
}

// Normalise turns the returns [G] of one stream of one group into advantages [G]. measured [G] says which of them
// exist; nil: all. turns [G] is how often each counts in mean and deviation; nil: once each (the release counts a
// trajectory's return once for each of its turns, so that long episodes weigh more). One of 0 turns is not measured.
//
// Rows that are not measured are out of the population and get 0: mask them, for 0 is not what they were worth.
// Returns that are equal (spread at most 1e-6 of the largest magnitude) and groups of fewer than two rows get exactly
// 0. Otherwise the advantages, weighted by turns, sum to 0 up to rounding.
//
// A measured return that is NaN or infinite is an error; slices of unequal length and negative turns are panics.
func Normalise(returns []float64, measured []bool, turns []int, n Norm) ([]float64, Population, error) {
	g := len(returns)
	if measured != nil && len(measured) != g || turns != nil && len(turns) != g {
		panic(fmt.Sprintf("grpo: %d returns, %d measured, %d turns", g, len(measured), len(turns)))
	}
	if !(n.Floor >= 0) {
		panic(fmt.Sprintf("grpo: floor %v of the standard deviation", n.Floor))
	}
	rows := make([]row, 0, g)
	for i, r := range returns {
		if measured != nil && !measured[i] || turns != nil && turns[i] == 0 {
			continue
		}
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return nil, Population{}, fmt.Errorf("return of trajectory %d is %v", i, r)
		}
		c := 1
		if turns != nil {
			c = turns[i]
		}
		if c < 0 {
			panic(fmt.Sprintf("grpo: trajectory %d counts %d times", i, c))
		}
		rows = append(rows, row{i, r, float64(c)})
	}
	adv := make([]float64, g)
	p := describe(rows)
	p.Unmeasured = g - len(rows)
	for _, r := range rows {
		adv[r.at] = n.advantage(r, rows, p)
	}
	return adv, p, nil
}

// row is one measured return: whose, how much, how often it counts.
type row struct {
	at    int
	value float64
	count float64
}

func describe(rows []row) Population {
	p := Population{Rows: len(rows), Mean: math.NaN(), Std: math.NaN(), Singleton: len(rows) == 1}
	if len(rows) == 0 {
		return p
	}
	n, sum := 0.0, 0.0
	lo, hi := rows[0].value, rows[0].value
	for _, r := range rows {
		n += r.count
		sum += r.count * r.value
		lo, hi = min(lo, r.value), max(hi, r.value)
	}
	p.Mean = sum / n
	p.Dead = len(rows) > 1 && hi-lo <= equalShare*max(math.Abs(lo), math.Abs(hi))
	if len(rows) < 2 {
		return p
	}
	var square float64
	for _, r := range rows {
		square += r.count * (r.value - p.Mean) * (r.value - p.Mean)
	}
	p.Std = math.Sqrt(square / (n - 1))
	return p
}

func (n Norm) advantage(r row, rows []row, p Population) float64 {
	switch {
	case p.Singleton && n.RawSingleton:
		return r.value
	case p.Singleton || p.Dead:
		return 0
	}
	d := r.value - p.Mean
	switch n.Rule {
	case Standardise:
		return d / (p.Std + n.Floor)
	case LeaveOneOut:
		var all float64
		for _, o := range rows {
			all += o.count
		}
		return d * all / (all - r.count)
	case Centre:
		return d
	}
	panic(fmt.Sprintf("grpo: unknown rule %d", n.Rule))
}

// Variant names a way to turn a group's returns into advantages.
type Variant uint8

// The variants.
const (
	DualAdv Variant = iota // the two streams standardised apart
	GRPO                   // the action stream alone; reviews are masked
	Joint                  // action and review returns standardised as one population: the ablation
	DrGRPO                 // the two streams apart, centred only
	RLOO                   // the two streams apart, each return against the mean of the others
	variants
)

var variantNames = [variants]string{"dualadv", "grpo", "joint", "drgrpo", "rloo"}

// String returns the variant's name.
func (v Variant) String() string {
	if v < variants {
		return variantNames[v]
	}
	return fmt.Sprintf("Variant(%d)", uint8(v))
}

// MarshalText writes the variant's name.
func (v Variant) MarshalText() ([]byte, error) {
	if v >= variants {
		return nil, fmt.Errorf("unknown variant %d", uint8(v))
	}
	return []byte(variantNames[v]), nil
}

// UnmarshalText reads a variant's name.
func (v *Variant) UnmarshalText(text []byte) error {
	for i, name := range variantNames {
		if name == string(text) {
			*v = Variant(i)
			return nil
		}
	}
	return fmt.Errorf("unknown variant %q, known are %v", text, variantNames)
}

func (v Variant) rule() Rule {
	switch v {
	case DualAdv, GRPO, Joint:
		return Standardise
	case DrGRPO:
		return Centre
	case RLOO:
		return LeaveOneOut
	}
	panic(fmt.Sprintf("grpo: unknown variant %d", v))
}

// Returns are the two numbers of one trajectory.
type Returns struct {
	Action         float64 // return of the episode
	Review         float64 // what the review turn was worth; not read unless ReviewMeasured
	ReviewMeasured bool
	Turns          int // action turns; read with Options.PoolTurns only
}

// Advantage is what one trajectory's tokens are trained with. The stream weight λ is not applied: see [Weigh].
type Advantage struct {
	Action         float64
	Review         float64
	ReviewMeasured bool // false: leave the review turn's tokens out
}

// Options of normalisation. The zero value is the default, for returns on a scale of 1.
type Options struct {
	ActionScale  float64 // the size of an action return that matters, such as what success pays; 0: 1
	ReviewScale  float64 // the same for review returns; 0: 1
	StdFloor     float64 // floor of the standard deviation as a share of the scale; 0: 0.05
	PoolTurns    bool    // each trajectory counts once for each of its action turns
	RawSingleton bool    // see [Norm]
}

// Release returns the options of the public release.
func Release() Options {
	return Options{StdFloor: 1e-6, PoolTurns: true, RawSingleton: true}
}

func (o Options) norm(r Rule, scale float64) Norm {
	if scale == 0 {
		scale = 1
	}
	floor := o.StdFloor
	if floor == 0 {
		floor = 0.05
	}
	return Norm{Rule: r, Floor: floor * scale, RawSingleton: o.RawSingleton}
}

// GroupStats describes the two streams of a group. Under Joint both are the one population.
type GroupStats struct {
	Action, Review Population
}

// Advantages turns the returns of one group [G] into advantages [G]; see [Normalise] for the arithmetic. Groups are
// independent: nothing but the arguments enters. An action return, or a measured review return, that is not a finite
// number is an error.
func Advantages(group []Returns, v Variant, o Options) ([]Advantage, GroupStats, error) {
	s := split(group, v != GRPO, o.PoolTurns)
	var act, rev []float64
	var stats GroupStats
	var err error
	if v == Joint {
		act, rev, stats, err = s.joint(o)
	} else {
		act, rev, stats, err = s.apart(o.norm(v.rule(), o.ActionScale), o.norm(v.rule(), o.ReviewScale))
	}
	if err != nil {
		return nil, GroupStats{}, err
	}
	out := make([]Advantage, len(group))
	for i := range out {
		out[i] = Advantage{Action: act[i], Review: rev[i], ReviewMeasured: s.measured[i]}
	}
	return out, stats, nil
}

// streams holds a group's returns by column, each [G].
type streams struct {
	action, review []float64
	measured       []bool
	turns          []int // nil: each once
}

func split(group []Returns, reviews, pool bool) streams {
	n := len(group)
	s := streams{action: make([]float64, n), review: make([]float64, n), measured: make([]bool, n)}
	if pool {
		s.turns = make([]int, n)
	}
	for i, r := range group {
		s.action[i], s.review[i], s.measured[i] = r.Action, r.Review, r.ReviewMeasured && reviews
		if pool {
			s.turns[i] = r.Turns
		}
	}
	return s
}

func (s streams) apart(action, review Norm) (act, rev []float64, stats GroupStats, err error) {
	if act, stats.Action, err = Normalise(s.action, nil, s.turns, action); err != nil {
		return nil, nil, stats, fmt.Errorf("action stream: %w", err)
	}
	if rev, stats.Review, err = Normalise(s.review, s.measured, nil, review); err != nil {
		return nil, nil, stats, fmt.Errorf("review stream: %w", err)
	}
	return act, rev, stats, nil
}

// joint standardises the 2G returns as one population, in the scale of the action stream.
func (s streams) joint(o Options) (act, rev []float64, stats GroupStats, err error) {
	n := len(s.action)
	all := append(append(make([]float64, 0, 2*n), s.action...), s.review...)
	measured, turns := make([]bool, 2*n), make([]int, 2*n)
	for i := range n {
		measured[i], measured[n+i] = true, s.measured[i]
		turns[i], turns[n+i] = 1, 1
		if s.turns != nil {
			turns[i] = s.turns[i]
		}
	}
	adv, p, err := Normalise(all, measured, turns, o.norm(Joint.rule(), o.ActionScale))
	if err != nil {
		return nil, nil, stats, fmt.Errorf("joint stream (actions, then reviews): %w", err)
	}
	return adv[:n], adv[n:], GroupStats{Action: p, Review: p}, nil
}

// DeadShare returns the expected share of dead groups of size g when each trajectory succeeds with probability p:
// p^g + (1−p)^g.
func DeadShare(p float64, g int) float64 {
	return math.Pow(p, float64(g)) + math.Pow(1-p, float64(g))
}

// GroupFor returns the smallest group size at which the expected share of dead groups is at most share, and false
// where none up to limit is.
func GroupFor(p, share float64, limit int) (int, bool) {
	for g := 2; g <= limit; g++ {
		if DeadShare(p, g) <= share {
			return g, true
		}
	}
	return 0, false
}
