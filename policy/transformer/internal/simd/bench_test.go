package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func BenchmarkGemm(b *testing.B) {
	for _, k := range available() {
		b.Run(k.name+"/peak", func(b *testing.B) {
			flops := 0
			for b.Loop() {
				flops += k.peak(10000)
			}
			b.ReportMetric(float64(flops)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
		for _, s := range [][3]int{{256, 384, 128}, {256, 768, 256}, {256, 1024, 512}, {256, 256, 1024}, {64, 64, 64}, {16, 1024, 256}, {1, 1024, 256}} {
			for _, transposed := range []bool{false, true} {
				benchmarkGemm(b, k, s[0], s[1], s[2], transposed)
			}
		}
	}
}

func benchmarkGemm(b *testing.B, kernel kernels, m, n, k int, transposed bool) {
	name := map[bool]string{false: "Gemm", true: "GemmT"}[transposed]
	b.Run(fmt.Sprintf("%s/%s/m=%d,n=%d,k=%d", kernel.name, name, m, n, k), func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 2))
		p := product{
			c: make([]float32, m*n), a: random(r, m*k), b: random(r, PackedLen(k, n)), m: m, n: n, k: k,
			ldc: n, aRow: k, aColumn: 1, panelLen: k * PanelWidth,
		}
		if transposed {
			p.aRow, p.aColumn = 1, m
		}
		for b.Loop() {
			kernel.gemm(p)
		}
		b.ReportMetric(2*float64(m*n*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		b.ReportMetric(0, "ns/op")
	})
}
