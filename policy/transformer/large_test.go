package transformer

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// TestLargeModel opens a large model, samples from it and learns an adapter of it, and logs what that takes. It runs if
// SKILLMASTER_MODEL names a directory, such as one that testdata/make_random.py made.
func TestLargeModel(t *testing.T) {
	dir := os.Getenv("SKILLMASTER_MODEL")
	if dir == "" {
		t.Skip("NOT TESTED on a large model: SKILLMASTER_MODEL is not set")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // what is held, not what is left to collect
	began, cpu := time.Now(), cpuSeconds()
	stage := func(name string, tokens int) {
		t.Logf("%s: %.1f s, %.1f s of a processor, %d tokens; %s", name, time.Since(began).Seconds(), cpuSeconds()-cpu, tokens, memory(t))
		began, cpu = time.Now(), cpuSeconds()
	}
	m, err := ReadPretrained(t.Context(), dir, PretrainedOptions{Context: 1024})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Adapt(AdapterConfig{Rank: 16}, 1); err != nil {
		t.Fatal(err)
	}
	stage("open", 0)
	r := rand.New(rand.NewPCG(1, 1))
	ids := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = r.Int32N(int32(m.config.Vocab))
		}
		return out
	}
	l := NewLearner(m, LearnerOptions{Recompute: true})
	s, err := l.Sampler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prompt := ids(128)
	var batch []grpo.Datum
	var wg sync.WaitGroup
	samples := make([]policy.Sample, 8)
	for i := range samples {
		wg.Go(func() {
			var err error
			samples[i], err = s.Sample(t.Context(), prompt, policy.Sampling{Temperature: 1, MaxTokens: 32, Seed: uint64(i)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	stage("sample", len(prompt)+8*32)
	for range 4 {
		n := 256
		d := grpo.Datum{IDs: ids(n), Stream: make([]grpo.Stream, n), Weight: make([]float32, n), Advantage: make([]float32, n)}
		for i := 128; i < n; i++ {
			d.Weight[i] = 1.0 / 512
		}
		batch = append(batch, d)
	}
	o := testOptim()
	o.Loss, o.Rate = grpo.Loss{}, 1e-3
	var first, last float64
	const updates = 3
	for i := range updates {
		stats, err := l.Update(t.Context(), batch, o)
		if err != nil {
			t.Fatal(err)
		}
		if last = stats.Loss; i == 0 {
			first = last
		}
	}
	stage("learn", updates*4*256)
	if !(last < first) {
		t.Errorf("loss %v after %d updates, %v before", last, updates, first)
	}
	if err := m.WriteAdapter(t.Context(), filepath.Join(t.TempDir(), "adapter"), dir); err != nil {
		t.Fatal(err)
	}
	stage("write", 0)
}

// memory is what this process holds, where the system says so.
func memory(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "memory is not known here"
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		for _, key := range []string{"VmHWM:", "RssAnon:", "RssFile:"} {
			if strings.HasPrefix(line, key) {
				out = append(out, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	return strings.Join(out, ", ")
}
