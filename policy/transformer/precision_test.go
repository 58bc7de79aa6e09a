package transformer

import (
	"bytes"
	"math"
	"testing"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// TestBFloat16Gradient: rounding operands to 8 bits of mantissa turns no gradient by more than some percent.
func TestBFloat16Gradient(t *testing.T) {
	for name := range variants {
		if name == "one" {
			continue // with two numbers in a row nothing averages out
		}
		batch := testBatch(variants[name], 60, 17, 33)
		gradient := func(p Precision) []float32 {
			l := NewLearner(testModel(t, name), LearnerOptions{Workers: 1, Precision: p})
			l.prepare()
			g, _, err := l.gradient(t.Context(), batch, testLosses["policy"])
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		want, got := gradient(Float32), gradient(BFloat16)
		var dot, a, b float64
		for i := range want {
			dot += float64(want[i]) * float64(got[i])
			a += float64(want[i]) * float64(want[i])
			b += float64(got[i]) * float64(got[i])
		}
		if cosine, ratio := dot/math.Sqrt(a*b), math.Sqrt(b/a); cosine < 0.999 || math.Abs(ratio-1) > 0.02 {
			t.Errorf("%s: cosine with float32's gradient %v, length %v of its", name, cosine, ratio)
		}
	}
}

// TestBFloat16Learns: on a task that a small model can learn, both precisions come to the same loss, within the spread
// between seeds.
func TestBFloat16Learns(t *testing.T) {
	final := func(p Precision, seed uint64) float64 {
		m, err := NewModel(Config{Vocab: 24, Width: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 64, Context: 64, Tied: true}, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := NewLearner(m, LearnerOptions{Precision: p})
		o := testOptim()
		o.Loss = grpo.Loss{}
		var last float64
		const steps = 120
		for step := range steps {
			s, err := l.Update(t.Context(), copying(seed, uint64(step)), o)
			if err != nil {
				t.Fatal(err)
			}
			if step >= steps-20 {
				last += s.Loss / 20
			}
		}
		return last
	}
	var sums, squares [precisions]float64
	const seeds = 3
	for seed := range uint64(seeds) {
		for p := range precisions {
			v := final(p, seed)
			sums[p] += v / seeds
			squares[p] += v * v / seeds
		}
	}
	spread := math.Sqrt(max(0, squares[Float32]-sums[Float32]*sums[Float32]))
	if d := math.Abs(sums[BFloat16] - sums[Float32]); d > 3*spread+0.02*sums[Float32] {
		t.Errorf("final loss %v in bfloat16, %v in float32 with a spread of %v between seeds", sums[BFloat16], sums[Float32], spread)
	}
	t.Logf("final loss %v in bfloat16, %v in float32, spread %v", sums[BFloat16], sums[Float32], spread)
	if first := math.Log(24); sums[Float32] > first/2 {
		t.Errorf("final loss %v of %v: the task was not learnt, and the comparison says nothing", sums[Float32], first)
	}
}

// copying is a batch of sequences whose second half repeats the first.
func copying(seed, step uint64) []grpo.Datum {
	var batch []grpo.Datum
	for i := range uint64(8) {
		d := grpo.Datum{IDs: make([]int32, 16), Stream: make([]grpo.Stream, 16), Weight: make([]float32, 16), Advantage: make([]float32, 16)}
		for k := range 8 {
			x := (seed+1)*1000003 + step*8191 + i*131 + uint64(k)*17
			x ^= x >> 7
			d.IDs[k] = int32(x * 2654435761 % 6)
			d.IDs[k+8] = d.IDs[k]
			d.Weight[k+8] = 1.0 / 64
		}
		batch = append(batch, d)
	}
	return batch
}

// TestBFloat16Workers: as in float32, how many workers there are changes no bit.
func TestBFloat16Workers(t *testing.T) {
	var want []byte
	var wantStats policy.Stats
	for workers := 1; workers <= 4; workers++ {
		got, stats := updateTwice(t, "grouped", LearnerOptions{Workers: workers, Precision: BFloat16})
		if want == nil {
			want, wantStats = got, stats
		}
		if !bytes.Equal(got, want) || stats != wantStats {
			t.Errorf("%d workers: bytes equal %v, got %+v, want %+v", workers, bytes.Equal(got, want), stats, wantStats)
		}
	}
}

func TestPrecisionText(t *testing.T) {
	for p := range precisions {
		b, _ := p.MarshalText()
		var again Precision
		if err := again.UnmarshalText(b); err != nil || again != p {
			t.Errorf("%s is read as %v, %v", b, again, err)
		}
	}
	if err := new(Precision).UnmarshalText([]byte("float8")); err == nil {
		t.Error("float8 was accepted")
	}
}
