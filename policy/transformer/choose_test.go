package transformer

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"skillmaster/policy"
)

// slowProbabilities returns the distribution that choose draws from, in float64.
func slowProbabilities(z []float32, p policy.Sampling) []float64 {
	ids := make([]int, len(z))
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(z[b], z[a]) })
	if p.TopK > 0 {
		ids = ids[:min(p.TopK, len(ids))]
	}
	weight, total := map[int]float64{}, 0.0
	for _, i := range ids {
		weight[i] = math.Exp(float64(z[i]-z[ids[0]]) / p.Temperature)
		total += weight[i]
	}
	if p.TopP > 0 {
		sum := 0.0
		for k, i := range ids {
			if sum += weight[i] / total; sum >= p.TopP {
				ids = ids[:k+1]
				break
			}
		}
	}
	out, total := make([]float64, len(z)), 0.0
	for _, i := range ids {
		total += weight[i]
	}
	for _, i := range ids {
		out[i] = weight[i] / total
	}
	return out
}

func TestChooseDrawsTheDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	z := make([]float32, 150) // more than two blocks of draw
	for i := range z {
		z[i] = float32(r.NormFloat64() * 2)
	}
	z[7] = z[8] // a tie
	const draws = 10000
	for _, p := range []policy.Sampling{
		{Temperature: 1},
		{Temperature: 0.5},
		{Temperature: 3},
		{Temperature: 1, TopK: 9},
		{Temperature: 1, TopP: 0.7},
		{Temperature: 2, TopK: 40, TopP: 0.5},
		{Temperature: 1, TopK: 1000, TopP: 1},
		{Temperature: 0.7, TopP: 0.05},
	} {
		want, got := slowProbabilities(z, p), make([]float64, len(z))
		logp, _ := logSoftmax(widen(z))
		var c chooser
		for range draws {
			id, l, err := c.choose(z, p, r)
			if err != nil {
				t.Fatal(err)
			}
			got[id] += 1.0 / draws
			if math.Abs(float64(l)-logp[id]) > 1e-5 {
				t.Fatalf("%+v: id %d has log-probability %v, want %v", p, id, l, logp[id])
			}
		}
		for i := range want {
			if want[i] == 0 && got[i] > 0 {
				t.Errorf("%+v: id %d was drawn, which is left out", p, i)
			}
			// Five standard deviations of a share of draws.
			if d := math.Abs(got[i] - want[i]); d > 5*math.Sqrt(want[i]/draws)+3e-4 {
				t.Errorf("%+v: id %d was drawn with frequency %v, want %v", p, i, got[i], want[i])
			}
		}
	}
}

func widen(z []float32) []float64 {
	out := make([]float64, len(z))
	for i, v := range z {
		out[i] = float64(v)
	}
	return out
}

func TestDrawEdges(t *testing.T) {
	weights := make([]float32, 200)
	weights[3], weights[130] = 1, 3
	for _, v := range []struct {
		u    float64
		want int32
	}{{0, 3}, {0.2499, 3}, {0.25, 130}, {math.Nextafter(1, 0), 130}} {
		if got := draw(weights, v.u); got != v.want {
			t.Errorf("draw at %v: got %d, want %d", v.u, got, v.want)
		}
	}
}

func TestChooseRefusesWhatIsNotFinite(t *testing.T) {
	nan, infinite := float32(math.NaN()), float32(math.Inf(1))
	for _, z := range [][]float32{{1, nan}, {infinite, 0}, {-infinite, -infinite}, {nan, nan}} {
		var c chooser
		for _, temperature := range []float64{0, 1} {
			if id, _, err := c.choose(z, policy.Sampling{Temperature: temperature}, rand.New(rand.NewPCG(1, 1))); err == nil {
				t.Errorf("from %v at %v got id %d", z, temperature, id)
			}
		}
	}
}

func TestGreedyTakesTheLowestOfEqualIDs(t *testing.T) {
	var c chooser
	for _, p := range []policy.Sampling{{}, {Temperature: 1, TopK: 1}} {
		if id, _, err := c.choose([]float32{0, 2, 2, 1}, p, rand.New(rand.NewPCG(1, 1))); err != nil || id != 1 {
			t.Errorf("%+v: got %d, %v; want 1", p, id, err)
		}
	}
}
