package grpo

import (
	"math"
	"math/rand/v2"
	"testing"
)

var nan = math.NaN()

func near(got, want, tol float64) bool {
	return math.Abs(got-want) <= tol*(1+math.Abs(want)) || got == want
}

func TestTokenByHand(t *testing.T) {
	ln := math.Log
	ppo := Loss{Kind: PolicyGradient, ClipLow: 0.2, ClipHigh: 0.3, DualClip: 3}
	for _, c := range []struct {
		name                string
		l                   Loss
		logp, sampling, ref float64
		advantage           float64
		value, grad         float64
		clipped             bool
	}{
		{"cross-entropy ignores the advantage", Loss{}, -2, -5, nan, 9, 2, -1, false},
		{"no sampling log-probability: ratio 1, gradient flows", ppo, -2, nan, nan, 1.5, -1.5, -1.5, false},
		{"the same with a negative advantage", ppo, -2, nan, nan, -1.5, 1.5, 1.5, false},
		{"inside the clip", ppo, ln(0.55), ln(0.5), nan, 2, -2.2, -2.2, false},
		{"above, good", ppo, ln(0.8), ln(0.5), nan, 2, -2.6, 0, true},
		{"above, bad: not clipped", ppo, ln(0.8), ln(0.5), nan, -2, 3.2, 3.2, false},
		{"below, good: not clipped", ppo, ln(0.25), ln(0.5), nan, 2, -1, -1, false},
		{"below, bad", ppo, ln(0.25), ln(0.5), nan, -2, 1.6, 0, true},
		{"far above, bad: dual clip", ppo, ln(0.8), ln(0.1), nan, -2, 6, 0, true},
		{"no clip at all", Loss{Kind: PolicyGradient}, ln(0.8), ln(0.1), nan, -2, 16, 16, false},
		{"truncated weight", Loss{Kind: PolicyGradient, MaxDrift: 2}, ln(0.8), ln(0.1), nan, -1, 2 * (1 + ln(4)), 2, false},
		{"advantage 0", ppo, ln(0.8), ln(0.1), nan, 0, 0, 0, false},
		{"log-ratio out of range", Loss{Kind: PolicyGradient}, -1, -31, nan, -1, math.Exp(20), 0, true},
		{"KL alone", Loss{Kind: PolicyGradient, KL: 0.5}, -3, -3, -1, 0, 0.5 * (math.Exp(2) - 3), 0.5 * (1 - math.Exp(2)), false},
		{"KL without reference", Loss{Kind: PolicyGradient, KL: 0.5}, -3, -3, nan, 0, 0, 0, false},
		{"KL on top", Loss{Kind: PolicyGradient, KL: 0.5}, -3, -3, -1, 1, -1 + 0.5*(math.Exp(2)-3), -1 + 0.5*(1-math.Exp(2)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, g, clipped := c.l.Token(c.logp, c.sampling, c.ref, c.advantage)
			if !near(v, c.value, 1e-12) || !near(g, c.grad, 1e-12) || clipped != c.clipped {
				t.Errorf("got %v, %v, %v; want %v, %v, %v", v, g, clipped, c.value, c.grad, c.clipped)
			}
		})
	}
}

// slowToken is the surrogate as the papers write it.
func slowToken(l Loss, logp, sampling, ref, a float64) float64 {
	r := math.Exp(logp - sampling)
	lo, hi := math.Inf(-1), math.Inf(1)
	if l.ClipLow != 0 {
		lo = 1 - l.ClipLow
	}
	if l.ClipHigh != 0 {
		hi = 1 + l.ClipHigh
	}
	loss := math.Max(-a*r, -a*math.Min(math.Max(r, lo), hi))
	if l.DualClip != 0 && a < 0 {
		loss = math.Min(loss, -a*l.DualClip)
	}
	return loss + l.KL*(math.Exp(ref-logp)-(ref-logp)-1)
}

func TestTokenAgainstSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	l := Loss{Kind: PolicyGradient, ClipLow: 0.2, ClipHigh: 0.28, DualClip: 3, KL: 0.05}
	for range 20000 {
		logp := -3 * r.Float64()
		sampling, ref, a := logp+2*r.NormFloat64(), logp+0.7*r.NormFloat64(), r.NormFloat64()
		if ref-logp > k3Knee {
			continue
		}
		if v, _, _ := l.Token(logp, sampling, ref, a); !near(v, slowToken(l, logp, sampling, ref, a), 1e-12) {
			t.Fatalf("Token(%v, %v, %v, %v) = %v, want %v", logp, sampling, ref, a, v, slowToken(l, logp, sampling, ref, a))
		}
	}
}

func TestTokenGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const h = 1e-6
	for _, l := range []Loss{
		{},
		{Kind: PolicyGradient},
		{Kind: PolicyGradient, ClipLow: 0.2, ClipHigh: 0.2, DualClip: 3, KL: 0.05},
		{Kind: PolicyGradient, MaxDrift: 2, KL: 1},
		{Kind: PolicyGradient, ClipLow: 0.2, MaxDrift: 1},
	} {
		bad := 0
		for range 5000 {
			logp := -5 * r.Float64()
			sampling, ref, a := logp+r.NormFloat64(), logp+2*r.NormFloat64(), r.NormFloat64()
			_, g, clipped := l.Token(logp, sampling, ref, a)
			up, _, cu := l.Token(logp+h, sampling, ref, a)
			down, _, cd := l.Token(logp-h, sampling, ref, a)
			if cu != clipped || cd != clipped {
				continue // astride a kink
			}
			if !near(g, (up-down)/(2*h), 1e-5) {
				bad++
			}
		}
		if bad > 0 {
			t.Errorf("%+v: %d of 5000 gradients differ from central differences", l, bad)
		}
	}
}

func TestTokenExtremes(t *testing.T) {
	l := Loss{Kind: PolicyGradient, ClipLow: 0.2, ClipHigh: 0.2, KL: 0.1}
	for _, a := range []float64{-1, 1} {
		for _, d := range []float64{-1e3, -30, 30, 1e3} {
			v, g, _ := l.Token(-1, -1-d, -1+d, a)
			if math.IsNaN(v+g) || math.IsInf(v+g, 0) {
				t.Errorf("advantage %v, difference %v: loss %v, gradient %v", a, d, v, g)
			}
		}
	}
	if v, _, _ := l.Token(nan, -1, -1, 1); !math.IsNaN(v) {
		t.Errorf("a NaN log-probability gives %v and so goes unseen", v)
	}
}

// Reference and policy differ by −2 and +2 on two tokens.
func TestKLEstimators(t *testing.T) {
	for _, c := range []struct{ x, k1, k2, k3, dk3 float64 }{
		{0, 0, 0, 0, 0},
		{2, -2, 2, math.Exp(2) - 3, 1 - math.Exp(2)},
		{-2, 2, 2, math.Exp(-2) + 1, 1 - math.Exp(-2)},
	} {
		const logp = -4
		k1, _ := K1(logp, logp+c.x)
		k2, _ := K2(logp, logp+c.x)
		k3, dk3 := K3(logp, logp+c.x)
		if k1 != c.k1 || k2 != c.k2 || !near(k3, c.k3, 1e-14) || !near(dk3, c.dk3, 1e-14) {
			t.Errorf("x = %v: k1 %v k2 %v k3 %v (%v)", c.x, k1, k2, k3, dk3)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 10000 {
		logp, ref := -9*r.Float64(), -9*r.Float64()
		if v, _ := K3(logp, ref); v < 0 {
			t.Fatalf("K3(%v, %v) = %v", logp, ref, v)
		}
		for _, k := range []func(a, b float64) (float64, float64){K1, K2, K3} {
			const h = 1e-6
			_, g := k(logp, ref)
			up, _ := k(logp+h, ref)
			down, _ := k(logp-h, ref)
			if !near(g, (up-down)/(2*h), 1e-5) {
				t.Fatalf("gradient at (%v, %v): %v, differences say %v", logp, ref, g, (up-down)/(2*h))
			}
		}
	}
	if v, _ := K3(-1, -1+1e-9); v < 0 || v > 1e-17 {
		t.Errorf("K3 of nearly equal policies is %v", v)
	}
}

// The mean of k1 and k3 over samples of one policy is the true KL.
func TestKLUnbiased(t *testing.T) {
	p, q := []float64{0.5, 0.3, 0.2}, []float64{0.2, 0.5, 0.3}
	var kl, k1, k3 float64
	for i := range p {
		kl += p[i] * math.Log(p[i]/q[i])
		a, _ := K1(math.Log(p[i]), math.Log(q[i]))
		c, _ := K3(math.Log(p[i]), math.Log(q[i]))
		k1 += p[i] * a
		k3 += p[i] * c
	}
	if !near(k1, kl, 1e-12) || !near(k3, kl, 1e-12) {
		t.Errorf("KL %v, expected k1 %v, expected k3 %v", kl, k1, k3)
	}
}

func TestLossCheck(t *testing.T) {
	for _, l := range []Loss{{}, {Kind: PolicyGradient, ClipLow: 0.2, ClipHigh: 0.28, DualClip: 3, KL: 0.01, MaxDrift: 2}} {
		if err := l.Check(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	for _, l := range []Loss{{Kind: 9}, {ClipLow: -1}, {ClipLow: 1.5}, {ClipHigh: nan}, {DualClip: 0.5}, {MaxDrift: 0.5}, {KL: math.Inf(1)}} {
		if l.Check() == nil {
			t.Errorf("%+v passes", l)
		}
	}
}
