package simd

import "math"

var generic = kernels{
	name:            "generic",
	gemm:            gemmGeneric,
	transpose:       transposeGeneric,
	dot:             dotGeneric,
	axpy:            axpyGeneric,
	add:             addGeneric,
	scale:           scaleGeneric,
	max:             maxGeneric,
	expSum:          expSumGeneric,
	sumSquares:      sumSquaresGeneric,
	swiGLU:          swiGLUGeneric,
	swiGLUBackward:  swiGLUBackwardGeneric,
	softmaxBackward: softmaxBackwardGeneric,
	norm:            normGeneric,
	normDot:         normDotGeneric,
	normBackward:    normBackwardGeneric,
	rotary:          rotaryGeneric,
	adamW:           adamWGeneric,
	widen:           widenGeneric,
	peak:            peakGeneric,
}

// gemmGeneric computes tiles of two rows and four columns, which is what sixteen scalar registers hold.
func gemmGeneric(p product) {
	for j := 0; j < p.n; j += PanelWidth {
		panel := p.b[j/PanelWidth*p.panelLen:]
		width := min(PanelWidth, p.n-j)
		for i := 0; i < p.m; i += 2 {
			for q := 0; q < width; q += 4 {
				columns := min(4, width-q)
				if i+1 == p.m {
					s := tile1x4(p, i, panel[q:])
					p.store(i, j+q, s[:columns])
					continue
				}
				s0, s1 := tile2x4(p, i, panel[q:])
				p.store(i, j+q, s0[:columns])
				p.store(i+1, j+q, s1[:columns])
			}
		}
	}
}

// store writes or adds sums to row i of C from column j on.
func (p *product) store(i, j int, sums []float32) {
	row := p.c[i*p.ldc+j:][:len(sums)]
	for q, s := range sums {
		if p.accumulate {
			s += row[q]
		}
		row[q] = s
	}
}

func tile2x4(p product, i int, b []float32) (s0, s1 [4]float32) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	at0, at1, bt := i*p.aRow, (i+1)*p.aRow, 0
	for range p.k {
		a0, a1, row := p.a[at0], p.a[at1], (*[4]float32)(b[bt:])
		s00 += a0 * row[0]
		s01 += a0 * row[1]
		s02 += a0 * row[2]
		s03 += a0 * row[3]
		s10 += a1 * row[0]
		s11 += a1 * row[1]
		s12 += a1 * row[2]
		s13 += a1 * row[3]
		at0, at1, bt = at0+p.aColumn, at1+p.aColumn, bt+PanelWidth
	}
	return [4]float32{s00, s01, s02, s03}, [4]float32{s10, s11, s12, s13}
}

func tile1x4(p product, i int, b []float32) [4]float32 {
	var s0, s1, s2, s3 float32
	at, bt := i*p.aRow, 0
	for range p.k {
		a, row := p.a[at], (*[4]float32)(b[bt:])
		s0 += a * row[0]
		s1 += a * row[1]
		s2 += a * row[2]
		s3 += a * row[3]
		at, bt = at+p.aColumn, bt+PanelWidth
	}
	return [4]float32{s0, s1, s2, s3}
}

// transposeGeneric sets row i of a panel to column i of s, four rows of s at a time.
func transposeGeneric(panel, s []float32, rows, columns, ld int) {
	q := 0
	for ; q+4 <= rows; q += 4 {
		s0, s1, s2, s3 := s[q*ld:][:columns], s[(q+1)*ld:][:columns], s[(q+2)*ld:][:columns], s[(q+3)*ld:][:columns]
		for i, v := range s0 {
			row := (*[4]float32)(panel[i*PanelWidth+q:])
			row[0], row[1], row[2], row[3] = v, s1[i], s2[i], s3[i]
		}
	}
	for ; q < rows; q++ {
		for i, v := range s[q*ld:][:columns] {
			panel[i*PanelWidth+q] = v
		}
	}
}

func dotGeneric(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	for len(a) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s0 += v * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func axpyGeneric(dst, src []float32, s float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += s * src[i]
	}
}

func addGeneric(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}

func scaleGeneric(x []float32, s float32) {
	for i := range x {
		x[i] *= s
	}
}

func maxGeneric(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// The constants of exp: x = n·ln 2 + r with |r| ≤ ln 2/2, and exp(r) = 1 + r + r²·(c0 + c1·r + c2·r² + c3·r³) with the
// minimax coefficients (relative error 1.05e-7). ln 2 is in two parts, so that n times the first is exact.
const (
	expLog2E  = 1.4426950408889634
	expLn2Hi  = 0.693359375
	expLn2Lo  = -2.12194440e-4
	expC0     = 0.49999231495401736
	expC1     = 0.16667114649988574
	expC2     = 0.04189015681270784
	expC3     = 0.00831252014416577
	expLowest = -87.336540 // below it results are subnormal, and set to 0
	expMost   = 89.0       // above 88.7228 results are +Inf
	expRound  = 12582912.0 // 1.5·2²³: adding it rounds to an integer in the low bits
)

func exp32(x float32) float32 {
	if x < expLowest {
		return 0
	}
	if x > expMost {
		x = expMost
	}
	t := x*expLog2E + expRound
	n := t - expRound
	r := x - n*expLn2Hi - n*expLn2Lo
	q := ((expC3*r+expC2)*r+expC1)*r + expC0
	e := (q*r+1)*r + 1
	half := int32(n) >> 1 // in two factors, so that 2^128 overflows in the product and not before
	return e * power2(half) * power2(int32(n)-half)
}

// power2 returns 2^n for n in −126..127.
func power2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

func expSumGeneric(x []float32, m float32) float32 {
	var sum float32
	for i, v := range x {
		e := exp32(v - m)
		x[i] = e
		sum += e
	}
	return sum
}

func sumSquaresGeneric(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		s0 += float64(x[0]) * float64(x[0])
		s1 += float64(x[1]) * float64(x[1])
		s2 += float64(x[2]) * float64(x[2])
		s3 += float64(x[3]) * float64(x[3])
		x = x[4:]
	}
	for _, v := range x {
		s0 += float64(v) * float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}

func swiGLUGeneric(out, gate, up []float32) {
	gate, up = gate[:len(out)], up[:len(out)]
	for i := range out {
		g := gate[i]
		out[i] = g / (1 + exp32(-g)) * up[i]
	}
}

func swiGLUBackwardGeneric(dGate, dUp, gate, up, dOut []float32) {
	n := len(dGate)
	dUp, gate, up, dOut = dUp[:n], gate[:n], up[:n], dOut[:n]
	for i := range dGate {
		g, u, d := gate[i], up[i], dOut[i]
		s := 1 / (1 + exp32(-g))
		silu := g * s
		dUp[i] = silu * d
		dGate[i] = (silu*(1-s) + s) * u * d
	}
}

func softmaxBackwardGeneric(dp, p []float32, dot, scale float32) {
	p = p[:len(dp)]
	for i := range dp {
		dp[i] = (dp[i] - dot) * p[i] * scale
	}
}

func normGeneric(out, x, w []float32, inverse float32) {
	x, w = x[:len(out)], w[:len(out)]
	for i := range out {
		out[i] = x[i] * inverse * w[i]
	}
}

func normDotGeneric(dh, x, w []float32) float32 {
	var s0, s1 float32
	x, w = x[:len(dh)], w[:len(dh)]
	for len(dh) >= 2 {
		s0 += dh[0] * w[0] * x[0]
		s1 += dh[1] * w[1] * x[1]
		dh, x, w = dh[2:], x[2:], w[2:]
	}
	for i, d := range dh {
		s0 += d * w[i] * x[i]
	}
	return s0 + s1
}

func normBackwardGeneric(dx, dw, dh, x, w []float32, inverse, slope float32) {
	n := len(dx)
	dw, dh, x, w = dw[:n], dh[:n], x[:n], w[:n]
	for i := range dx {
		g := dh[i] * inverse
		dw[i] += g * x[i]
		dx[i] += g*w[i] - x[i]*slope
	}
}

func rotaryGeneric(lo, hi, cos, sin []float32, sign float32) {
	hi, cos, sin = hi[:len(lo)], cos[:len(lo)], sin[:len(lo)]
	for i, a := range lo {
		b, c, s := hi[i], cos[i], sin[i]*sign
		lo[i] = a*c - b*s
		hi[i] = b*c + a*s
	}
}

func adamWGeneric(p, m, v, g []float32, beta1, gain1, beta2, gain2, step, unbias, epsilon, keep float32) {
	m, v, g = m[:len(p)], v[:len(p)], g[:len(p)]
	for i := range p {
		d := g[i]
		mean := beta1*m[i] + gain1*d
		square := beta2*v[i] + gain2*(d*d)
		m[i], v[i] = mean, square
		root := float32(math.Sqrt(float64(square)))
		p[i] = keep*p[i] - step*(mean/(unbias*root+epsilon))
	}
}

// peakGeneric runs eight chains of a multiplication and an addition.
func peakGeneric(iterations int) int {
	s := [8]float32{1, 2, 3, 4, 5, 6, 7, 8}
	s0, s1, s2, s3, s4, s5, s6, s7 := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	for range iterations {
		s0 = s0*0.5 + 1
		s1 = s1*0.5 + 1
		s2 = s2*0.5 + 1
		s3 = s3*0.5 + 1
		s4 = s4*0.5 + 1
		s5 = s5*0.5 + 1
		s6 = s6*0.5 + 1
		s7 = s7*0.5 + 1
	}
	if s0+s1+s2+s3+s4+s5+s6+s7 < 0 { // keeps the sums alive
		return 0
	}
	return iterations * 16
}
