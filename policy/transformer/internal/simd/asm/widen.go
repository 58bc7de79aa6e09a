package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// widen writes the conversion of bfloat16 to float32. One form serves both sets: it waits for memory.
func widen() {
	TEXT("widenAVX2", attr.NOSPLIT, "func(dst *float32, src *byte, blocks int)")
	Doc("widenAVX2 sets 16·blocks elements of dst to the bfloat16 numbers of src.")
	Pragma("noescape")
	dst, src, blocks := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("blocks"), GP64())
	Label("block")
	for part := range avx2.parts {
		v := avx2.vector()
		VPMOVZXWD(Mem{Base: src, Disp: part * avx2.bytes() / 2}, v)
		VPSLLD(U8(16), v, v)
		VMOVUPS(v, Mem{Base: dst, Disp: part * avx2.bytes()})
	}
	ADDQ(U8(blockBytes/2), src)
	ADDQ(U8(blockBytes), dst)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}
