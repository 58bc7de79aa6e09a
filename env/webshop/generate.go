package webshop

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"skillmaster/episode"
)

// GenerateOptions say which catalogue is made. The same options make the same catalogue.
type GenerateOptions struct {
	Seed     episode.Seed
	Products int  // 0 stands for 1,000
	Skewed   bool // families are as common as among the original's goals, not all alike
}

const defaultProducts = 1000

// skewed are the families' shares of the original's synthetic goals.
var skewed = map[string]float64{
	"apparel": 0.53, "footwear": 0.04, "electronics": 0.02, "accessories": 0.04, "home_decor": 0.05, "beauty_health": 0.01, otherFamily: 0.31,
}

// balance is the most goals of a family, as a share of the products, where families are to be alike.
const balance = 0.22

// Generate makes a catalogue of invented products in the shape of the original's: queries with several products each,
// of which some are asked for and others miss one attribute, one option or the price. Makers have habits: what a product
// is known for mostly comes from the one maker that is known for it in that family, so that there is something to learn
// beyond one visit.
func Generate(ctx context.Context, o GenerateOptions) (*Catalogue, error) {
	return NewCatalogue(ctx, generate(o))
}

func generate(o GenerateOptions) []Product {
	n := o.Products
	if n <= 0 {
		n = defaultProducts
	}
	m := maker{
		tables: generatorTables(), seed: o.Seed.Derive("webshop catalogue"), r: o.Seed.Derive("webshop products").Rand(),
		taken: map[string]bool{},
	}
	m.brands = m.makeBrands()
	quota := 0.0
	for _, f := range Families() {
		share := 1 / float64(len(Families()))
		if o.Skewed {
			share = skewed[f]
		}
		quota += share * float64(n)
		m.goals, m.mostGoals = 0, int(balance*float64(n))
		if o.Skewed {
			m.mostGoals = math.MaxInt
		}
		nodes := m.nodesOf(f)
		for i := m.r.IntN(len(nodes)); len(m.products) < int(math.Round(quota)); i++ {
			m.cluster(&nodes[i%len(nodes)], int(math.Round(quota))-len(m.products))
		}
	}
	m.r.Shuffle(len(m.products), func(i, j int) { m.products[i], m.products[j] = m.products[j], m.products[i] })
	return m.products
}

// maker makes products, one cluster after another.
type maker struct {
	tables   tables
	seed     episode.Seed
	r        *rand.Rand
	brands   []string
	products []Product
	taken    map[string]bool // ASINs
	// goals counts those of the family at hand; from mostGoals on nothing more of it is asked for.
	goals, mostGoals int
}

func (m *maker) nodesOf(family string) (nodes []node) {
	for _, n := range m.tables.nodes {
		if n.family == family {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// brandsInAll is the number of makers in a catalogue.
const brandsInAll = 24

func (m *maker) makeBrands() (brands []string) {
	starts, ends := m.tables.phrases["brand starts"], m.tables.phrases["brand ends"]
	for len(brands) < brandsInAll {
		b := pickOne(m.r, starts) + pickOne(m.r, ends)
		if !slices.Contains(brands, b) && !slices.ContainsFunc(families, func(f family) bool {
			return slices.ContainsFunc(f.words, func(w string) bool { return strings.Contains(lower(b), w) })
		}) {
			brands = append(brands, b)
		}
	}
	return brands
}

func pickOne[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// knownFor is the maker that is known for an attribute in a family.
func (m *maker) knownFor(family, phrase string) string {
	return m.brands[m.seed.Derive("known for "+family+" "+phrase).Rand().IntN(len(m.brands))]
}

// draft is a product before it is put in words.
type draft struct {
	node       *node
	attributes []attribute // the first is what its maker is known for
	asked      int         // the first so many are named in the instruction; 0: no instruction
	options    []OptionGroup
	price      Price
}

// alone is the share of products that nothing else is made to resemble.
const alone = 0.12

// clusterSize is the number of products that belong together.
const clusterSize = 5

// cluster makes products that belong together, or, now and then and where most leaves no room, a single one. Two are asked for, with one attribute in common and one that is
// each's own; to both goals the other three miss exactly one thing: the price, the common attribute, and both that are
// one's own or an option.
func (m *maker) cluster(n *node, most int) {
	all := m.attributesOf(n)
	wanted := draft{node: n, price: m.priceOf(n), options: m.choices(n)}
	if m.r.Float64() < alone || most < clusterSize || m.goals >= m.mostGoals {
		wanted.attributes = all[:m.r.IntN(len(all)+1)]
		wanted.price = m.spread(wanted.price)
		m.add(wanted)
		return
	}
	rival, dear, other, short := wanted, wanted, wanted, wanted
	common, ones, twos, more := all[0], all[1], all[2], all[3:]
	wanted.attributes = slices.Concat([]attribute{common, ones}, more)
	rival.attributes = slices.Concat([]attribute{twos, common}, more)
	wanted.asked, rival.asked = len(wanted.attributes), len(rival.attributes)
	rival.price = m.near(wanted.price)
	dear.attributes, dear.price = all, m.spread(m.above(wanted.price))
	other.attributes = all[1:]
	short.attributes = slices.Concat([]attribute{common}, more)
	if len(wanted.options) > 0 && m.r.IntN(2) == 0 {
		short.attributes, short.options = all, m.fewer(wanted.options)
	}
	for _, d := range [clusterSize]draft{wanted, rival, other, dear, short} {
		m.add(d)
	}
	ways := 2
	for _, g := range wanted.options {
		ways *= len(g.Values)
	}
	m.goals += ways
}

// attributesOf draws three or four attributes that share no word.
func (m *maker) attributesOf(n *node) (out []attribute) {
	want := 3 + m.r.IntN(2)
	for _, i := range m.r.Perm(len(n.attributes)) {
		if a := n.attributes[i]; len(out) < want && !shareWords(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// shareWords tells whether an attribute has a word of one of others, such as "short sleeve" of "long sleeve".
func shareWords(others []attribute, a attribute) bool {
	for _, o := range others {
		for w := range strings.FieldsSeq(a.phrase) {
			if slices.Contains(strings.Fields(o.phrase), w) {
				return true
			}
		}
	}
	return false
}

// having is the share of products with options, by category, as in the original.
var having = map[string]float64{"fashion": 0.79, "garden": 0.49, "beauty": 0.4, "grocery": 0.35, "electronics": 0.35}

// mostChoices is how many goals a product may have.
const mostChoices = 6

// choices draws options: two to four values of each group, of a stretch of the pool, where close ones are neighbours.
func (m *maker) choices(n *node) (groups []OptionGroup) {
	if m.r.Float64() >= having[n.category] {
		return nil
	}
	ways := 1
	for _, g := range n.groups {
		k := min(2+m.r.IntN(3), mostChoices/ways, len(g.Values))
		if k < 1 {
			break
		}
		from := m.r.IntN(len(g.Values) - k + 1)
		groups = append(groups, OptionGroup{g.Name, slices.Clone(g.Values[from : from+k])})
		ways *= k
	}
	return groups
}

// fewer is a product's options without one value of a group that has two.
func (m *maker) fewer(groups []OptionGroup) []OptionGroup {
	out := slices.Clone(groups)
	for _, i := range m.r.Perm(len(out)) {
		if v := out[i].Values; len(v) > 1 {
			drop := m.r.IntN(len(v))
			out[i].Values = slices.Concat(v[:drop], v[drop+1:])
			break
		}
	}
	return out
}

// noPrice is the share of products without a price, rangedPrice that with two of those which may have them.
const (
	noPrice     = 0.09
	rangedPrice = 0.3
)

// priceOf draws a price, log-normal around the node's median.
func (m *maker) priceOf(n *node) Price {
	if m.r.Float64() < noPrice {
		return Price{Low: unpriced, High: unpriced}
	}
	p := cents(n.price * math.Exp(0.35*m.r.NormFloat64()))
	return Price{Low: p, High: p}
}

// spread makes a price a range, now and then.
func (m *maker) spread(p Price) Price {
	if m.r.Float64() < rangedPrice {
		p.High, p.Ranged = cents(p.Low*(1.1+0.5*m.r.Float64())), true
	}
	return p
}

// cents ends a price as shops like to.
func cents(p float64) float64 {
	return math.Round(math.Max(2, math.Floor(p))*100-1) / 100
}

// above is a price beyond every bound that a goal for a price of the same ten may have.
func (m *maker) above(p Price) Price {
	f := cents(p.Low + 60 + float64(m.r.IntN(40)))
	return Price{Low: f, High: f}
}

// near is a price of the same ten, which is below every bound that a goal for the other may have.
func (m *maker) near(p Price) Price {
	f := cents(10*math.Floor(p.Low/10) + float64(1+m.r.IntN(9)))
	return Price{Low: f, High: f}
}

// honest is the share of products whose maker is the one known for their first attribute.
const honest = 0.85

// add puts a draft in words.
func (m *maker) add(d draft) {
	w := words{maker: m, draft: d, head: pickOne(m.r, d.node.heads), series: pickOne(m.r, m.tables.phrases["series"]), brand: pickOne(m.r, m.brands)}
	if len(d.attributes) > 0 && m.r.Float64() < honest {
		w.brand = m.knownFor(d.node.family, d.attributes[0].phrase)
	}
	p := Product{
		ASIN: m.asin(), Price: d.price, Options: d.options, Category: d.node.category, Query: d.node.query, Path: d.node.path, Attributes: []string{},
	}
	for _, a := range d.attributes {
		p.Attributes = append(p.Attributes, a.phrase)
	}
	inTitle := w.title(&p)
	p.Nouns = w.nouns(inTitle)
	w.describe(&p, inTitle)
	if d.asked > 0 {
		p.InstructionAttributes = p.Attributes[:d.asked:d.asked]
		p.Instruction = "Find me " + w.wish(d.attributes[:d.asked])
		p.Human = []HumanInstruction{w.human()}
	}
	m.products = append(m.products, p)
}

// asin makes an ASIN of syllables, for few tokens.
func (m *maker) asin() string {
	const consonants, vowels = "BCDFGHKLMNPRSTVZ", "AEIOU"
	for {
		b := []byte("B0")
		for range 4 {
			b = append(b, consonants[m.r.IntN(len(consonants))], vowels[m.r.IntN(len(vowels))])
		}
		if a := string(b); !m.taken[a] {
			m.taken[a] = true
			return a
		}
	}
}

// words puts a draft in words.
type words struct {
	*maker
	draft
	brand, series, head string
}

// title names the product and one of its attributes, never the one its maker is known for; it returns the number of
// that attribute, or 0.
func (w *words) title(p *Product) int {
	p.Title = w.brand + " " + w.series + " " + w.head
	n := 0
	if len(w.attributes) > 1 {
		n = 1 + w.r.IntN(len(w.attributes)-1)
		switch a := w.attributes[n]; a.place {
		case before:
			p.Title += ", " + a.phrase
		case with:
			p.Title += " with " + a.phrase
		case suited:
			p.Title += " for " + a.phrase
		}
	}
	return n
}

// nouns are those of the title: names, what the product is called, and the last word of an attribute that is a thing.
func (w *words) nouns(inTitle int) []string {
	nouns := []string{lower(w.brand), lower(w.series)}
	for _, h := range titleWords(w.head) {
		nouns = append(nouns, lower(h))
	}
	if inTitle > 0 {
		if a := w.attributes[inTitle]; a.place != before {
			f := strings.Fields(a.phrase)
			nouns = append(nouns, f[len(f)-1])
		}
	}
	return nouns
}

// Shares of products without a description, and with an empty feature.
const (
	noDescription = 0.3
	emptyBullet   = 0.07
)

// describe writes features and a description that name every attribute that the title does not.
func (w *words) describe(p *Product, inTitle int) {
	for i, a := range w.attributes {
		if i != inTitle || inTitle == 0 {
			p.Bullets = append(p.Bullets, w.fill(pickOne(w.r, w.tables.phrases["bullets "+[]string{"before", "with", "for"}[a.place]]), a.phrase))
		}
	}
	for range 1 + w.r.IntN(2) {
		p.Bullets = append(p.Bullets, pickOne(w.r, w.tables.phrases["bullets plain"]))
	}
	w.r.Shuffle(len(p.Bullets), func(i, j int) { p.Bullets[i], p.Bullets[j] = p.Bullets[j], p.Bullets[i] })
	if w.r.Float64() < emptyBullet {
		p.Bullets = append(p.Bullets, "")
	}
	if w.r.Float64() >= noDescription {
		p.Description = w.fill(pickOne(w.r, w.tables.phrases["descriptions"]), "")
	}
}

func (w *words) fill(pattern, attribute string) string {
	return strings.NewReplacer("{attribute}", attribute, "{head}", lower(w.head), "{series}", w.series, "{brand}", w.brand).Replace(pattern)
}

// wish names what is wanted: attributes before the query, with something, for something.
func (w *words) wish(attributes []attribute) string {
	var at [3][]string
	for _, a := range attributes {
		at[a.place] = append(at[a.place], a.phrase)
	}
	text := w.node.query
	if len(at[before]) > 0 {
		text = strings.Join(at[before], ", ") + " " + text
	}
	if len(at[with]) > 0 {
		text += " with " + strings.Join(at[with], ", ")
	}
	if len(at[suited]) > 0 {
		text += " for " + strings.Join(at[suited], ", ")
	}
	return text
}

// human is an instruction as people write them: options by their values alone.
func (w *words) human() HumanInstruction {
	h := HumanInstruction{Text: pickOne(w.r, w.tables.phrases["openings"]) + " " + w.wish(w.attributes[:w.asked])}
	for _, a := range w.attributes[:w.asked] {
		h.Attributes = append(h.Attributes, a.phrase)
	}
	for i, g := range w.options {
		v := pickOne(w.r, g.Values)
		h.Options = append(h.Options, v)
		h.Text += []string{". it should be in ", " and "}[min(i, 1)] + v
	}
	h.Text += "."
	return h
}
