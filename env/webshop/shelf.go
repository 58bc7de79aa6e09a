package webshop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"skillmaster/bm25"

	"golang.org/x/sync/errgroup"
)

// shelf holds products. It is one run of bytes, the same in memory and in a file, numbers little-endian:
//
//	records, one behind the other: what a product is, in texts and lists of texts, each behind its length or number
//	rows of 40 bytes, one for each product, see row
//	4 bytes for each product: the products by ASIN
//	the queries, then the categories that there are, as lists
//	the footer, in files alone, see footer
//
// Texts that it gives are parts of it, and end with it.
type shelf struct {
	records, rows, order []byte
	queries, categories  []string // each once
	unmap                func() error
}

// row is what is looked up of many products at once.
type row struct {
	record   uint64 // where it begins
	price    Price
	query    uint32 // among the queries
	category uint32 // among the categories
	ways     uint32 // goals that its options and instruction make; 0: it has no instruction
	human    uint32 // instructions that people wrote for it
}

const (
	rowSize = 40
	ranged  = 1 << 31 // in the category's place: the price has two amounts
)

func (s *shelf) len() int { return len(s.order) / 4 }

func (s *shelf) row(i int) row {
	b := s.rows[i*rowSize : (i+1)*rowSize]
	category := binary.LittleEndian.Uint32(b[28:])
	return row{
		record: binary.LittleEndian.Uint64(b),
		price: Price{
			Low: math.Float64frombits(binary.LittleEndian.Uint64(b[8:])), High: math.Float64frombits(binary.LittleEndian.Uint64(b[16:])),
			Ranged: category&ranged != 0,
		},
		query: binary.LittleEndian.Uint32(b[24:]), category: category &^ ranged,
		ways: binary.LittleEndian.Uint32(b[32:]), human: binary.LittleEndian.Uint32(b[36:]),
	}
}

func (r row) append(b []byte) []byte {
	category := r.category
	if r.price.Ranged {
		category |= ranged
	}
	b = binary.LittleEndian.AppendUint64(b, r.record)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.price.Low))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(r.price.High))
	for _, n := range []uint32{r.query, category, r.ways, r.human} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// byASIN is the n-th product by ASIN.
func (s *shelf) byASIN(n int) int32 { return int32(binary.LittleEndian.Uint32(s.order[4*n:])) }

// find is the product of an ASIN.
func (s *shelf) find(asin string) (int32, bool) {
	from, to := 0, s.len()
	for from < to {
		if m := (from + to) / 2; s.asin(int(s.byASIN(m))) < asin {
			from = m + 1
		} else {
			to = m
		}
	}
	if from == s.len() || s.asin(int(s.byASIN(from))) != asin {
		return 0, false
	}
	return s.byASIN(from), true
}

// record reads the i-th record. It begins with ASIN, title and attributes.
func (s *shelf) record(i int) reader {
	return reader{rest: s.records[binary.LittleEndian.Uint64(s.rows[i*rowSize:]):]}
}

func (s *shelf) asin(i int) string {
	r := s.record(i)
	return r.text()
}

func (s *shelf) title(i int) string {
	r := s.record(i)
	r.text()
	return r.text()
}

// hasAttribute tells whether an attribute is listed of a product.
func (s *shelf) hasAttribute(i int, attribute string) bool {
	r := s.record(i)
	r.text()
	r.text()
	for range r.number() {
		if r.text() == attribute {
			return true
		}
	}
	return false
}

// product is the i-th product.
func (s *shelf) product(i int) *Product {
	r := s.record(i)
	p := r.product()
	row := s.row(i)
	p.Price, p.Query, p.Category = row.price, s.queries[row.query], s.categories[row.category]
	return p
}

// reader reads what a record is made of. What is damaged reads as nothing, and is remembered.
type reader struct {
	rest    []byte
	damaged bool
}

// number reads how many of something come, each of which has a byte at least.
func (r *reader) number() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(len(r.rest)-size) {
		*r = reader{damaged: true}
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *reader) text() string {
	n := r.number()
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return unsafe.String(unsafe.SliceData(text), n)
}

func (r *reader) list() []string {
	n := r.number()
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.text()
	}
	return list
}

// product reads what a record has of a product.
func (r *reader) product() *Product {
	p := &Product{ASIN: r.text(), Title: r.text(), Attributes: r.list(), Description: r.text(), Path: r.text(), Instruction: r.text()}
	p.Bullets, p.InstructionAttributes = r.list(), r.list()
	if n := r.number(); n > 0 {
		p.Options = make([]OptionGroup, n)
		for i := range p.Options {
			p.Options[i] = OptionGroup{r.text(), r.list()}
		}
	}
	if n := r.number(); n > 0 {
		p.Human = make([]HumanInstruction, n)
		for i := range p.Human {
			p.Human[i] = HumanInstruction{r.text(), r.list(), r.list()}
		}
	}
	if r.number() > 0 {
		p.Nouns = slices.Concat([]string{}, r.list())
	}
	return p
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = appendText(b, text)
	}
	return b
}

// append appends the record of a product. A list that is empty is read as nil.
func (p *Product) append(b []byte) []byte {
	b = appendList(appendText(appendText(b, p.ASIN), p.Title), p.Attributes)
	for _, text := range []string{p.Description, p.Path, p.Instruction} {
		b = appendText(b, text)
	}
	b = appendList(appendList(b, p.Bullets), p.InstructionAttributes)
	b = binary.AppendUvarint(b, uint64(len(p.Options)))
	for _, g := range p.Options {
		b = appendList(appendText(b, g.Name), g.Values)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Human)))
	for _, h := range p.Human {
		b = appendList(appendList(appendText(b, h.Text), h.Attributes), h.Options)
	}
	if p.Nouns == nil {
		return binary.AppendUvarint(b, 0)
	}
	return appendList(binary.AppendUvarint(b, 1), p.Nouns)
}

// packer makes a shelf of products as they come.
type packer struct {
	w                   io.Writer // of the records
	written             uint64
	asins               []string
	rows                []byte
	queries, categories numbered
	record              []byte // scratch
}

// numbered gives texts numbers as they come.
type numbered struct {
	numbers map[string]uint32
	texts   []string
}

func (n *numbered) of(text string) uint32 {
	i, known := n.numbers[text]
	if !known {
		if n.numbers == nil {
			n.numbers = map[string]uint32{}
		}
		i = uint32(len(n.texts))
		text = strings.Clone(text) // it may be part of much else
		n.numbers[text], n.texts = i, append(n.texts, text)
	}
	return i
}

func (k *packer) add(p *Product) error {
	r := row{record: k.written, price: p.Price, query: k.queries.of(p.Query), category: k.categories.of(p.Category), human: uint32(len(p.Human))}
	if p.Instruction != "" {
		r.ways = uint32(min(p.combinations(), mostCombinations+1))
	}
	k.rows = r.append(k.rows)
	k.asins = append(k.asins, strings.Clone(p.ASIN))
	k.record = p.append(k.record[:0])
	n, err := k.w.Write(k.record)
	k.written += uint64(n)
	return err
}

// order lists the products by ASIN. Two of one are an error.
func (k *packer) order() ([]byte, error) {
	order := make([]uint32, len(k.asins))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(k.asins[a], k.asins[b]) })
	b := make([]byte, 0, 4*len(order))
	for n, i := range order {
		if n > 0 && k.asins[i] == k.asins[order[n-1]] {
			return nil, fmt.Errorf("products %d and %d have the same ASIN %s", min(i, order[n-1])+1, max(i, order[n-1])+1, k.asins[i])
		}
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	return b, nil
}

// tables are what comes behind the records.
func (k *packer) tables() ([]byte, error) {
	order, err := k.order()
	return appendList(appendList(append(k.rows, order...), k.queries.texts), k.categories.texts), err
}

// newShelf lays out a shelf whose records have a length and whose products a number; image is all but the footer.
func newShelf(image []byte, records uint64, products int) (*shelf, error) {
	if products < 0 || records > uint64(len(image)) || uint64(products) > (uint64(len(image))-records)/(rowSize+4) {
		return nil, fmt.Errorf("%w: it is cut off", ErrDamaged)
	}
	rows, order := records+uint64(products)*rowSize, records+uint64(products)*(rowSize+4)
	s := &shelf{records: image[:records:records], rows: image[records:rows], order: image[rows:order]}
	r := reader{rest: image[order:]}
	s.queries, s.categories = r.list(), r.list()
	if r.damaged || len(r.rest) > 0 {
		return nil, fmt.Errorf("%w: its queries and categories are", ErrDamaged)
	}
	return s, nil
}

// ErrDamaged says that a file of products is none that this version wrote, or not whole.
var ErrDamaged = errors.New("damaged")

// check makes sure that every product can be read: records lie behind each other and hold what they should, queries and
// categories are there. All cores check.
func (s *shelf) check() error {
	var g errgroup.Group
	const part = 1 << 14
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < s.len(); from += part {
		g.Go(func() error {
			for i := from; i < min(from+part, s.len()); i++ {
				if err := s.checkProduct(i); err != nil {
					return fmt.Errorf("%w: product %d: %w", ErrDamaged, i+1, err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (s *shelf) checkProduct(i int) error {
	r, end, last := s.row(i), uint64(len(s.records)), s.byASIN(i)
	if i+1 < s.len() {
		end = s.row(i + 1).record
	}
	switch {
	case r.record > end || end > uint64(len(s.records)) || i == 0 && r.record != 0:
		return errors.New("its record is not behind the one before it")
	case int(r.query) >= len(s.queries) || int(r.category) >= len(s.categories):
		return errors.New("it has no query or category")
	case last < 0 || int(last) >= s.len():
		return errors.New("the order by ASIN is none")
	}
	record := reader{rest: s.records[r.record:end]}
	if record.skip(); record.damaged || len(record.rest) > 0 {
		return errors.New("its record is no product's")
	}
	return nil
}

// skip goes over the record of a product.
func (r *reader) skip() {
	list := func() {
		for range r.number() {
			r.text()
		}
	}
	r.text()
	r.text()
	list()
	for range 3 {
		r.text()
	}
	list()
	list()
	for range r.number() {
		r.text()
		list()
	}
	for range r.number() {
		r.text()
		list()
		list()
	}
	if r.number() > 0 {
		list()
	}
}

// footer is what a file of products ends with.
type footer struct {
	source   [32]byte // hash of what says which files it was made of
	index    [32]byte // hash of the documents of the index that belongs to it
	loaded   Loaded
	records  uint64
	products uint64
}

const (
	shelfMagic = "SkMShop\n"
	// shelfVersion is raised when the form or what is done to products changes.
	shelfVersion = 1
	footerSize   = 32 + 32 + 7*8 + 8 + 8 + 8 + 4 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// append appends a footer; sum is the CRC-32C of all before it.
func (f *footer) append(b []byte, sum uint32) []byte {
	from := len(b)
	b = append(append(b, f.source[:]...), f.index[:]...)
	for _, n := range f.loaded.counts() {
		b = binary.LittleEndian.AppendUint64(b, uint64(*n))
	}
	b = binary.LittleEndian.AppendUint64(b, f.records)
	b = binary.LittleEndian.AppendUint64(b, f.products)
	b = append(b, shelfMagic...)
	b = binary.LittleEndian.AppendUint32(b, shelfVersion)
	return binary.LittleEndian.AppendUint32(b, crc32.Update(sum, castagnoli, b[from:]))
}

// readFooter reads what the end of a file of products says, and compares no checksum.
func readFooter(path string) (f footer, err error) {
	file, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer file.Close()
	tail := make([]byte, footerSize)
	info, err := file.Stat()
	if err == nil && info.Size() >= footerSize {
		_, err = file.ReadAt(tail, info.Size()-footerSize)
	}
	if err == nil {
		f, err = parseFooter(tail)
	}
	if err != nil {
		err = fmt.Errorf("open products %s: %w (delete it to have it made anew)", path, err)
	}
	return f, err
}

func parseFooter(tail []byte) (f footer, err error) {
	version := binary.LittleEndian.Uint32(tail[footerSize-8:])
	switch {
	case string(tail[footerSize-16:footerSize-8]) != shelfMagic:
		return f, fmt.Errorf("%w: it does not end as one", ErrDamaged)
	case version != shelfVersion:
		return f, fmt.Errorf("%w: its version is %d, read is %d", ErrDamaged, version, shelfVersion)
	}
	rest := tail[copy(f.source[:], tail):]
	rest = rest[copy(f.index[:], rest):]
	for _, n := range f.loaded.counts() {
		*n = int(binary.LittleEndian.Uint64(rest))
		rest = rest[8:]
	}
	f.records, f.products = binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
	if f.products > math.MaxInt32 {
		return f, fmt.Errorf("%w: it has %d products", ErrDamaged, f.products)
	}
	return f, nil
}

// openShelf maps a file of products and checks every byte of it. The error wraps ErrDamaged if the file is none that this
// version wrote.
func openShelf(path string) (*shelf, error) {
	image, unmap, err := bm25.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("open products: %w", err)
	}
	s, err := readShelf(image)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open products %s: %w", path, err), unmap())
	}
	s.unmap = unmap
	return s, nil
}

func readShelf(image []byte) (*shelf, error) {
	if len(image) < footerSize {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrDamaged, len(image))
	}
	f, err := parseFooter(image[len(image)-footerSize:])
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(image[:len(image)-4], castagnoli) != binary.LittleEndian.Uint32(image[len(image)-4:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	s, err := newShelf(image[:len(image)-footerSize], f.records, int(f.products))
	if err == nil {
		err = s.check()
	}
	return s, err
}
