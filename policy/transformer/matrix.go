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
	in, out   int
	precision Precision
	forth     packing   // Wᵀ, for the forward pass
	back      packing   // W, for the gradient of x; empty in a snapshot
	frozen    *rows     // in place of both, W that is not trained: packed anew for each product, a block at a time
	low       []lowRank // what an adapter adds
}

// packing is a matrix in the form that the right side of a product has in one precision or the other.
type packing struct {
	floats []float32
	pairs  []uint32
}

// lowRank adds x·Aᵀ·(scale·B)ᵀ to the columns of y from first on.
type lowRank struct {
	first int
	a     linear // A [rank, in]
	b     linear // scale·B [out, rank]
}

// pack reads w [out, in].
func (l *linear) pack(w []float32) {
	if l.precision == BFloat16 {
		simd.PackBTBF16(room(&l.forth.pairs, simd.PackedPairs(l.in, l.out)), w, l.in, l.out, l.in)
		return
	}
	simd.PackBT(room(&l.forth.floats, simd.PackedLen(l.in, l.out)), w, l.in, l.out, l.in)
}

// packBackward reads w [out, in] for backward.
func (l *linear) packBackward(w []float32) {
	if l.precision == BFloat16 {
		simd.PackBF16(room(&l.back.pairs, simd.PackedPairs(l.out, l.in)), w, l.out, l.in, l.in)
		return
	}
	simd.PackB(room(&l.back.floats, simd.PackedLen(l.out, l.in)), w, l.out, l.in, l.in)
}

// forward sets n rows of y to x·Wᵀ; u [n, rank] is scratch for an adapter.
func (l *linear) forward(y, x matrix, n int, u matrix) { l.product(y, x, n, u, false) }

// forwardAdd adds x·Wᵀ to n rows of y.
func (l *linear) forwardAdd(y, x matrix, n int, u matrix) { l.product(y, x, n, u, true) }

func (l *linear) product(y, x matrix, n int, u matrix, add bool) {
	if l.frozen != nil {
		l.forwardFrozen(y, x, n, add)
	} else {
		l.precision.multiply(y, x, n, l.out, l.in, l.forth, add)
	}
	for _, r := range l.low {
		r.a.product(u, x, n, matrix{}, false)
		r.b.product(y.columns(r.first, r.b.out), u, n, matrix{}, true)
	}
}

// backward sets n rows of dx to dy·W, W without its adapter, or adds dy·W to them.
func (l *linear) backward(dx, dy matrix, n int, add bool) {
	if l.frozen != nil {
		l.backwardFrozen(dx, dy, n, add)
		return
	}
	l.precision.multiply(dx, dy, n, l.in, l.out, l.back, add)
}

// multiply sets n rows and columns of c to a·b, or adds it to them; b was packed with k rows.
func (p Precision) multiply(c, a matrix, n, columns, k int, b packing, add bool) {
	if p == BFloat16 {
		simd.GemmBF16(c.v, c.ld, a.v, a.ld, n, columns, k, b.pairs, add)
		return
	}
	simd.Gemm(c.v, c.ld, a.v, a.ld, n, columns, k, b.floats, k, 0, add)
}

// gradient adds dyᵀ·x over n rows to dw [out, in]; scratch holds x packed.
func (l *linear) gradient(dw []float32, dy, x matrix, n int, scratch *packing) {
	if l.precision == BFloat16 {
		pairs := room(&scratch.pairs, simd.PackedPairs(n, l.in))
		simd.PackBF16(pairs, x.v, n, l.in, x.ld)
		simd.GemmTBF16(dw, l.in, dy.v, dy.ld, l.out, l.in, n, pairs, true)
		return
	}
	packed := packRows(&scratch.floats, x, n)
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
func room[T float32 | uint32](scratch *[]T, n int) []T {
	if len(*scratch) < n {
		*scratch = make([]T, n)
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
