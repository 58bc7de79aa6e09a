package webshop

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"skillmaster/episode"
)

// Order says how the goals are put in order.
type Order uint8

// The orders there are.
const (
	// Constant is that of the original: shuffled with the seed 233, whatever the prices were drawn with. The same index
	// is the same product and options everywhere.
	Constant Order = iota
	// Seeded is that of the training wrapper: shuffled with the seed of the prices, so that another seed gives another
	// goal at every index.
	Seeded
)

func (o Order) String() string { return nameOf(o, "order", "constant", "seeded") }

// MarshalText implements encoding.TextMarshaler.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Order) UnmarshalText(text []byte) error { return choose(o, text, Constant, Seeded) }

// GoalOptions say which goals a shop has. The zero value has the synthetic ones in the constant order, with prices of
// seed 0.
type GoalOptions struct {
	Human bool  // those that people wrote, not those made of attributes and options
	Seed  int64 // of hidden prices and of price bounds
	Order Order
}

const (
	orderSeed = 233
	unbounded = 1_000_000 // price bound of a goal that names none
)

// Goal is what an instruction asks for.
type Goal struct {
	Index       int // in the shop
	Product     int // that it was made for, in the catalogue
	Instruction string
	Attributes  []string
	Options     []GoalOption
	Most        float64 // price bound, dollars
}

// GoalOption is a choice that a goal asks for. Goals that people wrote name values alone; Group is "" then.
type GoalOption struct{ Group, Value string }

// goalRef is a goal in short: there may be millions.
type goalRef struct {
	product int32
	nth     int32 // of the product's combinations of options, or of its human instructions
	most    float32
}

// Shop is a catalogue with what a seed settles: hidden prices, goals and their order. It is read-only and safe for
// concurrent use; every Shop of the same catalogue and options is the same.
type Shop struct {
	*Catalogue
	o       GoalOptions
	prices  []float64 // hidden, by product
	goals   []goalRef
	weights func() []float64 // of each goal of a product, by product; made when first asked for
	sums    func() []float64 // of the goals' weights, from 0; made when first asked for
	drawn   *twister         // behind the last draw
}

// NewShop draws the prices and goals of a catalogue, in the order of the original: hidden prices, price bounds, order.
func NewShop(c *Catalogue, o GoalOptions) (*Shop, error) {
	s := &Shop{Catalogue: c, o: o, drawn: pythonTwister(o.Seed)}
	s.drawPrices()
	if o.Human {
		s.humanGoals()
	} else {
		if err := s.syntheticGoals(); err != nil {
			return nil, err
		}
	}
	if len(s.goals) == 0 {
		return nil, fmt.Errorf("none of the %d products has an instruction: no goals", c.Len())
	}
	switch o.Order {
	case Constant:
		s.drawn = pythonTwister(orderSeed)
	case Seeded:
		s.drawn = pythonTwister(o.Seed)
	default:
		return nil, fmt.Errorf("there is no %s of goals", o.Order)
	}
	s.drawn.shuffle(len(s.goals), func(i, j int) { s.goals[i], s.goals[j] = s.goals[j], s.goals[i] })
	s.weights = sync.OnceValue(s.weigh)
	s.sums = sync.OnceValue(func() []float64 { return cumulative(len(s.goals), s.Weight) })
	return s, nil
}

// drawPrices settles what products with a range of prices cost.
func (s *Shop) drawPrices() {
	s.prices = make([]float64, s.Len())
	for i := range s.prices {
		p := s.row(i).price
		s.prices[i] = p.Low
		if p.Ranged {
			s.prices[i] = s.drawn.uniform(p.Low, p.High)
		}
	}
}

// drawMost draws the price bound of a goal whose product costs price: the larger of two of the next four tens above it.
func (s *Shop) drawMost(price float64) float32 {
	var above []float32
	for ten := float32(10); ten < 1000 && len(above) < 4; ten += 10 {
		if float64(ten) > price {
			above = append(above, ten)
		}
	}
	if len(above) < 2 {
		return unbounded
	}
	two := s.drawn.sample(len(above), 2)
	return max(above[two[0]], above[two[1]])
}

func (s *Shop) humanGoals() {
	for i := range s.len() {
		if s.row(i).human == 0 {
			continue
		}
		for n, h := range s.product(i).Human {
			if len(h.Attributes) > 0 {
				s.goals = append(s.goals, goalRef{int32(i), int32(n), s.drawMost(s.prices[i])})
			}
		}
	}
}

// syntheticGoals makes a goal of every combination of options of every product with an instruction.
func (s *Shop) syntheticGoals() error {
	for i := range s.len() {
		ways := int(s.row(i).ways)
		if ways == 0 {
			continue
		}
		if ways > mostCombinations {
			return fmt.Errorf("the options of product %s combine in more than %d ways: it cannot have a goal for each", s.asin(i), mostCombinations)
		}
		most := s.drawMost(s.prices[i])
		for n := range ways {
			s.goals = append(s.goals, goalRef{int32(i), int32(n), most})
		}
	}
	return nil
}

// weigh gives the weight of each synthetic goal of a product, by product: the mean over the goal's attributes of one over the
// number of goals that have it.
func (s *Shop) weigh() []float64 {
	having := map[string]int{} // goals, by attribute
	for i := range s.len() {
		if ways := int(s.row(i).ways); ways > 0 {
			for _, a := range s.product(i).InstructionAttributes {
				having[a] += ways
			}
		}
	}
	weights := make([]float64, s.len())
	for i := range weights {
		if s.row(i).ways == 0 {
			continue
		}
		if as := s.product(i).InstructionAttributes; len(as) > 0 {
			sum := 0.0
			for _, a := range as {
				sum += 1 / float64(having[a])
			}
			weights[i] = sum / float64(len(as))
		}
	}
	return weights
}

// mostCombinations of options are a hundred times as many as any product of the original has.
const mostCombinations = 1 << 16

// combinations counts the ways to choose one value of every group; it stops counting beyond mostCombinations.
func (p *Product) combinations() int {
	n := 1
	for _, g := range p.Options {
		n *= len(g.Values)
		if n > mostCombinations {
			break
		}
	}
	return n
}

// combination is the n-th way to choose, by the names of the groups; the last group varies fastest.
func (p *Product) combination(n int) []GoalOption {
	groups := slices.Clone(p.Options)
	slices.SortFunc(groups, func(a, b OptionGroup) int { return strings.Compare(a.Name, b.Name) })
	options := make([]GoalOption, len(groups))
	for i := len(groups) - 1; i >= 0; i-- {
		g := groups[i]
		options[i] = GoalOption{g.Name, g.Values[n%len(g.Values)]}
		n /= len(g.Values)
	}
	return options
}

// Goals is the number of goals.
func (s *Shop) Goals() int { return len(s.goals) }

// Goal is the i-th goal.
func (s *Shop) Goal(i int) Goal {
	ref := s.goals[i]
	p := s.product(int(ref.product))
	g := Goal{Index: i, Product: int(ref.product), Most: float64(ref.most)}
	if s.o.Human {
		h := p.Human[ref.nth]
		g.Instruction, g.Attributes = strings.Trim(h.Text, "."), h.Attributes
		for _, v := range h.Options {
			g.Options = append(g.Options, GoalOption{Value: v})
		}
	} else {
		g.Options, g.Attributes = p.combination(int(ref.nth)), p.InstructionAttributes
		g.Instruction = p.Instruction + optionsText(g.Options)
	}
	g.Instruction += boundText(g.Most)
	return g
}

// optionsText is the part of an instruction that names options.
func optionsText(options []GoalOption) string {
	var b strings.Builder
	for i, o := range options {
		b.WriteString([]string{" with ", ", and "}[min(i, 1)] + o.Group + ": " + o.Value)
	}
	return b.String()
}

// boundText is the part of an instruction that names the price.
func boundText(most float64) string {
	if most >= unbounded {
		return ""
	}
	return ", and price lower than " + strconv.FormatFloat(most, 'f', 2, 64) + " dollars"
}

// Weight is how likely the i-th goal is to be drawn, among the weights of all.
func (s *Shop) Weight(i int) float64 {
	if s.o.Human {
		return 1
	}
	return s.weights()[s.goals[i].product]
}

// cumulative sums weights, from 0.
func cumulative(n int, weight func(i int) float64) []float64 {
	sums := make([]float64, n+1)
	for i := range n {
		sums[i+1] = sums[i] + weight(i)
	}
	return sums
}

// pick draws a goal by weight as the original does, which is one too far: the first is never drawn, and the last has
// the weight of two.
func pick(sums []float64, r *twister) int {
	u := r.uniform(0, sums[len(sums)-1])
	i := sort.Search(len(sums), func(i int) bool { return sums[i] > u })
	return min(i, len(sums)-2)
}

// draw draws a goal by weight.
func (s *Shop) draw(seed episode.Seed) Goal {
	return s.Goal(pick(s.sums(), pythonTwister(int64(seed>>1))))
}

// price is what a product costs in truth.
func (s *Shop) price(product int) float64 { return s.prices[product] }
