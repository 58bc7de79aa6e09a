package grpo

import "math"

// k3Knee is the log-ratio ref − logp beyond which k3 is continued along its tangent.
const k3Knee = 3

// The three estimators of KL(π ‖ ref) = E_π[log π − log ref] from one token sampled from π, with x = ref − logp
// (Schulman 2020, "Approximating KL Divergence"). Each returns its value and its derivative with respect to logp.
// No clamp but the one named at [K3]; NaN gives NaN.

// K1 is the signed, unbiased −x. A single value may be negative, and its derivative says nothing about the KL: use it
// as a metric, not as a loss.
func K1(logp, ref float64) (value, grad float64) {
	return logp - ref, 1
}

// K2 is x²/2: never negative, biased, and its gradient is that of the KL in expectation.
func K2(logp, ref float64) (value, grad float64) {
	x := ref - logp
	return x * x / 2, -x
}

// K3 is exp(x) − x − 1: unbiased, never negative, 0 exactly where logp = ref (Shao et al. 2024, "DeepSeekMath", eq. 4).
// Its derivative 1 − exp(x) grows without bound where the policy has all but forgotten a token of the reference, so
// for x > 3 the estimator goes on along its tangent: the derivative stays at 1 − exp(3). The public release instead
// cuts the value at 10, which takes the gradient away from the very tokens that drifted farthest.
func K3(logp, ref float64) (value, grad float64) {
	x := ref - logp
	if x > k3Knee {
		e := math.Exp(k3Knee)
		return e - k3Knee - 1 + (e-1)*(x-k3Knee), 1 - e
	}
	m := math.Expm1(x)
	return math.Max(m-x, 0), -m
}
