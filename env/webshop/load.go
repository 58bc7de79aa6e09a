package webshop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
)

// Files are the texts a catalogue is read from, in the formats of the original.
type Files struct {
	Products   io.Reader // items_shuffle*.json
	Attributes io.Reader // items_ins_v2*.json
	Human      io.Reader // items_human_ins*.json, or nil
	Nouns      io.Reader // title_nouns.jsonl, or nil
}

// LoadOptions say how a catalogue is read. The zero value reads all of it.
type LoadOptions struct {
	Limit int // of the entries of the products' file, from its start; 0 for all
	// Cache names the files, without their endings, in which OpenCatalogue keeps products and index. As long as the
	// catalogue's own files are the same it opens those the next time; "" for none.
	Cache    string
	Progress func(Progress) // told again and again how far it is; nil for nobody
}

// Progress is how far the reading of a catalogue is.
type Progress struct {
	Entries           int   // of the products' file that were read
	Read, Size        int64 // bytes of that file, as it lies there; 0 where nobody knows
	Indexed, Products int   // products that were indexed, and how many there are; 0 while reading
}

// Loaded counts what was read and what of it was left out.
type Loaded struct {
	Entries       int `json:"entries"`       // of the products' file
	Products      int `json:"products"`      // of the catalogue
	Unnamed       int `json:"unnamed"`       // entries left out, with an ASIN of "nan"
	Overlong      int `json:"overlong"`      // entries left out, with an ASIN of more than 10 characters
	Repeated      int `json:"repeated"`      // entries left out, with the ASIN of an earlier one
	Attributeless int `json:"attributeless"` // products that the attributes' file does not have: no synthetic goal asks for them
	Unmatched     int `json:"unmatched"`     // products of the other files that are not in the catalogue
}

func (l *Loaded) counts() [7]*int {
	return [7]*int{&l.Entries, &l.Products, &l.Unnamed, &l.Overlong, &l.Repeated, &l.Attributeless, &l.Unmatched}
}

const (
	longestASIN = 10
	noAttribute = "DUMMY_ATTR" // of a product that the attributes' file does not have
)

// Read reads a catalogue. Entries are decoded as they come. What the original would stumble over is an error that names the
// entry.
func Read(ctx context.Context, f Files, o LoadOptions) (*Catalogue, Loaded, error) {
	records := bytes.NewBuffer(make([]byte, 0, usualRecords))
	l := newLoader(o, records)
	if err := l.read(ctx, f); err != nil {
		return nil, l.loaded, err
	}
	c, err := l.packer.catalogue(ctx, records)
	return c, l.loaded, err
}

// usualRecords is enough for the records of the original's 1,000 products, bytes.
const usualRecords = 2 << 20

// loader gathers a catalogue from its files.
type loader struct {
	o       LoadOptions
	packer  packer
	loaded  Loaded
	entries map[string]*attributesJSON
	human   map[string][]humanJSON
	nouns   map[string][]string // of titles; nil: there is no file of them
	named   int                 // products whose title has nouns there
	text    []byte              // of a batch of entries
}

func newLoader(o LoadOptions, records io.Writer) *loader {
	return &loader{o: o, packer: packer{w: records}, entries: map[string]*attributesJSON{}, human: map[string][]humanJSON{}}
}

// read reads all files; products go to the packer.
func (l *loader) read(ctx context.Context, f Files) error {
	var g errgroup.Group // beside the products
	g.Go(func() error { return l.readOthers(ctx, f) })
	err := l.readProducts(ctx, f.Products, g.Wait)
	if others := g.Wait(); others != nil {
		return others
	}
	switch {
	case err != nil:
		return fmt.Errorf("products: %w", err)
	case l.loaded.Products > 0 && l.loaded.Attributeless == l.loaded.Products:
		return fmt.Errorf("the attributes' file has %d products and none of the catalogue's %d: they do not belong together", len(l.entries), l.loaded.Products)
	case l.nouns != nil && l.named == 0:
		return fmt.Errorf("nouns of the titles: none of the %d titles is of this catalogue", len(l.nouns))
	}
	return nil
}

// attributesJSON is an entry of the attributes' file.
type attributesJSON struct {
	Attributes            []string `json:"attributes"`
	Instruction           string   `json:"instruction"`
	InstructionAttributes []string `json:"instruction_attributes"`
}

// humanJSON is an entry of the file of human instructions.
type humanJSON struct {
	Instruction           *string  `json:"instruction"`
	InstructionAttributes []string `json:"instruction_attributes"`
	InstructionOptions    []string `json:"instruction_options"`
}

// productJSON is an entry of the products' file, as far as it is used.
type productJSON struct {
	ASIN        *string     `json:"asin"`
	Name        *string     `json:"name"`
	Description string      `json:"full_description"`
	Bullets     bulletsJSON `json:"small_description"`
	Pricing     string      `json:"pricing"`
	Options     optionsJSON `json:"customization_options"`
	Category    *string     `json:"category"`
	Query       *string     `json:"query"`
	Path        string      `json:"product_category"`
}

// bulletsJSON is a list of strings, or one string.
type bulletsJSON []string

func (b *bulletsJSON) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*b = make(bulletsJSON, 1)
		return json.Unmarshal(raw, &(*b)[0])
	}
	return json.Unmarshal(raw, (*[]string)(b))
}

// optionsJSON is an object of lists of values, in the object's order, or "".
type optionsJSON []OptionGroup

func (o *optionsJSON) UnmarshalJSON(raw []byte) error {
	if string(raw) == `""` || string(raw) == "null" {
		return nil
	}
	return eachMember(json.NewDecoder(bytes.NewReader(raw)), func(name string, d *json.Decoder) error {
		var values []struct {
			Value *string `json:"value"`
		}
		if err := d.Decode(&values); err != nil {
			return fmt.Errorf("option group %q: %w", name, err)
		}
		if values == nil {
			return nil
		}
		g := OptionGroup{Name: lower(name), Values: make([]string, len(values))}
		for i, v := range values {
			if v.Value == nil {
				return fmt.Errorf("option group %q: value %d is missing", name, i+1)
			}
			g.Values[i] = lower(strings.ReplaceAll(trim(*v.Value), "/", " | "))
		}
		for i := range *o {
			if (*o)[i].Name == g.Name { // the last one of a name counts, at the place of the first
				(*o)[i] = g
				return nil
			}
		}
		*o = append(*o, g)
		return nil
	})
}

// eachMember reads an object and calls read for each of its members, whose value is next in the decoder.
func eachMember(d *json.Decoder, read func(name string, d *json.Decoder) error) error {
	if err := open(d, '{'); err != nil {
		return err
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // a member has no other kind of name
		if err := read(name, d); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return cut(err)
}

// open reads the delimiter that a value must begin with.
func open(d *json.Decoder, delim json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if t != delim {
		return fmt.Errorf("it begins with %v, not with %v", t, delim)
	}
	return nil
}

// cut calls the end of a text that should go on by its name.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// decode reads an entry that must be UTF-8.
func decode(raw []byte, v any) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not UTF-8")
	}
	return json.Unmarshal(raw, v)
}

func (l *loader) readOthers(ctx context.Context, f Files) error {
	if err := l.readAttributes(ctx, f.Attributes); err != nil {
		return fmt.Errorf("attributes of the products: %w", err)
	}
	if f.Human != nil {
		if err := l.readHuman(ctx, f.Human); err != nil {
			return fmt.Errorf("human instructions: %w", err)
		}
	}
	if f.Nouns != nil {
		nouns, err := readNouns(f.Nouns)
		if err != nil {
			return fmt.Errorf("nouns of the titles: %w", err)
		}
		l.nouns = nouns
	}
	return nil
}

func (l *loader) readAttributes(ctx context.Context, r io.Reader) error {
	return eachMember(json.NewDecoder(r), func(asin string, d *json.Decoder) error {
		var raw json.RawMessage
		a := &attributesJSON{}
		if err := cmp.Or(ctx.Err(), d.Decode(&raw)); err != nil {
			return fmt.Errorf("%q: %w", asin, cut(err))
		}
		if err := decode(raw, a); err != nil {
			return fmt.Errorf("%q: %w", asin, err)
		}
		l.entries[asin] = a
		return nil
	})
}

func (l *loader) readHuman(ctx context.Context, r io.Reader) error {
	return eachMember(json.NewDecoder(r), func(asin string, d *json.Decoder) error {
		var raw json.RawMessage
		var h []humanJSON
		if err := cmp.Or(ctx.Err(), d.Decode(&raw)); err != nil {
			return fmt.Errorf("%q: %w", asin, cut(err))
		}
		if err := decode(raw, &h); err != nil {
			return fmt.Errorf("%q: %w", asin, err)
		}
		for i := range h {
			if h[i].Instruction == nil {
				return fmt.Errorf("%q: instruction %d is missing", asin, i+1)
			}
		}
		l.human[asin] = h
		return nil
	})
}

// batch is the number of entries that are decoded at once.
const batch = 256

// readProducts reads entries in batches and decodes those of a batch side by side. Others waits for the other files,
// without which nothing can be made of them.
func (l *loader) readProducts(ctx context.Context, r io.Reader, others func() error) error {
	list := splitter{r: r}
	seen := map[string]bool{}
	for more := true; more; {
		raw, err := l.nextBatch(&list)
		if more = err == nil && len(raw) > 0; err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		read, err := decodeProducts(ctx, raw, l.loaded.Entries-len(raw))
		if err = cmp.Or(others(), err); err != nil {
			return err
		}
		for i := range read {
			if l.keep(&read[i], seen) {
				if err := l.packer.add(&read[i].Product); err != nil {
					return err
				}
				l.loaded.Products++
			}
		}
		if l.o.Progress != nil {
			l.o.Progress(Progress{Entries: l.loaded.Entries})
		}
	}
	for asin := range l.entries {
		if !seen[asin] {
			l.loaded.Unmatched++
		}
	}
	for asin := range l.human {
		if !seen[asin] {
			l.loaded.Unmatched++
		}
	}
	return nil
}

// nextBatch are the next entries, good until the call after; with them comes io.EOF at the end of the list.
func (l *loader) nextBatch(list *splitter) (raw [][]byte, err error) {
	l.text = l.text[:0]
	ends := make([]int, 0, batch)
	for len(ends) < batch && (l.o.Limit == 0 || l.loaded.Entries < l.o.Limit) {
		var one []byte
		if one, err = list.next(); err != nil {
			break
		}
		l.text = append(l.text, one...)
		ends = append(ends, len(l.text))
		l.loaded.Entries++
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("entry %d: %w", l.loaded.Entries+1, err)
	}
	from := 0
	for _, end := range ends {
		raw = append(raw, l.text[from:end])
		from = end
	}
	return raw, err
}

// decoded is an entry, clean, or the reason to leave it out.
type decoded struct {
	Product
	unnamed, overlong bool
}

func decodeProducts(ctx context.Context, raw [][]byte, before int) ([]decoded, error) {
	out := make([]decoded, len(raw))
	workers := runtime.GOMAXPROCS(0)
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			for i := w; i < len(raw); i += workers {
				if err := cmp.Or(ctx.Err(), out[i].decode(raw[i])); err != nil {
					return fmt.Errorf("entry %d: %w", before+i+1, err)
				}
			}
			return nil
		})
	}
	return out, g.Wait()
}

func (d *decoded) decode(raw []byte) error {
	var j productJSON
	if err := decode(raw, &j); err != nil {
		return err
	}
	if j.ASIN == nil {
		return errors.New("it has no asin")
	}
	d.ASIN = *j.ASIN
	d.unnamed, d.overlong = d.ASIN == "nan", utf8.RuneCountInString(d.ASIN) > longestASIN
	if d.unnamed || d.overlong {
		return nil
	}
	for _, must := range []struct {
		name  string
		value *string
	}{{"name", j.Name}, {"category", j.Category}, {"query", j.Query}} {
		if must.value == nil {
			return fmt.Errorf("product %s has no %s", d.ASIN, must.name)
		}
	}
	var err error
	if d.Price, err = parsePrice(j.Pricing); err != nil {
		return fmt.Errorf("product %s: %w", d.ASIN, err)
	}
	d.Title, d.Description, d.Bullets, d.Options = *j.Name, j.Description, j.Bullets, j.Options
	d.Category, d.Query, d.Path = *j.Category, trim(lower(*j.Query)), j.Path
	return nil
}

// keep completes a product from the other files, and says whether it is to be kept.
func (l *loader) keep(d *decoded, seen map[string]bool) bool {
	switch {
	case d.unnamed:
		l.loaded.Unnamed++
		return false
	case d.overlong:
		l.loaded.Overlong++
		return false
	case seen[d.ASIN]:
		l.loaded.Repeated++
		return false
	}
	seen[d.ASIN] = true
	d.Attributes = []string{noAttribute}
	if a := l.entries[d.ASIN]; a != nil {
		d.Attributes, d.Instruction, d.InstructionAttributes = a.Attributes, a.Instruction, a.InstructionAttributes
	} else {
		l.loaded.Attributeless++
	}
	for _, h := range l.human[d.ASIN] {
		d.Human = append(d.Human, HumanInstruction{Text: *h.Instruction, Attributes: h.InstructionAttributes, Options: h.InstructionOptions})
	}
	if nouns, brought := l.nouns[d.ASIN]; brought {
		d.Nouns = nouns
		l.named++
	}
	return true
}
