package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// lengths of rows: around every width at which a kernel changes its way of working.
var lengths = []int{1, 2, 3, 7, 8, 9, 13, 14, 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 64, 65, 79, 80, 81, 127, 129, 257}

// tolerance bounds |got − want| by tolerance·(1 + |want|): about a hundred roundings of float32 in sums of up to 257
// terms of order one.
const tolerance = 2e-5

// eachKernel runs test once with every implementation this machine has in the place of the chosen one.
func eachKernel(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	chosen := active
	defer func() { active = chosen }()
	for _, k := range available() {
		active = k
		t.Run(k.name, test)
	}
}

// guarded returns a slice of n normal numbers, not aligned to anything, and a check that nothing beside it was written.
// What lies beside it is NaN, so that a sum that reads too far shows.
func guarded(r *rand.Rand, n int) (x []float32, intact func() bool) {
	const pad = 40
	from := pad + r.IntN(16)
	whole := make([]float32, from+n+pad)
	for i := range whole {
		whole[i] = float32(math.NaN())
	}
	x = whole[from : from+n]
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x, func() bool {
		for i, v := range whole {
			if (i < from || i >= from+n) && v == v {
				return false
			}
		}
		return true
	}
}

func random(r *rand.Rand, n int) []float32 {
	x, _ := guarded(r, n)
	return x
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func near(got, want float64) bool {
	return got == want || math.Abs(got-want) <= tolerance*(1+math.Abs(want)) || math.IsNaN(got) && math.IsNaN(want)
}

// rowOperation is one function on rows of equal length: run changes rows and returns a number or 0, want does the same
// in float64.
type rowOperation struct {
	name string
	rows int
	run  func(x [][]float32) float64
	want func(x [][]float64) float64

	squares int // index of a row that holds squares, if not 0
}

// input returns random rows for the operation.
func (o rowOperation) input(r *rand.Rand, n int) (rows [][]float32, intact []func() bool) {
	rows, intact = make([][]float32, o.rows), make([]func() bool, o.rows)
	for i := range rows {
		rows[i], intact[i] = guarded(r, n)
	}
	for i, v := range rows[o.squares] {
		if o.squares != 0 {
			rows[o.squares][i] = v * v
		}
	}
	return rows, intact
}

var adamWStep = NewAdamWCoefficients(3e-2, 0.9, 0.95, 1e-8, 0.1, 3)

var rowOperations = []rowOperation{
	{
		"Dot", 2,
		func(x [][]float32) float64 { return float64(Dot(x[0], x[1])) },
		func(x [][]float64) float64 { return sum(x, func(i int) float64 { return x[0][i] * x[1][i] }) }, 0,
	},
	{
		"Axpy", 2,
		func(x [][]float32) float64 { Axpy(x[0], x[1], 0.7); return 0 },
		func(x [][]float64) float64 { return each(x, func(i int) { x[0][i] += 0.7 * x[1][i] }) }, 0,
	},
	{
		"Add", 2,
		func(x [][]float32) float64 { Add(x[0], x[1]); return 0 },
		func(x [][]float64) float64 { return each(x, func(i int) { x[0][i] += x[1][i] }) }, 0,
	},
	{
		"Scale", 1,
		func(x [][]float32) float64 { Scale(x[0], -1.3); return 0 },
		func(x [][]float64) float64 { return each(x, func(i int) { x[0][i] *= -1.3 }) }, 0,
	},
	{
		"Max", 1,
		func(x [][]float32) float64 { return float64(Max(x[0])) },
		func(x [][]float64) float64 { return slices.Max(x[0]) }, 0,
	},
	{
		"ExpSum", 1,
		func(x [][]float32) float64 { return float64(ExpSum(x[0], 0.5)) },
		func(x [][]float64) float64 {
			each(x, func(i int) { x[0][i] = math.Exp(x[0][i] - 0.5) })
			return sum(x, func(i int) float64 { return x[0][i] })
		}, 0,
	},
	{
		"SumSquares", 1,
		func(x [][]float32) float64 { return SumSquares(x[0]) },
		func(x [][]float64) float64 { return sum(x, func(i int) float64 { return x[0][i] * x[0][i] }) }, 0,
	},
	{
		"SwiGLU", 3,
		func(x [][]float32) float64 { SwiGLU(x[0], x[1], x[2]); return 0 },
		func(x [][]float64) float64 { return each(x, func(i int) { x[0][i] = silu(x[1][i]) * x[2][i] }) }, 0,
	},
	{
		"SwiGLUBackward", 5,
		func(x [][]float32) float64 { SwiGLUBackward(x[0], x[1], x[2], x[3], x[4]); return 0 },
		func(x [][]float64) float64 {
			return each(x, func(i int) {
				x[0][i], x[1][i] = slope(silu, x[2][i])*x[3][i]*x[4][i], silu(x[2][i])*x[4][i]
			})
		}, 0,
	},
	{
		"SwiGLUBackward in place", 3,
		func(x [][]float32) float64 { SwiGLUBackward(x[0], x[1], x[0], x[1], x[2]); return 0 },
		func(x [][]float64) float64 {
			return each(x, func(i int) {
				x[0][i], x[1][i] = slope(silu, x[0][i])*x[1][i]*x[2][i], silu(x[0][i])*x[2][i]
			})
		}, 0,
	},
	{
		"SoftmaxBackward", 2,
		func(x [][]float32) float64 { SoftmaxBackward(x[0], x[1], 0.3, 0.125); return 0 },
		func(x [][]float64) float64 {
			return each(x, func(i int) { x[0][i] = x[1][i] * (x[0][i] - 0.3) * 0.125 })
		}, 0,
	},
	{
		"RMSNorm", 3,
		func(x [][]float32) float64 { return float64(RMSNorm(x[0], x[1], x[2], 1e-3)) },
		func(x [][]float64) float64 { return rmsNorm(x[0], x[1], x[2], 1e-3) }, 0,
	},
	{
		"RMSNormBackward", 5,
		func(x [][]float32) float64 {
			inverse := float32(1 / math.Sqrt(SumSquares(x[3])/float64(len(x[3]))+1e-3))
			RMSNormBackward(x[0], x[1], x[2], x[3], x[4], inverse)
			return 0
		},
		func(x [][]float64) float64 { rmsNormGradient(x[0], x[1], x[2], x[3], x[4], 1e-3); return 0 }, 0,
	},
	{
		"Rotary", 4,
		func(x [][]float32) float64 { active.rotary(x[0], x[1], x[2], x[3], -1); return 0 },
		func(x [][]float64) float64 {
			return each(x, func(i int) {
				x[0][i], x[1][i] = x[0][i]*x[2][i]+x[1][i]*x[3][i], x[1][i]*x[2][i]-x[0][i]*x[3][i]
			})
		}, 0,
	},
	{
		"AdamW", 4,
		func(x [][]float32) float64 { AdamW(x[0], x[1], x[2], x[3], adamWStep); return 0 },
		func(x [][]float64) float64 { adamW(x[0], x[1], x[2], x[3]); return 0 }, 2,
	},
}

func sum(x [][]float64, f func(i int) float64) (s float64) {
	for i := range x[0] {
		s += f(i)
	}
	return s
}

func each(x [][]float64, f func(i int)) float64 {
	for i := range x[0] {
		f(i)
	}
	return 0
}

func silu(g float64) float64 { return g / (1 + math.Exp(-g)) }

// slope is the central difference of f at x; its error is about 1e-9.
func slope(f func(float64) float64, x float64) float64 {
	const h = 1e-5
	return (f(x+h) - f(x-h)) / (2 * h)
}

func rmsNorm(out, x, w []float64, eps float64) (inverse float64) {
	var s float64
	for _, v := range x {
		s += v * v
	}
	inverse = 1 / math.Sqrt(s/float64(len(x))+eps)
	for i := range out {
		out[i] = x[i] * w[i] * inverse
	}
	return inverse
}

// rmsNormGradient adds central differences of Σ dh·RMSNorm(x, w) to dx and dw.
func rmsNormGradient(dx, dw, dh, x, w []float64, eps float64) {
	loss := func() (l float64) {
		out := make([]float64, len(x))
		rmsNorm(out, x, w, eps)
		for i, d := range dh {
			l += d * out[i]
		}
		return l
	}
	at := func(p *float64) float64 {
		was := *p
		defer func() { *p = was }()
		return slope(func(v float64) float64 { *p = v; return loss() }, was)
	}
	for i := range x {
		dx[i] += at(&x[i])
		dw[i] += at(&w[i])
	}
}

// adamW is step 3 of adamWStep, as PyTorch's documentation of AdamW writes it.
func adamW(p, m, v, g []float64) {
	const rate, beta1, beta2, epsilon, decay = 3e-2, 0.9, 0.95, 1e-8, 0.1
	for i := range p {
		p[i] -= rate * decay * p[i]
		m[i] = beta1*m[i] + (1-beta1)*g[i]
		v[i] = beta2*v[i] + (1-beta2)*g[i]*g[i]
		p[i] -= rate * (m[i] / (1 - beta1*beta1*beta1)) / (math.Sqrt(v[i]/(1-beta2*beta2*beta2)) + epsilon)
	}
}

func TestRowOperationsEqualFloat64(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, o := range rowOperations {
			for _, n := range lengths {
				checkRowOperation(t, r, o, n)
			}
		}
	})
}

func checkRowOperation(t *testing.T, r *rand.Rand, o rowOperation, n int) {
	t.Helper()
	rows, intact := o.input(r, n)
	wants := make([][]float64, o.rows)
	for i, row := range rows {
		wants[i] = wide(row)
	}
	got, want := o.run(rows), o.want(wants)
	if !near(got, want) {
		t.Errorf("%s of %d: got %g, want %g", o.name, n, got, want)
	}
	for i, row := range rows {
		if !intact[i]() {
			t.Errorf("%s of %d: wrote beside row %d", o.name, n, i)
		}
		for j, v := range row {
			if !near(float64(v), wants[i][j]) {
				t.Fatalf("%s of %d: row %d element %d: got %g, want %g", o.name, n, i, j, v, wants[i][j])
			}
		}
	}
}

func TestRotaryEqualsFloat64(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, h := range lengths {
			x, intact := guarded(r, 2*h)
			was, angles := slices.Clone(x), random(r, h)
			cos, sin := make([]float32, h), make([]float32, h)
			for i, a := range angles {
				cos[i], sin[i] = float32(math.Cos(float64(a))), float32(math.Sin(float64(a)))
			}
			Rotary(x, cos, sin, 1)
			for i, a := range wide(angles) {
				lo := float64(was[i])*math.Cos(a) - float64(was[i+h])*math.Sin(a)
				hi := float64(was[i])*math.Sin(a) + float64(was[i+h])*math.Cos(a)
				if !near(float64(x[i]), lo) || !near(float64(x[i+h]), hi) {
					t.Fatalf("pair %d of %d: got (%g, %g), want (%g, %g)", i, h, x[i], x[i+h], lo, hi)
				}
			}
			Rotary(x, cos, sin, -1)
			for i, v := range x {
				if !near(float64(v), float64(was[i])) {
					t.Fatalf("of %d: element %d is %g after turning back, was %g", h, i, v, was[i])
				}
			}
			if !intact() {
				t.Fatalf("of %d: wrote beside the row", h)
			}
		}
	})
}

// The gradient of softmax, from central differences of Σ d·softmax(scale·z).
func TestSoftmaxBackwardIsTheGradient(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		const n, scale = 21, 0.25
		r := rand.New(rand.NewPCG(5, 6))
		z, d := wide(random(r, n)), random(r, n)
		softmax := func() (p []float64) {
			var total float64
			for _, v := range z {
				p = append(p, math.Exp(scale*v))
				total += p[len(p)-1]
			}
			for i := range p {
				p[i] /= total
			}
			return p
		}
		p := make([]float32, n)
		for i, v := range softmax() {
			p[i] = float32(v)
		}
		got := slices.Clone(d)
		SoftmaxBackward(got, p, Dot(d, p), scale)
		for i := range z {
			was := z[i]
			want := slope(func(v float64) (l float64) {
				z[i] = v
				for j, q := range softmax() {
					l += float64(d[j]) * q
				}
				return l
			}, was)
			z[i] = was
			if !near(float64(got[i]), want) {
				t.Errorf("element %d: got %g, want %g", i, got[i], want)
			}
		}
	})
}

func TestExpIsAccurate(t *testing.T) {
	const most = 3e-7 // relative; the polynomial has 1.05e-7, the rest is rounding
	eachKernel(t, func(t *testing.T) {
		var x, was []float32
		for v := -87.3; v < 88.7; v += 0.000731 {
			x, was = append(x, float32(v)), append(was, float32(v))
		}
		ExpSum(x, 0)
		for i, v := range x {
			want := math.Exp(float64(was[i]))
			if e := math.Abs(float64(v)-want) / want; !(e <= most) {
				t.Fatalf("exp(%g) = %g, want %g: relative error %g", was[i], v, want, e)
			}
		}
	})
}

func TestExpAtTheEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	cases := []struct{ x, want float32 }{
		{0, 1}, {-88, 0}, {-104, 0}, {-1e30, 0}, {-inf, 0}, {89, inf}, {128, inf}, {1e30, inf}, {inf, inf}, {nan, nan},
	}
	eachKernel(t, func(t *testing.T) {
		for _, c := range cases {
			for _, n := range []int{1, 17} {
				x := make([]float32, n)
				for i := range x {
					x[i] = c.x
				}
				sum := ExpSum(x, 0)
				if !near(float64(x[n-1]), float64(c.want)) || !near(float64(sum), float64(n)*float64(c.want)) {
					t.Errorf("exp(%g) %d times: got %g, sum %g, want %g", c.x, n, x[n-1], sum, c.want)
				}
			}
		}
	})
}

func TestSwiGLUSaturates(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		gate, up, d := []float32{-1000, -90, 90, 1000}, []float32{2, 2, 2, 2}, []float32{1, 1, 1, 1}
		out, dGate, dUp := make([]float32, 4), make([]float32, 4), make([]float32, 4)
		SwiGLU(out, gate, up)
		SwiGLUBackward(dGate, dUp, gate, up, d)
		for i, want := range []float64{0, 0, 180, 2000} {
			slope := []float64{0, 0, 2, 2}[i]
			if !near(float64(out[i]), want) || !near(float64(dUp[i]), want/2) || !near(float64(dGate[i]), slope) {
				t.Errorf("gate %g: out %g, dUp %g, dGate %g", gate[i], out[i], dUp[i], dGate[i])
			}
		}
	})
}

func TestMaxPassesOverNaN(t *testing.T) {
	nan := float32(math.NaN())
	eachKernel(t, func(t *testing.T) {
		for _, n := range lengths {
			x := make([]float32, n)
			for i := range x {
				x[i] = nan
			}
			if got := Max(x); !math.IsInf(float64(got), -1) {
				t.Fatalf("of %d NaN: got %g, want -Inf", n, got)
			}
			x[n/2] = -3
			if got := Max(x); got != -3 {
				t.Fatalf("of -3 and %d NaN: got %g, want -3", n-1, got)
			}
		}
	})
}

func TestEmptyRows(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		if got := Max(nil); !math.IsInf(float64(got), -1) {
			t.Errorf("Max: got %g, want -Inf", got)
		}
		if got := float64(Dot(nil, nil)) + float64(ExpSum(nil, 0)) + SumSquares(nil) + float64(RMSNorm(nil, nil, nil, 1)); got != 0 {
			t.Errorf("sums: got %g, want 0", got)
		}
		RMSNormBackward(nil, nil, nil, nil, nil, 1)
		Rotary(nil, nil, nil, 1)
		AdamW(nil, nil, nil, nil, adamWStep)
	})
}

// vectorKernels returns avx2 and avx512, or skips the test.
func vectorKernels(t *testing.T) (a, b kernels) {
	t.Helper()
	all := available()
	if len(all) < 3 {
		t.Skip("this machine has no AVX-512 to compare with AVX2")
	}
	return all[1], all[2]
}

func TestRowOperationsAreEqualInAVX2AndAVX512(t *testing.T) {
	two, five := vectorKernels(t)
	defer func(k kernels) { active = k }(active)
	run := func(k kernels, o rowOperation, n int, seed uint64) (scalar float64, rows [][]float32) {
		r := rand.New(rand.NewPCG(seed, 7))
		rows, _ = o.input(r, n)
		for _, row := range rows {
			Scale(row, float32(math.Exp(3*r.NormFloat64())))
		}
		active = k
		return o.run(rows), rows
	}
	for _, o := range rowOperations {
		for _, n := range lengths {
			for seed := range uint64(4) {
				gotScalar, got := run(two, o, n, seed)
				wantScalar, want := run(five, o, n, seed)
				if math.Float64bits(gotScalar) != math.Float64bits(wantScalar) {
					t.Fatalf("%s of %d: avx2 %g, avx512 %g", o.name, n, gotScalar, wantScalar)
				}
				for i := range got {
					if j := firstDifference(got[i], want[i]); j >= 0 {
						t.Fatalf("%s of %d: row %d element %d: avx2 %g, avx512 %g", o.name, n, i, j, got[i][j], want[i][j])
					}
				}
			}
		}
	}
}

// firstDifference returns the first index at which a and b differ in a bit, or −1.
func firstDifference(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

func TestLengthsMustBeEqual(t *testing.T) {
	x, y := make([]float32, 4), make([]float32, 5)
	calls := map[string]func(){
		"Dot":             func() { Dot(x, y) },
		"Axpy":            func() { Axpy(x, y, 1) },
		"Add":             func() { Add(x, y) },
		"SwiGLU":          func() { SwiGLU(x, x, y) },
		"SwiGLUBackward":  func() { SwiGLUBackward(x, x, x, x, y) },
		"SoftmaxBackward": func() { SoftmaxBackward(x, y, 0, 1) },
		"RMSNorm":         func() { RMSNorm(x, x, y, 1) },
		"RMSNormBackward": func() { RMSNormBackward(x, x, x, x, y, 1) },
		"Rotary":          func() { Rotary(x, x[:2], x[:1], 1) },
		"Rotary odd":      func() { Rotary(y, x[:2], x[:2], 1) },
		"AdamW":           func() { AdamW(x, x, x, y, adamWStep) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { mustPanic(t, "simd."+strings.Fields(name)[0], call) })
	}
}

func mustPanic(t *testing.T, want string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Errorf("panic %q, want one that says %q", got, want)
		}
	}()
	call()
}

func TestChoose(t *testing.T) {
	from := []kernels{{name: "generic"}, {name: "avx2"}}
	if got := choose("", from).name; got != "avx2" {
		t.Errorf("no choice: got %s, want the last, avx2", got)
	}
	if got := choose("generic", from).name; got != "generic" {
		t.Errorf("generic: got %s", got)
	}
	mustPanic(t, `SKILLMASTER_KERNEL="avx512" is not possible on this machine; choose one of generic, avx2`,
		func() { choose("avx512", from) })
}

func TestPeakCountsOperations(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		if one, ten := Peak(1), Peak(10); one <= 0 || ten != 10*one {
			t.Errorf("1 iteration: %d operations, 10: %d", one, ten)
		}
	})
}
