package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// exponential holds the constants of exp; they are those of the plain Go form, where they are explained.
type exponential struct {
	set
	lowest, log2e, ln2Hi, ln2Lo, c0, c1, c2, c3, one Op
	most                                             reg.VecVirtual
}

func newExponential(s set) *exponential {
	return &exponential{
		set:    s,
		lowest: s.constant(-87.336540),
		most:   s.held(89),
		log2e:  s.constant(1.4426950408889634),
		ln2Hi:  s.constant(0.693359375),
		ln2Lo:  s.constant(-2.12194440e-4),
		c0:     s.constant(0.49999231495401736),
		c1:     s.constant(0.16667114649988574),
		c2:     s.constant(0.04189015681270784),
		c3:     s.constant(0.00831252014416577),
		one:    s.constant(1),
	}
}

// nearest rounds to the nearest integer and raises no exceptions; notBelow is true for a ≥ b and where either is NaN.
const (
	nearest  = 8
	notBelow = 0x15
)

// of returns exp(x) and destroys x.
func (e *exponential) of(x reg.VecVirtual) reg.VecVirtual {
	n, q := e.vector(), e.vector()
	keep := e.notBelowLowest(x)
	VMINPS(x, e.most, x) // of two operands of which one is NaN, the first written is taken
	VMULPS(e.log2e, x, n)
	if e.wide() {
		VRNDSCALEPS(U8(nearest), n, n)
	} else {
		VROUNDPS(U8(nearest), n, n)
	}
	VFNMADD231PS(e.ln2Hi, n, x)
	VFNMADD231PS(e.ln2Lo, n, x)
	VMOVUPS(e.c3, q)
	for _, c := range []Op{e.c2, e.c1, e.c0, e.one, e.one} {
		VFMADD213PS(c, x, q)
	}
	if e.wide() {
		VSCALEFPS_Z(n, q, keep, q)
		return q
	}
	e.scale(q, n)
	VANDPS(keep, q, q)
	return q
}

func (e *exponential) notBelowLowest(x reg.VecVirtual) reg.Register {
	if e.wide() {
		keep := K()
		VCMPPS(U8(notBelow), e.lowest, x, keep)
		return keep
	}
	keep := YMM()
	VCMPPS(U8(notBelow), e.lowest, x, keep)
	return keep
}

// scale multiplies q by 2^n in two factors, so that 2^128 overflows in the product and not before.
func (e *exponential) scale(q, n reg.VecVirtual) {
	half := YMM()
	VCVTPS2DQ(n, n)
	VPSRAD(U8(1), n, half)
	VPSUBD(half, n, n)
	for _, exponent := range []reg.VecVirtual{half, n} {
		VPSLLD(U8(23), exponent, exponent)
		VPADDD(e.one, exponent, exponent)
		VMULPS(exponent, q, q)
	}
}

func expSum(s set) {
	o := begin(s, "expSum", "replaces x by exp(x−m) and returns the sum.", "func(x []float32, m float32) float32", "x")
	exp, m, sums := newExponential(s), s.parameter("m"), o.sums(1)
	o.loop(1, func(b block) {
		x := b.load("x")
		VSUBPS(m, x, x)
		e := exp.of(x)
		b.store(e, "x")
		b.keep(e)
		VADDPS(e, sums[b.part], sums[b.part])
	})
	result(s.fold(sums, VADDPS), VADDPS)
}

// onePlusExpOfMinus returns 1 + exp(−g).
func (e *exponential) onePlusExpOfMinus(g, zero reg.VecVirtual) reg.VecVirtual {
	x := e.vector()
	VSUBPS(g, zero, x)
	x = e.of(x)
	VADDPS(e.one, x, x)
	return x
}

func swiGLU(s set) {
	o := begin(s, "swiGLU", "sets out to silu(gate)·up.", "func(out, gate, up []float32)", "out", "gate", "up")
	exp, zero := newExponential(s), s.zero()
	o.loop(1, func(b block) {
		g := b.load("gate")
		VDIVPS(exp.onePlusExpOfMinus(g, zero), g, g)
		VMULPS(b.load("up"), g, g)
		b.store(g, "out")
	})
	end()
}

func swiGLUBackward(s set) {
	o := begin(s, "swiGLUBackward", "sets the gradients of gate and up.",
		"func(dGate, dUp, gate, up, dOut []float32)", "dGate", "dUp", "gate", "up", "dOut")
	exp, zero, one := newExponential(s), s.zero(), s.held(1)
	o.loop(1, func(b block) {
		g, sigmoid, slope := b.load("gate"), s.vector(), s.vector()
		VDIVPS(exp.onePlusExpOfMinus(g, zero), one, sigmoid)
		VMULPS(sigmoid, g, g) // silu
		VSUBPS(sigmoid, one, slope)
		VFMADD213PS(sigmoid, g, slope) // silu·(1−sigmoid) + sigmoid
		u, d := b.load("up"), b.load("dOut")
		VMULPS(u, slope, slope)
		VMULPS(d, slope, slope)
		VMULPS(d, g, g)
		b.store(g, "dUp")
		b.store(slope, "dGate")
	})
	end()
}
