package simd

import "sync"

// tiling is the shape of an inner kernel and the kernel.
type tiling struct {
	rows, columns int
	run           func(rows, k int, a *float32, aRow, aColumn int, b, c *float32, ldc, columns int, accumulate bool)
}

const (
	// reusedElements is how much of B every tile of rows goes through before the next part of B is begun: half a megabyte,
	// which stays in the second-level cache, while the rows of A in a tile stay in the first.
	reusedElements = 1 << 17
	// copiedRows is about how many rows of a transposed A are copied together, and copiedFor the least number of columns of
	// C that repays it. Where the rows of Aᵀ lie a power of two apart, they would drive each other out of the cache.
	copiedRows = 112
	copiedFor  = 4 * PanelWidth
)

// gemm covers C by tiles.
func (t tiling) gemm(p product) {
	if p.aColumn == 1 || p.n < copiedFor {
		t.cover(p)
		return
	}
	t.coverCopied(p)
}

var scratch = sync.Pool{New: func() any { return new([]float32) }}

// coverCopied covers C a block of rows at a time, after it has copied the block of A close together.
func (t tiling) coverCopied(p product) {
	memory := scratch.Get().(*[]float32)
	defer scratch.Put(memory)
	ld := copiedRows / t.rows * t.rows
	if len(*memory) < p.k*ld {
		*memory = make([]float32, p.k*ld)
	}
	block := p
	block.a, block.aColumn = *memory, ld
	for i := 0; i < p.m; i += ld {
		block.m, block.c = min(ld, p.m-i), p.c[i*p.ldc:]
		for k := range p.k {
			copy(block.a[k*ld:k*ld+block.m], p.a[k*p.aColumn+i:])
		}
		t.cover(block)
	}
}

// cover goes through the parts of B, and through the tiles of rows for each.
func (t tiling) cover(p product) {
	part := max(1, reusedElements/(p.k*PanelWidth)) * PanelWidth
	for j := 0; j < p.n; j += part {
		end := min(p.n, j+part)
		i := 0
		for left := (p.m + t.rows - 1) / t.rows; left > 0; left-- {
			rows := (p.m - i + left - 1) / left // shared out evenly: a low tile is slower for each row
			t.tiles(&p, i, rows, j, end)
			i += rows
		}
	}
}

// tiles computes some rows of C from row i on, in columns j..end−1.
func (t tiling) tiles(p *product, i, rows, j, end int) {
	for ; j < end; j += PanelWidth {
		from, width := j/PanelWidth*p.panelLen, min(PanelWidth, end-j)
		for q := 0; q < width; q += t.columns {
			t.run(rows, p.k, &p.a[i*p.aRow], p.aRow, p.aColumn, &p.b[from+q], &p.c[i*p.ldc+j+q], p.ldc,
				min(t.columns, width-q), p.accumulate)
		}
	}
}

// transposeSquares is transposeGeneric in squares of eight by eight as far as they go.
func transposeSquares(panel, s []float32, rows, columns, ld int) {
	const side = 8
	down, across := rows/side, columns/side
	if down > 0 && across > 0 {
		transposeAVX2(&panel[0], &s[0], ld, down, across)
	}
	if across*side < columns {
		transposeGeneric(panel[across*side*PanelWidth:], s[across*side:], down*side, columns-across*side, ld)
	}
	if down*side < rows {
		transposeGeneric(panel[down*side:], s[down*side*ld:], rows-down*side, columns, ld)
	}
}
