// Package webshop is a shop as a text world: an agent searches a catalogue, looks at products, chooses options and buys
// what an instruction asks for. It plays the catalogues of the WebShop environment to the letter, and brings one of its
// own.
//
// A Catalogue holds the products, a Shop the prices and goals that a seed settles for them, a Session plays one goal, and
// a Suite offers the goals as tasks. All but the Session are read-only once made and shared by every episode.
package webshop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Product is one thing that is sold, as it is after cleaning.
type Product struct {
	ASIN        string
	Title       string
	Description string   // may be empty
	Bullets     []string // features; may hold empty ones
	Price       Price
	Options     []OptionGroup // in the order of the page
	Attributes  []string
	Category    string // one of few, such as "fashion"
	Query       string // what was searched to find it, such as "men's shorts"; lower case
	Path        string // its place in the tree of categories, joined by pathMark

	// What the goals are made of.
	Instruction           string   // without options and price; "" for a product that no synthetic goal asks for
	InstructionAttributes []string // that the instruction names
	Human                 []HumanInstruction
}

// OptionGroup is a choice to be made, such as a size. Values are lower case; one may stand there twice.
type OptionGroup struct {
	Name   string
	Values []string
}

// HumanInstruction is an instruction that a person wrote for a product.
type HumanInstruction struct {
	Text       string
	Attributes []string
	Options    []string // values, without the names of their groups
}

// pathMark parts the steps of Product.Path.
const pathMark = " › "

// Catalogue is a list of products that can be searched. It is read-only and safe for concurrent use.
type Catalogue struct {
	products []Product
	numbers  map[string]int32 // by ASIN
	ranked   *ranking
	// What pages show of each product again and again.
	priceTexts []string
	lowASINs   []string
	nouns      Nouns
	queries    func() []string // of the products, each once, sorted; made when first asked for
}

// CatalogueOptions say how a catalogue is made. The zero value will do.
type CatalogueOptions struct {
	Nouns Nouns  // of the titles; nil for those of Tagger
	Index string // file to keep the index for searches in, and to read it from if it is there; "" for none
}

// NewCatalogue makes a catalogue of products, which must have different ASINs, and indexes them for searches.
func NewCatalogue(ctx context.Context, products []Product, o CatalogueOptions) (*Catalogue, error) {
	c := &Catalogue{products: products, numbers: make(map[string]int32, len(products)), nouns: o.Nouns, priceTexts: make([]string, len(products)), lowASINs: make([]string, len(products))}
	if c.nouns == nil {
		c.nouns = Tagger{}
	}
	for i := range products {
		if j, twice := c.numbers[products[i].ASIN]; twice {
			return nil, fmt.Errorf("products %d and %d have the same ASIN %s", j+1, i+1, products[i].ASIN)
		}
		c.numbers[products[i].ASIN] = int32(i)
		c.priceTexts[i], c.lowASINs[i] = products[i].Price.String(), strings.ToLower(products[i].ASIN)
	}
	c.queries = sync.OnceValue(func() []string {
		queries := make([]string, len(products))
		for i := range products {
			queries[i] = products[i].Query
		}
		slices.Sort(queries)
		return slices.Compact(queries)
	})
	var err error
	if c.ranked, err = newRanking(ctx, products, o.Index); err != nil {
		return nil, fmt.Errorf("index of the products: %w", err)
	}
	return c, nil
}

// Close lets go of the index's file, if there is one. Nothing may be searched afterwards.
func (c *Catalogue) Close() error { return c.ranked.index.Close() }

// Len is the number of products.
func (c *Catalogue) Len() int { return len(c.products) }

// Product is the i-th product, in the order of the file. The caller must not change what it holds.
func (c *Catalogue) Product(i int) Product { return c.products[i] }

// Find is the product of an ASIN, in either case of its letters.
func (c *Catalogue) Find(asin string) (Product, bool) {
	i, ok := c.numbers[strings.ToUpper(asin)]
	if !ok {
		return Product{}, false
	}
	return c.products[i], true
}

// contents is the text of a product that is searched.
func (p *Product) contents() string {
	var b strings.Builder
	b.WriteString(p.Title)
	b.WriteByte(' ')
	b.WriteString(p.Description)
	b.WriteByte(' ')
	if len(p.Bullets) > 0 {
		b.WriteString(p.Bullets[0])
	}
	b.WriteByte(' ')
	for i, g := range p.Options {
		if i > 0 {
			b.WriteString(", and ")
		}
		b.WriteString(g.Name + ": " + strings.Join(g.Values, ", "))
	}
	return lower(b.String())
}
