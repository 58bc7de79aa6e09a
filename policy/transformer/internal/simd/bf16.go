package simd

import (
	"fmt"
	"math"
	"os"
	"sync"
)

// Products in bfloat16: operands are rounded to bfloat16, to nearest and ties to even; products are exact and summed in
// float32. Both operands are held as pairs: words with the numbers of two consecutive k, the even one in the lower half.

// depth is how many k one panel of either operand holds; the last is filled with zeros.
const depth = 64

// panelPairs is the size of a panel: 32 rows of 32 pairs.
const panelPairs = PanelWidth * depth / 2

// pairKernels is one implementation of bfloat16's operations. Arguments have been checked.
type pairKernels struct {
	name string
	// rows sets rows of depth/2 pairs to rows of 1…depth numbers that lie ld apart, and zeros after them.
	rows func(dst []uint32, src []float32, rows, columns, ld int)
	// pairs sets rows of 32 pairs to the 1…32 columns of two rows of numbers each, and zeros after them.
	pairs func(dst []uint32, src []float32, pairs, columns, ld int)
	// transpose sets dst[j] of row i to src[i] of row j, in 32 rows of 32 pairs.
	transpose func(dst, src []uint32)
	// multiply computes 1…blockRows rows and 1…32 columns of C from panels of A that lie aPanel pairs apart, with room for
	// whole tiles of rows, and from as many panels of B.
	multiply func(rows, panels int, a []uint32, aPanel int, b []uint32, c []float32, ldc, columns int, accumulate bool)
	peak     func(iterations int) int
}

// blockRows is how many rows of A are packed at a time: a multiple of what any kernel takes at once.
const blockRows = 192

var pairing = choosePairs(os.Getenv("SKILLMASTER_BF16"), availablePairs())

func choosePairs(name string, from []pairKernels) pairKernels {
	i := chosen("SKILLMASTER_BF16", name, len(from), func(i int) string { return from[i].name })
	return from[i]
}

// KernelBF16 returns the name of the implementation of bfloat16 in use: generic, avx512bf16 or amx. The environment
// variable SKILLMASTER_BF16 overrides the choice. Their results differ by the rounding of sums.
func KernelBF16() string { return pairing.name }

// PeakBF16 is Peak for bfloat16; 0 where the processor has no instruction for it.
func PeakBF16(iterations int) int {
	if pairing.peak == nil {
		return 0
	}
	return pairing.peak(iterations)
}

// PackedPairs returns the length of a matrix of k rows and n columns packed in bfloat16: k·n/2, with k rounded up to 64 and
// n to whole panels.
func PackedPairs(k, n int) int { return (k + depth - 1) / depth * panels(n) * panelPairs }

// PackBF16 packs B [k,n], row-major with leading dimension ld, for GemmBF16. dst must have PackedPairs(k, n) elements at
// least.
func PackBF16(dst []uint32, b []float32, k, n, ld int) {
	checkMatrix("PackBF16", "b", len(b), k, n, ld)
	checkPairs("PackBF16", len(dst), k, n)
	for j := 0; j < n; j += PanelWidth {
		for i := 0; i < k; i += depth {
			packPairs(dst[:panelPairs], b[i*ld+j:], min(depth, k-i), min(PanelWidth, n-j), ld)
			dst = dst[panelPairs:]
		}
	}
}

// packPairs fills a panel from up to depth rows and 32 columns.
func packPairs(panel []uint32, src []float32, rows, columns, ld int) {
	whole := rows / 2
	if whole > 0 {
		pairing.pairs(panel, src, whole, columns, ld)
	}
	clear(panel[whole*PanelWidth:])
	if rows%2 == 1 { // the last number has no partner
		for j, v := range src[(rows-1)*ld : (rows-1)*ld+columns] {
			panel[whole*PanelWidth+j] = uint32(toBF16(v))
		}
	}
}

// PackBTBF16 packs B = Sᵀ, where S [n,k] is row-major with leading dimension ld, in the form PackBF16 gives B [k,n].
func PackBTBF16(dst []uint32, s []float32, k, n, ld int) {
	checkMatrix("PackBTBF16", "s", len(s), n, k, ld)
	checkPairs("PackBTBF16", len(dst), k, n)
	var square [panelPairs]uint32
	for j := 0; j < n; j += PanelWidth {
		rows := min(PanelWidth, n-j)
		clear(square[rows*depth/2:])
		for i := 0; i < k; i += depth {
			pairing.rows(square[:], s[j*ld+i:], rows, min(depth, k-i), ld)
			pairing.transpose(dst[:panelPairs], square[:])
			dst = dst[panelPairs:]
		}
	}
}

func checkPairs(function string, length, k, n int) {
	if length < PackedPairs(k, n) {
		panic(fmt.Sprintf("simd.%s: packed [%d,%d] needs %d pairs, has %d", function, k, n, PackedPairs(k, n), length))
	}
}

// GemmBF16 sets C [m,n] to A·B, or adds A·B to it, with the operands rounded to bfloat16. A [m,k] and C are row-major with
// leading dimensions lda and ldc; B was packed with k rows and at least n columns.
//
// A row of C depends on its own row of A alone, to the last bit, whatever else is computed with it. Beside the rounding of
// the operands an element is as far from the exact sum as float32 sums in any order are.
func GemmBF16(c []float32, ldc int, a []float32, lda, m, n, k int, packed []uint32, accumulate bool) {
	checkMatrix("GemmBF16", "c", len(c), m, n, ldc)
	checkMatrix("GemmBF16", "a", len(a), m, k, lda)
	checkPairs("GemmBF16", len(packed), k, n)
	multiplyPairs(c, ldc, m, n, k, packed, accumulate, func(block []uint32, i, rows, stride int) {
		for q := 0; q < k; q += depth {
			pairing.rows(block[q/depth*stride:], a[i*lda+q:], rows, min(depth, k-q), lda)
		}
	})
}

// GemmTBF16 is GemmBF16 with A given transposed: A[i,k] is a[k·lda + i].
func GemmTBF16(c []float32, ldc int, a []float32, lda, m, n, k int, packed []uint32, accumulate bool) {
	checkMatrix("GemmTBF16", "c", len(c), m, n, ldc)
	checkMatrix("GemmTBF16", "a", len(a), k, m, lda)
	checkPairs("GemmTBF16", len(packed), k, n)
	multiplyPairs(c, ldc, m, n, k, packed, accumulate, func(block []uint32, i, rows, stride int) {
		var square [panelPairs]uint32
		for q := 0; q < k; q += depth {
			for j := 0; j < rows; j += PanelWidth {
				packPairs(square[:], a[q*lda+i+j:], min(depth, k-q), min(PanelWidth, rows-j), lda)
				pairing.transpose(block[q/depth*stride+j*depth/2:], square[:])
			}
		}
	})
}

var blocks = sync.Pool{New: func() any { return new([]uint32) }}

// multiplyPairs covers C a block of rows at a time. pack fills a block with rows of A from row i on: panels of rows of
// depth/2 pairs, stride pairs apart.
func multiplyPairs(c []float32, ldc, m, n, k int, packed []uint32, accumulate bool, pack func(block []uint32, i, rows, stride int)) {
	memory := blocks.Get().(*[]uint32)
	defer blocks.Put(memory)
	depths := (k + depth - 1) / depth
	stride := min(blockRows, (m+PanelWidth-1)/PanelWidth*PanelWidth) * depth / 2
	if len(*memory) < depths*stride {
		*memory = make([]uint32, depths*stride)
	}
	block := (*memory)[:depths*stride]
	for i := 0; i < m; i += blockRows {
		rows := min(blockRows, m-i)
		pack(block, i, rows, stride)
		for j := 0; j < n; j += PanelWidth {
			b := packed[j/PanelWidth*depths*panelPairs:][:depths*panelPairs]
			pairing.multiply(rows, depths, block, stride, b, c[i*ldc+j:], ldc, min(PanelWidth, n-j), accumulate)
		}
	}
}

// toBF16 rounds to nearest, ties to even. NaN becomes a quiet NaN.
func toBF16(v float32) uint16 {
	if v != v {
		return 0x7fc0
	}
	x := math.Float32bits(v)
	return uint16((x + 0x7fff + x>>16&1) >> 16)
}

// parts returns the two numbers of a pair.
func parts(pair uint32) (even, odd float32) {
	return math.Float32frombits(pair << 16), math.Float32frombits(pair &^ 0xffff)
}

// genericPairs is the definition in plain Go.
var genericPairs = pairKernels{
	name: "generic",
	rows: func(dst []uint32, src []float32, rows, columns, ld int) {
		for i := range rows {
			row, from := dst[i*depth/2:(i+1)*depth/2], src[i*ld:i*ld+columns]
			clear(row)
			for j, v := range from {
				row[j/2] |= uint32(toBF16(v)) << (j % 2 * 16)
			}
		}
	},
	pairs: func(dst []uint32, src []float32, pairs, columns, ld int) {
		for i := range pairs {
			row := dst[i*PanelWidth : (i+1)*PanelWidth]
			clear(row)
			for j := range columns {
				row[j] = uint32(toBF16(src[2*i*ld+j])) | uint32(toBF16(src[(2*i+1)*ld+j]))<<16
			}
		}
	},
	transpose: func(dst, src []uint32) {
		for i := range PanelWidth {
			for j := range PanelWidth {
				dst[i*PanelWidth+j] = src[j*PanelWidth+i]
			}
		}
	},
	multiply: func(rows, panels int, a []uint32, aPanel int, b []uint32, c []float32, ldc, columns int, accumulate bool) {
		for i := range rows {
			var sums [PanelWidth]float32
			for q := range panels {
				for p, pair := range a[q*aPanel+i*depth/2:][:depth/2] {
					x0, x1 := parts(pair)
					for j, other := range b[q*panelPairs+p*PanelWidth:][:columns] {
						y0, y1 := parts(other)
						sums[j] += x0*y0 + x1*y1
					}
				}
			}
			row := c[i*ldc : i*ldc+columns]
			for j := range row {
				if accumulate {
					sums[j] += row[j]
				}
				row[j] = sums[j]
			}
		}
	},
}
