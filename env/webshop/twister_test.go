package webshop

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// vectors are draws of another generator with one seed, by what was drawn.
type vectors map[string]json.RawMessage

func vector[T any](t *testing.T, v vectors, what string) (out T) {
	t.Helper()
	if err := json.Unmarshal(v[what], &out); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return out
}

// TestTwister compares with draws of CPython and numpy.
func TestTwister(t *testing.T) {
	var want struct {
		Python map[string]vectors `json:"python_random"`
		Numpy  map[string]vectors `json:"numpy_RandomState"`
	}
	readGolden(t, "golden/prng.json", &want)
	if len(want.Python) == 0 || len(want.Numpy) == 0 {
		t.Fatal("no vectors")
	}
	for name, w := range want.Python {
		seed, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("python "+name, func(t *testing.T) { comparePython(t, seed, w) })
	}
	for name, w := range want.Numpy {
		seed, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "numpy permutation "+name, numpyTwister(uint32(seed)).permutation(20), vector[[]int](t, w, "permutation(20)"))
		equal(t, "numpy choice "+name, numpyTwister(uint32(seed)).permutation(500)[:8], vector[[]int](t, w, "choice(500,8,replace=False)"))
	}
}

func comparePython(t *testing.T, seed int64, w vectors) {
	shuffled := func(n int) []int {
		p := make([]int, n)
		for i := range p {
			p[i] = i
		}
		pythonTwister(seed).shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
		return p
	}
	twoOf := func(n int) (out [][]float64) {
		r := pythonTwister(seed)
		for range 5 {
			s := r.sample(n, 2)
			out = append(out, []float64{10 + 10*float64(s[0]), 10 + 10*float64(s[1])})
		}
		return out
	}
	equal(t, "words", draws(pythonTwister(seed).uint32), vector[[]uint32](t, w, "getrandbits32_5"))
	equal(t, "floats", draws(pythonTwister(seed).float), vector[[]float64](t, w, "random5"))
	u := pythonTwister(seed)
	equal(t, "uniform", draws(func() float64 { return u.uniform(1.5, 9.25) }), vector[[]float64](t, w, "uniform(1.5,9.25)x5"))
	equal(t, "shuffle", shuffled(20), vector[[]int](t, w, "shuffle range(20)"))
	equal(t, "shuffle of goals", shuffled(6910)[:20], vector[[]int](t, w, "shuffle range(6910) first20"))
	equal(t, "shuffle of human goals", shuffled(12087)[:20], vector[[]int](t, w, "shuffle range(12087) first20"))
	for n, what := range map[int]string{4: "sample([10,20,30,40],2)x5", 3: "sample([10,20,30],2)x5"} {
		if got, want := twoOf(n), vector[[][]float64](t, w, what); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	equal(t, "sample of many", pythonTwister(seed).sample(1000, 50)[:10], vector[[]int](t, w, "sample(range(1000),50)[:10]"))
	if got := pythonTwister(seed).letters(10); got != vector[string](t, w, "choices a-z k=10") {
		t.Errorf("letters: got %q, want %s", got, w["choices a-z k=10"])
	}
}

func draws[T any](draw func() T) (out []T) {
	for range 5 {
		out = append(out, draw())
	}
	return out
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A negative seed is that of its absolute value, and a sample holds each index at most once on both of its ways.
func TestTwisterProperties(t *testing.T) {
	if a, b := pythonTwister(-42).uint32(), pythonTwister(42).uint32(); a != b {
		t.Errorf("seeds -42 and 42 differ: %d, %d", a, b)
	}
	for _, n := range []int{50, 51, 277, 278, 1000} {
		s := pythonTwister(int64(n)).sample(n, 50)
		slices.Sort(s)
		if len(slices.Compact(s)) != 50 || s[0] < 0 || s[len(s)-1] >= n {
			t.Errorf("50 of %d: %v", n, s)
		}
	}
	for n, want := range map[int]int{4: 1, 5: 2, 16: 2, 17: 3, 150: 4, 256: 4, 257: 5} {
		if got := log4(n); got != want {
			t.Errorf("log4(%d) is %d, want %d", n, got, want)
		}
	}
}
