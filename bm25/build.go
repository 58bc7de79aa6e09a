package bm25

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/errgroup"
)

// Hash names documents by their texts and order: SHA-256 of each text's length in bytes (8 bytes, little-endian) and the
// text.
func Hash(documents iter.Seq[string]) [32]byte {
	h := sha256.New()
	for text := range documents {
		hashText(h, text)
	}
	return [32]byte(h.Sum(nil))
}

func hashText(h hash.Hash, text string) {
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	h.Write(unsafe.Slice(unsafe.StringData(text), len(text)))
}

// Build indexes documents, which are numbered from 0 as they come. Of equal scores the smaller number wins: whoever wants
// ties to go by name sorts the documents by name before.
//
// Documents are analysed by as many goroutines as there are workers; none is kept. The same documents give the same bytes
// for any number of workers. Beside the index itself Build takes about as much memory again. It fails if a document has
// over 1,048,575 terms, if there are more than 2²⁸ documents or 2³² − 1 distinct terms of documents, and when ctx ends.
func Build(ctx context.Context, documents iter.Seq[string], workers int) (*Index, error) {
	h := sha256.New()
	workers = max(workers, 1)
	dict := dictionary{ids: map[string]uint32{}}
	inverters := make(chan *inverter, workers)
	for range workers {
		inverters <- &inverter{dict: &dict, words: map[string]uint32{}}
	}
	var runs []*run
	var w *window
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	invert := func(texts []string) {
		p := w.open()
		w := w
		g.Go(func() error {
			in := <-inverters
			defer func() { inverters <- in }()
			if err := in.invert(inner, texts, w.run.first+p.first, p); err != nil {
				return err
			}
			w.done()
			return nil
		})
	}
	var texts []string
	n := 0
	for text := range documents {
		hashText(h, text)
		if n%windowSize == 0 {
			if inner.Err() != nil {
				break
			}
			w.done()
			w = newWindow(n)
			runs = append(runs, w.run)
		}
		if texts = append(texts, text); len(texts) == partSize {
			invert(texts)
			texts = nil
		}
		n++
	}
	if len(texts) > 0 {
		invert(texts)
	}
	w.done()
	err := cmp.Or(g.Wait(), ctx.Err())
	if err == nil && len(runs) > maxWindows {
		err = errors.New("too many documents")
	}
	if err != nil {
		return nil, fmt.Errorf("index documents: %w", err)
	}
	return assemble([32]byte(h.Sum(nil)), dict.terms, runs)
}

// dictionary numbers terms as they come.
type dictionary struct {
	mu    sync.Mutex
	ids   map[string]uint32
	terms []string
}

func (d *dictionary) id(term string) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, known := d.ids[term]
	if !known {
		id = uint32(len(d.terms))
		d.ids[term] = id
		d.terms = append(d.terms, term)
	}
	return id
}

// run is a window's part of the index: the postings of each of its terms, terms by number.
type run struct {
	first    int // document
	codes    []byte
	length   uint64
	filled   uint64
	terms    []uint32
	counts   []uint16 // postings − 1 of each term
	postings []posting
	frequent []uint32 // term frequencies of the postings that say many, in order
}

// partSize is the number of documents that are analysed at once: less than a window, so that several cores have something to
// do with few documents.
const partSize = windowSize / 32

// window is a run that is being made, of parts that are inverted in any order. A nil window is none.
type window struct {
	run   *run
	parts []*part
	left  atomic.Int32 // parts that are not done, and one for the parts still to come
}

// part is what some documents of a window have.
type part struct {
	first  int // document in the window
	codes  []byte
	length uint64
	filled uint64
	keys   []key
}

func newWindow(first int) *window {
	w := &window{run: &run{first: first}}
	w.left.Store(1)
	return w
}

// open begins the next part.
func (w *window) open() *part {
	p := &part{first: len(w.parts) * partSize}
	w.parts = append(w.parts, p)
	w.left.Add(1)
	return p
}

// done says that a part is done, or that no more will be opened, and makes the run when it was the last.
func (w *window) done() {
	if w == nil || w.left.Add(-1) > 0 {
		return
	}
	n := 0
	for _, p := range w.parts {
		n += len(p.keys)
	}
	keys := make([]key, 0, n)
	for _, p := range w.parts {
		keys = append(keys, p.keys...)
		w.run.codes = append(w.run.codes, p.codes...)
		w.run.length += p.length
		w.run.filled += p.filled
	}
	w.parts = nil
	slices.Sort(keys)
	w.run.fill(keys)
}

// inverter inverts parts, one after another.
type inverter struct {
	dict  *dictionary
	words map[string]uint32 // id of the word's term, or stopped
	ids   []uint32
}

const (
	stopped   = ^uint32(0)
	wordsKept = 1 << 18 // words whose term is remembered
)

// key is a posting that sorts by term and document: term (32 bits), document in the window (12), frequency (20).
type key uint64

// usualTerms of a document of the original are distinct.
const usualTerms = 70

// invert notes what documents have, of which the first has a number in all.
func (in *inverter) invert(ctx context.Context, texts []string, first int, p *part) error {
	p.keys = make([]key, 0, usualTerms*len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return err
		}
		in.ids = in.ids[:0]
		eachWord(text, in.add)
		n := len(in.ids)
		if n > maxLength {
			return fmt.Errorf("document %d has %d terms, at most %d are allowed", first+i, n, maxLength)
		}
		if n > 0 {
			p.filled++
		}
		p.length += uint64(n)
		p.codes = append(p.codes, lengthCode(uint32(n)))
		slices.Sort(in.ids)
		for ids := in.ids; len(ids) > 0; {
			id, same := ids[0], 1
			for same < len(ids) && ids[same] == id {
				same++
			}
			p.keys = append(p.keys, key(id)<<32|key(p.first+i)<<20|key(same))
			ids = ids[same:]
		}
	}
	return nil
}

// add notes the term of a word.
func (in *inverter) add(word string) {
	id, known := in.words[word]
	if !known {
		id = stopped
		if t := term(word); t != "" {
			id = in.dict.id(t)
		}
		if len(in.words) == wordsKept {
			clear(in.words)
		}
		in.words[strings.Clone(word)] = id
	}
	if id != stopped {
		in.ids = append(in.ids, id)
	}
}

func (r *run) fill(keys []key) {
	r.postings = make([]posting, 0, len(keys))
	for _, k := range keys {
		id, document, frequency := uint32(k>>32), uint16(k>>20%windowSize), uint32(k%(1<<20))
		if last := len(r.terms) - 1; last >= 0 && r.terms[last] == id {
			r.counts[last]++
		} else {
			r.terms, r.counts = append(r.terms, id), append(r.counts, 0)
		}
		if frequency >= many {
			r.frequent = append(r.frequent, frequency)
		}
		r.postings = append(r.postings, posting(document<<fewBits|uint16(min(frequency, many))))
	}
}

// assemble puts runs together, terms in order.
func assemble(hash [32]byte, terms []string, runs []*run) (*Index, error) {
	h := header{hash: hash, terms: uint64(len(terms))}
	for _, t := range terms {
		h.textSize += uint64(len(t))
	}
	blocks, postings := make([]uint32, len(terms)), make([]uint32, len(terms)) // of each term: how many, then where the next goes
	for _, r := range runs {
		h.documents += uint64(len(r.codes))
		h.filled += r.filled
		h.length += r.length
		h.blockN += uint64(len(r.terms))
		h.postingN += uint64(len(r.postings))
		h.frequentN += uint64(len(r.frequent))
		for i, id := range r.terms {
			blocks[id]++
			postings[id] += uint32(r.counts[i]) + 1
		}
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	size := uint64(headerSize)
	for _, n := range h.sections() {
		size += n
	}
	image := make([]byte, size)
	h.seal(image) // for parse to read
	x, err := parse(image)
	if err != nil {
		return nil, err
	}
	x.putTerms(terms, blocks, postings)
	var frequent []frequentPosting
	for w, r := range runs {
		copy(x.codes[r.first:], r.codes)
		frequent = x.putRun(w, r, blocks, postings, frequent)
		runs[w] = nil // its memory is wanted
	}
	slices.SortFunc(frequent, func(a, b frequentPosting) int { return cmp.Compare(a.at, b.at) })
	for i, f := range frequent {
		put(x.frequent, 2*i, f.at)
		put(x.frequent, 2*i+1, f.frequency)
	}
	h.seal(image)
	return x, nil
}

type frequentPosting struct{ at, frequency uint32 }

// put sets the i-th number of a table.
func put(table []byte, i int, n uint32) { binary.LittleEndian.PutUint32(table[4*i:], n) }

// putTerms writes the dictionary in order, and turns the numbers of blocks and postings of each term into places.
func (x *Index) putTerms(terms []string, blocks, postings []uint32) {
	order := make([]uint32, len(terms))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(terms[a], terms[b]) })
	var end, block, posting uint32
	for i, id := range order {
		end += uint32(copy(x.text[end:], terms[id]))
		blocks[id], block = block, block+blocks[id]
		postings[id], posting = posting, posting+postings[id]
		put(x.ends, i+1, end)
		put(x.firstBlock, i+1, block)
		put(x.firstPosting, i+1, posting)
	}
}

// putRun writes the blocks of a window to the places that come next for their terms.
func (x *Index) putRun(window int, r *run, blocks, postings []uint32, frequent []frequentPosting) []frequentPosting {
	from, often := 0, 0
	for i, id := range r.terms {
		k := block{window: window, count: int(r.counts[i]) + 1}
		for _, p := range r.postings[from : from+k.count] {
			n := uint32(p.few())
			if n == many {
				n = r.frequent[often]
				often++
				frequent = append(frequent, frequentPosting{postings[id], n})
			}
			k.ratio = max(k.ratio, ratio(float32(n), x.inverse[r.codes[p.document()]]))
			binary.LittleEndian.PutUint16(x.postings[int(postings[id])*postingSize:], uint16(p))
			postings[id]++
		}
		k.put(x.blocks[int(blocks[id])*blockSize:])
		blocks[id]++
		from += k.count
	}
	return frequent
}
