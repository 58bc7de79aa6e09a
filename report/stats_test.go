package report

import (
	"math"
	"testing"

	"skillmaster/episode"
	"skillmaster/train"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Values of scipy 1.17.1: stats.binomtest(min(a, b), a+b).pvalue.
func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		a, b int
		want float64
	}{
		{0, 0, 1}, {0, 1, 1}, {7, 7, 1}, {4, 0, 0.125}, {2, 5, 0.453125}, {0, 10, 0.001953125}, {13, 29, 0.019520472782460274}, {120, 80, 0.005685155996750306},
	} {
		near(t, "McNemar", McNemar(c.a, c.b), c.want, 1e-9)
		near(t, "McNemar the other way round", McNemar(c.b, c.a), c.want, 1e-9)
	}
}

// Where the two answers are not correlated, paired shares are as independent ones of equal n: values of statsmodels'
// confint_proportions_2indep(both+onlyB, n, both+onlyA, n, method="newcomb").
func TestNewcombeWithoutCorrelation(t *testing.T) {
	for _, c := range []struct {
		both, onlyA, onlyB, neither int
		low, high                   float64
	}{
		{25, 25, 25, 25, -0.13600275402907416, 0.13600275402907416}, {6, 24, 14, 56, -0.21673435401778593, 0.020249362153013428}, {2, 8, 18, 72, 0.00014902511855761913, 0.19947387007806955},
	} {
		low, high := Newcombe(c.both, c.onlyA, c.onlyB, c.neither)
		near(t, "low", low, c.low, 1e-12)
		near(t, "high", high, c.high, 1e-12)
	}
}

// Swapping the runs mirrors the interval; it holds the difference; answers that go together make it narrower.
func TestNewcombeProperties(t *testing.T) {
	for _, c := range [][4]int{{10, 3, 5, 12}, {0, 0, 5, 5}, {20, 0, 0, 0}, {0, 7, 2, 0}, {1, 1, 1, 1}} {
		low, high := Newcombe(c[0], c[1], c[2], c[3])
		mirrorLow, mirrorHigh := Newcombe(c[0], c[2], c[1], c[3])
		near(t, "mirror", low, -mirrorHigh, 1e-12)
		near(t, "mirror", high, -mirrorLow, 1e-12)
		n := float64(c[0] + c[1] + c[2] + c[3])
		if d := float64(c[2]-c[1]) / n; low > d+1e-12 || high < d-1e-12 || low < -1 || high > 1 {
			t.Errorf("%v: [%v, %v] does not hold %v", c, low, high, d)
		}
	}
	togetherLow, togetherHigh := Newcombe(45, 5, 5, 45)
	low, high := Newcombe(25, 25, 25, 25)
	if togetherHigh-togetherLow >= high-low {
		t.Error("pairing gains nothing")
	}
	if low, high := Newcombe(0, 0, 0, 0); low != -1 || high != 1 {
		t.Errorf("without tasks it is [%v, %v]", low, high)
	}
}

// Of all outcomes of 20 pairs, weighed by their chance, about 95 % give an interval that holds the truth.
func TestNewcombeCoverage(t *testing.T) {
	for _, p := range [][4]float64{{0.4, 0.1, 0.2, 0.3}, {0.25, 0.25, 0.25, 0.25}, {0.7, 0.05, 0.15, 0.1}} {
		const n = 20
		truth, held := p[2]-p[1], 0.0
		for a := 0; a <= n; a++ {
			for b := 0; a+b <= n; b++ {
				for c := 0; a+b+c <= n; c++ {
					d := n - a - b - c
					low, high := Newcombe(a, b, c, d)
					if low <= truth && truth <= high {
						g := func(v int) float64 { x, _ := math.Lgamma(float64(v) + 1); return x }
						held += math.Exp(g(n) - g(a) - g(b) - g(c) - g(d) + float64(a)*math.Log(p[0]) + float64(b)*math.Log(p[1]) + float64(c)*math.Log(p[2]) + float64(d)*math.Log(p[3]))
					}
				}
			}
		}
		if held < 0.93 || held > 0.99 {
			t.Errorf("%v: the interval holds the truth %.3f of the time", p, held)
		}
	}
}

// p equals the share of all 2^n ways to flip signs that are as extreme; the mean and the interval are as they should be.
func TestMeanDifference(t *testing.T) {
	a := []float64{1, 4, 2, 8, 5, 7, 3, 6, 2, 9}
	b := []float64{2, 4, 5, 9, 4, 9, 6, 8, 2, 9.5}
	seen, extreme := 0.0, 0
	for i := range a {
		seen += b[i] - a[i]
	}
	for flips := range 1 << len(a) {
		s := 0.0
		for i := range a {
			d := b[i] - a[i]
			if flips>>i&1 == 1 {
				d = -d
			}
			s += d
		}
		if math.Abs(s) >= math.Abs(seen)-1e-12 {
			extreme++
		}
	}
	d := MeanDifference(a, b, 1)
	near(t, "p", d.P, float64(extreme)/1024, 0.01)
	near(t, "difference", d.Value, seen/10, 1e-12)
	if d.N != 10 || !(d.Low < d.Value && d.Value < d.High) || d.Low < -1 || d.High > 3 {
		t.Errorf("%+v", d)
	}
	if again := MeanDifference(a, b, 1); again != d {
		t.Error("the same seed gives another answer")
	}
	if none := MeanDifference(nil, nil, 1); none.N != 0 || none.P != 1 {
		t.Errorf("no pairs: %+v", none)
	}
	if same := MeanDifference(a, a, 1); same.P != 1 || same.Low != 0 || same.High != 0 {
		t.Errorf("equal runs: %+v", same)
	}
}

// Values of scipy 1.17.1: stats.t.ppf(.975, df).
func TestStudent(t *testing.T) {
	for df, want := range map[int]float64{1: 12.706, 2: 4.303, 5: 2.571, 20: 2.086, 21: 2.0796, 30: 2.0423, 60: 2.0003, 120: 1.9799} {
		near(t, "t", student(df), want, 5e-4)
	}
	mean, low, high := MeanInterval([]float64{1, 2, 3})
	near(t, "mean", mean, 2, 0)
	near(t, "half", high-mean, 4.303/math.Sqrt(3), 1e-9)
	near(t, "half", mean-low, 4.303/math.Sqrt(3), 1e-9)
	if _, low, _ := MeanInterval([]float64{1}); !math.IsNaN(low) {
		t.Error("one value has an interval")
	}
}

func played(task, family string, success bool, steps int) train.Result {
	r := train.Result{Task: task, Family: family, Success: success, Steps: steps}
	if success {
		r.Return = 1
	}
	return r
}

// Results are paired by task, whatever their order; tasks that one run lacks are left out.
func TestComparePairsByTask(t *testing.T) {
	a := train.Evaluation{Panel: "report", Results: []train.Result{played("1", "x", true, 5), played("2", "x", false, 9), played("3", "y", true, 4), played("only a", "y", true, 1)}}
	b := train.Evaluation{Panel: "report", Results: []train.Result{played("3", "y", true, 2), played("1", "x", false, 9), played("2", "x", true, 3), played("only b", "y", true, 1)}}
	tests := compare(a, b, episode.Seed(1))
	if len(tests) != 3 || tests[0].Family != "all" || tests[1].Family != "x" || tests[2].Family != "y" {
		t.Fatalf("%+v", tests)
	}
	all := tests[0]
	if all.Tasks != 3 || all.Both != 1 || all.OnlyA != 1 || all.OnlyB != 1 || all.P != 1 || all.Rate.Value != 0 {
		t.Errorf("%+v", all)
	}
	if all.Steps.N != 1 || all.Steps.Value != -2 {
		t.Errorf("steps of what both solved: %+v", all.Steps)
	}
	if y := tests[2]; y.Tasks != 1 || y.Both != 1 {
		t.Errorf("%+v", y)
	}
}
