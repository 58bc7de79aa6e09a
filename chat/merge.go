package chat

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// symbol is a token of a piece while it is merged, in a list of those left.
type symbol struct {
	id         int32 // negative: merged away
	prev, next int32 // -1: none
}

// site is a place where a rule may apply.
type site struct {
	rule
	at int32 // index of the left symbol
}

func (s site) before(o site) bool { return s.rank < o.rank || s.rank == o.rank && s.at < o.at }

// merger is the working memory of one piece.
type merger struct {
	symbols []symbol
	sites   []site // a heap, the lowest rank first, of those the leftmost
}

// maxPooled is the most symbols of a merger that is kept.
const maxPooled = 1 << 16

var mergers = sync.Pool{New: func() any { return new(merger) }}

// appendMerged applies the rules to the bytes of piece until none fits: always the one of lowest rank, leftmost first.
// O(n log n) for n bytes.
func (t *Tokenizer) appendMerged(ids []int32, piece string) []int32 {
	m := mergers.Get().(*merger)
	defer func() {
		if cap(m.symbols) <= maxPooled {
			mergers.Put(m)
		}
	}()
	m.symbols, m.sites = m.symbols[:0], m.sites[:0]
	for i := range len(piece) {
		if id := t.byteIDs[piece[i]]; id != noToken {
			at := int32(len(m.symbols))
			m.symbols = append(m.symbols, symbol{id, at - 1, at + 1})
		}
	}
	if len(m.symbols) == 0 {
		return ids
	}
	m.symbols[len(m.symbols)-1].next = -1
	for i := range m.symbols {
		m.look(t, int32(i))
	}
	for len(m.sites) > 0 {
		m.apply(t, m.pop())
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		ids = append(ids, m.symbols[i].id)
	}
	return ids
}

// look pushes the site at symbol i if a rule fits there.
func (m *merger) look(t *Tokenizer, i int32) {
	s := m.symbols[i]
	if s.next < 0 {
		return
	}
	if r, ok := t.rules[pair{s.id, m.symbols[s.next].id}]; ok {
		m.push(site{r, i})
	}
}

// apply merges at the site, unless what stood there has changed since.
func (m *merger) apply(t *Tokenizer, s site) {
	left := &m.symbols[s.at]
	if left.id < 0 || left.next < 0 {
		return
	}
	right := &m.symbols[left.next]
	if r, ok := t.rules[pair{left.id, right.id}]; !ok || r != s.rule {
		return
	}
	left.id, left.next, right.id = s.id, right.next, -1
	if left.next >= 0 {
		m.symbols[left.next].prev = s.at
	}
	if left.prev >= 0 {
		m.look(t, left.prev)
	}
	m.look(t, s.at)
}

func (m *merger) push(s site) {
	m.sites = append(m.sites, s)
	for i := len(m.sites) - 1; i > 0; {
		up := (i - 1) / 2
		if !m.sites[i].before(m.sites[up]) {
			return
		}
		m.sites[i], m.sites[up] = m.sites[up], m.sites[i]
		i = up
	}
}

func (m *merger) pop() site {
	top := m.sites[0]
	n := len(m.sites) - 1
	m.sites[0] = m.sites[n]
	m.sites = m.sites[:n]
	for i := 0; ; {
		least := 2*i + 1
		if least >= n {
			return top
		}
		if least+1 < n && m.sites[least+1].before(m.sites[least]) {
			least++
		}
		if !m.sites[least].before(m.sites[i]) {
			return top
		}
		m.sites[i], m.sites[least] = m.sites[least], m.sites[i]
		i = least
	}
}

// pieceCache remembers the ids of pieces. It holds at most cacheSlots pieces of at most cachePiece bytes; a newer one
// drops the one in its slot. Safe for concurrent use, without locks.
type pieceCache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cached]
}

const (
	cacheSlots = 1 << 14
	cachePiece = 256
)

type cached struct {
	piece string
	ids   []int32
}

func newPieceCache() *pieceCache { return &pieceCache{seed: maphash.MakeSeed()} }

func (c *pieceCache) slot(piece string) *atomic.Pointer[cached] {
	return &c.slots[maphash.String(c.seed, piece)%cacheSlots]
}

// get returns the ids of a piece, which nobody may change.
func (c *pieceCache) get(piece string) ([]int32, bool) {
	if e := c.slot(piece).Load(); e != nil && e.piece == piece {
		return e.ids, true
	}
	return nil, false
}

func (c *pieceCache) put(piece string, ids []int32) {
	if len(piece) <= cachePiece {
		c.slot(piece).Store(&cached{strings.Clone(piece), slices.Clone(ids)})
	}
}
