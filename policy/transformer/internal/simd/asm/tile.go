package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const panelBytes = 32 * 4

// tile writes the inner kernels of a matrix product: up to 14 rows by 32 columns with AVX-512, up to 6 by 16 or 3 by 32 with
// AVX2. The sums stay in registers over all of k; A is read where it lies, one element of every row at a time.
func tile(s set) {
	if s.wide() {
		tileOf(s, "tile", 14, 2, "func(rows, k int, a *float32, aRow, aColumn int, b, c *float32, ldc, columns int, accumulate bool)")
		Doc("tileAVX512 computes 1 to 14 rows of C and 1 to 32 columns from rows of a panel.")
		return
	}
	tileOf(s, "tile", 6, 2, "func(rows, k int, a *float32, aRow, aColumn int, b, next *float32, step int, c *float32, ldc, columns int, accumulate bool)")
	Doc("tileAVX2 computes 1 to 6 rows of C and 1 to 16 columns from rows of a panel. It fetches the line of next, which it moves",
		"by step bytes with each k.")
	tileOf(s, "tileLow", 3, 4, "func(rows, k int, a *float32, aRow, aColumn int, b, next *float32, step int, c *float32, ldc int, accumulate bool)")
	Doc("tileLowAVX2 computes 1 to 3 rows of C and 32 columns as tileAVX2 does: with so few, 16 would wait for each other.")
}

// tileOf writes a kernel of so many rows, by so many registers of columns.
func tileOf(s set, name string, rows, across int, signature string) {
	TEXT(name+s.suffix, attr.NOSPLIT, signature)
	Pragma("noescape")
	t := tiler{set: s, across: across}
	t.load(rows)
	count := Load(Param("rows"), GP64())
	for r := rows; r > 1; r-- {
		CMPQ(count, U8(r))
		JEQ(LabelRef(fmt.Sprintf("rows%d", r)))
	}
	for r := 1; r <= rows; r++ {
		Label(fmt.Sprintf("rows%d", r))
		t.rows(r)
	}
}

type tiler struct {
	set
	across                   int // registers of columns
	k, a, aColumn, b, c, ldc reg.Register
	next, step               reg.Register         // what is fetched for later, and how far that moves on with each k
	stride                   map[int]reg.Register // odd multiples of the row stride of A, in bytes
	masks                    [2]reg.Register      // of the columns wanted: opmasks for AVX-512, made late for AVX2
}

func (t *tiler) load(rows int) {
	t.k = Load(Param("k"), GP64())
	t.a = Load(Param("a"), GP64())
	t.aColumn = Load(Param("aColumn"), GP64())
	t.b = Load(Param("b"), GP64())
	if !t.wide() {
		t.next = Load(Param("next"), GP64())
		t.step = Load(Param("step"), GP64())
	}
	t.c = Load(Param("c"), GP64())
	t.ldc = Load(Param("ldc"), GP64())
	one := Load(Param("aRow"), GP64())
	SHLQ(U8(2), t.aColumn)
	SHLQ(U8(2), t.ldc)
	SHLQ(U8(2), one)
	t.stride = map[int]reg.Register{1: one}
	for odd := 3; odd < rows; odd += 2 {
		base, scale := odd-2, 2
		for _, s := range []int{2, 4, 8} {
			if b := odd - s; b > 0 && t.stride[b] != nil {
				base, scale = b, s
			}
		}
		t.stride[odd] = GP64()
		LEAQ(Mem{Base: t.stride[base], Index: one, Scale: uint8(scale)}, t.stride[odd])
	}
	if t.wide() {
		t.opmasks()
	}
}

// opmasks sets the masks to the first columns of 32.
func (t *tiler) opmasks() {
	columns, bits := Load(Param("columns"), GP64()), GP64()
	MOVQ(I32(-1), bits)
	BZHIQ(columns, bits, bits)
	lo, hi := K(), K()
	KMOVW(bits.As32(), lo)
	SHRQ(U8(16), bits)
	KMOVW(bits.As32(), hi)
	t.masks = [2]reg.Register{lo, hi}
}

// element returns the address of A's element in a row of the tile.
func (t *tiler) element(row int) Mem {
	if row == 0 {
		return Mem{Base: t.a}
	}
	scale := 1
	for row%2 == 0 {
		row, scale = row/2, scale*2
	}
	return Mem{Base: t.a, Index: t.stride[row], Scale: uint8(scale)}
}

func (t *tiler) rows(rows int) {
	name := func(s string) string { return fmt.Sprintf("%s%d", s, rows) }
	sums := t.vectors(t.across * rows)
	for _, v := range sums {
		if t.wide() {
			VPXORD(v, v, v)
		} else {
			VXORPS(v, v, v)
		}
	}
	Label(name("loop"))
	if !t.wide() {
		PREFETCHT0(Mem{Base: t.next})
		ADDQ(t.step, t.next)
	}
	if t.across == 2 {
		t.stepByRows(sums)
	} else {
		t.stepByColumns(sums)
	}
	ADDQ(t.aColumn, t.a)
	ADDQ(U32(panelBytes), t.b)
	DECQ(t.k)
	JNZ(LabelRef(name("loop")))
	if t.wide() {
		t.storeMasked(name, sums)
	} else {
		t.store(name, sums)
	}
	VZEROUPPER()
	RET()
}

func (t *tiler) registers() int {
	if t.wide() {
		return 32
	}
	return 16
}

// stepByRows adds the products of one k, an element of A at a time.
func (t *tiler) stepByRows(sums []reg.VecVirtual) {
	b := t.vectors(2)
	a := t.vectors(min(4, t.registers()-len(sums)-len(b)))
	VMOVUPS(Mem{Base: t.b}, b[0])
	VMOVUPS(Mem{Base: t.b, Disp: t.bytes()}, b[1])
	for i := range len(sums) / 2 {
		v := a[i%len(a)]
		VBROADCASTSS(t.element(i), v)
		VFMADD231PS(b[0], v, sums[2*i])
		VFMADD231PS(b[1], v, sums[2*i+1])
	}
}

// stepByColumns adds the products of one k, a register of B at a time.
func (t *tiler) stepByColumns(sums []reg.VecVirtual) {
	a := t.vectors(len(sums) / t.across)
	b := t.vectors(min(4, t.registers()-len(sums)-len(a)))
	for i, v := range a {
		VBROADCASTSS(t.element(i), v)
	}
	for j := range t.across {
		v := b[j%len(b)]
		VMOVUPS(Mem{Base: t.b, Disp: j * t.bytes()}, v)
		for i := range a {
			VFMADD231PS(v, a[i], sums[i*t.across+j])
		}
	}
}

// ifAccumulate emits add, run only when the product is added to C, with row as a pointer to its first row.
func (t *tiler) ifAccumulate(label string, add func(row reg.GPVirtual)) {
	p, err := Param("accumulate").Resolve()
	if err != nil {
		panic(err)
	}
	CMPB(p.Addr, U8(0))
	JEQ(LabelRef(label))
	row := GP64()
	MOVQ(t.c, row)
	add(row)
	Label(label)
}

func (t *tiler) storeMasked(name func(string) string, sums []reg.VecVirtual) {
	t.ifAccumulate(name("store"), func(row reg.GPVirtual) {
		for i, v := range sums {
			VADDPS(Mem{Base: row, Disp: i % 2 * t.bytes()}, v, t.masks[i%2], v)
			if i%2 == 1 {
				ADDQ(t.ldc, row)
			}
		}
	})
	for i, v := range sums {
		VMOVUPS(v, t.masks[i%2], Mem{Base: t.c, Disp: i % 2 * t.bytes()})
		if i%2 == 1 {
			ADDQ(t.ldc, t.c)
		}
	}
}

func (t *tiler) store(name func(string) string, sums []reg.VecVirtual) {
	if t.across > 2 {
		t.storeWhole(name, sums)
		return
	}
	columns := Load(Param("columns"), GP64())
	CMPQ(columns, U8(blockElements))
	JNE(LabelRef(name("narrow")))
	t.storeWhole(name, sums)
	VZEROUPPER()
	RET()
	Label(name("narrow"))
	t.storeNarrow(name, sums, columns)
}

// storeWhole stores every column.
func (t *tiler) storeWhole(name func(string) string, sums []reg.VecVirtual) {
	t.ifAccumulate(name("store"), func(row reg.GPVirtual) {
		for i, v := range sums {
			VADDPS(Mem{Base: row, Disp: i % t.across * t.bytes()}, v, v)
			if i%t.across == t.across-1 {
				ADDQ(t.ldc, row)
			}
		}
	})
	for i, v := range sums {
		VMOVUPS(v, Mem{Base: t.c, Disp: i % t.across * t.bytes()})
		if i%t.across == t.across-1 {
			ADDQ(t.ldc, t.c)
		}
	}
}

// storeNarrow stores the first columns of sixteen.
func (t *tiler) storeNarrow(name func(string) string, sums []reg.VecVirtual, columns reg.Register) {
	mask, was := edgeMasks(columns), YMM()
	t.ifAccumulate(name("storeNarrow"), func(row reg.GPVirtual) {
		for i, v := range sums {
			VMASKMOVPS(Mem{Base: row, Disp: i % 2 * t.bytes()}, mask[i%2], was)
			VADDPS(was, v, v)
			if i%2 == 1 {
				ADDQ(t.ldc, row)
			}
		}
	})
	for i, v := range sums {
		VMASKMOVPS(v, mask[i%2], Mem{Base: t.c, Disp: i % 2 * t.bytes()})
		if i%2 == 1 {
			ADDQ(t.ldc, t.c)
		}
	}
}

// edgeMasks returns the masks of the first n of sixteen elements, n in 1..15, in two registers. It destroys n.
func edgeMasks(n reg.Register) [2]reg.VecVirtual {
	from, lo, hi := GP64(), YMM(), YMM()
	LEAQ(masks(), from)
	NEGQ(n)
	VMOVUPS(Mem{Base: from, Index: n, Scale: 4, Disp: blockBytes}, lo)
	VMOVUPS(Mem{Base: from, Index: n, Scale: 4, Disp: blockBytes + blockBytes/2}, hi)
	return [2]reg.VecVirtual{lo, hi}
}

// peak writes a loop of multiply-adds that wait for nothing: sixteen sums, more than latency times ports.
func peak(s set) {
	TEXT("peak"+s.suffix, attr.NOSPLIT, "func(iterations int) int")
	Doc("peak" + s.suffix + " runs independent multiply-adds and returns how many operations that were.")
	n, flops := Load(Param("iterations"), GP64()), GP64()
	const chains = 12
	IMUL3Q(U32(chains*2*s.bytes()/4), n, flops)
	sums, x := s.vectors(chains), s.zero()
	for _, v := range sums {
		if s.wide() {
			VPXORD(v, v, v)
		} else {
			VXORPS(v, v, v)
		}
	}
	TESTQ(n, n)
	JLE(LabelRef("done"))
	Label("loop")
	for _, v := range sums {
		VFMADD231PS(x, x, v)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	Store(flops, ReturnIndex(0))
	RET()
}
