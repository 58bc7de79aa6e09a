package transformer

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// frozenParts returns W [out, width] of numbers that bfloat16 holds, in parts of memory and of files.
func frozenParts(t testing.TB, out, width int) (w []float32, r *rows) {
	t.Helper()
	w = make([]float32, out*width)
	normal(w, 1, 7, "frozen")
	for i := range w {
		w[i] = math.Float32frombits(math.Float32bits(w[i]) &^ 0xffff)
	}
	cut := out / 3
	var halves []byte
	for _, v := range w[cut*width:] {
		halves = binary.LittleEndian.AppendUint16(halves, uint16(math.Float32bits(v)>>16))
	}
	path := filepath.Join(t.TempDir(), "bf16")
	if err := os.WriteFile(path, append([]byte("odd"), halves...), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openMapped(path)
	if err != nil {
		t.Fatal(err)
	}
	return w, &rows{width, []part{
		{rows: cut, values: w[:cut*width]},
		{rows: out - cut, file: numbers{f, "BF16", 3, 3 + len(halves)}},
	}}
}

// TestFrozen: products with a matrix that is packed anew for each are those with one that is kept packed: forward to the
// last bit, backward but for the order of sums.
func TestFrozen(t *testing.T) {
	for p := range precisions {
		for _, shape := range [][3]int{{1, 5, 7}, {3, 64, 31}, {2, 700, 65}, {40, 129, 130}, {5, 300, 4}} {
			n, out, in := shape[0], shape[1], shape[2]
			w, r := frozenParts(t, out, in)
			packed, frozen := linear{in: in, out: out, precision: p}, linear{in: in, out: out, precision: p, frozen: r}
			packed.pack(w)
			packed.packBackward(w)
			x, dy := testMatrix(n, in, "x"), testMatrix(n, out, "dy")
			var y, dx [2]matrix
			for i, l := range []*linear{&packed, &frozen} {
				y[i], dx[i] = testMatrix(n, out, "y"), testMatrix(n, in, "dx")
				l.forwardAdd(y[i], x, n, matrix{})
				l.backward(dx[i], dy, n, true)
			}
			for i := range n {
				if !slices.Equal(y[1].row(i), y[0].row(i)) {
					t.Fatalf("%v, %v: forward differs in row %d", p, shape, i)
				}
				for j, v := range dx[1].row(i) {
					if want := dx[0].row(i)[j]; !(math.Abs(float64(v-want)) < 1e-5*float64(out)) {
						t.Fatalf("%v, %v: gradient of x is %v at %d, %d, want %v", p, shape, v, i, j, want)
					}
				}
			}
		}
	}
}

func testMatrix(n, width int, label string) matrix {
	m := newMatrix(width)
	m.grow(n)
	for i := range n {
		normal(m.row(i), 1, uint64(i), label)
	}
	return m
}

// TestMappedTrains: an adapter of a model in files learns the bytes it learns on the same model in memory, and its samples
// and the model's are the same.
func TestMappedTrains(t *testing.T) {
	for _, name := range []string{"qwen2", "qwen3", "llama", "smollm"} {
		var want []byte
		for _, inMemory := range []bool{false, true} {
			m := pretrained(t, name)
			if inMemory {
				m.thaw()
			}
			if err := m.Adapt(AdapterConfig{Rank: 2}, 3); err != nil {
				t.Fatal(err)
			}
			l := NewLearner(m, LearnerOptions{Recompute: inMemory})
			for range 2 {
				if _, err := l.Update(t.Context(), testBatch(m.config, 30, 12), testOptim()); err != nil {
					t.Fatal(err)
				}
			}
			b := saved(t, l)
			if want == nil {
				want = b
			} else if !bytes.Equal(b, want) {
				t.Errorf("%s: another adapter is learnt on files", name)
			}
		}
	}
}

// TestMappedIsLearnt: a learner of the model itself takes it out of its files, and checkpoints are of whole models.
func TestMappedIsLearnt(t *testing.T) {
	m := pretrained(t, "qwen2")
	var before bytes.Buffer
	if err := m.WriteWeights(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	l := NewLearner(m, LearnerOptions{})
	if _, err := l.Update(t.Context(), testBatch(m.config, 30, 12), testOptim()); err != nil {
		t.Fatal(err)
	}
	read, err := ReadModel(t.Context(), &before)
	if err != nil {
		t.Fatal(err)
	}
	fresh := pretrained(t, "qwen2")
	fresh.thaw()
	if !slices.Equal(read.values, fresh.values) {
		t.Error("weights written from files are other weights")
	}
	if slices.Equal(m.values, fresh.values) {
		t.Error("nothing was learnt")
	}
}

func BenchmarkFrozen(b *testing.B) {
	const out, in = 896, 4864
	_, r := frozenParts(b, out, in)
	l := linear{in: in, out: out, frozen: r}
	for _, n := range []int{1, 16, 256} {
		x, y := testMatrix(n, in, "x"), testMatrix(n, out, "y")
		b.Run("forward"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				l.forward(y, x, n, matrix{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/out/in, "ns/weight")
		})
		b.Run("backward"+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				l.backward(x, y, n, false)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/out/in, "ns/weight")
		})
	}
}
