package simd

import "sync"

// tiling is the shape of an inner kernel and the kernel. Kernels may fetch the cache line of next, which they move by step
// bytes with each k.
type tiling struct {
	rows, columns int
	run           func(rows, k int, a *float32, aRow, aColumn int, b, next *float32, step int, c *float32, ldc, columns int, accumulate bool)
	lowRows       int // most rows for which low is faster, which computes a panel's columns; 0: there is none
	low           func(rows, k int, a *float32, aRow, aColumn int, b, next *float32, step int, c *float32, ldc int, accumulate bool)
	fetches       bool
}

const (
	// reusedElements is how much of B every tile of rows goes through before the next part of B is begun: half a megabyte,
	// which stays in the second-level cache, while the rows of A in a tile stay in the first.
	reusedElements = 1 << 17
	// smallElements is what an A may have to be read again for each panel of B, from the second-level cache.
	smallElements = 1 << 16
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

// cover goes through the parts of B, and through the tiles of rows for each. A small A goes through one panel at a time:
// every tile of rows then fetches its share of the next, since B may come from memory.
func (t tiling) cover(p product) {
	part := max(1, reusedElements/(p.k*PanelWidth)) * PanelWidth
	tiles, fetchers := (p.m+t.rows-1)/t.rows, 1
	if t.fetches && p.m*p.k <= smallElements {
		part, fetchers = PanelWidth, tiles
	}
	for j := 0; j < p.n; j += part {
		i := 0
		for left := tiles; left > 0; left-- {
			rows := (p.m - i + left - 1) / left // shared out evenly: a low tile is slower for each row
			t.tiles(&p, i, rows, j, min(p.n, j+part), share{tiles - left, fetchers})
			i += rows
		}
	}
}

// share is what one tile of rows fetches of the next panel: part turn of turns; nothing from turns on.
type share struct{ turn, turns int }

// of returns where in B the share begins and its bytes for each k, when columns from j on are computed.
func (s share) of(p *product, j int) (next, step int) {
	panel := j / PanelWidth * p.panelLen
	if s.turn >= s.turns || j+PanelWidth >= p.n {
		return panel, 0
	}
	return panel + p.panelLen + p.k*PanelWidth*s.turn/s.turns, 4 * PanelWidth / s.turns
}

// tiles computes some rows of C from row i on, in columns j..end−1.
func (t tiling) tiles(p *product, i, rows, j, end int, s share) {
	a := &p.a[i*p.aRow]
	for ; j < end; j += PanelWidth {
		from, width := j/PanelWidth*p.panelLen, min(PanelWidth, end-j)
		next, step := s.of(p, j)
		if rows <= t.lowRows && width == PanelWidth {
			t.low(rows, p.k, a, p.aRow, p.aColumn, &p.b[from], &p.b[next], step, &p.c[i*p.ldc+j], p.ldc, p.accumulate)
			continue
		}
		step = step * t.columns / PanelWidth
		for q := 0; q < width; q += t.columns {
			t.run(rows, p.k, a, p.aRow, p.aColumn, &p.b[from+q], &p.b[next+q/t.columns*p.k*step/4], step, &p.c[i*p.ldc+j+q], p.ldc,
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
