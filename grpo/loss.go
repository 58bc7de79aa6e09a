package grpo

import (
	"fmt"
	"math"
)

// LossKind names a token loss.
type LossKind uint8

// The token losses.
const (
	CrossEntropy   LossKind = iota // −log p, the advantage is not used
	PolicyGradient                 // clipped policy gradient
)

// String returns the kind's name.
func (k LossKind) String() string {
	switch k {
	case CrossEntropy:
		return "cross_entropy"
	case PolicyGradient:
		return "policy_gradient"
	}
	return fmt.Sprintf("LossKind(%d)", uint8(k))
}

// Loss is the loss of one token, before its weight. The zero value is plain cross-entropy.
type Loss struct {
	Kind     LossKind
	ClipLow  float64 // the ratio's lower limit is 1−ClipLow; 0: no clipping on this side
	ClipHigh float64 // the ratio's upper limit is 1+ClipHigh; 0: no clipping on this side
	DualClip float64 // largest ratio that counts where the advantage is negative; 0: off
	KL       float64 // coefficient of the k3 estimator to the reference policy
	Entropy  float64 // coefficient of the entropy bonus (subtracted from the loss)
	MaxDrift float64 // truncation of the importance weight between sampler and trainer; 0: off
}

// maxLogRatio bounds |training − sampling| log-probability before it is exponentiated. Beyond it the ratio is
// constant, so the policy term has no gradient there.
const maxLogRatio = 20

// Check reports the first setting of l that makes no sense.
func (l Loss) Check() error {
	for _, f := range []struct {
		name      string
		v, lo, hi float64
	}{
		{"low clip", l.ClipLow, 0, 1},
		{"high clip", l.ClipHigh, 0, math.MaxFloat64},
		{"dual clip", l.DualClip, 0, math.MaxFloat64},
		{"KL coefficient", l.KL, 0, math.MaxFloat64},
		{"entropy coefficient", l.Entropy, 0, math.MaxFloat64},
		{"greatest drift", l.MaxDrift, 0, math.MaxFloat64},
	} {
		if !(f.v >= f.lo && f.v <= f.hi) {
			return fmt.Errorf("loss has a %s of %v, outside [%g, %g]", f.name, f.v, f.lo, f.hi)
		}
	}
	switch {
	case l.Kind > PolicyGradient:
		return fmt.Errorf("loss is of unknown kind %d", l.Kind)
	case l.DualClip != 0 && l.DualClip <= 1:
		return fmt.Errorf("loss has a dual clip of %v; it must be above 1, the ratio of an unchanged policy", l.DualClip)
	case l.MaxDrift != 0 && l.MaxDrift < 1:
		return fmt.Errorf("loss has a greatest drift of %v; it must be at least 1, the weight of an unchanged policy", l.MaxDrift)
	}
	return nil
}

// Token returns the loss of one token, its derivative with respect to logp, and whether clipping made the policy
// term constant there. Arguments are natural log-probabilities of the token under the policy being trained (logp),
// the one that sampled it and the reference, and its advantage. NaN for sampling means "sampled by the policy being
// trained": the ratio is 1 and its gradient still flows. NaN for ref leaves the KL term out.
//
// CrossEntropy is −logp. PolicyGradient, with d = logp − sampling, r = exp(d) and A the advantage, is
//
//	A ≥ 0:  −A·min(r, 1+ClipHigh)
//	A < 0:  −A·min(max(r, 1−ClipLow), DualClip)
//
// which is the clipped surrogate −min(rA, clip(r)A) (Schulman et al. 2017, "Proximal Policy Optimization Algorithms",
// eq. 7), its two limits apart (Yu et al. 2025, "DAPO", section 3.1) and with a ceiling for negative advantages (Ye et
// al. 2020, "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning", dual-clip PPO).
//
// MaxDrift = C truncates the importance weight that multiplies the gradient: wherever r > C is not clipped, r is
// continued along its tangent in d, C·(1 + d − log C), so that the gradient −A·min(r, C) stays continuous
// (the truncation of Espeholt et al. 2018, "IMPALA", section 4.1, and of Yao et al. 2025 on mismatched samplers,
// with one ratio for drift and update together because the sampling log-probabilities are the only old ones).
// Without C, d is limited to ±20 before exp and the term counts as clipped beyond.
//
// Both kinds add KL·k3(logp, ref) where ref is a number; see [K3] for its bound. The entropy bonus needs the whole
// distribution and belongs to the model's head.
func (l Loss) Token(logp, sampling, ref, advantage float64) (value, grad float64, clipped bool) {
	switch l.Kind {
	case CrossEntropy:
		value, grad = -logp, -1
	case PolicyGradient:
		value, grad, clipped = l.surrogate(logp, sampling, advantage)
	default:
		panic(fmt.Sprintf("grpo: unknown loss kind %d", l.Kind))
	}
	if l.KL != 0 && !math.IsNaN(ref) {
		k, dk := K3(logp, ref)
		value += l.KL * k
		grad += l.KL * dk
	}
	return value, grad, clipped
}

// surrogate is the policy term of [Loss.Token].
func (l Loss) surrogate(logp, sampling, advantage float64) (value, grad float64, clipped bool) {
	if advantage == 0 {
		return 0, 0, false
	}
	d := logp - sampling
	if math.IsNaN(sampling) {
		d = 0
	}
	r, dr := l.ratio(d)
	switch {
	case advantage > 0 && l.ClipHigh != 0 && r > 1+l.ClipHigh:
		return -advantage * (1 + l.ClipHigh), 0, true
	case advantage < 0 && l.ClipLow != 0 && r < 1-l.ClipLow:
		return -advantage * (1 - l.ClipLow), 0, true
	case advantage < 0 && l.DualClip != 0 && r > l.DualClip:
		return -advantage * l.DualClip, 0, true
	}
	return -advantage * r, -advantage * dr, dr == 0
}

// ratio returns exp(d), truncated, and its derivative.
func (l Loss) ratio(d float64) (r, dr float64) {
	if c := l.MaxDrift; c != 0 && d > math.Log(c) {
		return c * (1 + d - math.Log(c)), c
	}
	if d > maxLogRatio || d < -maxLogRatio {
		return math.Exp(math.Copysign(maxLogRatio, d)), 0
	}
	r = math.Exp(d)
	return r, r
}
