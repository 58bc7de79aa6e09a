package simd

// tiling is the shape of an inner kernel and the kernel.
type tiling struct {
	rows, columns int
	run           func(rows, k int, a *float32, aRow, aColumn int, b, c *float32, ldc, columns int, accumulate bool)
}

// blockElements is how much of A is gone through for every panel of B before the next rows are: half a megabyte, which
// stays in the second-level cache.
const blockElements = 1 << 17

// gemm covers C by tiles, all of a block of rows under one panel of B before the next panel.
func (t tiling) gemm(p product) {
	block := max(1, blockElements/p.k/t.rows) * t.rows
	for i := 0; i < p.m; i += block {
		end := min(p.m, i+block)
		for j := 0; j < p.n; j += PanelWidth {
			t.panel(&p, i, end, j)
		}
	}
}

// panel computes rows i..end−1 of C in the columns of the panel that begins at column j. The rows are shared out evenly
// over the tiles, since a low tile is slower for each row.
func (t tiling) panel(p *product, i, end, j int) {
	from, width := j/PanelWidth*p.panelLen, min(PanelWidth, p.n-j)
	for left := (end - i + t.rows - 1) / t.rows; left > 0; left-- {
		rows := (end - i + left - 1) / left
		for q := 0; q < width; q += t.columns {
			t.run(rows, p.k, &p.a[i*p.aRow], p.aRow, p.aColumn, &p.b[from+q], &p.c[i*p.ldc+j+q], p.ldc,
				min(t.columns, width-q), p.accumulate)
		}
		i += rows
	}
}
