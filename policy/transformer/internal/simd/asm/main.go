// Command asm writes the assembly of package simd: every operation for AVX-512 and for AVX2 with FMA, and the products in
// bfloat16 for AVX-512 BF16 and for AMX.
//
// AVX-512 and AVX2 treat a row in blocks of sixteen elements, AVX2 in two halves, with the same operations in the same order,
// so that their results are equal to the last bit.
package main

import "github.com/mmcloughlin/avo/build"

func main() {
	build.ConstraintExpr("amd64")
	for _, s := range []set{avx512, avx2} {
		tile(s)
		peak(s)
		rowOperations(s)
	}
	transpose()
	eights()
	widen()
	bf16()
	build.Generate()
}
