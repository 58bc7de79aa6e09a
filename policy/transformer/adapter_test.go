package transformer

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"skillmaster/policy"
)

// TestAdapterBeginsAsNothing: a new adapter leaves every log-probability as it was, and what is learnt with it is in the
// adapter alone, in the samplers, and in what WritePretrained writes.
func TestAdapterBeginsAsNothing(t *testing.T) {
	for name := range variants {
		m := testModel(t, name)
		base := slices.Clone(m.values)
		ids := [][]int32{ramp(150, 3, m.config.Vocab)}
		score := func(m *Model) []float32 {
			got, err := m.Sampler(SamplerOptions{Workers: 1}).Score(t.Context(), ids)
			if err != nil {
				t.Fatal(err)
			}
			return got[0]
		}
		before := score(m)
		if err := m.Adapt(AdapterConfig{Rank: 2}, 1); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(score(m), before) {
			t.Errorf("%s: an adapter that learnt nothing changes what the model says", name)
		}
		l := NewLearner(m, LearnerOptions{})
		for range 3 {
			if _, err := l.Update(t.Context(), testBatch(m.config, 40, 9), testOptim()); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(m.values, base) {
			t.Errorf("%s: training an adapter changed the model under it", name)
		}
		after, merged := score(m), again(t, m)
		if slices.Equal(after, before) {
			t.Errorf("%s: training an adapter changed nothing", name)
		}
		if !slices.Equal(m.values, base) {
			t.Errorf("%s: writing a model with its adapter changed it", name)
		}
		for i, v := range score(merged) {
			if !near(float64(v), float64(after[i])) {
				t.Fatalf("%s: position %d has log-probability %v merged, %v before", name, i, v, after[i])
			}
		}
	}
}

// TestAdapterWorkers: how many workers train an adapter changes no bit of it.
func TestAdapterWorkers(t *testing.T) {
	var want []byte
	for workers := 1; workers <= 4; workers++ {
		m := adaptedModel(t, "grouped")
		l := NewLearner(m, LearnerOptions{Workers: workers})
		for range 2 {
			if _, err := l.Update(t.Context(), testBatch(m.config, 30, 5, 70, 2, 41), testOptim()); err != nil {
				t.Fatal(err)
			}
		}
		var b bytes.Buffer
		if err := l.Save(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = b.Bytes()
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%d workers give other bytes than one", workers)
		}
	}
}

func TestAdapterConfig(t *testing.T) {
	m := testModel(t, "plain")
	for want, c := range map[string]AdapterConfig{
		"rank is 0":         {},
		"rank is 5000":      {Rank: 5000},
		"scale is NaN":      {Rank: 1, Scale: math.NaN()},
		"no target":         {Rank: 1, Targets: []string{}},
		`projection "head"`: {Rank: 1, Targets: []string{"q_proj", "head"}},
	} {
		if err := m.Adapt(c, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error that says %q", c, err, want)
		}
	}
	if err := m.Adapt(AdapterConfig{Rank: 2, Targets: []string{"up_proj", "q_proj"}}, 0); err != nil {
		t.Fatal(err)
	}
	if got := m.adapterConfig(); got.Scale != 2 || !slices.Equal(got.Targets, []string{"q_proj", "up_proj"}) {
		t.Errorf("completed it is %v", got)
	}
	if len(m.adapter.layout.tensors) != 2*2*m.config.Layers {
		t.Errorf("%d tensors for two projections in %d layers", len(m.adapter.layout.tensors), m.config.Layers)
	}
	if err := m.Adapt(AdapterConfig{Rank: 2}, 0); err == nil {
		t.Error("a second adapter was accepted")
	}
}

// TestAdapterCheckpoint: an adapter's checkpoint fits the same adapter of the same model only.
func TestAdapterCheckpoint(t *testing.T) {
	var b bytes.Buffer
	if err := NewLearner(adaptedModel(t, "qwen"), LearnerOptions{}).Save(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	other := testModel(t, "qwen")
	if err := other.Adapt(AdapterConfig{Rank: 2}, 0); err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]*Model{
		"this model's is none":       testModel(t, "qwen"),
		`this model's is {"rank":2,`: other,
		"another model":              adaptedModel(t, "grouped"),
	} {
		var l policy.Learner = NewLearner(m, LearnerOptions{})
		if err := l.Load(t.Context(), bytes.NewReader(b.Bytes())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q", err, want)
		}
	}
	if _, err := ReadModel(t.Context(), bytes.NewReader(b.Bytes())); err == nil || !strings.Contains(err.Error(), "adapter alone") {
		t.Errorf("read as a model: %v", err)
	}
}
