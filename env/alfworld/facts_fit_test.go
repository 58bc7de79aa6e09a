package alfworld

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// row is what objects of a type could lie in: the receptacles of a floor plan, and, if the task asks for them, its
// family and target.
type row struct{ object, floorPlan, family, target string }

// addLaid counts an object by the receptacle types it is in, sorted and joined with blanks.
func (c *counts) addLaid(g rawGame, class string, in []string) {
	if len(in) == 0 {
		return
	}
	r := row{object: class, floorPlan: g.floorPlan}
	if class == g.object {
		r.family, r.target = g.family, g.target
	}
	if c.laid[r] == nil {
		c.laid[r] = map[string]int{}
	}
	c.laid[r][strings.Join(in, " ")]++
}

// counted gives each object of a row to one receptacle type: the rarest of those it is in, since the others are what
// that one stands on.
func (c *counts) counted(r row) (in map[string]int, n int) {
	in = map[string]int{}
	for types, k := range c.laid[r] {
		rarest := slices.MinFunc(strings.Fields(types), func(a, b string) int {
			return cmp.Or(cmp.Compare(c.within[a], c.within[b]), cmp.Compare(a, b))
		})
		in[rarest] += k
		n += k
	}
	return in, n
}

// fitted are weights of receptacle types as places of objects. An object of type o lies in a receptacle of type r, of
// which the room has n, with a chance that goes with weight[o r] * n^1/4, times asked[r] if the task asks for it.
type fitted struct {
	weight map[string]float64 // sums to 1 for each object type
	asked  map[string]float64
}

// fit finds the weights with which as many objects of each type are expected in each type of receptacle, over all games,
// as are there (iterative scaling, which gives the likeliest weights). The power 1/4 is the best of a few: twice as many
// drawers hold little more, there being no more things.
func (c *counts) fit() fitted {
	f := fitted{weight: map[string]float64{}, asked: map[string]float64{}}
	rows := slices.SortedFunc(maps.Keys(c.laid), func(a, b row) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.floorPlan, b.floorPlan), cmp.Compare(a.family, b.family), cmp.Compare(a.target, b.target))
	})
	for range 30 {
		c.scale(f, rows, false, func(r row, in string) string { return r.object + " " + in }, f.weight, 0)
	}
	sum := map[string]float64{}
	pairs := slices.Sorted(maps.Keys(f.weight))
	for _, pair := range pairs {
		sum[className(pair)] += f.weight[pair]
	}
	for _, pair := range pairs {
		f.weight[pair] /= sum[className(pair)]
	}
	for range 30 {
		c.scale(f, rows, true, func(_ row, in string) string { return in }, f.asked, 20)
	}
	return f
}

// scale takes one step for the weights into, by their keys, over the rows that are asked for or those that are not. prior
// is a number of things that are where they are expected, besides those counted.
func (c *counts) scale(f fitted, rows []row, asked bool, key func(row, string) string, into map[string]float64, prior float64) {
	expected, observed := map[string]float64{}, map[string]float64{}
	for _, r := range rows {
		if (r.family != "") != asked {
			continue
		}
		chances := c.chances(f, r)
		seen, n := c.counted(r)
		for _, in := range slices.Sorted(maps.Keys(chances)) {
			expected[key(r, in)] += float64(n) * chances[in]
			observed[key(r, in)] += float64(seen[in])
		}
	}
	for k, e := range expected {
		old, ok := into[k]
		if !ok {
			old = 1
		}
		into[k] = old * (observed[k] + prior) / max(e+prior, 1e-9)
	}
}

// chances of the receptacle types in a row; none where all weights are zero.
func (c *counts) chances(f fitted, r row) map[string]float64 {
	chances, sum := map[string]float64{}, 0.0
	stands := c.stands[r.floorPlan]
	for _, in := range slices.Sorted(maps.Keys(stands)) {
		if !r.mayStartIn(in) {
			continue
		}
		w, ok := f.weight[r.object+" "+in]
		if !ok {
			w = 1
		}
		if a, ok := f.asked[in]; ok && r.family != "" {
			w *= a
		}
		chances[in] = w * math.Sqrt(math.Sqrt(float64(stands[in])))
		sum += chances[in]
	}
	for in := range chances {
		chances[in] /= max(sum, 1e-12)
	}
	return chances
}

// mayStartIn is like that of sentence.
func (r row) mayStartIn(in string) bool {
	if r.family == "" {
		return true
	}
	f := Family(slices.Index(familyWords[:], r.family))
	return sentence{family: f, object: r.object, target: r.target}.mayStartIn(in)
}
