// Package bm25 finds and ranks texts as Lucene does: its analysis of English, its BM25 with Anserini's constants, its
// scores to the last bit. Build makes an Index of documents, Open maps one from a file, Index.Search asks it.
package bm25

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"sync"
)

// Index finds documents by their terms. It is immutable and safe for concurrent use.
//
// It is one run of bytes, the same in memory and in a file, little-endian and without gaps:
//
//	8       magic, "SkMBM25\n"
//	4       version; raised when the form, the analysis or the arithmetic changes
//	4       CRC-32C of all that follows
//	32      hash of the documents, see Hash
//	8 × 8   documents, documents that have a term, terms of all documents, distinct terms T, bytes of the distinct
//	        terms, blocks B, postings P, frequent postings F
//	W×4096  lengths of the documents as codes, zeros behind them; W is the number of windows
//	4×(T+1) where each term begins among the bytes of the terms, and the end of the last; terms ascend byte by byte
//	4×(T+1) the first block of each term, and B
//	4×(T+1) the first posting of each term, and P
//	…       bytes of the terms
//	8×B     blocks: window (2 bytes), postings − 1 (2), greatest r (4, a float32; see ratio)
//	8×F     frequent postings in order: number of the posting (4), term frequency (4)
//	2×P     postings: document within the window (upper 12 bits), term frequency (lower 4, where 15 means that the
//	        posting is among the frequent ones)
//
// A window is 4,096 documents in a row. What a term has in one window is a block; a term's blocks ascend by window, a
// block's postings by document.
type Index struct {
	image []byte
	unmap func() error // nil: image is ours

	header
	codes                            []byte
	ends, firstBlock, firstPosting   []byte
	text, blocks, frequent, postings []byte

	inverse inverses
	scratch sync.Pool // of *scratch
}

const (
	version    = 1
	magic      = "SkMBM25\n"
	headerSize = 112
	summed     = 16 // where that begins which the checksum covers

	windowBits = 12
	windowSize = 1 << windowBits
	maxWindows = 1 << 16
	fewBits    = 16 - windowBits
	many       = 1<<fewBits - 1 // in place of a term frequency: see the frequent postings

	blockSize    = 8
	frequentSize = 8
	postingSize  = 2
)

// header is what an image begins with, magic, version and checksum left aside.
type header struct {
	hash      [32]byte
	documents uint64
	filled    uint64 // documents that have a term
	length    uint64 // of all documents, in terms
	terms     uint64
	textSize  uint64
	blockN    uint64
	postingN  uint64
	frequentN uint64
}

// numbers gives the numbers in the order in which they are written.
func (h *header) numbers() [8]*uint64 {
	return [8]*uint64{&h.documents, &h.filled, &h.length, &h.terms, &h.textSize, &h.blockN, &h.postingN, &h.frequentN}
}

func (h *header) windows() uint64 { return (h.documents + windowSize - 1) / windowSize }

// sections gives the sizes of the sections in their order.
func (h *header) sections() [8]uint64 {
	table := 4 * (h.terms + 1)
	return [8]uint64{
		h.windows() * windowSize, table, table, table, h.textSize, h.blockN * blockSize, h.frequentN * frequentSize, h.postingN * postingSize,
	}
}

// check refuses counts that no index has; with those let through, no sum of sizes overflows.
func (h *header) check() error {
	for _, c := range []struct {
		what    string
		n, most uint64
	}{
		{"documents", h.documents, maxWindows * windowSize},
		{"documents with terms", h.filled, h.documents},
		{"terms in all", h.length, h.filled * maxLength},
		{"postings", h.postingN, min(h.length, math.MaxUint32)},
		{"blocks", h.blockN, h.postingN},
		{"frequent postings", h.frequentN, h.postingN},
		{"distinct terms", h.terms, h.blockN},
		{"bytes of terms", h.textSize, math.MaxUint32},
	} {
		if c.n > c.most {
			return fmt.Errorf("%d %s, at most %d can be", c.n, c.what, c.most)
		}
	}
	return nil
}

// What Open reports of a file that is of no use.
var (
	ErrDamaged = errors.New("no whole index of this version")
	ErrOther   = errors.New("an index of other documents")
)

// Len is the number of documents.
func (x *Index) Len() int { return int(x.documents) }

// Hash names the documents that were indexed, as the function Hash does.
func (x *Index) Hash() [32]byte { return x.hash }

// Size is how many bytes the index has.
func (x *Index) Size() int { return len(x.image) }

// WriteFile puts the index in a file, as a whole or not at all: beside it, synced, renamed.
func (x *Index) WriteFile(path string) error {
	if err := writeFile(path, x.image); err != nil {
		return fmt.Errorf("write index %s: %w", path, err)
	}
	return nil
}

func writeFile(path string, image []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(image)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename last. Windows has no such call and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Open maps the index in a file into memory (or reads it, where files cannot be mapped) and checks every byte of it. The
// error wraps ErrOther if the index is of documents whose Hash is another, ErrDamaged if the file is none that WriteFile
// of this version wrote. The index must be closed, and the file not be written to before.
func Open(path string, documents [32]byte) (*Index, error) {
	image, unmap, err := MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x, err := read(image)
	if err == nil && x.hash != documents {
		err = fmt.Errorf("%w: its hash is %x…, that of the documents %x…", ErrOther, x.hash[:4], documents[:4])
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open index %s: %w (delete it and build it again)", path, err), unmap())
	}
	x.unmap = unmap
	return x, nil
}

// Close lets go of a file. Nothing may be asked of the index afterwards, or while it is closed. An index that is not of a
// file need not be closed.
func (x *Index) Close() error {
	if x.unmap == nil {
		return nil
	}
	unmap := x.unmap
	*x = Index{}
	return unmap()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// read checks an image and its checksum.
func read(image []byte) (*Index, error) {
	switch {
	case len(image) < headerSize:
		return nil, fmt.Errorf("%w: it has %d bytes", ErrDamaged, len(image))
	case string(image[:8]) != magic:
		return nil, fmt.Errorf("%w: it does not begin as one", ErrDamaged)
	case binary.LittleEndian.Uint32(image[8:]) != version:
		return nil, fmt.Errorf("%w: its version is %d, read is %d", ErrDamaged, binary.LittleEndian.Uint32(image[8:]), version)
	case binary.LittleEndian.Uint32(image[12:]) != crc32.Checksum(image[summed:], castagnoli):
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	x, err := parse(image)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return x, nil
}

// seal writes what comes before the sections.
func (h *header) seal(image []byte) {
	copy(image, magic)
	binary.LittleEndian.PutUint32(image[8:], version)
	rest := image[summed+copy(image[summed:], h.hash[:]):]
	for i, n := range h.numbers() {
		binary.LittleEndian.PutUint64(rest[8*i:], *n)
	}
	binary.LittleEndian.PutUint32(image[12:], crc32.Checksum(image[summed:], castagnoli))
}

// parse finds the sections. It looks at nothing in them.
func parse(image []byte) (*Index, error) {
	x := &Index{image: image}
	rest := image[summed+copy(x.hash[:], image[summed:]):]
	for i, n := range x.numbers() {
		*n = binary.LittleEndian.Uint64(rest[8*i:])
	}
	if err := x.header.check(); err != nil {
		return nil, err
	}
	rest = image[headerSize:]
	sizes := x.sections()
	for i, to := range []*[]byte{&x.codes, &x.ends, &x.firstBlock, &x.firstPosting, &x.text, &x.blocks, &x.frequent, &x.postings} {
		if sizes[i] > uint64(len(rest)) {
			return nil, io.ErrUnexpectedEOF
		}
		*to, rest = rest[:sizes[i]:sizes[i]], rest[sizes[i]:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes too many", len(rest))
	}
	x.inverse = newInverses(x.length, x.filled)
	x.scratch.New = func() any { return new(scratch) }
	return x, nil
}

// check makes sure that no search can go astray: tables ascend from end to end, blocks and postings in their order.
func (x *Index) check() error {
	for _, t := range []struct {
		what  string
		table []byte
		last  uint64
	}{{"terms", x.ends, x.textSize}, {"first blocks", x.firstBlock, x.blockN}, {"first postings", x.firstPosting, x.postingN}} {
		if at(t.table, 0) != 0 || uint64(at(t.table, int(x.terms))) != t.last {
			return fmt.Errorf("the table of %s does not reach from end to end", t.what)
		}
		for i := range int(x.terms) {
			if at(t.table, i+1) <= at(t.table, i) {
				return fmt.Errorf("the table of %s does not ascend at %d", t.what, i)
			}
		}
	}
	for i := 1; i < int(x.terms); i++ {
		if bytes.Compare(x.term(i-1), x.term(i)) >= 0 {
			return fmt.Errorf("term %d is not behind the one before it", i)
		}
	}
	frequent := 0
	for t := range int(x.terms) {
		posting, end := int(at(x.firstPosting, t)), int(at(x.firstPosting, t+1))
		window := -1
		for b := int(at(x.firstBlock, t)); b < int(at(x.firstBlock, t+1)); b++ {
			block := blockAt(x.blocks[b*blockSize:])
			if block.window <= window || block.window >= int(x.windows()) || block.count > end-posting || !(block.ratio >= 0) {
				return fmt.Errorf("block %d is out of place", b)
			}
			window = block.window
			last := -1
			for i := posting; i < posting+block.count; i++ {
				p := postingAt(x.postings, i)
				if p.document() <= last || p.few() == 0 {
					return fmt.Errorf("posting %d is out of place", i)
				}
				last = p.document()
				if p.few() == many {
					if frequent >= int(x.frequentN) || at(x.frequent, 2*frequent) != uint32(i) || at(x.frequent, 2*frequent+1) < many {
						return fmt.Errorf("posting %d is not among the frequent ones", i)
					}
					frequent++
				}
			}
			if window*windowSize+last >= x.Len() {
				return fmt.Errorf("block %d has a document that is not there", b)
			}
			posting += block.count
		}
		if posting != end {
			return fmt.Errorf("the blocks of term %d do not hold its postings", t)
		}
	}
	if frequent != int(x.frequentN) {
		return errors.New("frequent postings that are none")
	}
	return nil
}

// at is the i-th number of a table.
func at(table []byte, i int) uint32 { return binary.LittleEndian.Uint32(table[4*i:]) }

// term is the i-th term.
func (x *Index) term(i int) []byte { return x.text[at(x.ends, i):at(x.ends, i+1)] }

// find is the place of a term.
func (x *Index) find(term string) (int, bool) {
	i := sort.Search(int(x.terms), func(i int) bool { return string(x.term(i)) >= term })
	return i, i < int(x.terms) && string(x.term(i)) == term
}

// block is what a term has in a window.
type block struct {
	window, count int
	ratio         float32 // greatest of its postings
}

func blockAt(b []byte) block {
	return block{
		window: int(binary.LittleEndian.Uint16(b)),
		count:  int(binary.LittleEndian.Uint16(b[2:])) + 1,
		ratio:  math.Float32frombits(binary.LittleEndian.Uint32(b[4:])),
	}
}

func (k block) put(b []byte) {
	binary.LittleEndian.PutUint16(b, uint16(k.window))
	binary.LittleEndian.PutUint16(b[2:], uint16(k.count-1))
	binary.LittleEndian.PutUint32(b[4:], math.Float32bits(k.ratio))
}

// posting is a document of a window and how often it has a term.
type posting uint16

func (p posting) document() int { return int(p >> fewBits) }
func (p posting) few() uint16   { return uint16(p) & many }

// postingAt is the i-th of postings.
func postingAt(postings []byte, i int) posting {
	return posting(binary.LittleEndian.Uint16(postings[i*postingSize:]))
}

// frequency is how often the document of the i-th posting has the term.
func (x *Index) frequency(i int, p posting) float32 {
	if few := p.few(); few != many {
		return float32(few)
	}
	n := int(x.frequentN)
	j := sort.Search(n, func(j int) bool { return at(x.frequent, 2*j) >= uint32(i) })
	return float32(at(x.frequent, 2*j+1))
}
