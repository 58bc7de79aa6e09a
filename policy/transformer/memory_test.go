package transformer

import (
	"runtime"
	"testing"
)

// TestMemory: what a learner says it holds is what the heap holds more, and its activations keep to ActivationBytes.
func TestMemory(t *testing.T) {
	c := Config{Vocab: 512, Width: 96, Layers: 3, Heads: 4, KVHeads: 2, Hidden: 256, Context: 256, Tied: true}
	for name, o := range map[string]LearnerOptions{
		"all kept": {Workers: 2}, "recompute": {Workers: 2, Recompute: true}, "bfloat16": {Workers: 1, Lanes: 1, Precision: BFloat16},
	} {
		t.Run(name, func(t *testing.T) {
			batch := testBatch(c, 200, 90, 150)
			if o.Precision == BFloat16 {
				batch = testBatch(c, 5) // in plain Go
			}
			before := heap()
			m, err := NewModel(c, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := NewLearner(m, o)
			for range 2 {
				if _, err := l.Update(t.Context(), batch, testOptim()); err != nil {
					t.Fatal(err)
				}
			}
			grown, said := heap()-before, l.Memory()
			// The allocator rounds sizes up; a scratch of package simd is shared by all learners.
			if total := said.Total(); grown < total*99/100 || grown > total*102/100+200_000 {
				t.Errorf("the heap grew by %d bytes, the learner says %d: %+v", grown, total, said)
			}
			if most := int64(o.Workers) * c.ActivationBytes(200, o.Recompute); said.Activations > most {
				t.Errorf("%d bytes of activations, at most %d are promised", said.Activations, most)
			}
			if said.Weights == 0 || said.Packed == 0 || said.Moments == 0 || said.Gradients == 0 || said.Activations == 0 || said.Work == 0 {
				t.Errorf("a part is missing: %+v", said)
			}
			runtime.KeepAlive(l)
		})
	}
}

// TestMemoryHasNoProbabilities: nothing in a learner grows with the square of the length: probabilities are not stored.
func TestMemoryHasNoProbabilities(t *testing.T) {
	c := Config{Vocab: 64, Width: 16, Layers: 2, Heads: 4, Hidden: 16, Context: 1024, Tied: true}
	total := func(n int) int64 {
		m, err := NewModel(c, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := NewLearner(m, LearnerOptions{Workers: 1, Lanes: 1})
		if _, err := l.Update(t.Context(), testBatch(c, n), testOptim()); err != nil {
			t.Fatal(err)
		}
		return l.Memory().Total()
	}
	a, b, c3 := total(256), total(512), total(1024)
	if second, third := b-a, c3-b; third > 2*second*105/100 {
		t.Errorf("from 256 to 512 ids %d bytes more, from 512 to 1024 %d: more than twice as much", second, third)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
