package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// withPairs runs a test with each implementation of bfloat16.
func withPairs(t *testing.T, f func(t *testing.T)) {
	was := pairing
	defer func() { pairing = was }()
	for _, k := range availablePairs() {
		pairing = k
		t.Run(k.name, f)
	}
}

func TestToBF16(t *testing.T) {
	for _, c := range []struct {
		v    float32
		want uint16
	}{
		{0, 0},
		{1, 0x3f80},
		{-2, 0xc000},
		{1 + 0x1p-8, 0x3f80},
		{1 + 3*0x1p-8, 0x3f82},
		{1 + 0x1p-8 + 0x1p-20, 0x3f81},
		{float32(math.Inf(-1)), 0xff80},
		{math.MaxFloat32, 0x7f80},
		{float32(math.NaN()), 0x7fc0},
		{math.Float32frombits(0xffffffff), 0x7fc0},
		{0x1p-140, 0x0000},
		{0x1p-133, 0x0001},
	} {
		if got := toBF16(c.v); got != c.want {
			t.Errorf("%v becomes %#04x, want %#04x", c.v, got, c.want)
		}
	}
}

// TestPackingBF16: every implementation packs to the same words, those of the definition.
func TestPackingBF16(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	special := []float32{0, float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32, 0x1p-140, math.Float32frombits(0x7fffffff), math.Float32frombits(0xff800001)}
	for range 20 {
		k, n := 1+r.IntN(150), 1+r.IntN(90)
		ld, ldT := n+r.IntN(3), k+r.IntN(3)
		b, s := random(r, (k-1)*ld+n), make([]float32, (n-1)*ldT+k)
		for i := range b {
			if r.IntN(40) == 0 {
				b[i] = special[r.IntN(len(special))]
			}
		}
		want := make([]uint32, PackedPairs(k, n))
		for i := range k {
			for j := range n {
				s[j*ldT+i] = b[i*ld+j]
				want[((j/32*((k+63)/64)+i/64)*32+i%64/2)*32+j%32] |= uint32(toBF16(b[i*ld+j])) << (i % 2 * 16)
			}
		}
		withPairs(t, func(t *testing.T) {
			for name, pack := range map[string]func(got []uint32){
				"PackBF16":   func(got []uint32) { PackBF16(got, b, k, n, ld) },
				"PackBTBF16": func(got []uint32) { PackBTBF16(got, s, k, n, ldT) },
			} {
				got := slices.Repeat([]uint32{0xdeadbeef}, len(want))
				pack(got)
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("%s k=%d n=%d: word %d is %#x, want %#x", name, k, n, i, got[i], want[i])
					}
				}
			}
		})
	}
}

// rounded returns x rounded to bfloat16.
func rounded(x float32) float64 {
	v, _ := parts(uint32(toBF16(x)))
	return float64(v)
}

// TestGemmBF16 compares products of every shape around the edges of tiles with exact sums.
func TestGemmBF16(t *testing.T) {
	withPairs(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		shapes := [][3]int{
			{1, 1, 1},
			{1, 32, 64},
			{16, 32, 64},
			{17, 33, 65},
			{32, 64, 128},
			{33, 31, 63},
			{12, 5, 2},
			{13, 64, 130},
			{25, 40, 64},
			{blockRows, 32, 64},
			{blockRows + 1, 37, 70},
			{2*blockRows + 50, 32, 33},
			{31, 96, 200},
			{48, 64, 1},
		}
		for range 10 {
			shapes = append(shapes, [3]int{1 + r.IntN(80), 1 + r.IntN(80), 1 + r.IntN(150)})
		}
		for i, s := range shapes {
			for _, transposed := range []bool{false, true} {
				checkGemmBF16(t, r, s[0], s[1], s[2], transposed, i%2 == 0)
			}
		}
	})
}

func checkGemmBF16(t *testing.T, r *rand.Rand, m, n, k int, transposed, accumulate bool) {
	t.Helper()
	rows, columns := m, k
	if transposed {
		rows, columns = k, m
	}
	lda, ldc := columns+r.IntN(3), n+r.IntN(3)
	a, b := random(r, (rows-1)*lda+columns), random(r, k*n)
	packed := make([]uint32, PackedPairs(k, n))
	PackBF16(packed, b, k, n, n)
	c, intact := guarded(r, (m-1)*ldc+n)
	before := slices.Clone(c)
	run, at := GemmBF16, func(i, q int) float64 { return rounded(a[i*lda+q]) }
	if transposed {
		run, at = GemmTBF16, func(i, q int) float64 { return rounded(a[q*lda+i]) }
	}
	run(c, ldc, a, lda, m, n, k, packed, accumulate)
	name := fmt.Sprintf("m=%d n=%d k=%d transposed=%t accumulate=%t", m, n, k, transposed, accumulate)
	if !intact() {
		t.Fatalf("%s: wrote beside C", name)
	}
	for p, got := range c {
		i, j := p/ldc, p%ldc
		if j >= n {
			if got != before[p] {
				t.Fatalf("%s: wrote between the rows of C", name)
			}
			continue
		}
		var sum, most float64
		for q := range k {
			term := at(i, q) * rounded(b[q*n+j])
			sum, most = sum+term, most+math.Abs(term)
		}
		if accumulate {
			sum, most = sum+float64(before[p]), most+math.Abs(float64(before[p]))
		}
		if !(math.Abs(float64(got)-sum) <= most*float64(k+2)*0x1p-24) {
			t.Fatalf("%s: C[%d,%d] is %v, want %v", name, i, j, got, sum)
		}
	}
}

// TestRowsBF16: a row of C is the same to the last bit whatever is computed with it.
func TestRowsBF16(t *testing.T) {
	withPairs(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		const m, n, k = blockRows + 21, 37, 133
		a, b := random(r, m*k), random(r, k*n)
		packed := make([]uint32, PackedPairs(k, n))
		PackBF16(packed, b, k, n, n)
		for _, accumulate := range []bool{false, true} {
			whole := random(r, m*n)
			first := slices.Clone(whole)
			GemmBF16(whole, n, a, k, m, n, k, packed, accumulate)
			for range 15 {
				i := r.IntN(m)
				rows := 1 + r.IntN(min(m-i, 40))
				part := slices.Clone(first[i*n : (i+rows)*n])
				GemmBF16(part, n, a[i*k:], k, rows, n, k, packed, accumulate)
				if !slices.Equal(part, whole[i*n:(i+rows)*n]) {
					t.Fatalf("rows %d…%d alone differ from those of all, accumulate %t", i, i+rows-1, accumulate)
				}
			}
		}
	})
}

// TestConcurrentBF16: many goroutines that are moved between threads and collect garbage compute what one does.
func TestConcurrentBF16(t *testing.T) {
	withPairs(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		const m, n, k = 50, 64, 128
		a, b := random(r, m*k), random(r, k*n)
		packed := make([]uint32, PackedPairs(k, n))
		PackBF16(packed, b, k, n, n)
		want := make([]float32, m*n)
		GemmBF16(want, n, a, k, m, n, k, packed, false)
		results := make(chan bool)
		for range 16 {
			go func() {
				same := true
				for range 20 {
					got := make([]float32, m*n)
					GemmBF16(got, n, a, k, m, n, k, packed, false)
					same = same && slices.Equal(got, want)
				}
				results <- same
			}()
		}
		for range 16 {
			if !<-results {
				t.Error("a product computed beside others differs")
			}
		}
	})
}

func TestPeakBF16(t *testing.T) {
	withPairs(t, func(t *testing.T) {
		n := PeakBF16(3)
		if want := map[string]int{"amx": 3 * 4 * 16 * 16 * 32 * 2}[pairing.name]; n != want {
			t.Errorf("three iterations are %d operations, want %d", n, want)
		}
	})
}

// BenchmarkGemmBF16 reports GFLOP/s of one core, beside float32's of the same shape.
func BenchmarkGemmBF16(b *testing.B) {
	was := pairing
	defer func() { pairing = was }()
	for _, s := range []struct{ m, n, k int }{{512, 768, 256}, {512, 256, 1024}, {1024, 256, 512}, {24, 768, 256}, {1, 768, 256}} {
		a, c, x := make([]float32, s.m*s.k), make([]float32, s.m*s.n), make([]float32, s.k*s.n)
		shape := fmt.Sprintf("m=%d,n=%d,k=%d", s.m, s.n, s.k)
		report := func(b *testing.B) {
			b.ReportMetric(2*float64(s.m*s.n*s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		}
		packed := make([]float32, PackedLen(s.k, s.n))
		b.Run("float32/"+shape, func(b *testing.B) {
			for b.Loop() {
				Gemm(c, s.n, a, s.k, s.m, s.n, s.k, packed, s.k, 0, false)
			}
			report(b)
		})
		for _, k := range availablePairs()[1:] {
			pairing = k
			pairs := make([]uint32, PackedPairs(s.k, s.n))
			PackBF16(pairs, x, s.k, s.n, s.n)
			b.Run(k.name+"/Gemm/"+shape, func(b *testing.B) {
				for b.Loop() {
					GemmBF16(c, s.n, a, s.k, s.m, s.n, s.k, pairs, false)
				}
				report(b)
			})
			b.Run(k.name+"/GemmT/"+shape, func(b *testing.B) {
				for b.Loop() {
					GemmTBF16(c, s.n, a, s.m, s.m, s.n, s.k, pairs, true)
				}
				report(b)
			})
		}
	}
}
