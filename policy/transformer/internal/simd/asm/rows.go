package main

import (
	"maps"
	"math"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// operation is one function on rows of equal length.
type operation struct {
	set
	rows map[string]reg.Register // pointers that advance together
	n    reg.Register            // elements left
}

// begin opens a function whose first arguments are the named slices.
func begin(s set, name, doc, signature string, slices ...string) *operation {
	TEXT(name+s.suffix, attr.NOSPLIT, signature)
	Doc(name + s.suffix + " " + doc)
	Pragma("noescape")
	o := &operation{set: s, rows: map[string]reg.Register{}}
	for _, r := range slices {
		o.rows[r] = Load(Param(r).Base(), GP64())
	}
	o.n = Load(Param(slices[0]).Len(), GP64())
	return o
}

// block is a register's worth of the rows inside a loop.
type block struct {
	*operation
	part   int // which register of the sixteen elements
	unroll int // which sixteen elements of a longer step
	mask   reg.Register
}

func (b block) at(row string) Mem {
	return Mem{Base: b.rows[row], Disp: b.unroll*blockBytes + b.part*b.bytes()}
}

// load returns elements of a row; those past its end are 0.
func (b block) load(row string) reg.VecVirtual {
	v := b.vector()
	switch {
	case b.mask == nil:
		VMOVUPS(b.at(row), v)
	case b.wide():
		VMOVUPS_Z(b.at(row), b.mask, v)
	default:
		VMASKMOVPS(b.at(row), b.mask, v)
	}
	return v
}

// store writes elements of a row, none past its end.
func (b block) store(v reg.VecVirtual, row string) {
	switch {
	case b.mask == nil:
		VMOVUPS(v, b.at(row))
	case b.wide():
		VMOVUPS(v, b.mask, b.at(row))
	default:
		VMASKMOVPS(v, b.mask, b.at(row))
	}
}

// keep zeroes elements past the end of the row.
func (b block) keep(v reg.VecVirtual) {
	switch {
	case b.mask == nil:
	case b.wide():
		VMOVUPS_Z(v, b.mask, v)
	default:
		VANDPS(b.mask, v, v)
	}
}

// loop emits body over the rows: in steps of unroll blocks, then of one, then for the elements that are left.
func (o *operation) loop(unroll int, body func(block)) {
	if unroll > 1 {
		o.steps("long", unroll, body)
	}
	o.steps("short", 1, body)
	TESTQ(o.n, o.n)
	JE(LabelRef("done"))
	var mask [2]reg.Register
	if o.wide() {
		bits, k := GP64(), K()
		MOVQ(I32(-1), bits)
		BZHIQ(o.n, bits, bits)
		KMOVW(bits.As32(), k)
		mask[0] = k
	} else {
		m := edgeMasks(o.n)
		mask = [2]reg.Register{m[0], m[1]}
	}
	for p := range o.parts {
		body(block{operation: o, part: p, mask: mask[p]})
	}
	Label("done")
}

func (o *operation) steps(label string, unroll int, body func(block)) {
	Label(label)
	CMPQ(o.n, U32(unroll*blockElements))
	JLT(LabelRef(label + "End"))
	for u := range unroll {
		for p := range o.parts {
			body(block{operation: o, part: p, unroll: u})
		}
	}
	for _, row := range slices.Sorted(maps.Keys(o.rows)) {
		ADDQ(U32(unroll*blockBytes), o.rows[row])
	}
	SUBQ(U32(unroll*blockElements), o.n)
	JMP(LabelRef(label))
	Label(label + "End")
}

func end() {
	VZEROUPPER()
	RET()
}

// instruction is one of three operands.
type instruction func(...Op)

// fold reduces sums, the registers of blocks in order, to one element by combining halves, and returns it.
func (s set) fold(sums []reg.VecVirtual, combine instruction) reg.VecVirtual {
	for len(sums) > s.parts {
		half := len(sums) / 2
		for i := range half {
			combine(sums[half+i], sums[i], sums[i])
		}
		sums = sums[:half]
	}
	v := sums[0]
	if s.wide() {
		hi := YMM()
		VEXTRACTF64X4(U8(1), v, hi)
		combine(hi, v.AsY(), v.AsY())
	} else {
		combine(sums[1], v, v)
	}
	hi := XMM()
	VEXTRACTF128(U8(1), v.AsY(), hi)
	combine(hi, v.AsX(), v.AsX())
	VPERMILPD(U8(1), v.AsX(), hi)
	combine(hi, v.AsX(), v.AsX())
	return v
}

// result combines the last two elements, float32, and returns from the function.
func result(v reg.VecVirtual, combine instruction) {
	hi := XMM()
	VMOVSHDUP(v.AsX(), hi)
	combine(hi, v.AsX(), v.AsX())
	VZEROUPPER()
	Store(v.AsX(), ReturnIndex(0))
	RET()
}

func rowOperations(s set) {
	dot(s)
	axpy(s)
	add(s)
	scale(s)
	maximum(s)
	expSum(s)
	sumSquares(s)
	swiGLU(s)
	swiGLUBackward(s)
	softmaxBackward(s)
	norm(s)
	normDot(s)
	normBackward(s)
	rotary(s)
	adamW(s)
}

// chains is how many blocks a sum runs over side by side, to hide the latency of the addition.
const chains = 4

// sums returns zeroed registers for n blocks, indexed by block.sum.
func (o *operation) sums(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n*o.parts)
	for i := range v {
		v[i] = o.zero()
	}
	return v
}

// sum is the index of the register that collects the block.
func (b block) sum() int { return b.unroll*b.parts + b.part }

func dot(s set) {
	o := begin(s, "dot", "returns Σ a·b.", "func(a, b []float32) float32", "a", "b")
	sums := o.sums(chains)
	o.loop(chains, func(b block) { VFMADD231PS(b.load("a"), b.load("b"), sums[b.sum()]) })
	result(s.fold(sums, VADDPS), VADDPS)
}

func axpy(s set) {
	o := begin(s, "axpy", "adds s·src to dst.", "func(dst, src []float32, s float32)", "dst", "src")
	factor := s.parameter("s")
	o.loop(1, func(b block) {
		d := b.load("dst")
		VFMADD231PS(b.load("src"), factor, d)
		b.store(d, "dst")
	})
	end()
}

func add(s set) {
	o := begin(s, "add", "adds src to dst.", "func(dst, src []float32)", "dst", "src")
	o.loop(1, func(b block) {
		d := b.load("dst")
		VADDPS(b.load("src"), d, d)
		b.store(d, "dst")
	})
	end()
}

func scale(s set) {
	o := begin(s, "scale", "multiplies x by s.", "func(x []float32, s float32)", "x")
	factor := s.parameter("s")
	o.loop(1, func(b block) {
		x := b.load("x")
		VMULPS(factor, x, x)
		b.store(x, "x")
	})
	end()
}

func maximum(s set) {
	o := begin(s, "max", "returns the largest element that is not NaN.", "func(x []float32) float32", "x")
	lowest := s.held(float32(math.Inf(-1)))
	most := s.vectors(chains * s.parts)
	for _, m := range most {
		VMOVAPS(lowest, m)
	}
	o.loop(chains, func(b block) {
		x, m := b.load("x"), most[b.sum()]
		switch { // of two operands of which one is NaN, the first written is taken
		case b.mask == nil:
			VMAXPS(m, x, m)
		case b.wide():
			VMAXPS(m, x, b.mask, m)
		default:
			VBLENDVPS(b.mask, x, lowest, x)
			VMAXPS(m, x, m)
		}
	})
	result(s.fold(most, VMAXPS), VMAXPS)
}

func sumSquares(s set) {
	o := begin(s, "sumSquares", "returns Σ x² in float64.", "func(x []float32) float64", "x")
	sums := o.sums(2)
	o.loop(1, func(b block) {
		x, lo, hi := b.load("x"), s.vector(), s.vector()
		if s.wide() {
			VCVTPS2PD(x.AsY(), lo)
			VEXTRACTF64X4(U8(1), x, x.AsY())
			VCVTPS2PD(x.AsY(), hi)
		} else {
			VCVTPS2PD(x.AsX(), lo)
			VEXTRACTF128(U8(1), x, x.AsX())
			VCVTPS2PD(x.AsX(), hi)
		}
		VFMADD231PD(lo, lo, sums[2*b.part])
		VFMADD231PD(hi, hi, sums[2*b.part+1])
	})
	v := s.fold(sums, VADDPD)
	VZEROUPPER()
	Store(v.AsX(), ReturnIndex(0))
	RET()
}

func softmaxBackward(s set) {
	o := begin(s, "softmaxBackward", "sets dp to p·(dp−dot)·scale.", "func(dp, p []float32, dot, scale float32)", "dp", "p")
	dot, scale := s.parameter("dot"), s.parameter("scale")
	o.loop(1, func(b block) {
		d := b.load("dp")
		VSUBPS(dot, d, d)
		VMULPS(b.load("p"), d, d)
		VMULPS(scale, d, d)
		b.store(d, "dp")
	})
	end()
}

func norm(s set) {
	o := begin(s, "norm", "sets out to x·inverse·w.", "func(out, x, w []float32, inverse float32)", "out", "x", "w")
	inverse := s.parameter("inverse")
	o.loop(1, func(b block) {
		x := b.load("x")
		VMULPS(inverse, x, x)
		VMULPS(b.load("w"), x, x)
		b.store(x, "out")
	})
	end()
}

func normDot(s set) {
	o := begin(s, "normDot", "returns Σ dh·w·x.", "func(dh, x, w []float32) float32", "dh", "x", "w")
	sums := o.sums(chains)
	o.loop(chains, func(b block) {
		d := b.load("dh")
		VMULPS(b.load("w"), d, d)
		VFMADD231PS(b.load("x"), d, sums[b.sum()])
	})
	result(s.fold(sums, VADDPS), VADDPS)
}

func normBackward(s set) {
	o := begin(s, "normBackward", "adds dh·inverse·x to dw, and dh·inverse·w − x·slope to dx.",
		"func(dx, dw, dh, x, w []float32, inverse, slope float32)", "dx", "dw", "dh", "x", "w")
	inverse, slope := s.parameter("inverse"), s.parameter("slope")
	o.loop(1, func(b block) {
		g, x, dw, dx := b.load("dh"), b.load("x"), b.load("dw"), b.load("dx")
		VMULPS(inverse, g, g)
		VFMADD231PS(x, g, dw)
		VFMADD231PS(b.load("w"), g, dx)
		VFNMADD231PS(slope, x, dx)
		b.store(dw, "dw")
		b.store(dx, "dx")
	})
	end()
}

func rotary(s set) {
	o := begin(s, "rotary", "rotates pairs of lo and hi.", "func(lo, hi, cos, sin []float32, sign float32)", "lo", "hi", "cos", "sin")
	sign := s.parameter("sign")
	o.loop(1, func(b block) {
		lo, hi, cos, sin := b.load("lo"), b.load("hi"), b.load("cos"), b.load("sin")
		outLo, outHi := s.vector(), s.vector()
		VMULPS(sign, sin, sin)
		VMULPS(cos, lo, outLo)
		VFNMADD231PS(sin, hi, outLo)
		VMULPS(cos, hi, outHi)
		VFMADD231PS(sin, lo, outHi)
		b.store(outLo, "lo")
		b.store(outHi, "hi")
	})
	end()
}

func adamW(s set) {
	o := begin(s, "adamW", "updates p and its moments m and v.",
		"func(p, m, v, g []float32, beta1, gain1, beta2, gain2, step, unbias, epsilon, keep float32)", "p", "m", "v", "g")
	c := map[string]reg.VecVirtual{}
	for _, name := range []string{"beta1", "gain1", "beta2", "gain2", "step", "unbias", "epsilon", "keep"} {
		c[name] = s.parameter(name)
	}
	o.loop(1, func(b block) {
		g, mean, square, p := b.load("g"), b.load("m"), b.load("v"), b.load("p")
		VMULPS(c["beta1"], mean, mean)
		VFMADD231PS(g, c["gain1"], mean)
		b.store(mean, "m")
		VMULPS(g, g, g)
		VMULPS(c["gain2"], g, g)
		VFMADD213PS(g, c["beta2"], square)
		b.store(square, "v")
		root := s.vector()
		VSQRTPS(square, root)
		VFMADD213PS(c["epsilon"], c["unbias"], root)
		VDIVPS(root, mean, mean)
		VMULPS(c["keep"], p, p)
		VFNMADD231PS(mean, c["step"], p)
		b.store(p, "p")
	})
	end()
}
