package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const panelBytes = 32 * 4

// tile writes the inner kernel of a matrix product: up to 14 rows by 32 columns with AVX-512, up to 6 by 16 with AVX2. The
// sums stay in registers over all of k.
func tile(s set) {
	rows, name := 14, "tile"+s.suffix
	TEXT(name, attr.NOSPLIT, "func(rows, tiles, k int, a, b, next *float32, step int, c *float32, ldc, columns int, accumulate bool)")
	if s.wide() {
		Doc(name+" computes tiles of 1 to 14 rows of C, one below the other, and 1 to 32 columns, from rows of a panel. A is copied:",
			"element (r, k) of a tile is a[k·rows + r], and the next tile follows. It fetches the line of next, which it moves by step bytes",
			"with each k.")
	} else {
		rows = 6
		Doc(name + " does what tileAVX512 does, for 1 to 6 rows and 1 to 16 columns.")
	}
	Pragma("noescape")
	t := tiler{set: s}
	t.load()
	count := Load(Param("rows"), GP64())
	for r := rows; r > 1; r-- {
		CMPQ(count, U8(r))
		JEQ(LabelRef(fmt.Sprintf("tile%d", r)))
	}
	for r := 1; r <= rows; r++ {
		t.rows(r)
	}
}

type tiler struct {
	set
	k, a, b, c, ldc reg.Register
	next, step      reg.Register    // what is fetched for later, and how far that moves on with each k
	masks           [2]reg.Register // of the columns wanted: opmasks for AVX-512, made late for AVX2
}

func (t *tiler) load() {
	t.a = Load(Param("a"), GP64())
	t.next = Load(Param("next"), GP64())
	t.step = Load(Param("step"), GP64())
	t.c = Load(Param("c"), GP64())
	t.ldc = Load(Param("ldc"), GP64())
	t.k, t.b = GP64(), GP64()
	SHLQ(U8(2), t.ldc)
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

// rows writes the kernel for tiles of so many rows.
func (t *tiler) rows(rows int) {
	name := func(s string) string { return fmt.Sprintf("%s%d", s, rows) }
	Label(name("tile"))
	Load(Param("k"), t.k)
	Load(Param("b"), t.b)
	sums := t.vectors(2 * rows)
	for _, v := range sums {
		if t.wide() {
			VPXORD(v, v, v)
		} else {
			VXORPS(v, v, v)
		}
	}
	t.fetchC(rows)
	Label(name("loop"))
	PREFETCHT0(Mem{Base: t.next})
	ADDQ(t.step, t.next)
	t.multiply(sums)
	ADDQ(U8(4*rows), t.a)
	ADDQ(U32(panelBytes), t.b)
	DECQ(t.k)
	JNZ(LabelRef(name("loop")))
	if t.wide() {
		t.storeMasked(name, sums)
	} else {
		t.store(name, sums)
	}
	t.end(name)
}

// fetchC has the rows of C brought near while the sums are made.
func (t *tiler) fetchC(rows int) {
	const line = 64
	row := GP64()
	MOVQ(t.c, row)
	for range rows {
		for at := 0; at < 2*t.bytes(); at += line {
			PREFETCHT0(Mem{Base: row, Disp: at})
		}
		ADDQ(t.ldc, row)
	}
}

// multiply adds the products of one k, an element of A at a time.
func (t *tiler) multiply(sums []reg.VecVirtual) {
	registers := 16
	if t.wide() {
		registers = 32
	}
	b := t.vectors(2)
	a := t.vectors(min(4, registers-len(sums)-len(b)))
	VMOVUPS(Mem{Base: t.b}, b[0])
	VMOVUPS(Mem{Base: t.b, Disp: t.bytes()}, b[1])
	for i := range len(sums) / 2 {
		v := a[i%len(a)]
		VBROADCASTSS(Mem{Base: t.a, Disp: 4 * i}, v)
		VFMADD231PS(b[0], v, sums[2*i])
		VFMADD231PS(b[1], v, sums[2*i+1])
	}
}

// end goes on with the next tile, which A and C have come to, or returns.
func (t *tiler) end(name func(string) string) {
	tiles, err := Param("tiles").Resolve()
	if err != nil {
		panic(err)
	}
	DECQ(tiles.Addr)
	JNZ(LabelRef(name("tile")))
	VZEROUPPER()
	RET()
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
	columns := Load(Param("columns"), GP64())
	CMPQ(columns, U8(blockElements))
	JNE(LabelRef(name("narrow")))
	t.storeWhole(name, sums)
	t.end(name)
	Label(name("narrow"))
	t.storeNarrow(name, sums, columns)
}

// storeWhole stores every column.
func (t *tiler) storeWhole(name func(string) string, sums []reg.VecVirtual) {
	t.ifAccumulate(name("store"), func(row reg.GPVirtual) {
		for i, v := range sums {
			VADDPS(Mem{Base: row, Disp: i % 2 * t.bytes()}, v, v)
			if i%2 == 1 {
				ADDQ(t.ldc, row)
			}
		}
	})
	for i, v := range sums {
		VMOVUPS(v, Mem{Base: t.c, Disp: i % 2 * t.bytes()})
		if i%2 == 1 {
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
