package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the packing of a transposed matrix, in squares of eight by eight. One form serves both sets: it waits
// for memory, not for shuffles.
func transpose() {
	TEXT("transposeAVX2", attr.NOSPLIT, "func(dst *float32, ldDst int, src *float32, ld, groups, blocks int)")
	Doc("transposeAVX2 sets row i of dst, i in 0..8·blocks−1, to column i of 8·groups rows of src, in ascending i.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	t := square{ldTo: Load(Param("ldDst"), GP64()), ld: Load(Param("ld"), GP64()), ldTo3: GP64(), ld3: GP64()}
	SHLQ(U8(2), t.ldTo)
	SHLQ(U8(2), t.ld)
	LEAQ(Mem{Base: t.ldTo, Index: t.ldTo, Scale: 2}, t.ldTo3)
	LEAQ(Mem{Base: t.ld, Index: t.ld, Scale: 2}, t.ld3)
	blocks := Load(Param("blocks"), GP64())
	from, to, group := GP64(), GP64(), GP64()
	Label("block")
	MOVQ(src, from)
	MOVQ(dst, to)
	Load(Param("groups"), group)
	Label("group")
	t.transpose(from, to)
	ADDQ(U8(32), to)
	DECQ(group)
	JNZ(LabelRef("group"))
	ADDQ(U8(32), src)
	LEAQ(Mem{Base: dst, Index: t.ldTo, Scale: 8}, dst)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// square has the distances, in bytes, between rows of the squares that are transposed, and three times that.
type square struct{ ldTo, ldTo3, ld, ld3 reg.Register }

// transpose transposes eight by eight elements and moves from on by eight rows.
func (s square) transpose(from, to reg.Register) {
	v := avx2.vectors(8)
	for i := range 8 {
		if i == 4 {
			LEAQ(Mem{Base: from, Index: s.ld, Scale: 4}, from)
		}
		VMOVUPS(rowOfFour(from, i%4, s.ld, s.ld3), v[i])
	}
	LEAQ(Mem{Base: from, Index: s.ld, Scale: 4}, from)
	pairs := avx2.vectors(8) // of rows 2i and 2i+1, interleaved
	for i := range 4 {
		VUNPCKLPS(v[2*i+1], v[2*i], pairs[2*i])
		VUNPCKHPS(v[2*i+1], v[2*i], pairs[2*i+1])
	}
	fours := avx2.vectors(8) // of rows 0..3, then 4..7: four elements of one column in each half
	for i := range 2 {
		for h := range 2 {
			lo, hi := pairs[4*i+h], pairs[4*i+2+h]
			VUNPCKLPD(hi, lo, fours[4*i+2*h])
			VUNPCKHPD(hi, lo, fours[4*i+2*h+1])
		}
	}
	row := GP64()
	MOVQ(to, row)
	for half, pick := range []uint8{0x20, 0x31} {
		for i := range 4 {
			column := YMM()
			VPERM2F128(U8(pick), fours[4+i], fours[i], column)
			VMOVUPS(column, rowOfFour(row, i, s.ldTo, s.ldTo3))
		}
		if half == 0 {
			LEAQ(Mem{Base: row, Index: s.ldTo, Scale: 4}, row)
		}
	}
}

// rowOfFour returns the address of row i in 0..3.
func rowOfFour(base reg.Register, i int, ld, ld3 reg.Register) Mem {
	return []Mem{{Base: base}, {Base: base, Index: ld, Scale: 1}, {Base: base, Index: ld, Scale: 2}, {Base: base, Index: ld3, Scale: 1}}[i]
}

// eights writes the packing of a matrix that is transposed already.
func eights() {
	TEXT("eightsAVX2", attr.NOSPLIT, "func(dst *float32, ldDst int, src *float32, ld, rows int)")
	Doc("eightsAVX2 copies the first eight elements of each row, in ascending order.")
	Pragma("noescape")
	dst, src, rows := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("rows"), GP64())
	ldTo, ld := Load(Param("ldDst"), GP64()), Load(Param("ld"), GP64())
	SHLQ(U8(2), ldTo)
	SHLQ(U8(2), ld)
	Label("row")
	v := YMM()
	VMOVUPS(Mem{Base: src}, v)
	VMOVUPS(v, Mem{Base: dst})
	ADDQ(ld, src)
	ADDQ(ldTo, dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
