// Package simd is the lowest arithmetic of the embedded transformer: matrix products and row operations in float32 for
// AVX-512, AVX2 and plain Go, and matrix products in bfloat16 for AMX, AVX-512 BF16 and plain Go.
//
// The implementation is chosen once, at start, by what the processor can do; the environment variable
// SKILLMASTER_KERNEL (generic, avx2, avx512) overrides the choice. Results of avx2 and avx512 are bit-identical in
// every function; those of generic differ by rounding, because plain Go has no fused float32 multiply-add.
//
// No function keeps its arguments or starts goroutines, and all are safe for concurrent use on slices that do not overlap
// with what another call writes. Lengths that do not fit panic: they are mistakes of the caller. Empty rows are allowed
// and do nothing. NaN and infinities go through as in IEEE arithmetic unless a function says otherwise.
package simd

import (
	"fmt"
	"math"
	"os"
	"strings"
)

// kernels is one implementation of every operation that has more than one. Arguments have been checked.
type kernels struct {
	name string

	gemm            func(p product)
	transpose       func(panel, s []float32, rows, columns, ld int)
	dot             func(a, b []float32) float32
	axpy            func(dst, src []float32, s float32)
	add             func(dst, src []float32)
	scale           func(x []float32, s float32)
	max             func(x []float32) float32
	expSum          func(x []float32, m float32) float32
	sumSquares      func(x []float32) float64
	swiGLU          func(out, gate, up []float32)
	swiGLUBackward  func(dGate, dUp, gate, up, dOut []float32)
	softmaxBackward func(dp, p []float32, dot, scale float32)
	norm            func(out, x, w []float32, inverse float32)
	normDot         func(dh, x, w []float32) float32
	normBackward    func(dx, dw, dh, x, w []float32, inverse, slope float32)
	rotary          func(lo, hi, cos, sin []float32, sign float32)
	adamW           func(p, m, v, g []float32, beta1, gain1, beta2, gain2, step, unbias, epsilon, keep float32)
	widen           func(dst []float32, src []byte)
	peak            func(iterations int) int
}

var active = choose(os.Getenv("SKILLMASTER_KERNEL"), available())

func choose(name string, from []kernels) kernels {
	return from[chosen("SKILLMASTER_KERNEL", name, len(from), func(i int) string { return from[i].name })]
}

// chosen returns which of n implementations is called name, or the last (fastest) when name is empty.
func chosen(variable, name string, n int, nameOf func(i int) string) int {
	if name == "" {
		return n - 1
	}
	names := make([]string, n)
	for i := range n {
		if names[i] = nameOf(i); names[i] == name {
			return i
		}
	}
	panic(fmt.Sprintf("%s=%q is not possible on this machine; choose one of %s, or leave it unset",
		variable, name, strings.Join(names, ", ")))
}

// Kernel returns the name of the implementation in use: generic, avx2 or avx512.
func Kernel() string { return active.name }

// Kernels returns the names of the implementations that this machine can run, the fastest last.
func Kernels() []string {
	var names []string
	for _, k := range available() {
		names = append(names, k.name)
	}
	return names
}

// Peak runs a number of iterations of independent multiply-adds on registers alone and returns how many floating-point
// operations that were (two for each multiply-add). Timed by the caller, it measures the ceiling of one core.
func Peak(iterations int) int { return active.peak(iterations) }

// Dot returns Σ a·b, summed in float32 in a fixed order. The lengths must be equal.
func Dot(a, b []float32) float32 {
	same("Dot", len(a), len(b))
	return active.dot(a, b)
}

// Axpy adds s·src to dst. The lengths must be equal.
func Axpy(dst, src []float32, s float32) {
	same("Axpy", len(dst), len(src))
	active.axpy(dst, src, s)
}

// Add adds src to dst. The lengths must be equal.
func Add(dst, src []float32) {
	same("Add", len(dst), len(src))
	active.add(dst, src)
}

// Scale multiplies x by s.
func Scale(x []float32, s float32) { active.scale(x, s) }

// Max returns the largest element of x that is not NaN, and −Inf if there is none.
func Max(x []float32) float32 { return active.max(x) }

// ExpSum replaces x by exp(x−m) and returns the sum. Relative error of an element about 2e-7; results below 2^-126 are 0.
// With m = Max(x) it is the numerator and the divisor of a softmax; a NaN in x gives a NaN sum.
func ExpSum(x []float32, m float32) float32 { return active.expSum(x, m) }

// SumSquares returns Σ x², squared and summed in float64 in a fixed order.
func SumSquares(x []float32) float64 { return active.sumSquares(x) }

// SwiGLU sets out to silu(gate)·up, where silu(g) = g/(1+exp(−g)) (Shazeer 2020, arXiv:2002.05202, eq. 6).
// All lengths must be equal; out may be gate or up.
func SwiGLU(out, gate, up []float32) {
	same("SwiGLU", len(out), len(gate), len(up))
	active.swiGLU(out, gate, up)
}

// SwiGLUBackward sets dGate and dUp to the gradients of SwiGLU's inputs given dOut, the gradient of its output.
// All lengths must be equal; dGate and dUp may be any of the inputs, but not each other.
func SwiGLUBackward(dGate, dUp, gate, up, dOut []float32) {
	same("SwiGLUBackward", len(dGate), len(dUp), len(gate), len(up), len(dOut))
	active.swiGLUBackward(dGate, dUp, gate, up, dOut)
}

// SoftmaxBackward replaces dp, the gradient of one row p of probabilities, by the gradient p·(dp−dot)·scale of its
// logits before they were multiplied by scale; dot is Dot(dp, p). The lengths must be equal.
func SoftmaxBackward(dp, p []float32, dot, scale float32) {
	same("SoftmaxBackward", len(dp), len(p))
	active.softmaxBackward(dp, p, dot, scale)
}

// RMSNorm sets out to x·w·inverse with inverse = 1/sqrt(Σx²/n + eps), and returns inverse for RMSNormBackward
// (Zhang and Sennrich 2019, arXiv:1910.07467, eq. 4). All lengths must be equal; out may be x. For n = 0 it returns 0.
func RMSNorm(out, x, w []float32, eps float32) (inverse float32) {
	same("RMSNorm", len(out), len(x), len(w))
	if len(x) == 0 {
		return 0
	}
	inverse = float32(1 / math.Sqrt(active.sumSquares(x)/float64(len(x))+float64(eps)))
	active.norm(out, x, w, inverse)
	return inverse
}

// RMSNormBackward adds to dx and dw the gradients of RMSNorm's input and weights given dh, the gradient of its output:
// dx += dh·w·inverse − x·inverse³·Σ(dh·w·x)/n and dw += dh·x·inverse. All lengths must be equal; dx may be dh.
func RMSNormBackward(dx, dw, dh, x, w []float32, inverse float32) {
	same("RMSNormBackward", len(dx), len(dw), len(dh), len(x), len(w))
	if len(x) == 0 {
		return
	}
	cube := inverse * inverse * inverse
	slope := active.normDot(dh, x, w) * cube / float32(len(x))
	active.normBackward(dx, dw, dh, x, w, inverse, slope)
}

// Rotary turns each pair (x[i], x[i+h]) of one head row, h = len(x)/2, by the angle whose cosine and sine are cos[i] and
// sin[i] (length h); sign is 1 for forward and −1 to undo it, which is also the backward pass (Su et al. 2021,
// arXiv:2104.09864, eq. 34, in the half-split layout of Llama).
func Rotary(x, cos, sin []float32, sign float32) {
	h := len(x) / 2
	same("Rotary", len(x), 2*len(cos), 2*len(sin))
	active.rotary(x[:h], x[h:], cos, sin, sign)
}

// AdamWCoefficients are the numbers of one AdamW step, computed once and used for every parameter.
type AdamWCoefficients struct {
	Beta1, Gain1 float32 // decay of the mean m, and 1−Beta1
	Beta2, Gain2 float32 // decay of the mean square v, and 1−Beta2
	Step         float32 // rate/(1−Beta1^t)
	Unbias       float32 // 1/sqrt(1−Beta2^t)
	Epsilon      float32
	Keep         float32 // 1−rate·decay
}

// NewAdamWCoefficients returns the coefficients of step t (the first is 1) at a learning rate, with weight decay
// decoupled from the gradient (Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2, in PyTorch's form where the
// decay is multiplied by the rate). They are computed in float64.
func NewAdamWCoefficients(rate, beta1, beta2, epsilon, decay float64, t int) AdamWCoefficients {
	if t < 1 {
		panic(fmt.Sprintf("simd.NewAdamWCoefficients: step %d, the first is 1", t))
	}
	return AdamWCoefficients{
		Beta1: float32(beta1), Gain1: float32(1 - beta1),
		Beta2: float32(beta2), Gain2: float32(1 - beta2),
		Step:    float32(rate / (1 - math.Pow(beta1, float64(t)))),
		Unbias:  float32(1 / math.Sqrt(1-math.Pow(beta2, float64(t)))),
		Epsilon: float32(epsilon),
		Keep:    float32(1 - rate*decay),
	}
}

// AdamW updates parameters p and their moments m and v with gradients g:
// m = Beta1·m + Gain1·g, v = Beta2·v + Gain2·g², p = Keep·p − Step·m/(Unbias·sqrt(v) + Epsilon).
// All lengths must be equal.
func AdamW(p, m, v, g []float32, c AdamWCoefficients) {
	same("AdamW", len(p), len(m), len(v), len(g))
	active.adamW(p, m, v, g, c.Beta1, c.Gain1, c.Beta2, c.Gain2, c.Step, c.Unbias, c.Epsilon, c.Keep)
}

// same panics unless all lengths are equal.
func same(function string, first int, others ...int) {
	for _, n := range others {
		if n != first {
			panic(fmt.Sprintf("simd.%s: lengths %d and %d differ", function, first, n))
		}
	}
}
