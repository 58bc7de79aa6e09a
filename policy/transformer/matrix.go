package transformer

import (
	"sync"
	"sync/atomic"

	"skillmaster/policy/transformer/internal/simd"
)

// matrix is a row-major matrix whose rows are ld apart, or a part of the columns of one.
type matrix struct {
	v         []float32
	width, ld int
}

// newMatrix returns an empty matrix of rows of a width. Rows are an odd number of cache lines apart, so that a column
// does not fall on few sets of the cache.
func newMatrix(width int) matrix {
	if width == 0 {
		return matrix{}
	}
	lines := (width + alignment - 1) / alignment
	return matrix{width: width, ld: (lines | 1) * alignment}
}

// grow makes room for n rows; contents are lost if it has to move.
func (m *matrix) grow(n int) {
	if len(m.v) < n*m.ld {
		m.v = make([]float32, n*m.ld)
	}
}

func (m matrix) row(i int) []float32 { return m.v[i*m.ld : i*m.ld+m.width : i*m.ld+m.width] }

// from returns the rows from i on.
func (m matrix) from(i int) matrix { return matrix{m.v[i*m.ld:], m.width, m.ld} }

// columns returns width columns from column at on.
func (m matrix) columns(at, width int) matrix { return matrix{m.v[at:], width, m.ld} }

// copyRows copies n rows.
func copyRows(dst, src matrix, n int) {
	for i := range n {
		copy(dst.row(i), src.row(i))
	}
}

// linear is y = x·Wᵀ with W [out, in], in the forms the kernels read.
type linear struct {
	in, out    int
	packed     []float32 // Wᵀ, for the forward pass
	transposed []float32 // W, for the gradient of x; nil in a snapshot
	low        []lowRank // what an adapter adds
}

// lowRank adds x·Aᵀ·(scale·B)ᵀ to the columns of y from first on.
type lowRank struct {
	first int
	a     linear // A [rank, in]
	b     linear // scale·B [out, rank]
}

// pack reads w [out, in].
func (l *linear) pack(w []float32) {
	if l.packed == nil {
		l.packed = make([]float32, simd.PackedLen(l.in, l.out))
	}
	simd.PackBT(l.packed, w, l.in, l.out, l.in)
}

// packBackward reads w [out, in] for backward.
func (l *linear) packBackward(w []float32) {
	if l.transposed == nil {
		l.transposed = make([]float32, simd.PackedLen(l.out, l.in))
	}
	simd.PackB(l.transposed, w, l.out, l.in, l.in)
}

// forward sets n rows of y to x·Wᵀ; u [n, rank] is scratch for an adapter.
func (l *linear) forward(y, x matrix, n int, u matrix) { l.product(y, x, n, u, false) }

// forwardAdd adds x·Wᵀ to n rows of y.
func (l *linear) forwardAdd(y, x matrix, n int, u matrix) { l.product(y, x, n, u, true) }

func (l *linear) product(y, x matrix, n int, u matrix, add bool) {
	simd.Gemm(y.v, y.ld, x.v, x.ld, n, l.out, l.in, l.packed, l.in, 0, add)
	for _, r := range l.low {
		r.a.product(u, x, n, matrix{}, false)
		r.b.product(y.columns(r.first, r.b.out), u, n, matrix{}, true)
	}
}

// backward sets n rows of dx to dy·W, W without its adapter, or adds dy·W to them.
func (l *linear) backward(dx, dy matrix, n int, add bool) {
	simd.Gemm(dx.v, dx.ld, dy.v, dy.ld, n, l.in, l.out, l.transposed, l.out, 0, add)
}

// gradient adds dyᵀ·x over n rows to dw [out, in]; scratch holds x packed.
func (l *linear) gradient(dw []float32, dy, x matrix, n int, scratch *[]float32) {
	packed := packRows(scratch, x, n)
	simd.GemmT(dw, l.in, dy.v, dy.ld, l.out, l.in, n, packed, n, 0, true)
}

// packRows packs n rows of x as the right side of a product.
func packRows(scratch *[]float32, x matrix, n int) []float32 {
	packed := room(scratch, simd.PackedLen(n, x.width))
	simd.PackB(packed, x.v, n, x.width, x.ld)
	return packed
}

// packTransposed packs the transpose of n rows of x as the right side of a product.
func packTransposed(scratch *[]float32, x matrix, n int) []float32 {
	packed := room(scratch, simd.PackedLen(x.width, n))
	simd.PackBT(packed, x.v, x.width, n, x.ld)
	return packed
}

// room returns the first n elements of the scratch, which grows if it must; contents are lost then.
func room(scratch *[]float32, n int) []float32 {
	if len(*scratch) < n {
		*scratch = make([]float32, n)
	}
	return (*scratch)[:n]
}

// parallel calls f(worker, job) for every job, on up to workers goroutines, and waits for them.
func parallel(workers, jobs int, f func(worker, job int)) {
	workers = min(workers, jobs)
	if workers <= 1 {
		for j := range jobs {
			f(0, j)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for j := int(next.Add(1)) - 1; j < jobs; j = int(next.Add(1)) - 1 {
				f(w, j)
			}
		})
	}
	wg.Wait()
}
