package report

import (
	"math"
	"math/rand/v2"
	"slices"

	"skillmaster/episode"
	"skillmaster/train"
)

// Paired is the comparison of two runs on the same tasks: B minus A.
type Paired struct {
	Panel  string
	Cell   string
	Family string // "all": the whole panel
	Tasks  int
	Both   int // succeeded in both
	OnlyA  int
	OnlyB  int
	Rate   Difference // of success
	P      float64    // exact McNemar test, two-sided; 1 where the runs never differ
	Steps  Difference // steps, tasks that both solved only; N = 0: there is none
	Return Difference
}

// Difference is B − A with a 95 % interval. N is the number of pairs.
type Difference struct {
	N         int
	A, B      float64
	Value     float64
	Low, High float64
	P         float64 // of no difference, two-sided
}

// McNemar is the exact two-sided p value of a lost and b won among discordant pairs: the chance, were both equally
// likely, of a split at least so uneven (binomial, 1/2). No discordant pairs: 1.
func McNemar(a, b int) float64 {
	n, k := a+b, min(a, b)
	if n == 0 {
		return 1
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += math.Exp(choose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*sum)
}

// choose is the logarithm of n over k.
func choose(n, k int) float64 {
	g := func(v int) float64 { x, _ := math.Lgamma(float64(v) + 1); return x }
	return g(n) - g(k) - g(n-k)
}

// Newcombe is the 95 % interval of the difference of two paired shares, (onlyB − onlyA)/n: method 10 of Newcombe 1998,
// "Improved confidence intervals for the difference between binomial proportions based on paired data": Wilson intervals
// of both shares, put together with their correlation (continuity-corrected if positive). n = 0: [−1, 1].
func Newcombe(both, onlyA, onlyB, neither int) (low, high float64) {
	n := both + onlyA + onlyB + neither
	if n == 0 {
		return -1, 1
	}
	pa, pb := float64(both+onlyA)/float64(n), float64(both+onlyB)/float64(n)
	la, ua := train.Wilson(both+onlyA, n)
	lb, ub := train.Wilson(both+onlyB, n)
	phi := correlation(both, onlyA, onlyB, neither)
	d := pb - pa
	dl := math.Sqrt(max(0, (pb-lb)*(pb-lb)-2*phi*(pb-lb)*(ua-pa)+(ua-pa)*(ua-pa)))
	du := math.Sqrt(max(0, (ub-pb)*(ub-pb)-2*phi*(ub-pb)*(pa-la)+(pa-la)*(pa-la)))
	return d - dl, d + du
}

func correlation(both, onlyA, onlyB, neither int) float64 {
	a, b, c, d := float64(both), float64(onlyA), float64(onlyB), float64(neither)
	n := a + b + c + d
	margins := (a + b) * (c + d) * (a + c) * (b + d)
	if margins == 0 {
		return 0
	}
	det := a*d - b*c
	if det > 0 {
		det = max(det-n/2, 0)
	}
	return det / math.Sqrt(margins)
}

const draws = 9999 // of resampling

// MeanDifference compares pairs: a sign-flip permutation test of no difference (p = (1 + as extreme)/(1 + draws)) and a
// percentile bootstrap interval. No pairs: N is 0 and nothing else counts.
func MeanDifference(a, b []float64, s episode.Seed) Difference {
	n := len(a)
	d := Difference{N: n, P: 1}
	if n == 0 {
		return d
	}
	delta := make([]float64, n)
	for i := range a {
		d.A += a[i] / float64(n)
		d.B += b[i] / float64(n)
		delta[i] = b[i] - a[i]
	}
	d.Value = d.B - d.A
	rng := s.Rand()
	extreme, limit := 1, math.Abs(sum(delta))*(1-1e-12)
	boot := make([]float64, draws)
	for k := range draws {
		if math.Abs(flipped(delta, rng)) >= limit {
			extreme++
		}
		boot[k] = resampled(delta, rng) / float64(n)
	}
	slices.Sort(boot)
	d.Low, d.High = boot[draws*25/1000], boot[draws*975/1000]
	d.P = float64(extreme) / (draws + 1)
	return d
}

// flipped is the sum with random signs.
func flipped(vs []float64, rng *rand.Rand) (total float64) {
	for len(vs) > 0 {
		some := vs[:min(64, len(vs))]
		vs = vs[len(some):]
		signs := rng.Uint64()
		for _, v := range some {
			total += math.Float64frombits(math.Float64bits(v) ^ signs<<63)
			signs >>= 1
		}
	}
	return total
}

// resampled is the sum of as many values drawn with repeats; a value's chance is 1/n within 2⁻³².
func resampled(vs []float64, rng *rand.Rand) (total float64) {
	n := uint64(len(vs))
	for i := 0; i < len(vs); i += 2 {
		word := rng.Uint64()
		total += vs[word>>32*n>>32]
		if i+1 < len(vs) {
			total += vs[word&math.MaxUint32*n>>32]
		}
	}
	return total
}

func sum(vs []float64) float64 {
	s := 0.0
	for _, v := range vs {
		s += v
	}
	return s
}

// MeanInterval is the mean of a few independent values, such as runs that differ by seed, with Student's 95 % interval;
// fewer than two: no interval, NaN.
func MeanInterval(vs []float64) (mean, low, high float64) {
	n := float64(len(vs))
	mean = sum(vs) / n
	if len(vs) < 2 {
		return mean, math.NaN(), math.NaN()
	}
	var squares float64
	for _, v := range vs {
		squares += (v - mean) * (v - mean)
	}
	half := student(len(vs)-1) * math.Sqrt(squares/(n-1)/n)
	return mean, mean - half, mean + half
}

// student is the 97.5 % point of Student's t for the degrees of freedom.
func student(df int) float64 {
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086}
	if df <= len(table) {
		return table[df-1]
	}
	z := 1.959963984540054 // Cornish–Fisher, beyond 20 degrees good to four digits
	v := float64(df)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v)
}

// Compare tests B against A on every panel that both have played in the same way, with the newest evaluation of each.
// Panels are the same if their hashes are.
func Compare(a, b *History) []Paired {
	type how struct {
		hash, cell  string
		constrained bool
		temperature float64
	}
	newest := func(h *History) (map[how]train.Evaluation, []how) {
		out := map[how]train.Evaluation{}
		var order []how
		for _, e := range h.Evaluations {
			k := how{e.PanelHash, Cell(e.Evaluation), e.Constrained, e.Temperature}
			if _, seen := out[k]; !seen {
				order = append(order, k)
			}
			out[k] = e.Evaluation
		}
		return out, order
	}
	as, order := newest(a)
	bs, _ := newest(b)
	var out []Paired
	for _, k := range order {
		if e, ok := bs[k]; ok {
			out = append(out, compare(as[k], e, seedOf(a, b))...)
		}
	}
	return out
}

// compare pairs the results of two evaluations of one panel by task; all tasks first, then each family.
func compare(a, b train.Evaluation, s episode.Seed) []Paired {
	other := make(map[string]train.Result, len(b.Results))
	for _, r := range b.Results {
		other[r.Task] = r
	}
	by := map[string][][2]train.Result{}
	families := []string{""}
	for _, r := range a.Results {
		x, ok := other[r.Task]
		if !ok {
			continue
		}
		by[""] = append(by[""], [2]train.Result{r, x})
		if r.Family == "" {
			continue // counted already
		}
		if _, seen := by[r.Family]; !seen {
			families = append(families, r.Family)
		}
		by[r.Family] = append(by[r.Family], [2]train.Result{r, x})
	}
	slices.Sort(families)
	if len(families) == 2 { // one family is the whole
		families = families[:1]
	}
	var out []Paired
	for _, f := range families {
		if len(by[f]) > 0 {
			out = append(out, paired(a, f, by[f], s))
		}
	}
	return out
}

func paired(e train.Evaluation, family string, rs [][2]train.Result, s episode.Seed) Paired {
	p := Paired{Panel: e.Panel, Cell: Cell(e), Family: family, Tasks: len(rs)}
	if family == "" {
		p.Family = "all"
	}
	var stepsA, stepsB, returnA, returnB []float64
	neither := 0
	for _, r := range rs {
		returnA, returnB = append(returnA, r[0].Return), append(returnB, r[1].Return)
		switch {
		case r[0].Success && r[1].Success:
			p.Both++
			stepsA, stepsB = append(stepsA, float64(r[0].Steps)), append(stepsB, float64(r[1].Steps))
		case r[0].Success:
			p.OnlyA++
		case r[1].Success:
			p.OnlyB++
		default:
			neither++
		}
	}
	n := float64(p.Tasks)
	p.P = McNemar(p.OnlyA, p.OnlyB)
	p.Rate = Difference{N: p.Tasks, A: float64(p.Both+p.OnlyA) / n, B: float64(p.Both+p.OnlyB) / n, P: p.P}
	p.Rate.Value = p.Rate.B - p.Rate.A
	p.Rate.Low, p.Rate.High = Newcombe(p.Both, p.OnlyA, p.OnlyB, neither)
	p.Steps = MeanDifference(stepsA, stepsB, s.Derive("steps "+p.Panel+family))
	p.Return = MeanDifference(returnA, returnB, s.Derive("return "+p.Panel+family))
	return p
}
