package chat

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Tags are the tags of replies, as TrainOptions takes them.
func Tags() []string {
	return []string{"<think>", "</think>", "<action>", "</action>", "<tool_call>", "</tool_call>"}
}

// TrainOptions says what tokenizer to train.
type TrainOptions struct {
	VocabSize int      // tokens in all: 256 bytes, merges, Special and Tags; fewer if the corpus has no more to merge
	Special   []string // added tokens that no text but the program's own may become; see Template.Special
	Tags      []string // added tokens of replies; see Tags
	Pattern   string   // of the pre-tokenizer, which no merge crosses; empty: GPT2Pattern
	MinCount  int      // a pair seen less often is not merged; 0: 2
}

// Train learns a byte-level BPE tokenizer from texts: again and again the pair of neighbouring tokens seen most often
// becomes a token. Ties go to the pair with the lower left id, then the lower right id. Ids are the bytes in the order
// of their characters in the byte alphabet, then tokens in the order they were learned, then Special, then Tags. Texts
// are cut at added tokens first. The same texts, in whatever order, give the same tokenizer.
//
// With an entity pattern words are finished before they are joined: a pair that crosses the end of a word counts only
// where it is made of whole words. So a noun and its number cost one merge, and no token holds a torn word beside another.
func Train(corpus iter.Seq[string], o TrainOptions) (*Tokenizer, error) {
	if o.Pattern == "" {
		o.Pattern = GPT2Pattern
	}
	if o.MinCount == 0 {
		o.MinCount = 2
	}
	merges := o.VocabSize - 256 - len(o.Special) - len(o.Tags)
	if merges < 0 || o.VocabSize > maxVocab {
		return nil, fmt.Errorf("train tokenizer: a vocabulary of %d: it must hold 256 bytes and the added tokens, and at most %d", o.VocabSize, maxVocab)
	}
	base, err := assemble(o.definition(nil, nil))
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	counts := map[string]int{}
	for text := range corpus {
		base.finders[0].split(text, special, func(s string, id int32) {
			if id < 0 {
				pieces(s, base.cuts, func(piece string) { counts[piece]++ })
			}
		})
	}
	_, words := parseEntities(o.Pattern)
	tr := newTrainer(counts, words)
	for len(tr.tokens) < 256+merges && tr.step(o.MinCount) {
	}
	t, err := assemble(o.definition(tr.tokens, tr.merges))
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	return t, nil
}

// definition returns the tokenizer of the options with these learned tokens, or the bytes alone.
func (o TrainOptions) definition(tokens []string, merges []pair) definition {
	if tokens == nil {
		tokens = byteTokens()
	}
	regex, _ := json.Marshal(o.Pattern) // a string always encodes
	d := definition{
		tokens: map[int32]string{}, merges: merges, pattern: []string{o.Pattern},
		file: fileParts{
			preTokenizer: json.RawMessage(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":` + string(regex) +
				`},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]}`),
			decoder: json.RawMessage(`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}`),
			model:   modelHead{Type: "BPE"},
		},
	}
	for i, s := range tokens {
		d.tokens[int32(i)] = s
	}
	add := func(texts []string, k kind) {
		for _, s := range texts {
			d.added = append(d.added, added{id: int32(len(tokens) + len(d.added)), text: s, kind: k})
		}
	}
	add(o.Special, special)
	add(o.Tags, tag)
	return d
}

func byteTokens() []string {
	var tokens []string
	for _, b := range byteOrder() {
		tokens = append(tokens, string([]byte{b}))
	}
	return tokens
}

// edge says how a token of a piece lies to the words of the piece.
type edge uint8

const (
	starts edge = 1 << iota // a word starts with it
	ends                    // a word ends with it
	joined                  // it holds parts of several words
)

// countable reports whether a pair of neighbours may be merged for what it is: parts of one word, or whole words.
func countable(left, right edge) bool {
	if (left|right)&joined == 0 && left&ends == 0 {
		return true
	}
	return left&starts != 0 && right&ends != 0
}

func join(left, right edge) edge {
	e := left&starts | right&ends | (left|right)&joined
	if left&ends != 0 {
		e |= joined
	}
	return e
}

// sequence is a piece of the corpus as tokens.
type sequence struct {
	count int
	ids   []int32
	edges []edge // nil: every pair counts
}

// tally is what is known of a pair.
type tally struct {
	count int     // countable occurrences in the corpus
	where []int32 // sequences that hold it, or did; rising, but for repeats
}

// candidate is a pair with a count it had.
type candidate struct {
	pair
	count int
}

// candidates is a heap: most often first, then the lower pair.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[j].count, c[i].count), c[i].compare(c[j].pair)) < 0
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}

// trainer learns merges one at a time.
type trainer struct {
	tokens    []string
	ids       map[string]int32
	merges    []pair
	merged    map[pair]bool
	sequences []sequence
	tallies   map[pair]*tally
	heap      candidates // counts may be out of date; every pair with a count has an entry at least as high
	delta     map[pair]int
}

// newTrainer starts from pieces with their counts; words: finish words before joining them.
func newTrainer(counts map[string]int, words bool) *trainer {
	tr := &trainer{tokens: byteTokens(), ids: map[string]int32{}, merged: map[pair]bool{}, tallies: map[pair]*tally{}, delta: map[pair]int{}}
	for id, s := range tr.tokens {
		tr.ids[s] = int32(id)
	}
	for _, piece := range slices.Sorted(maps.Keys(counts)) {
		q := sequence{count: counts[piece], ids: make([]int32, len(piece))}
		for i := range len(piece) {
			q.ids[i] = tr.ids[piece[i:i+1]]
		}
		if words {
			q.edges = wordEdges(piece)
		}
		n := int32(len(tr.sequences))
		tr.sequences = append(tr.sequences, q)
		for i := range len(q.ids) - 1 {
			tr.add(q, n, i, i+1)
		}
	}
	tr.settle()
	return tr
}

// wordEdges marks the words of a piece, byte by byte: runs of letters, of digits or of other characters, each with one
// blank before it. A blank before none of them is a word.
func wordEdges(piece string) []edge {
	edges := make([]edge, len(piece))
	for i := range edges {
		if i == 0 || piece[i] == ' ' || piece[i-1] != ' ' && charKind(piece[i]) != charKind(piece[i-1]) {
			edges[i] |= starts
			if i > 0 {
				edges[i-1] |= ends
			}
		}
	}
	edges[len(edges)-1] |= ends
	return edges
}

func charKind(c byte) class {
	switch {
	case isLetter(c), c >= 0x80:
		return letter
	case isDigit(c):
		return number
	case c == ' ':
		return blank
	}
	return other
}

// add counts the pair of tokens i and j of sequence n.
func (tr *trainer) add(q sequence, n int32, i, j int) {
	p := pair{q.ids[i], q.ids[j]}
	t := tr.tallies[p]
	if t == nil {
		t = new(tally)
		tr.tallies[p] = t
	}
	if len(t.where) == 0 || t.where[len(t.where)-1] != n {
		t.where = append(t.where, n)
	}
	tr.change(q, i, j, q.count)
}

// change notes that the pair of tokens i and j of q is seen by so much more often.
func (tr *trainer) change(q sequence, i, j, by int) {
	if q.edges == nil || countable(q.edges[i], q.edges[j]) {
		tr.delta[pair{q.ids[i], q.ids[j]}] += by
	}
}

// settle enters the changes noted since the last time.
func (tr *trainer) settle() {
	for p, d := range tr.delta {
		if d == 0 {
			continue
		}
		t := tr.tallies[p]
		if t.count += d; d > 0 {
			heap.Push(&tr.heap, candidate{p, t.count})
		}
	}
	clear(tr.delta)
}

// step merges the best pair; false if none is seen at least min times.
func (tr *trainer) step(min int) bool {
	for len(tr.heap) > 0 {
		c := heap.Pop(&tr.heap).(candidate)
		now := tr.tallies[c.pair].count
		if now < min || len(tr.tokens[c.left])+len(tr.tokens[c.right]) > maxToken {
			continue
		}
		if now != c.count {
			if now < c.count {
				heap.Push(&tr.heap, candidate{c.pair, now})
			}
			continue // a higher entry was there already
		}
		tr.merge(c.pair)
		return true
	}
	return false
}

// merge makes the pair a token wherever it stands.
func (tr *trainer) merge(p pair) {
	text := tr.tokens[p.left] + tr.tokens[p.right]
	id, ok := tr.ids[text]
	if !ok {
		id = int32(len(tr.tokens))
		tr.tokens, tr.ids[text] = append(tr.tokens, text), id
	}
	if !tr.merged[p] {
		tr.merged[p] = true
		tr.merges = append(tr.merges, p)
	}
	t := tr.tallies[p]
	where := t.where
	t.where = nil
	slices.Sort(where)
	for _, n := range slices.Compact(where) {
		tr.mergeIn(n, p, id)
	}
	tr.settle()
}

// mergeIn replaces the pair in sequence n by id, from left to right.
func (tr *trainer) mergeIn(n int32, p pair, id int32) {
	q := &tr.sequences[n]
	to := 0 // tokens before it are done
	for from := 0; from < len(q.ids); from++ {
		q.ids[to] = q.ids[from]
		if q.edges != nil {
			q.edges[to] = q.edges[from]
		}
		if q.ids[to] == p.left && from+1 < len(q.ids) && q.ids[from+1] == p.right {
			tr.replace(q, n, to, from+1, id)
			from++
		}
		to++
	}
	q.ids = q.ids[:to]
	if q.edges != nil {
		q.edges = q.edges[:to]
	}
}

// replace puts id for the pair at tokens i and j of q, where tokens i+1 to j-1 are left over.
func (tr *trainer) replace(q *sequence, n int32, i, j int, id int32) {
	if i > 0 {
		tr.change(*q, i-1, i, -q.count)
	}
	tr.change(*q, i, j, -q.count)
	if j+1 < len(q.ids) {
		tr.change(*q, j, j+1, -q.count)
	}
	q.ids[i] = id
	if q.edges != nil {
		q.edges[i] = join(q.edges[i], q.edges[j])
	}
	if i > 0 {
		tr.add(*q, n, i-1, i)
	}
	if j+1 < len(q.ids) {
		tr.add(*q, n, i, j+1)
	}
}
