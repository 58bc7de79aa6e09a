package simd

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// pairsAVX512 packs for both kernels below.
var pairsAVX512 = pairKernels{
	rows: func(dst []uint32, src []float32, rows, columns, ld int) {
		rowsBF16AVX512(&dst[0], &src[0], rows, columns, ld)
	},
	pairs: func(dst []uint32, src []float32, pairs, columns, ld int) {
		pairsBF16AVX512(&dst[0], &src[0], pairs, columns, ld)
	},
	transpose: func(dst, src []uint32) {
		// Words are moved, whatever they mean.
		transposeAVX2((*float32)(unsafe.Pointer(&dst[0])), PanelWidth, (*float32)(unsafe.Pointer(&src[0])), PanelWidth, PanelWidth/8, PanelWidth/8)
	},
}

// availablePairs returns the implementations this machine can run, the fastest last.
func availablePairs() []pairKernels {
	all := []pairKernels{genericPairs}
	if !cpu.X86.HasAVX512BF16 || active.name != "avx512" {
		return all
	}
	dot := pairsAVX512
	dot.name, dot.multiply = "avx512bf16", multiplyAVX512
	all = append(all, dot)
	if cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && permitTiles() {
		matrix := pairsAVX512
		matrix.name, matrix.multiply, matrix.peak = "amx", multiplyAMX, peakAMX
		all = append(all, matrix)
	}
	return all
}

// tileRowsBF16 is the most rows of tileBF16AVX512.
const tileRowsBF16 = 12

func multiplyAVX512(rows, panels int, a []uint32, aPanel int, b []uint32, c []float32, ldc, columns int, accumulate bool) {
	for left := (rows + tileRowsBF16 - 1) / tileRowsBF16; left > 0; left-- {
		n := (rows + left - 1) / left // shared out evenly: a low tile is slower for each row
		tileBF16AVX512(n, panels, &a[0], aPanel, &b[0], &c[0], ldc, columns, accumulate)
		if rows -= n; rows > 0 {
			a, c = a[n*depth/2:], c[n*ldc:]
		}
	}
}

// multiplyAMX computes what fits whole blocks in C itself, and the rest in a block apart.
func multiplyAMX(rows, panels int, a []uint32, aPanel int, b []uint32, c []float32, ldc, columns int, accumulate bool) {
	if whole := rows / 32; columns == PanelWidth && whole > 0 {
		tile32AMX(whole, panels, &a[0], aPanel, &b[0], &c[0], ldc, accumulate)
		if rows -= 32 * whole; rows == 0 {
			return
		}
		a, c = a[32*whole*depth/2:], c[32*whole*ldc:]
	}
	var block [32 * PanelWidth]float32
	for rows > 0 {
		n := min(rows, 32)
		for i := 0; i < n && accumulate; i++ {
			copy(block[i*PanelWidth:], c[i*ldc:i*ldc+columns])
		}
		if n > 16 {
			tile32AMX(1, panels, &a[0], aPanel, &b[0], &block[0], PanelWidth, accumulate)
		} else {
			tile16AMX(1, panels, &a[0], aPanel, &b[0], &block[0], PanelWidth, accumulate)
		}
		for i := range n {
			copy(c[i*ldc:i*ldc+columns], block[i*PanelWidth:])
		}
		if rows -= n; rows > 0 {
			a, c = a[n*depth/2:], c[n*ldc:]
		}
	}
}
