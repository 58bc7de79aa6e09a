package simd

import "fmt"

// PanelWidth is the number of columns in a panel of a packed matrix.
const PanelWidth = 32

// PackedLen returns the length of a packed matrix of k rows and n columns: k·n with n rounded up to whole panels.
func PackedLen(k, n int) int { return k * panels(n) * PanelWidth }

func panels(n int) int { return divide(n, PanelWidth) }

// PackB packs B [k,n], row-major with leading dimension ld, for Gemm and GemmT: panel p holds rows 0..k−1 of columns
// 32p..32p+31, so dst[p·k·32 + i·32 + j] is B[i, 32p+j], and 0 in columns past n. dst must have PackedLen(k, n) elements
// at least.
func PackB(dst, b []float32, k, n, ld int) {
	checkMatrix("PackB", "b", len(b), k, n, ld)
	checkPacked("PackB", len(dst), k, n)
	for j := 0; j < n; j += PanelWidth {
		panel := dst[j*k : (j+PanelWidth)*k]
		width := min(PanelWidth, n-j)
		for i := range k {
			row := panel[i*PanelWidth : (i+1)*PanelWidth]
			if width == PanelWidth {
				*(*[PanelWidth]float32)(row) = *(*[PanelWidth]float32)(b[i*ld+j:])
				continue
			}
			copy(row, b[i*ld+j:i*ld+n])
			clear(row[width:])
		}
	}
}

// PackBT packs B = Sᵀ, where S [n,k] is row-major with leading dimension ld, in the form PackB gives B [k,n].
func PackBT(dst, s []float32, k, n, ld int) {
	checkMatrix("PackBT", "s", len(s), n, k, ld)
	checkPacked("PackBT", len(dst), k, n)
	for j := 0; j < n; j += PanelWidth {
		panel := dst[j*k : (j+PanelWidth)*k]
		width := min(PanelWidth, n-j)
		active.transpose(panel, s[j*ld:], width, k, ld)
		for i := 0; i < k && width < PanelWidth; i++ {
			clear(panel[i*PanelWidth+width : (i+1)*PanelWidth])
		}
	}
}

// product is one checked matrix product C (+)= A·B. A[i,k] is a[i·aRow + k·aColumn]; b starts at the first row used of the
// first panel, and panelLen elements lie between one panel and the next.
type product struct {
	c, a, b       []float32
	m, n, k       int
	ldc           int
	aRow, aColumn int
	panelLen      int
	accumulate    bool
}

// Gemm sets C [m,n] to A·B, or adds A·B to it. A [m,k] and C are row-major with leading dimensions lda and ldc; B is
// rows k0..k0+k−1 of a packed matrix of packedK rows and at least n columns. m, n and k are at least 1, and C overlaps
// neither A nor B.
//
// Up to 256 k are taken together: an element is summed over ascending k from 0 by fused multiply-adds in one accumulator,
// which is then added to C, but set if it is the first and not accumulate. So a row of C depends on its own row of A alone,
// to the last bit, whatever else is computed with it. (generic may round the product before it adds; its rows are as
// independent.)
func Gemm(c []float32, ldc int, a []float32, lda int, m, n, k int, packed []float32, packedK, k0 int, accumulate bool) {
	checkProduct("Gemm", c, ldc, m, n, k, packed, packedK, k0)
	checkMatrix("Gemm", "a", len(a), m, k, lda)
	active.multiply(product{
		c: c, a: a, b: packed[k0*PanelWidth:], m: m, n: n, k: k,
		ldc: ldc, aRow: lda, aColumn: 1, panelLen: packedK * PanelWidth, accumulate: accumulate,
	})
}

// GemmT is Gemm with A given transposed: A[i,k] is a[k·lda + i], as in the weight gradient Aᵀ·B.
func GemmT(c []float32, ldc int, a []float32, lda int, m, n, k int, packed []float32, packedK, k0 int, accumulate bool) {
	checkProduct("GemmT", c, ldc, m, n, k, packed, packedK, k0)
	checkMatrix("GemmT", "a", len(a), k, m, lda)
	active.multiply(product{
		c: c, a: a, b: packed[k0*PanelWidth:], m: m, n: n, k: k,
		ldc: ldc, aRow: 1, aColumn: lda, panelLen: packedK * PanelWidth, accumulate: accumulate,
	})
}

// together is how many k are summed before C is written, at most: B's part of a panel then stays in the first-level cache while
// all of A goes by.
const together = 256

// multiply makes C from equal parts of k, which begin at whole lines.
func (k *kernels) multiply(p product) {
	const line = 16
	rest := p.k
	part := divide(divide(rest, divide(rest, together)), line) * line
	for {
		p.k = min(part, rest)
		k.gemm(p)
		if rest -= p.k; rest == 0 {
			return
		}
		p.a, p.b, p.accumulate = p.a[p.k*p.aColumn:], p.b[p.k*PanelWidth:], true
	}
}

func divide(n, by int) int { return (n + by - 1) / by }

func checkProduct(function string, c []float32, ldc, m, n, k int, packed []float32, packedK, k0 int) {
	checkMatrix(function, "c", len(c), m, n, ldc)
	checkPacked(function, len(packed), packedK, n)
	if k < 1 || k0 < 0 || k0+k > packedK {
		panic(fmt.Sprintf("simd.%s: rows %d..%d of a packed matrix of %d rows", function, k0, k0+k-1, packedK))
	}
}

// checkMatrix panics unless length elements hold a row-major matrix of this shape.
func checkMatrix(function, name string, length, rows, columns, ld int) {
	if rows < 1 || columns < 1 || ld < columns || length < (rows-1)*ld+columns {
		panic(fmt.Sprintf("simd.%s: %s [%d,%d] with leading dimension %d does not fit %d elements",
			function, name, rows, columns, ld, length))
	}
}

func checkPacked(function string, length, k, n int) {
	if length < PackedLen(k, n) {
		panic(fmt.Sprintf("simd.%s: packed [%d,%d] needs %d elements, has %d", function, k, n, PackedLen(k, n), length))
	}
}
