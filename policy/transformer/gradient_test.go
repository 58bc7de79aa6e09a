package transformer

import (
	"math"
	"math/rand/v2"
	"testing"

	"skillmaster/grpo"
	"skillmaster/policy"
)

// Tolerances of float32 against float64: sums of some hundred products of size one lose a few of 24 bits.
const (
	absoluteFloat32 = 2e-5
	relativeFloat32 = 5e-4
)

func near(got, want float64) bool {
	return math.Abs(got-want) <= absoluteFloat32+relativeFloat32*math.Abs(want)
}

// testLosses are losses with every term. Their clips are wide enough that no ratio of the batch is near a kink.
var testLosses = map[string]grpo.Loss{
	"cross-entropy": {},
	"policy":        {Kind: grpo.PolicyGradient, KL: 0.3, Entropy: 0.2},
	"entropy":       {Entropy: 1.5},
}

func TestForwardAgainstReference(t *testing.T) {
	for name := range variants {
		t.Run(name, func(t *testing.T) {
			m := testModel(t, name)
			batch := testBatch(m.config, 2, 3, 61, 150)
			want := newReference(m).logProbs(batch)
			var seqs [][]int32
			for _, d := range batch {
				seqs = append(seqs, d.IDs)
			}
			got, err := m.Sampler(SamplerOptions{Workers: 2}).Score(t.Context(), seqs)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				for p := range want[i] {
					if !near(float64(got[i][p]), want[i][p]) {
						t.Fatalf("sequence %d position %d: got %v, want %v", i, p, got[i][p], want[i][p])
					}
				}
			}
		})
	}
}

// TestGradientAgainstDifferences compares the gradient of every tensor, along a random direction in which its first and
// last entries weigh most, with the central difference of the float64 reference.
func TestGradientAgainstDifferences(t *testing.T) {
	for name := range variants {
		for lossName, loss := range testLosses {
			if lossName != "policy" && name != "plain" {
				continue // "policy" has every term
			}
			t.Run(name+"/"+lossName, func(t *testing.T) { checkGradient(t, testModel(t, name), loss) })
		}
		t.Run(name+"/adapter", func(t *testing.T) { checkGradient(t, adaptedModel(t, name), testLosses["policy"]) })
	}
}

func checkGradient(t *testing.T, m *Model, loss grpo.Loss) {
	batch := testBatch(m.config, 3, rowBlock+3, 17)
	r := newReference(m)
	frozen := r.logProbs(batch)
	l := NewLearner(m, LearnerOptions{Workers: 1, Lanes: 2})
	l.prepare()
	gradient, sum, err := l.gradient(t.Context(), batch, loss)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.loss(batch, loss, frozen); !near(sum.loss, want) {
		t.Errorf("loss: got %v, want %v", sum.loss, want)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, tensor := range l.trained.tensors {
		g, p := tensor.of(gradient), r.p[tensor.name]
		direction := make([]float64, len(p))
		for i := range direction {
			direction[i] = random.NormFloat64() / math.Sqrt(float64(len(p)))
		}
		direction[0]++
		direction[len(p)-1]--
		var got float64
		for i, d := range direction {
			got += d * float64(g[i])
		}
		want := slope(p, direction, func() float64 { return r.loss(batch, loss, frozen) })
		if !near(got, want) {
			t.Errorf("%s: got %v along a direction, want %v", tensor.name, got, want)
		}
	}
}

// slope is the central difference of f along a direction of p.
func slope(p, direction []float64, f func() float64) float64 {
	const step = 1e-6
	move := func(s float64) {
		for i, d := range direction {
			p[i] += s * d
		}
	}
	move(step)
	up := f()
	move(-2 * step)
	down := f()
	move(step)
	return (up - down) / (2 * step)
}

// TestGradientLeavesGapsAlone guards that only named parameters ever get a gradient.
func TestGradientLeavesGapsAlone(t *testing.T) {
	m := testModel(t, "grouped")
	l := NewLearner(m, LearnerOptions{Workers: 1})
	l.prepare()
	gradient, _, err := l.gradient(t.Context(), testBatch(m.config, 20), grpo.Loss{})
	if err != nil {
		t.Fatal(err)
	}
	named := make([]bool, len(gradient))
	for _, tensor := range m.layout.tensors {
		for i := range tensor.size {
			named[tensor.at+i] = true
		}
	}
	for i, g := range gradient {
		if !named[i] && g != 0 {
			t.Fatalf("gap at %d has gradient %v", i, g)
		}
	}
}

// TestHeadSkipsPositionsWithoutWeight: a gradient is the sum of those of its positions, however they are gathered.
func TestHeadSkipsPositionsWithoutWeight(t *testing.T) {
	m := testModel(t, "qwen")
	whole := testBatch(m.config, 190)[0]
	sum := make([]float64, m.layout.size)
	l := NewLearner(m, LearnerOptions{Workers: 1})
	l.prepare()
	add := func(keep func(t int) bool) {
		d := whole
		d.Weight = make([]float32, len(whole.Weight))
		for i, w := range whole.Weight {
			if keep(i) {
				d.Weight[i] = w
			}
		}
		g, _, err := l.gradient(t.Context(), []grpo.Datum{d}, grpo.Loss{})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range g {
			sum[i] += float64(v)
		}
	}
	for k := range 4 {
		add(func(t int) bool { return t%4 == k })
	}
	parts := sum
	sum = make([]float64, m.layout.size)
	add(func(int) bool { return true })
	for i := range sum {
		if !near(parts[i], sum[i]) {
			t.Fatalf("parameter %d: %v in parts, %v at once", i, parts[i], sum[i])
		}
	}
}

func testOptim() policy.Optim {
	return policy.Optim{Rate: 3e-3, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1, Clip: 1}
}
