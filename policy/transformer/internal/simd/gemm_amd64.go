package simd

import "sync"

// tiling is the shape of an inner kernel and the kernel: up to so many rows and columns of C.
type tiling struct {
	rows, columns int
	run           func(rows, tiles, k int, a, b, next *float32, step int, c *float32, ldc, columns int, accumulate bool)
}

// copiedElements is about how much of A is copied together: it is read again for each panel of B, from the second-level cache.
const copiedElements = 1 << 15

var scratch = sync.Pool{New: func() any { return new([]float32) }}

// gemm covers C by tiles, a block of rows at a time. A block of A is copied first, a tile after the other, since its rows
// mostly lie a power of two apart and would drive each other out of the cache. Each part of B then goes through all tiles.
func (t tiling) gemm(p product) {
	memory := scratch.Get().(*[]float32)
	defer scratch.Put(memory)
	tiles := divide(p.m, t.rows)
	height := divide(p.m, tiles) // the rows, shared out evenly: a low tile is slower for each of them
	blocks := divide(tiles*height*p.k, copiedElements)
	block := divide(tiles, blocks) * height
	if need := block*p.k + side; len(*memory) < need {
		*memory = make([]float32, need)
	}
	for i := 0; i < p.m; i += block {
		rows := min(block, p.m-i)
		copyBlock(*memory, &p, i, rows, height)
		t.block(&p, *memory, i, rows, height)
	}
}

// block computes rows i..i+rows−1 of C from a, in tiles of height rows. Meanwhile the same part of the next panel is fetched,
// since B may come from memory.
func (t tiling) block(p *product, a []float32, i, rows, height int) {
	tiles, rest := rows/height, rows%height
	for j := 0; j < p.n; j += t.columns {
		panel, within := j/PanelWidth*p.panelLen, j%PanelWidth
		b, columns := &p.b[panel+within], min(t.columns, p.n-j)
		next, step := panel+within, 0
		if (j/PanelWidth+1)*PanelWidth < p.n {
			next, step = panel+p.panelLen+within*p.k, max(1, 4*t.columns/divide(rows, height))
		}
		if tiles > 0 {
			t.run(height, tiles, p.k, &a[0], b, &p.b[next], step, &p.c[i*p.ldc+j], p.ldc, columns, p.accumulate)
		}
		if rest > 0 {
			first := tiles * height
			next = min(next+tiles*p.k*step/4, len(p.b)-1)
			t.run(rest, 1, p.k, &a[first*p.k], b, &p.b[next], step, &p.c[(i+first)*p.ldc+j], p.ldc, columns, p.accumulate)
		}
	}
}

// side is how many elements transposeAVX2 and eightsAVX2 move together.
const side = 8

// copyBlock copies rows i..i+rows−1 of A in tiles of height rows, the last with what is left: element (r, k) of the tile that
// begins with row x goes to dst[x·p.k + k·(rows of the tile) + r]. dst has side elements more, of which the last nobody reads.
func copyBlock(dst []float32, p *product, i, rows, height int) {
	few := p.k
	if p.aRow == 1 {
		few = 16 // of k: few enough for what they touch to stay in the first-level cache
	}
	for k0 := 0; k0 < p.k; k0 += few {
		n := min(few, p.k-k0)
		for x := 0; x < rows; x += height {
			h := min(height, rows-x)
			from, to := p.a[(i+x)*p.aRow+k0*p.aColumn:], dst[x*p.k+k0*h:]
			done := 0                    // of k
			if p.m-i-x >= max(side, h) { // else A may end before eight rows
				done = n
				if k0 > 0 && k0+n == p.k {
					done-- // for what is written too far would fall on the next tile's beginning, which is there already
				}
				done = copyEights(to, from, p, h, done)
			}
			for r := range h {
				for k := done; k < n; k++ {
					to[k*h+r] = from[r*p.aRow+k*p.aColumn]
				}
			}
		}
	}
}

// copyEights copies a tile of h rows, the first n of k, or as many as it returns. It goes by eight rows, overlapping where a
// tile has more. Where it has fewer, the next k puts right what was written too far.
func copyEights(to, from []float32, p *product, h, n int) int {
	if p.aRow != 1 {
		n -= n % side
	}
	for r := 0; n > 0; r = h - side {
		if p.aRow == 1 {
			eightsAVX2(&to[r], h, &from[r], p.aColumn, n)
		} else {
			transposeAVX2(&to[r], h, &from[r*p.aRow], p.aRow, 1, n/side)
		}
		if r+side >= h {
			break
		}
	}
	return n
}

// transposeSquares is transposeGeneric in squares of eight by eight as far as they go.
func transposeSquares(panel, s []float32, rows, columns, ld int) {
	down, across := rows/side, columns/side
	if down > 0 && across > 0 {
		transposeAVX2(&panel[0], PanelWidth, &s[0], ld, down, across)
	}
	if across*side < columns {
		transposeGeneric(panel[across*side*PanelWidth:], s[across*side:], down*side, columns-across*side, ld)
	}
	if down*side < rows {
		transposeGeneric(panel[down*side:], s[down*side*ld:], rows-down*side, columns, ld)
	}
}
