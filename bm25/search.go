package bm25

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Hit is a document that was found.
type Hit struct {
	Document int // its number
	Score    float32
}

// Search gives the k documents of the highest BM25 score for the terms of a text, the best first, of equal scores the
// smaller number first; documents that have none of the terms are not found. What the query says twice counts twice.
//
// The scores are those of Lucene 8.7 to the last bit: term scores are float32, their sum is exact and then rounded to
// float32. It is exact because it is one of whole numbers: the weights are scaled by a power of two so large that a term
// score's fraction is less than float64 would keep of the sum. So neither the order of terms nor leaving out what cannot
// matter changes anything.
//
// What is left out (MaxScore, Turtle and Flood 1995, "Query evaluation: strategies and optimizations"; by window, as
// Lucene 10 does): in each window every term has a bound, the best score of its block. The terms of the lowest bounds,
// so many that together they could not lift a document among the best k so far, are not read on their own. Documents
// are taken from the blocks of the others, and given up as soon as the bounds of what is still to be added do not do.
func (x *Index) Search(query string, k int) []Hit {
	if k <= 0 {
		return nil
	}
	s := x.scratch.Get().(*scratch)
	defer x.scratch.Put(s)
	s.lists = x.appendLists(s.lists[:0], query)
	if len(s.lists) == 0 {
		return nil
	}
	shift := scale(s.lists)
	s.best = best{k: k, hits: s.best.hits[:0]}
	for w := range int(x.windows()) {
		x.searchWindow(w, s)
	}
	hits := slices.Clone(s.best.hits)
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), cmp.Compare(a.Document, b.Document))
	})
	for i := range hits {
		hits[i].Score = float32(math.Ldexp(float64(hits[i].Score), -shift))
	}
	return hits
}

// scratch is what one search needs.
type scratch struct {
	lists []list
	best  best
	here  []*list           // those with a block in the window, lowest bound first
	below []int64           // below[i] is the sum of the bounds of the first i of here
	sums  [windowSize]int64 // by document; 0 for those not seen
	seen  [windowSize / 64]uint64
	alive []candidate
}

// candidate is a document of the window that may yet be among the best.
type candidate struct {
	document int
	sum      int64
}

// list is a term of the query and where a search stands in its blocks.
type list struct {
	weight float32 // scaled once all are known
	blocks []byte  // those still to come, that of the window first
	first  int     // posting of the first of blocks
	block  block   // first of blocks
	bound  int64   // of block
}

// appendLists looks up the terms of a query. Those that no document has are left out.
func (x *Index) appendLists(lists []list, query string) []list {
	terms := Terms(query)
	slices.Sort(terms)
	for len(terms) > 0 {
		count := 1
		for count < len(terms) && terms[count] == terms[0] {
			count++
		}
		if t, known := x.find(terms[0]); known {
			first, end := at(x.firstPosting, t), at(x.firstPosting, t+1)
			lists = append(lists, list{
				weight: weight(count, x.filled, uint64(end-first)),
				blocks: x.blocks[at(x.firstBlock, t)*blockSize : at(x.firstBlock, t+1)*blockSize],
				first:  int(first),
			})
		}
		terms = terms[count:]
	}
	return lists
}

// scale multiplies all weights by 2^shift so that they sum to about 2^62, which leaves the scores exact. No term scores
// more than its weight.
func scale(lists []list) (shift int) {
	total := 0.0
	for _, l := range lists {
		total += float64(l.weight)
	}
	_, exponent := math.Frexp(total)
	shift = 62 - exponent
	for i := range lists {
		lists[i].weight = float32(math.Ldexp(float64(lists[i].weight), shift))
		lists[i].enter()
	}
	return shift
}

// enter reads the first of the blocks to come.
func (l *list) enter() {
	if len(l.blocks) > 0 {
		l.block = blockAt(l.blocks)
		l.bound = int64(score(l.weight, l.block.ratio))
	} else {
		l.block.window = maxWindows
	}
}

func (l *list) leave() {
	l.first += l.block.count
	l.blocks = l.blocks[blockSize:]
	l.enter()
}

// searchWindow offers what documents of a window could be among the best.
func (x *Index) searchWindow(w int, s *scratch) {
	s.here, s.below = s.here[:0], append(s.below[:0], 0)
	for i := range s.lists {
		if l := &s.lists[i]; l.block.window == w {
			s.here = append(s.here, l)
		}
	}
	slices.SortFunc(s.here, func(a, b *list) int { return cmp.Compare(a.bound, b.bound) })
	low := 0 // the lists below do not do alone
	for i, l := range s.here {
		s.below = append(s.below, s.below[i]+l.bound)
		if s.below[i+1] <= s.best.limit {
			low = i + 1
		}
	}
	if low < len(s.here) {
		for _, l := range s.here[low:] {
			x.add(w, l, s)
		}
		s.gather(s.below[low])
		for i := low - 1; i >= 0; i-- {
			x.complete(w, s.here[i], s, s.below[i])
		}
		for _, c := range s.alive {
			s.best.offer(w*windowSize+c.document, c.sum)
		}
	}
	for _, l := range s.here {
		l.leave()
	}
}

// add adds the scores of a block.
func (x *Index) add(w int, l *list, s *scratch) {
	codes := (*[windowSize]byte)(x.codes[w*windowSize:])
	b := x.postings[l.first*postingSize : (l.first+l.block.count)*postingSize]
	for i := 0; i+1 < len(b); i += postingSize {
		p := posting(binary.LittleEndian.Uint16(b[i:]))
		n := float32(p.few())
		if n == many {
			n = x.frequency(l.first+i/postingSize, p)
		}
		d := p.document()
		s.sums[d] += int64(score(l.weight, ratio(n, x.inverse[codes[d]])))
		s.seen[d>>6] |= 1 << (d & 63)
	}
}

// gather takes the documents seen of which more can come than the limit, if at most rest is added to them.
func (s *scratch) gather(rest int64) {
	s.alive = s.alive[:0]
	for i, set := range s.seen {
		for ; set != 0; set &= set - 1 {
			d := i<<6 | bits.TrailingZeros64(set)
			if sum := s.sums[d]; sum+rest > s.best.limit {
				s.alive = append(s.alive, candidate{d, sum})
			}
			s.sums[d] = 0
		}
		s.seen[i] = 0
	}
}

// complete adds a block's scores to the candidates and keeps those of which more can come than the limit, if at most rest
// is added later.
func (x *Index) complete(w int, l *list, s *scratch, rest int64) {
	codes := (*[windowSize]byte)(x.codes[w*windowSize:])
	b := x.postings[l.first*postingSize : (l.first+l.block.count)*postingSize]
	kept, i := s.alive[:0], 0
	for _, c := range s.alive {
		if c.sum+l.bound+rest <= s.best.limit {
			continue
		}
		i = seek(b, i, c.document)
		if i < len(b)/postingSize {
			if p := posting(binary.LittleEndian.Uint16(b[i*postingSize:])); p.document() == c.document {
				c.sum += int64(score(l.weight, ratio(x.frequency(l.first+i, p), x.inverse[codes[c.document]])))
			}
		}
		if c.sum+rest > s.best.limit {
			kept = append(kept, c)
		}
	}
	s.alive = kept
}

// seek is the first posting from i on whose document is not before d.
func seek(b []byte, i, d int) int {
	n := len(b) / postingSize
	behind := func(i int) bool {
		return i >= n || posting(binary.LittleEndian.Uint16(b[i*postingSize:])).document() >= d
	}
	step := 1
	for !behind(i + step - 1) {
		i += step
		step *= 2
	}
	lo, hi := i, min(i+step-1, n)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if behind(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// best holds the k best so far, the worst of them first (a heap). Its scores are scaled.
type best struct {
	k     int
	hits  []Hit
	limit int64 // no sum up to this gets in, as documents are offered in ascending order
}

// worse orders hits.
func worse(a, b Hit) bool {
	return a.Score < b.Score || a.Score == b.Score && a.Document > b.Document
}

func (t *best) offer(document int, sum int64) {
	hit := Hit{document, float32(sum)}
	if len(t.hits) < t.k {
		t.hits = append(t.hits, hit)
		t.up(len(t.hits) - 1)
	} else if worse(t.hits[0], hit) {
		t.hits[0] = hit
		t.down(0)
	}
	if len(t.hits) == t.k {
		t.limit = int64(t.hits[0].Score)
	}
}

func (t *best) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !worse(t.hits[i], t.hits[parent]) {
			return
		}
		t.hits[i], t.hits[parent] = t.hits[parent], t.hits[i]
		i = parent
	}
}

func (t *best) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(t.hits) && worse(t.hits[child], t.hits[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		t.hits[i], t.hits[least] = t.hits[least], t.hits[i]
		i = least
	}
}
