package transformer

import (
	"sync"

	"skillmaster/policy/transformer/internal/simd"
)

// rows are a matrix [n, width] that is not trained: its rows one after the other, as they lie in memory or in files.
type rows struct {
	width int
	parts []part
}

// part are some of the rows.
type part struct {
	rows   int
	values []float32 // nil: in a file, at
	file   numbers
}

// rows returns the matrix at a span, whose rows have a width.
func (m *Model) rows(s span, width int) *rows {
	if m.files == nil {
		return &rows{width, []part{{rows: s.size / width, values: s.of(m.values)}}}
	}
	r := &rows{width: width}
	for i, t := range m.layout.tensors {
		if t.at >= s.at && t.at < s.at+s.size {
			r.parts = append(r.parts, part{rows: t.size / width, file: m.files[i]})
		}
	}
	return r
}

// vector returns the numbers at a span, which nobody may change.
func (m *Model) vector(s span) []float32 {
	if m.files == nil {
		return s.of(m.values)
	}
	v := make([]float32, s.size)
	m.rows(s, 1).read(v, 0)
	return v
}

// read sets dst to whole rows, from row first on.
func (r *rows) read(dst []float32, first int) {
	for _, p := range r.parts {
		if first >= p.rows {
			first -= p.rows
			continue
		}
		n := min(len(dst), (p.rows-first)*r.width)
		if p.values != nil {
			copy(dst[:n], p.values[first*r.width:])
		} else {
			p.file.read(dst[:n], first*r.width)
		}
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		first = 0
	}
	if len(dst) > 0 {
		panic("transformer: rows past the end of a matrix")
	}
}

// Rows of a frozen matrix that are packed at a time: a panel going forward, so that it is still in the cache when it is
// multiplied; going back, where a product is added for each block, enough to add. Both cost about what a matrix that is kept
// packed does.
const (
	frozenForward  = simd.PanelWidth
	frozenBackward = 256
)

// frozenScratch is what a block of a frozen matrix is packed in.
type frozenScratch struct {
	values []float32
	block  linear
}

var frozenScratches = sync.Pool{New: func() any { return new(frozenScratch) }}

// blocks calls f with each block of a frozen matrix, packed by form, and with its first row.
func (l *linear) blocks(size int, form func(*linear, []float32), f func(block *linear, first int)) {
	s := frozenScratches.Get().(*frozenScratch)
	defer frozenScratches.Put(s)
	for first := 0; first < l.out; first += size {
		s.block.in, s.block.out, s.block.precision = l.in, min(size, l.out-first), l.precision
		values := room(&s.values, s.block.out*l.in)
		l.frozen.read(values, first)
		form(&s.block, values)
		f(&s.block, first)
	}
}

// forwardFrozen is product without an adapter, for a frozen matrix, to the same bits.
func (l *linear) forwardFrozen(y, x matrix, n int, add bool) {
	l.blocks(frozenForward, (*linear).pack, func(b *linear, first int) {
		b.product(y.columns(first, b.out), x, n, matrix{}, add)
	})
}

// backwardFrozen is backward for a frozen matrix: a sum over blocks.
func (l *linear) backwardFrozen(dx, dy matrix, n int, add bool) {
	l.blocks(frozenBackward, (*linear).packBackward, func(b *linear, first int) {
		b.backward(dx, dy.columns(first, b.out), n, add || first > 0)
	})
}
