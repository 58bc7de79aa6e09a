package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bf16 writes the products of bfloat16 numbers and what brings float32 into the form they read. Instructions that
// Go's assembler does not know are written as bytes.
func bf16() {
	rowsBF16()
	pairsBF16()
	tileBF16()
	for _, rows := range []int{32, 16} {
		tileAMX(rows)
	}
	peakAMX()
}

// raw emits an instruction as bytes. The registers it reads and writes are physical ones, which nothing else uses.
func raw(b ...byte) {
	for _, x := range b {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{U8(x)}})
	}
}

// rounder rounds float32 to bfloat16, to nearest and ties to even; NaN becomes a quiet NaN.
type rounder struct{ one, half, nan reg.VecVirtual }

func newRounder() rounder {
	word := func(v uint32) reg.VecVirtual {
		r, z := GP32(), ZMM()
		MOVL(U32(v), r)
		VPBROADCASTD(r, z)
		return z
	}
	return rounder{word(1), word(0x7fff), word(0x7fc00000)}
}

// round leaves the bfloat16 in the upper halves of x's words, the lower halves undefined.
func (r rounder) round(x reg.VecVirtual) {
	odd, bad := ZMM(), K()
	VCMPPS(U8(3), x, x, bad) // unordered
	VPSRLD(U8(16), x, odd)
	VPANDD(r.one, odd, odd)
	VPADDD(r.half, odd, odd)
	VPADDD(odd, x, x)
	VMOVDQA32(r.nan, bad, x)
}

// firstOf returns the mask of the first n of sixteen elements from element at on.
func firstOf(n reg.Register, at int) reg.Register {
	bits, k := GP64(), K()
	MOVQ(I32(-1), bits)
	BZHIQ(n, bits, bits)
	if at > 0 {
		SHRQ(U8(at), bits)
	}
	KMOVW(bits.As32(), k)
	return k
}

// rowsBF16 rounds rows of up to 64 numbers.
func rowsBF16() {
	TEXT("rowsBF16AVX512", attr.NOSPLIT, "func(dst *uint32, src *float32, rows, columns, ld int)")
	Doc("rowsBF16AVX512 sets rows of 32 pairs to rows of 1 to 64 numbers and zeros after them.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	rows, columns, ld := Load(Param("rows"), GP64()), Load(Param("columns"), GP64()), Load(Param("ld"), GP64())
	SHLQ(U8(2), ld)
	r := newRounder()
	var masks []reg.Register
	for at := 0; at < 64; at += 16 {
		masks = append(masks, firstOf(columns, at))
	}
	Label("row")
	for i, k := range masks {
		x, half := ZMM(), YMM()
		VMOVUPS_Z(Mem{Base: src, Disp: 64 * i}, k, x)
		r.round(x)
		VPSRLD(U8(16), x, x)
		VPMOVDW(x, half)
		VMOVDQU(half, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(ld, src)
	ADDQ(U32(panelBytes), dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// pairsBF16 joins two rows at a time.
func pairsBF16() {
	TEXT("pairsBF16AVX512", attr.NOSPLIT, "func(dst *uint32, src *float32, pairs, columns, ld int)")
	Doc("pairsBF16AVX512 sets rows of 32 pairs to 1 to 32 columns of two rows of numbers each, and zeros after them.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	pairs, columns, ld := Load(Param("pairs"), GP64()), Load(Param("columns"), GP64()), Load(Param("ld"), GP64())
	SHLQ(U8(2), ld)
	r := newRounder()
	upper, word := ZMM(), GP32()
	MOVL(U32(0xffff0000), word)
	VPBROADCASTD(word, upper)
	masks := []reg.Register{firstOf(columns, 0), firstOf(columns, 16)}
	Label("pair")
	for i, k := range masks {
		lo, hi := ZMM(), ZMM()
		VMOVUPS_Z(Mem{Base: src, Disp: 64 * i}, k, lo)
		VMOVUPS_Z(Mem{Base: src, Index: ld, Scale: 1, Disp: 64 * i}, k, hi)
		r.round(lo)
		r.round(hi)
		VPSRLD(U8(16), lo, lo)
		VPANDD(upper, hi, hi)
		VPORD(lo, hi, hi)
		VMOVDQU32(hi, Mem{Base: dst, Disp: 64 * i})
	}
	LEAQ(Mem{Base: src, Index: ld, Scale: 2}, src)
	ADDQ(U32(panelBytes), dst)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	VZEROUPPER()
	RET()
}

// halfRows is the most rows of C that tileBF16 computes: 24 sums and two registers of B.
const halfRows = 12

// tileBF16 is the inner kernel for AVX-512 with dot products of pairs.
func tileBF16() {
	TEXT("tileBF16AVX512", attr.NOSPLIT,
		"func(rows, panels int, a *uint32, aPanel int, b *uint32, c *float32, ldc, columns int, accumulate bool)")
	Doc(fmt.Sprintf("tileBF16AVX512 computes 1 to %d rows of C and 1 to 32 columns. Panels of A are aPanel pairs apart.", halfRows))
	Pragma("noescape")
	count := Load(Param("rows"), reg.RAX)
	panels, a, aPanel := Load(Param("panels"), reg.RCX), Load(Param("a"), reg.RSI), Load(Param("aPanel"), reg.RDX)
	b, c, ldc := Load(Param("b"), reg.RDI), Load(Param("c"), reg.RBX), Load(Param("ldc"), reg.R8)
	SHLQ(U8(2), aPanel)
	SUBQ(U32(panelBytes), aPanel) // from the end of a row in one panel to its start in the next
	SHLQ(U8(2), ldc)
	columns := Load(Param("columns"), reg.R9)
	MOVQ(I32(-1), reg.R10)
	BZHIQ(columns, reg.R10, reg.R10)
	KMOVW(reg.R10L, reg.K1)
	SHRQ(U8(16), reg.R10)
	KMOVW(reg.R10L, reg.K2)
	for r := halfRows; r > 1; r-- {
		CMPQ(count, U8(r))
		JEQ(LabelRef(fmt.Sprintf("rows%d", r)))
	}
	for r := 1; r <= halfRows; r++ {
		name := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		Label(name("rows"))
		sums := make([]reg.VecPhysical, 2*r)
		for i := range sums {
			sums[i] = zmm(i)
			VPXORD(sums[i], sums[i], sums[i])
		}
		Label(name("panel"))
		MOVQ(U32(32), reg.R11)
		Label(name("pair"))
		VMOVUPS(Mem{Base: b}, zmm(30))
		VMOVUPS(Mem{Base: b, Disp: 64}, zmm(31))
		for i := range r {
			dotPairs(2*i, 30, 6, int32(i*panelBytes))
			dotPairs(2*i+1, 31, 6, int32(i*panelBytes))
		}
		ADDQ(U8(4), a)
		ADDQ(U32(panelBytes), b)
		DECQ(reg.R11)
		JNZ(LabelRef(name("pair")))
		ADDQ(aPanel, a)
		DECQ(panels)
		JNZ(LabelRef(name("panel")))
		p, err := Param("accumulate").Resolve()
		if err != nil {
			panic(err)
		}
		CMPB(p.Addr, U8(0))
		JEQ(LabelRef(name("store")))
		MOVQ(c, reg.R12)
		for i, v := range sums {
			VADDPS(Mem{Base: reg.R12, Disp: i % 2 * 64}, v, []reg.Register{reg.K1, reg.K2}[i%2], v)
			if i%2 == 1 {
				ADDQ(ldc, reg.R12)
			}
		}
		Label(name("store"))
		for i, v := range sums {
			VMOVUPS(v, []reg.Register{reg.K1, reg.K2}[i%2], Mem{Base: c, Disp: i % 2 * 64})
			if i%2 == 1 {
				ADDQ(ldc, c)
			}
		}
		VZEROUPPER()
		RET()
	}
}

func zmm(i int) reg.VecPhysical {
	return []reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}[i]
}

// dotPairs emits VDPBF16PS: sum += the products of b's pairs with the one pair at base+disp, base being one of the first
// eight registers and not the stack's. (EVEX.512.F3.0F38.W0 52 /r with a broadcast operand of 32 bits.)
func dotPairs(sum, b, base int, disp int32) {
	bit := func(n, i int) byte { return byte(n>>i&1) ^ 1 } // inverted
	raw(0x62,
		bit(sum, 3)<<7|1<<6|1<<5|bit(sum, 4)<<4|2,
		(^byte(b)&15)<<3|1<<2|2,
		2<<5|1<<4|bit(b, 4)<<3,
		0x52,
		2<<6|byte(sum&7)<<3|byte(base),
		byte(disp), byte(disp>>8), byte(disp>>16), byte(disp>>24))
}

// The instructions of AMX that are used, on the first eight registers.
func tileConfig(base int) { raw(0xc4, 0xe2, 0x78, 0x49, byte(base)) }
func tileRelease()        { raw(0xc4, 0xe2, 0x78, 0x49, 0xc0) }
func tileZero(t int)      { raw(0xc4, 0xe2, 0x7b, 0x49, 0xc0|byte(t)<<3) }

func tileLoad(t, base, stride int) {
	raw(0xc4, 0xe2, 0x7b, 0x4b, byte(t)<<3|4, byte(stride)<<3|byte(base))
}

func tileLoad64(t, base, stride int) {
	raw(0xc4, 0xe2, 0x7b, 0x4b, 1<<6|byte(t)<<3|4, byte(stride)<<3|byte(base), 64)
}

func tileStore(t, base, stride int) {
	raw(0xc4, 0xe2, 0x7a, 0x4b, byte(t)<<3|4, byte(stride)<<3|byte(base))
}

func tileStore64(t, base, stride int) {
	raw(0xc4, 0xe2, 0x7a, 0x4b, 1<<6|byte(t)<<3|4, byte(stride)<<3|byte(base), 64)
}

// tileDot adds the products of a's pairs with b's to c.
func tileDot(c, a, b int) { raw(0xc4, 0xe2, (^byte(b)&15)<<3|2, 0x5c, 0xc0|byte(c)<<3|byte(a)) }

// tiles returns the address of the configuration in which every tile has sixteen rows of 64 bytes.
func tiles() Mem {
	m := GLOBL("tiles", attr.RODATA|attr.NOPTR)
	for i := range 8 {
		var word uint64
		switch i {
		case 0:
			word = 1 // the palette
		case 2, 3:
			word = 0x0040004000400040 // bytes in a row of tiles 0…7
		case 6:
			word = 0x1010101010101010 // rows
		}
		DATA(8*i, U64(word))
	}
	return m
}

var tileShapes *Mem

// configure sets up the tiles.
func configure() {
	if tileShapes == nil {
		m := tiles()
		tileShapes = &m
	}
	LEAQ(*tileShapes, reg.RAX)
	tileConfig(0)
}

// tileAMX is the inner kernel for processors with a matrix unit: tiles 0…3 are sums, 4 and 5 rows of A, 6 and 7 columns of B.
func tileAMX(rows int) {
	TEXT(fmt.Sprintf("tile%dAMX", rows), attr.NOSPLIT,
		"func(blocks, panels int, a *uint32, aPanel int, b *uint32, c *float32, ldc int, accumulate bool)")
	Doc(fmt.Sprintf("tile%dAMX computes blocks of %d rows of C and 32 columns. Panels of A are aPanel pairs apart.", rows, rows))
	Pragma("noescape")
	configure()
	const aAt, bAt, stride, cAt, second, ldcAt = 6, 7, 1, 3, 0, 2 // RSI, RDI, RCX, RBX, RAX, RDX
	blocks, panels, aPanel := Load(Param("blocks"), reg.R8), Load(Param("panels"), reg.R9), Load(Param("aPanel"), reg.R10)
	a, b, c, ldc := Load(Param("a"), reg.R11), Load(Param("b"), reg.R12), Load(Param("c"), reg.RBX), Load(Param("ldc"), reg.RDX)
	SHLQ(U8(2), aPanel)
	SHLQ(U8(2), ldc)
	MOVQ(U32(panelBytes), reg.RCX)
	// secondRows sets RAX to the lower half of C's block.
	secondRows := func() {
		MOVQ(ldc, reg.RAX)
		SHLQ(U8(4), reg.RAX)
		ADDQ(c, reg.RAX)
	}
	Label("block")
	p, err := Param("accumulate").Resolve()
	if err != nil {
		panic(err)
	}
	CMPB(p.Addr, U8(0))
	JEQ(LabelRef("zero"))
	tileLoad(0, cAt, ldcAt)
	tileLoad64(1, cAt, ldcAt)
	if rows == 32 {
		secondRows()
		tileLoad(2, second, ldcAt)
		tileLoad64(3, second, ldcAt)
	}
	JMP(LabelRef("sum"))
	Label("zero")
	for t := range rows / 8 {
		tileZero(t)
	}
	Label("sum")
	MOVQ(a, reg.RSI)
	MOVQ(b, reg.RDI)
	MOVQ(panels, reg.R13)
	Label("panel")
	for step := range 2 {
		load := tileLoad
		if step == 1 {
			load = tileLoad64
		}
		load(4, aAt, stride)
		tileLoad(6, bAt, stride)
		tileDot(0, 4, 6)
		tileLoad64(7, bAt, stride)
		tileDot(1, 4, 7)
		if rows == 32 {
			LEAQ(Mem{Base: reg.RSI, Disp: 16 * panelBytes}, reg.RAX)
			load(5, second, stride)
			tileDot(2, 5, 6)
			tileDot(3, 5, 7)
		}
		ADDQ(U32(16*panelBytes), reg.RDI)
	}
	ADDQ(aPanel, reg.RSI)
	DECQ(reg.R13)
	JNZ(LabelRef("panel"))
	tileStore(0, cAt, ldcAt)
	tileStore64(1, cAt, ldcAt)
	if rows == 32 {
		secondRows()
		tileStore(2, second, ldcAt)
		tileStore64(3, second, ldcAt)
	}
	MOVQ(ldc, reg.RAX)
	SHLQ(U8(map[int]uint8{32: 5, 16: 4}[rows]), reg.RAX)
	ADDQ(reg.RAX, c)
	ADDQ(U32(rows*panelBytes), a)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	tileRelease()
	RET()
}

// peakAMX is peak for the matrix unit.
func peakAMX() {
	TEXT("peakAMX", attr.NOSPLIT, "func(iterations int) int")
	Doc("peakAMX runs independent products of tiles and returns how many operations that were.")
	configure()
	for t := range 8 {
		tileZero(t)
	}
	n := Load(Param("iterations"), reg.RCX)
	IMUL3Q(U32(4*16*16*32*2), n, reg.RDX)
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("loop")
	for t := range 4 {
		tileDot(t, 4+t/2, 6+t%2)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("done")
	tileRelease()
	Store(reg.RDX, ReturnIndex(0))
	RET()
}
