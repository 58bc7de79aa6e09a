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
	TEXT("transposeAVX2", attr.NOSPLIT, "func(dst, src *float32, ld, groups, blocks int)")
	Doc("transposeAVX2 sets row i of a panel, i in 0..8·blocks−1, to column i of 8·groups rows of src.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	ld, blocks := Load(Param("ld"), GP64()), Load(Param("blocks"), GP64())
	ld3 := GP64()
	SHLQ(U8(2), ld)
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	from, to, group := GP64(), GP64(), GP64()
	Label("block")
	MOVQ(src, from)
	MOVQ(dst, to)
	Load(Param("groups"), group)
	Label("group")
	square(from, to, ld, ld3)
	ADDQ(U8(32), to)
	DECQ(group)
	JNZ(LabelRef("group"))
	ADDQ(U8(32), src)
	ADDQ(U32(8*panelBytes), dst)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// square transposes eight by eight elements and moves from on by eight rows.
func square(from, to, ld, ld3 reg.Register) {
	v := avx2.vectors(8)
	for i := range 8 {
		if i == 4 {
			LEAQ(Mem{Base: from, Index: ld, Scale: 4}, from)
		}
		row := []Mem{
			{Base: from}, {Base: from, Index: ld, Scale: 1}, {Base: from, Index: ld, Scale: 2}, {Base: from, Index: ld3, Scale: 1},
		}[i%4]
		VMOVUPS(row, v[i])
	}
	LEAQ(Mem{Base: from, Index: ld, Scale: 4}, from)
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
	for i := range 4 {
		low, high := YMM(), YMM()
		VPERM2F128(U8(0x20), fours[4+i], fours[i], low)
		VPERM2F128(U8(0x31), fours[4+i], fours[i], high)
		VMOVUPS(low, Mem{Base: to, Disp: i * panelBytes})
		VMOVUPS(high, Mem{Base: to, Disp: (4 + i) * panelBytes})
	}
}
