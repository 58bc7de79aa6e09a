package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// multiplication is one call of Gemm or GemmT with room around every matrix.
type multiplication struct {
	m, n, k              int
	transposed           bool
	accumulate           bool
	lda, ldc             int
	packedK, k0          int
	a, packed, c, before []float32
	b                    []float32 // [packedK, n]
	intact               func() bool
}

func newMultiplication(r *rand.Rand, m, n, k int, transposed, accumulate bool) *multiplication {
	p := &multiplication{m: m, n: n, k: k, transposed: transposed, accumulate: accumulate}
	rows, columns := m, k
	if transposed {
		rows, columns = k, m
	}
	p.lda, p.ldc = columns+r.IntN(3), n+r.IntN(3)
	p.k0 = r.IntN(3)
	p.packedK = p.k0 + k + r.IntN(3)
	p.a = random(r, (rows-1)*p.lda+columns)
	p.b = random(r, p.packedK*n)
	p.packed = random(r, PackedLen(p.packedK, n))
	PackB(p.packed, p.b, p.packedK, n, n)
	p.c, p.intact = guarded(r, (m-1)*p.ldc+n)
	p.before = slices.Clone(p.c)
	return p
}

func (p *multiplication) String() string {
	return fmt.Sprintf("m=%d n=%d k=%d transposed=%t accumulate=%t", p.m, p.n, p.k, p.transposed, p.accumulate)
}

func (p *multiplication) run() {
	f := Gemm
	if p.transposed {
		f = GemmT
	}
	f(p.c, p.ldc, p.a, p.lda, p.m, p.n, p.k, p.packed, p.packedK, p.k0, p.accumulate)
}

func (p *multiplication) at(i, k int) float32 {
	if p.transposed {
		return p.a[k*p.lda+i]
	}
	return p.a[i*p.lda+k]
}

// fused returns the element by fused multiply-adds in ascending k, 256 at most together, as Gemm promises it.
func (p *multiplication) fused(i, j int) float32 {
	parts := (p.k + 255) / 256
	length := (p.k + parts - 1) / parts
	for length%16 != 0 && parts > 1 {
		length++
	}
	var c float32
	for first := 0; first < p.k; first += length {
		var s float32
		for k := first; k < min(first+length, p.k); k++ {
			s = fma32(p.at(i, k), p.b[(p.k0+k)*p.n+j], s)
		}
		switch {
		case first > 0:
			c += s
		case p.accumulate:
			c = p.before[i*p.ldc+j] + s
		default:
			c = s
		}
	}
	return c
}

// exact returns the element in float64 and how far one in float32 may be from it, whatever the order of its k+1 terms:
// k+1 roundings of a sum no larger than that of their magnitudes.
func (p *multiplication) exact(i, j int) (s, most float64) {
	for k := range p.k {
		term := float64(p.at(i, k)) * float64(p.b[(p.k0+k)*p.n+j])
		s, most = s+term, most+math.Abs(term)
	}
	if p.accumulate {
		c := float64(p.before[i*p.ldc+j])
		s, most = s+c, most+math.Abs(c)
	}
	return s, most * float64(p.k+1) * 0x1p-24
}

// fma32 returns a·b + c rounded once. The product is exact in float64; the sum is rounded to odd there, so that rounding
// it again to float32 is the same as rounding once (Boldo and Melquiond 2008).
func fma32(a, b, c float32) float32 {
	x, y := float64(a)*float64(b), float64(c)
	s := x + y
	yy := s - x
	rest := (x - (s - yy)) + (y - yy)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			s = math.Float64frombits(bits + 1)
		} else {
			s = math.Float64frombits(bits - 1)
		}
	}
	return float32(s)
}

// A product whose sum lies just above the middle of two float32: rounded twice it would end on the even one below.
func TestFMA32RoundsOnce(t *testing.T) {
	a, b := float32(1+0x1p-12), float32(1+0x1p-12) // a·b = 1 + 2^-11 + 2^-24
	if got, want := fma32(a, b, 0x1p-60), float32(1+0x1p-11+0x1p-23); got != want {
		t.Errorf("got %b, want %b", got, want)
	}
	if got, want := fma32(a, b, -0x1p-60), float32(1+0x1p-11); got != want {
		t.Errorf("got %b, want %b", got, want)
	}
}

func (p *multiplication) check(t *testing.T, exactly bool) {
	t.Helper()
	p.run()
	if !p.intact() {
		t.Fatalf("%s: wrote beside C", p)
	}
	for at, got := range p.c {
		i, j := at/p.ldc, at%p.ldc
		if j >= p.n {
			if got != p.before[at] {
				t.Fatalf("%s: wrote between the rows of C at %d,%d", p, i, j)
			}
			continue
		}
		if want, most := p.exact(i, j); !(math.Abs(float64(got)-want) <= most) {
			t.Fatalf("%s: element %d,%d: got %g, want %g", p, i, j, got, want)
		}
		if exactly && got != p.fused(i, j) {
			t.Fatalf("%s: element %d,%d: got %b, want %b", p, i, j, got, p.fused(i, j))
		}
	}
}

func TestGemm(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(8, 9))
		exactly := Kernel() != "generic"
		for _, m := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 29, 31} {
			for _, n := range []int{1, 2, 13, 15, 16, 17, 31, 32, 33, 50} {
				for _, k := range []int{1, 2, 3, 14, 33} {
					for way := range 4 {
						newMultiplication(r, m, n, k, way&1 != 0, way&2 != 0).check(t, exactly)
					}
				}
			}
		}
	})
}

// Shapes at which B is used in parts, and at which a transposed A is copied in blocks.
func TestGemmInBlocks(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(10, 11))
		exactly := Kernel() != "generic"
		newMultiplication(r, 20, 33, 4099, false, true).check(t, exactly)
		newMultiplication(r, 13, 65, 4099, true, false).check(t, exactly)
		for _, k := range []int{255, 256, 257, 300, 512, 513} {
			newMultiplication(r, 7, 33, k, k%2 == 0, k%3 == 0).check(t, exactly)
		}
		for _, m := range []int{1, 112, 113, 120, 225} {
			newMultiplication(r, m, 130, 9, true, m%2 == 0).check(t, exactly)
		}
	})
}

func TestGemmRowsAreIndependent(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(12, 13))
		for _, m := range []int{2, 5, 7, 14, 15, 30, 33} {
			p := newMultiplication(r, m, 45, 67, false, m%2 == 0)
			p.run()
			for i := range m {
				row := slices.Clone(p.before[i*p.ldc : i*p.ldc+p.n])
				Gemm(row, p.n, p.a[i*p.lda:], p.lda, 1, p.n, p.k, p.packed, p.packedK, p.k0, p.accumulate)
				if j := firstDifference(row, p.c[i*p.ldc:]); j >= 0 {
					t.Fatalf("%s: row %d column %d: alone %b, together %b", p, i, j, row[j], p.c[i*p.ldc+j])
				}
			}
		}
	})
}

func TestGemmIsEqualInAVX2AndAVX512(t *testing.T) {
	two, five := vectorKernels(t)
	defer func(k kernels) { active = k }(active)
	r := rand.New(rand.NewPCG(14, 15))
	for range 200 {
		p := newMultiplication(r, 1+r.IntN(40), 1+r.IntN(100), 1+r.IntN(200), r.IntN(2) == 0, r.IntN(2) == 0)
		active = two
		p.run()
		got := slices.Clone(p.c)
		copy(p.c, p.before)
		active = five
		p.run()
		if j := firstDifference(got, p.c); j >= 0 {
			t.Fatalf("%s: element %d: avx2 %b, avx512 %b", p, j, got[j], p.c[j])
		}
	}
}

func TestPackLaysOutPanels(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(16, 17))
		for _, k := range []int{1, 2, 5, 8, 9, 16, 31} {
			for _, n := range []int{1, 7, 8, 9, 31, 32, 33, 70} {
				checkPacking(t, r, k, n)
			}
		}
	})
}

func checkPacking(t *testing.T, r *rand.Rand, k, n int) {
	t.Helper()
	ld, ldT := n+2, k+3
	b, transposed := random(r, (k-1)*ld+n), make([]float32, (n-1)*ldT+k)
	got, intact := guarded(r, PackedLen(k, n))
	PackB(got, b, k, n, ld)
	for i := range k {
		for j := range PackedLen(1, n) {
			var want float32
			if j < n {
				want = b[i*ld+j]
				transposed[j*ldT+i] = want
			}
			if at := j/PanelWidth*k*PanelWidth + i*PanelWidth + j%PanelWidth; got[at] != want {
				t.Fatalf("PackB [%d,%d]: element %d,%d: got %g, want %g", k, n, i, j, got[at], want)
			}
		}
	}
	gotT, intactT := guarded(r, PackedLen(k, n))
	PackBT(gotT, transposed, k, n, ldT)
	if at := firstDifference(gotT, got); at >= 0 {
		t.Fatalf("PackBT [%d,%d]: at %d got %g, want %g", k, n, at, gotT[at], got[at])
	}
	if !intact() || !intactT() {
		t.Fatalf("[%d,%d]: wrote beside the packed matrix", k, n)
	}
}

func TestGemmShapesMustFit(t *testing.T) {
	x := make([]float32, 1000)
	gemm := func(c []float32, ldc int, a []float32, lda, m, n, k int, packed []float32, packedK, k0 int) func() {
		return func() { Gemm(c, ldc, a, lda, m, n, k, packed, packedK, k0, false) }
	}
	calls := map[string]func(){
		"m = 0":             gemm(x, 3, x, 4, 0, 3, 4, x, 4, 0),
		"n = 0":             gemm(x, 3, x, 4, 2, 0, 4, x, 4, 0),
		"k = 0":             gemm(x, 3, x, 4, 2, 3, 0, x, 4, 0),
		"C too short":       gemm(x[:5], 3, x, 4, 2, 3, 4, x, 4, 0),
		"ldc too small":     gemm(x, 2, x, 4, 2, 3, 4, x, 4, 0),
		"A too short":       gemm(x, 3, x[:7], 4, 2, 3, 4, x, 4, 0),
		"lda too small":     gemm(x, 3, x, 3, 2, 3, 4, x, 4, 0),
		"packed too short":  gemm(x, 3, x, 4, 2, 3, 4, x[:127], 4, 0),
		"rows past the end": gemm(x, 3, x, 4, 2, 3, 4, x, 4, 1),
		"rows before 0":     gemm(x, 3, x, 4, 2, 3, 4, x, 4, -1),
		"A of GemmT":        func() { GemmT(x, 3, x[:7], 2, 2, 3, 4, x, 4, 0, false) },
		"PackB":             func() { PackB(x[:127], x, 4, 3, 3) },
		"PackB source":      func() { PackB(x, x[:11], 4, 3, 3) },
		"PackBT":            func() { PackBT(x[:127], x, 4, 3, 4) },
		"PackBT source":     func() { PackBT(x, x[:11], 4, 3, 4) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) { mustPanic(t, "simd.", call) })
	}
	gemm(x[:6], 3, x[:8], 4, 2, 3, 4, x[:128], 4, 0)() // the same at their least sizes fit
}
