package bm25

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Hit is a document that was found.
type Hit struct {
	Document int // its number
	Score    float32
}

// Search gives the k documents of the highest BM25 score for the terms of a text, the best first, of equal scores the
// smaller number first; documents that have none of the terms are not found. What the query says twice counts twice.
//
// The scores are those of Lucene 8.7 to the last bit: the scores of terms are float32, their sum is exact and then rounded
// to float32. It is exact because it is one of whole numbers: the weights are scaled by a power of two, so large that what
// a term's score has behind the point is less than a float64 would keep of the sum. So neither the order of terms nor
// leaving out what cannot matter changes anything.
//
// What is left out (MaxScore of Turtle and Flood 1995, "Query evaluation: strategies and optimizations", here by window):
// in a window each term has a bound, the best score of its block. The terms of the lowest bounds, as many as together do
// not lift a document among the best k so far, make no candidates. Candidates come from the blocks of the other terms; for
// them the low terms are looked up, the highest bound first, and a candidate is given up as soon as what may still come
// does not do.
func (x *Index) Search(query string, k int) []Hit {
	if k <= 0 {
		return nil
	}
	s := x.scratch.Get().(*scratch)
	defer x.scratch.Put(s)
	s.lists = x.appendLists(s.lists[:0], query)
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
	here  []*list // those with a block in the window, the lowest bound first
	below []int64 // below[i] is the sum of the bounds of the first i of here

	// By document of the window; all 0 between windows.
	sums   [windowSize]int64
	places [windowSize]uint16 // 1 + place among a block's postings; 0: none

	alive []uint16 // candidates: documents of the window, ascending
	room  [windowSize]uint16
}

// list is a term of the query and where a search stands in its blocks.
type list struct {
	weight float32 // scaled once all are known
	blocks []byte  // those still to come
	first  int     // the first posting of the first of blocks
	block  block   // the first of blocks; behind all windows if there is none
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

// scale multiplies all weights by 2^shift so that they sum to about 2^62. No term scores more than its weight.
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
	if len(l.blocks) == 0 {
		l.block.window = maxWindows
		return
	}
	l.block = blockAt(l.blocks)
	l.bound = int64(score(l.weight, l.block.ratio))
}

func (l *list) leave() {
	l.first += l.block.count
	l.blocks = l.blocks[blockSize:]
	l.enter()
}

// searchWindow offers the documents of a window that could be among the best.
func (x *Index) searchWindow(w int, s *scratch) {
	s.here, s.below = s.here[:0], append(s.below[:0], 0)
	for i := range s.lists {
		if l := &s.lists[i]; l.block.window == w {
			s.here = append(s.here, l)
		}
	}
	slices.SortFunc(s.here, func(a, b *list) int { return cmp.Compare(a.bound, b.bound) })
	low := 0 // the lists before it do not do alone
	for i, l := range s.here {
		s.below = append(s.below, s.below[i]+l.bound)
		if s.below[i+1] <= s.best.limit {
			low = i + 1
		}
	}
	if low < len(s.here) {
		x.searchLists(w, s, s.more(low))
	}
	for _, l := range s.here {
		l.leave()
	}
}

// more takes lists from the low ones to the others while they are short beside those: to read them costs less than to look
// up what they rule out.
func (s *scratch) more(low int) int {
	const share = 4
	read := 0
	for _, l := range s.here[low:] {
		read += l.block.count
	}
	for low > 0 && s.here[low-1].block.count*share <= read {
		low--
		read += s.here[low].block.count
	}
	return low
}

// searchLists takes candidates from the lists from low on and completes them with those before.
func (x *Index) searchLists(w int, s *scratch, low int) {
	for _, l := range s.here[low:] {
		x.add(w, l, s)
	}
	s.gather(s.below[low])
	for low--; low >= 0 && len(s.alive) > 0; low-- {
		x.complete(w, s.here[low], s, s.below[low])
	}
	for _, d := range s.alive {
		s.best.offer(w*windowSize+int(d), s.sums[d])
	}
	clear(s.sums[:])
}

// parts gives the codes of a window's lengths and the postings of a list's block.
func (x *Index) parts(w int, l *list) (codes *[windowSize]byte, postings []byte) {
	return (*[windowSize]byte)(x.codes[w*windowSize:]), x.postings[l.first*postingSize : (l.first+l.block.count)*postingSize]
}

// add adds a block's scores to the sums.
func (x *Index) add(w int, l *list, s *scratch) {
	codes, postings := x.parts(w, l)
	for i := range l.block.count {
		p := postingAt(postings, i)
		frequency := float32(p.few())
		if frequency == many {
			frequency = x.frequency(l.first+i, p)
		}
		d := p.document()
		s.sums[d] += int64(score(l.weight, ratio(frequency, x.inverse[codes[d]])))
	}
}

// gather makes candidates of the documents that may get above the limit, if at most rest is added to their sums.
func (s *scratch) gather(rest int64) {
	n := 0
	for d, sum := range s.sums[:] {
		s.room[n] = uint16(d)
		n += above(sum, s.best.limit-rest)
	}
	s.alive = s.room[:n]
}

// complete adds a block's scores to the sums of the candidates, and keeps those that may get above the limit, if at most
// rest is added later.
func (x *Index) complete(w int, l *list, s *scratch, rest int64) {
	codes, postings := x.parts(w, l)
	spread := len(s.alive)*16 > l.block.count // else it takes longer than to search
	if spread {
		for i := range l.block.count {
			s.places[postingAt(postings, i).document()] = uint16(i + 1)
		}
	}
	n := 0
	for _, d := range s.alive {
		i := int(s.places[d]) - 1
		if !spread {
			i = place(postings, int(d))
		}
		if i >= 0 {
			s.sums[d] += int64(score(l.weight, ratio(x.frequency(l.first+i, postingAt(postings, i)), x.inverse[codes[d]])))
		}
		s.alive[n] = d
		n += above(s.sums[d], s.best.limit-rest)
	}
	s.alive = s.alive[:n]
	if spread {
		clear(s.places[:])
	}
}

// place finds a document among a block's postings; -1 if it is not there.
func place(postings []byte, document int) int {
	n := len(postings) / postingSize
	i := sort.Search(n, func(i int) bool { return postingAt(postings, i).document() >= document })
	if i == n || postingAt(postings, i).document() != document {
		return -1
	}
	return i
}

// above is 1 if a is more than b, else 0. Where it is asked, the answer is as good as random: a branch would cost more.
func above(a, b int64) int { return int(uint64(b-a) >> 63) }

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
