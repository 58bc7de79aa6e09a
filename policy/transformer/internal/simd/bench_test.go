package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkGemm reports GFLOP/s of one core. BenchmarkPeak is their ceiling.
func BenchmarkGemm(b *testing.B) {
	shapes := []struct{ m, n, k int }{
		{256, 384, 128}, {256, 768, 256}, {256, 1024, 512}, {256, 256, 1024}, {64, 64, 64}, {16, 768, 256}, {1, 768, 256},
	}
	for _, k := range available() {
		for _, s := range shapes {
			p := product{
				c: make([]float32, s.m*s.n), a: make([]float32, s.m*s.k), b: make([]float32, PackedLen(s.k, s.n)),
				m: s.m, n: s.n, k: s.k, ldc: s.n, aRow: s.k, aColumn: 1, panelLen: s.k * PanelWidth,
			}
			shape := fmt.Sprintf("m=%d,n=%d,k=%d", s.m, s.n, s.k)
			b.Run(k.name+"/Gemm/"+shape, func(b *testing.B) { benchmarkGemm(b, k, p) })
			p.aRow, p.aColumn, p.accumulate = 1, s.m, true
			b.Run(k.name+"/GemmT/"+shape, func(b *testing.B) { benchmarkGemm(b, k, p) })
		}
	}
}

func benchmarkGemm(b *testing.B, k kernels, p product) {
	for b.Loop() {
		k.gemm(p)
	}
	b.ReportMetric(2*float64(p.m*p.n*p.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkPeak(b *testing.B) {
	for _, k := range available() {
		b.Run(k.name, func(b *testing.B) {
			flops := 0
			for b.Loop() {
				flops += k.peak(10000)
			}
			b.ReportMetric(float64(flops)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// BenchmarkRows times the row operations on 512 elements, in the first-level cache.
func BenchmarkRows(b *testing.B) {
	const n = 512
	chosen := active
	defer func() { active = chosen }()
	for _, k := range available() {
		active = k
		for _, o := range rowOperations {
			from, _ := o.input(rand.New(rand.NewPCG(1, 2)), n)
			rows, _ := o.input(rand.New(rand.NewPCG(1, 2)), n)
			b.Run(k.name+"/"+o.name, func(b *testing.B) {
				for b.Loop() {
					for i, row := range from { // the same numbers every time, since subnormal ones are slower
						copy(rows[i], row)
					}
					o.run(rows)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/element")
			})
		}
	}
}

func BenchmarkPack(b *testing.B) {
	const k, n = 512, 512
	r := rand.New(rand.NewPCG(1, 2))
	x, packed := random(r, k*n), make([]float32, PackedLen(k, n))
	for name, pack := range map[string]func(dst, b []float32, k, n, ld int){"PackB": PackB, "PackBT": PackBT} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				pack(packed, x, k, n, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*k*n), "ns/element")
		})
	}
}
