package grpo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func normalise(t *testing.T, returns []float64, measured []bool, turns []int, n Norm) ([]float64, Population) {
	t.Helper()
	adv, p, err := Normalise(returns, measured, turns, n)
	if err != nil {
		t.Fatal(err)
	}
	return adv, p
}

func closeTo(a, b []float64, tol float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return near(x, y, tol) })
}

// Returns 1, 2, 6: mean 3, sum of squares 4+1+9 = 14, deviation √7.
func TestNormaliseByHand(t *testing.T) {
	s := math.Sqrt(7)
	for _, c := range []struct {
		name  string
		norm  Norm
		turns []int
		want  []float64
	}{
		{"standardise", Norm{}, nil, []float64{-2 / s, -1 / s, 3 / s}},
		{"floor", Norm{Floor: 0.5}, nil, []float64{-2 / (s + 0.5), -1 / (s + 0.5), 3 / (s + 0.5)}},
		{"centre", Norm{Rule: Centre, Floor: 9}, nil, []float64{-2, -1, 3}},
		{"leave one out", Norm{Rule: LeaveOneOut}, nil, []float64{1 - 4, 2 - 3.5, 6 - 1.5}},
		// 1, 2, 2, 2, 6, 6: mean 19/6.
		{"pooled", Norm{Rule: Centre}, []int{1, 3, 2}, []float64{1 - 19./6, 2 - 19./6, 6 - 19./6}},
		{"pooled, leave one out", Norm{Rule: LeaveOneOut}, []int{1, 3, 2}, []float64{1 - 18./5, 2 - 13./3, 6 - 7./4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			adv, p := normalise(t, []float64{1, 2, 6}, nil, c.turns, c.norm)
			if !closeTo(adv, c.want, 1e-14) || p.Dead || p.Singleton || p.Rows != 3 {
				t.Errorf("got %v, %+v; want %v", adv, p, c.want)
			}
		})
	}
	if _, p := normalise(t, []float64{1, 2, 6}, nil, nil, Norm{}); p.Mean != 3 || !near(p.Std, s, 1e-15) {
		t.Errorf("mean %v and deviation %v, want 3 and %v", p.Mean, p.Std, s)
	}
}

// slowPooled writes every turn out as a row, as the release does.
func slowPooled(returns []float64, turns []int, eps float64) []float64 {
	var rows []float64
	for i, r := range returns {
		for range turns[i] {
			rows = append(rows, r)
		}
	}
	var mean, square float64
	for _, r := range rows {
		mean += r / float64(len(rows))
	}
	for _, r := range rows {
		square += (r - mean) * (r - mean) / float64(len(rows)-1)
	}
	out := make([]float64, len(returns))
	for i, r := range returns {
		out[i] = (r - mean) / (math.Sqrt(square) + eps)
	}
	return out
}

func TestNormaliseAgainstSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		n := 2 + r.IntN(7)
		returns, turns := make([]float64, n), make([]int, n)
		for i := range n {
			returns[i], turns[i] = 10*r.NormFloat64(), 1+r.IntN(50)
		}
		adv, _ := normalise(t, returns, nil, turns, Norm{Floor: 0.1})
		if want := slowPooled(returns, turns, 0.1); !closeTo(adv, want, 1e-9) {
			t.Fatalf("returns %v, turns %v: got %v, want %v", returns, turns, adv, want)
		}
	}
}

func TestNormaliseLiveGroupsSumToZero(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 2000 {
		n := 2 + r.IntN(15)
		returns, measured := make([]float64, n), make([]bool, n)
		for i := range n {
			returns[i], measured[i] = 100*r.NormFloat64(), r.Float64() < 0.7
		}
		for _, rule := range []Rule{Standardise, Centre, LeaveOneOut} {
			adv, p := normalise(t, returns, measured, nil, Norm{Rule: rule, Floor: 0.05})
			var sum float64
			for i, a := range adv {
				sum += a
				if !measured[i] && a != 0 {
					t.Fatalf("row %d is not measured and gets %v", i, a)
				}
			}
			if math.Abs(sum) > 1e-9 {
				t.Fatalf("rule %d: %v sums to %v", rule, adv, sum)
			}
			if p.Rows+p.Unmeasured != n {
				t.Fatalf("%d rows and %d left out of %d", p.Rows, p.Unmeasured, n)
			}
		}
	}
}

// Equal returns are dead, whatever float32 and the order of a sum make of them.
func TestNormaliseDeadGroups(t *testing.T) {
	var sum float32
	for range 100 {
		sum += 0.1
	}
	for name, returns := range map[string][]float64{
		"all 0":               make([]float64, 8),
		"all 1":               slices.Repeat([]float64{1}, 8),
		"all 0.1 in float32":  slices.Repeat([]float64{float64(float32(0.1))}, 8),
		"float32 and float64": {float64(float32(0.1)), 0.1, 0.1, float64(float32(0.1))},
		"order of a sum":      {0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.6},
		"negative":            {-2, -2},
	} {
		for _, n := range []Norm{{}, {Rule: Centre}, {Rule: LeaveOneOut}, {Floor: 1e-6}, {RawSingleton: true}} {
			adv, p := normalise(t, returns, nil, nil, n)
			for _, a := range adv {
				if a != 0 {
					t.Errorf("%s, %+v: advantages %v", name, n, adv)
					break
				}
			}
			if !p.Dead || p.Singleton {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	if adv, p := normalise(t, []float64{0, 0, 0, 10}, nil, nil, Norm{}); p.Dead || adv[3] <= 0 {
		t.Errorf("a live group is dead: %v %+v", adv, p)
	}
}

func TestNormaliseFewRows(t *testing.T) {
	adv, p := normalise(t, []float64{0.7, nan, nan}, []bool{true, false, false}, nil, Norm{})
	if !slices.Equal(adv, []float64{0, 0, 0}) || !p.Singleton || p.Dead || p.Unmeasured != 2 || !math.IsNaN(p.Std) {
		t.Errorf("one row: %v %+v", adv, p)
	}
	adv, p = normalise(t, []float64{0.7}, nil, nil, Norm{RawSingleton: true})
	if adv[0] != 0.7 || !p.Singleton {
		t.Errorf("the release's singleton: %v %+v", adv, p)
	}
	adv, p = normalise(t, nil, nil, nil, Norm{})
	if len(adv) != 0 || p.Rows != 0 || p.Singleton || p.Dead || !math.IsNaN(p.Mean) {
		t.Errorf("no rows: %v %+v", adv, p)
	}
	for _, bad := range []float64{nan, math.Inf(1)} {
		if _, _, err := Normalise([]float64{1, bad}, nil, nil, Norm{}); err == nil {
			t.Errorf("a return of %v passes", bad)
		}
	}
	adv, p = normalise(t, []float64{1, 2, 99}, nil, []int{2, 2, 0}, Norm{Rule: Centre})
	if !slices.Equal(adv, []float64{-0.5, 0.5, 0}) || p.Unmeasured != 1 {
		t.Errorf("a trajectory without turns: %v %+v", adv, p)
	}
}

// The noise that the published 1e-6 blows up to ±O(1) stays small under the floor: 99 turns at 10, one at 9.5.
func TestNormaliseFloor(t *testing.T) {
	returns := append(slices.Repeat([]float64{10}, 99), 9.5)
	released, _ := normalise(t, returns, nil, nil, Norm{Floor: 1e-6})
	ours, _ := normalise(t, returns, nil, nil, Norm{Floor: 0.5})
	if !near(released[99], -9.9, 1e-3) {
		t.Errorf("release: %v, want −9.9", released[99])
	}
	if math.Abs(ours[99]) > 1 {
		t.Errorf("with a floor: %v", ours[99])
	}
}

func randomGroup(r *rand.Rand, n int) []Returns {
	g := make([]Returns, n)
	for i := range g {
		g[i] = Returns{Action: 10 * float64(r.IntN(2)), Review: 0.3 * r.Float64(), ReviewMeasured: r.Float64() < 0.8, Turns: 1 + r.IntN(50)}
	}
	return g
}

func advantages(t *testing.T, g []Returns, v Variant, o Options) ([]Advantage, GroupStats) {
	t.Helper()
	adv, s, err := Advantages(g, v, o)
	if err != nil {
		t.Fatal(err)
	}
	return adv, s
}

// Action returns in {0, 10}, review returns in [0, 0.3], then all review returns times 100 or 0.01.
func TestScalingReviewsLeavesActionsAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	tiny := Options{StdFloor: 1e-9}
	coupled := 0
	for range 300 {
		g := randomGroup(r, 8)
		for _, c := range []float64{100, 0.01} {
			scaled := slices.Clone(g)
			for i := range scaled {
				scaled[i].Review *= c
			}
			for _, v := range []Variant{DualAdv, DrGRPO, RLOO} {
				a, _ := advantages(t, g, v, tiny)
				b, _ := advantages(t, scaled, v, tiny)
				k := c
				if v == DualAdv {
					k = 1
				}
				for i := range a {
					if a[i].Action != b[i].Action {
						t.Fatalf("%v: action advantage %v became %v", v, a[i].Action, b[i].Action)
					}
					if !near(b[i].Review, k*a[i].Review, 1e-5) {
						t.Fatalf("%v: review advantage %v became %v", v, a[i].Review, b[i].Review)
					}
				}
			}
			a, _ := advantages(t, g, Joint, tiny)
			b, _ := advantages(t, scaled, Joint, tiny)
			if a[0].Action != b[0].Action {
				coupled++
			}
		}
	}
	if coupled < 500 {
		t.Errorf("the joint ablation should couple the streams, and did so in %d of 600 groups", coupled)
	}
}

// With the default floor ε, c times the returns is at most (s+ε)/(s+ε/c) away.
func TestScalingReviewsWithFloor(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 300 {
		g := randomGroup(r, 8)
		scaled := slices.Clone(g)
		for i := range scaled {
			scaled[i].Review *= 100
		}
		a, s := advantages(t, g, DualAdv, Options{})
		b, _ := advantages(t, scaled, DualAdv, Options{})
		const eps = 0.05
		std := s.Review.Std
		for i := range a {
			if want := a[i].Review * (std + eps) / (std + eps/100); !near(b[i].Review, want, 1e-9) && !s.Review.Dead && !s.Review.Singleton {
				t.Fatalf("review advantage %v, want %v", b[i].Review, want)
			}
		}
	}
}

func TestVariantsByHand(t *testing.T) {
	g := []Returns{{Action: 0, Review: 1, ReviewMeasured: true}, {Action: 10, Review: 3, ReviewMeasured: true}, {Action: 5, Review: nan}}
	tiny := Options{StdFloor: 1e-12}
	q := math.Sqrt2 // deviation of 1, 3
	j := math.Sqrt((3.8*3.8 + 6.2*6.2 + 1.2*1.2 + 2.8*2.8 + 0.8*0.8) / 4)
	for _, c := range []struct {
		v    Variant
		want []Advantage
	}{
		{DualAdv, []Advantage{{-1, -1 / q, true}, {1, 1 / q, true}, {0, 0, false}}},
		{GRPO, []Advantage{{-1, 0, false}, {1, 0, false}, {0, 0, false}}},
		{DrGRPO, []Advantage{{-5, -1, true}, {5, 1, true}, {0, 0, false}}},
		{RLOO, []Advantage{{-7.5, -2, true}, {7.5, 2, true}, {0, 0, false}}},
		// 0, 10, 5, 1, 3: mean 3.8.
		{Joint, []Advantage{{-3.8 / j, -2.8 / j, true}, {6.2 / j, -0.8 / j, true}, {1.2 / j, 0, false}}},
	} {
		got, _ := advantages(t, g, c.v, tiny)
		for i := range got {
			if !near(got[i].Action, c.want[i].Action, 1e-9) || !near(got[i].Review, c.want[i].Review, 1e-9) || got[i].ReviewMeasured != c.want[i].ReviewMeasured {
				t.Errorf("%v: trajectory %d has %+v, want %+v", c.v, i, got[i], c.want[i])
			}
		}
	}
}

func TestScaleSetsTheFloor(t *testing.T) {
	g := []Returns{{Action: 0, Review: 0, ReviewMeasured: true}, {Action: 10, Review: 1, ReviewMeasured: true}}
	adv, _ := advantages(t, g, DualAdv, Options{ActionScale: 10})
	if want := 5 / (10/math.Sqrt2 + 0.5); !near(adv[1].Action, want, 1e-12) {
		t.Errorf("action advantage %v, want %v", adv[1].Action, want)
	}
	if want := 0.5 / (1/math.Sqrt2 + 0.05); !near(adv[1].Review, want, 1e-12) {
		t.Errorf("review advantage %v, want %v", adv[1].Review, want)
	}
}

func TestReleasePoolsTurns(t *testing.T) {
	g := []Returns{{Action: 0, Turns: 30, Review: 0.5, ReviewMeasured: true}, {Action: 10, Turns: 10}, {Action: 10, Turns: 20}}
	adv, s := advantages(t, g, DualAdv, Release())
	want := slowPooled([]float64{0, 10, 10}, []int{30, 10, 20}, 1e-6)
	for i := range want {
		if !near(adv[i].Action, want[i], 1e-12) {
			t.Errorf("trajectory %d: %v, want %v", i, adv[i].Action, want[i])
		}
	}
	if !s.Review.Singleton || adv[0].Review != 0.5 {
		t.Errorf("the release lets a single review's return through; got %v", adv[0].Review)
	}
	if ours, _ := advantages(t, g, DualAdv, Options{}); ours[0].Review != 0 || near(ours[0].Action, adv[0].Action, 1e-3) {
		t.Errorf("the defaults do not differ from the release: %+v", ours[0])
	}
}

func TestAdvantagesRefuseNaN(t *testing.T) {
	for _, g := range [][]Returns{{{Action: nan}, {}}, {{Review: nan, ReviewMeasured: true}, {}}} {
		for v := range variants {
			_, _, err := Advantages(g, v, Options{})
			if want := math.IsNaN(g[0].Action) || v != GRPO; (err != nil) != want {
				t.Errorf("%v, %+v: error %v", v, g, err)
			}
		}
	}
}

func TestAdvantagesLeaveTheirArgumentAlone(t *testing.T) {
	g := randomGroup(rand.New(rand.NewPCG(6, 1)), 8)
	before := slices.Clone(g)
	first, _ := advantages(t, g, Joint, Options{PoolTurns: true})
	second, _ := advantages(t, g, Joint, Options{PoolTurns: true})
	if !slices.Equal(g, before) || !slices.Equal(first, second) {
		t.Error("a second call differs from the first")
	}
}

// Success with probability 0.18 and groups of 2, 4, 8, 16: known shares of dead groups.
func TestDeadShare(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	const groups = 20000
	for g, want := range map[int]float64{2: 0.705, 4: 0.453, 8: 0.204, 16: 0.042} {
		dead := 0
		for range groups {
			group := make([]Returns, g)
			for i := range group {
				if r.Float64() < 0.18 {
					group[i].Action = 10
				}
			}
			if _, s := advantages(t, group, DualAdv, Options{}); s.Action.Dead {
				dead++
			}
		}
		if got := float64(dead) / groups; math.Abs(got-want) > 0.012 {
			t.Errorf("groups of %d: %v dead, want %v", g, got, want)
		}
		if got := DeadShare(0.18, g); math.Abs(got-want) > 0.001 {
			t.Errorf("DeadShare(0.18, %d) = %v, want %v", g, got, want)
		}
	}
	if g, ok := GroupFor(0.18, 0.21, 64); !ok || g != 8 {
		t.Errorf("GroupFor = %d, %v; want 8", g, ok)
	}
	if _, ok := GroupFor(0, 0.5, 64); ok {
		t.Error("no group size helps where nothing succeeds")
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for v := range variants {
		text, err := v.MarshalText()
		var back Variant
		if err != nil || back.UnmarshalText(text) != nil || back != v || string(text) != v.String() {
			t.Errorf("variant %v came back as %v", v, back)
		}
	}
	for a := range aggregations {
		text, err := a.MarshalText()
		var back Aggregation
		if err != nil || back.UnmarshalText(text) != nil || back != a || string(text) != a.String() {
			t.Errorf("aggregation %v came back as %v", a, back)
		}
	}
	var v Variant
	var a Aggregation
	if v.UnmarshalText([]byte("DualAdv")) == nil || a.UnmarshalText(nil) == nil {
		t.Error("unknown names pass")
	}
}
