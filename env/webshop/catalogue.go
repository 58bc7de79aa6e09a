// Package webshop is a shop as a text world: an agent searches a catalogue, looks at products, chooses options and buys
// what an instruction asks for. It plays the catalogues of the WebShop environment to the letter, and brings one of its
// own.
//
// A Catalogue holds the products, a Shop the prices and goals that a seed settles for them, a Session plays one goal, and
// a Suite offers the goals as tasks. All but the Session are read-only once made and shared by every episode.
package webshop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"skillmaster/bm25"
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

	Nouns []string // of the title, lower case, in order and with repeats; nil: nobody has said, and Tagger guesses
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
	*shelf
	index *bm25.Index // its document n is the n-th product by ASIN, which is how equal scores are ordered
	nouns Nouns       // nil: those that a product brings, or Tagger's
}

// NewCatalogue makes a catalogue of products, which must have different ASINs, and indexes them for searches. Lists that
// are empty are nil in it.
func NewCatalogue(ctx context.Context, products []Product) (*Catalogue, error) {
	var records bytes.Buffer
	k := packer{w: &records}
	for i := range products {
		if err := k.add(&products[i]); err != nil {
			return nil, err
		}
	}
	return k.catalogue(ctx, &records)
}

// catalogue is made of the records that were written.
func (k *packer) catalogue(ctx context.Context, records *bytes.Buffer) (*Catalogue, error) {
	tables, err := k.tables()
	if err != nil {
		return nil, err
	}
	shelf, err := newShelf(append(records.Bytes(), tables...), k.written, len(k.asins))
	if err != nil {
		return nil, err
	}
	index, err := shelf.buildIndex(ctx, nil)
	return &Catalogue{shelf: shelf, index: index}, err
}

// buildIndex indexes the products, and tells progress, if not nil, how many are read.
func (s *shelf) buildIndex(ctx context.Context, progress func(products int)) (*bm25.Index, error) {
	x, err := bm25.Build(ctx, func(yield func(string) bool) {
		for n := range s.len() {
			if progress != nil && n%(1<<12) == 0 {
				progress(n)
			}
			if !yield(s.product(int(s.byASIN(n))).contents()) {
				return
			}
		}
	}, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, fmt.Errorf("index of the products: %w", err)
	}
	return x, nil
}

// Close lets go of the files, if there are any. Nothing may be searched afterwards, and no text that the catalogue gave be
// looked at.
func (c *Catalogue) Close() error {
	err := c.index.Close()
	if unmap := c.unmap; unmap != nil {
		*c.shelf = shelf{}
		err = errors.Join(err, unmap())
	}
	return err
}

// Len is the number of products.
func (c *Catalogue) Len() int { return c.len() }

// Product is the i-th product, in the order of the file. The caller must not change what it holds.
func (c *Catalogue) Product(i int) Product { return *c.product(i) }

// Find is the product of an ASIN, in either case of its letters.
func (c *Catalogue) Find(asin string) (Product, bool) {
	i, ok := c.find(strings.ToUpper(asin))
	if !ok {
		return Product{}, false
	}
	return c.Product(int(i)), true
}

// nounsOf are the nouns of a product's title.
func (c *Catalogue) nounsOf(p *Product) []string {
	switch {
	case c.nouns != nil:
		return c.nouns.NounsOf(p.ASIN, p.Title)
	case p.Nouns != nil:
		return p.Nouns
	default:
		return Tagger{}.NounsOf(p.ASIN, p.Title)
	}
}

// contents is the text of a product that is searched.
func (p *Product) contents() string {
	var b strings.Builder
	b.Grow(2 * (len(p.Title) + len(p.Description)))
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
		b.WriteString(g.Name + ": ")
		for j, v := range g.Values {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v)
		}
	}
	return lower(b.String())
}
