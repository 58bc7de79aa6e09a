// Command asm writes the assembly of package simd: every operation for AVX-512 and for AVX2 with FMA.
//
// Both forms treat a row in blocks of sixteen elements, AVX2 in two halves, with the same operations in the same order,
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
	build.Generate()
}
