package transformer

import (
	"slices"
	"sync"

	"skillmaster/policy/transformer/internal/simd"
)

// node is a piece of a cache: the keys and values of up to chunk consecutive ids, which follow those of its parent.
// Nodes form a tree, so that sequences share what they have in common. Full nodes never change. A node that is not full
// has no children and grows only by the one sequence that owns it.
type node struct {
	parent   *node
	children []*node
	ids      []int32   // those whose keys and values are there for all to read
	kv       []float32 // see cacheShape
	pins     int       // sequences in progress that go through it
	newer    *node     // neighbours in the list of nodes without pins
	older    *node
}

// cacheShape says where a node's keys and values are. For each layer and key head there are the keys as a packed
// [HeadDim, chunk] and the values as a packed [chunk, HeadDim]; see simd.PackB.
type cacheShape struct {
	layers, heads, dim int
	keySize, valueSize int
}

func newCacheShape(c Config) cacheShape {
	return cacheShape{c.Layers, c.KVHeads, c.HeadDim, simd.PackedLen(c.HeadDim, chunk), simd.PackedLen(chunk, c.HeadDim)}
}

// size is the number of floats of a node.
func (s cacheShape) size() int { return s.layers * s.heads * (s.keySize + s.valueSize) }

func (s cacheShape) keys(kv []float32, layer, head int) []float32 {
	at := (layer*s.heads + head) * (s.keySize + s.valueSize)
	return kv[at : at+s.keySize]
}

func (s cacheShape) values(kv []float32, layer, head int) []float32 {
	at := (layer*s.heads+head)*(s.keySize+s.valueSize) + s.keySize
	return kv[at : at+s.valueSize]
}

// put writes a key and a value at a position of a node.
func (s cacheShape) put(kv []float32, layer, head, position int, key, value []float32) {
	const w = simd.PanelWidth
	keys, values := s.keys(kv, layer, head), s.values(kv, layer, head)
	keys = keys[position/w*w*s.dim+position%w:]
	for i, v := range key {
		keys[i*w] = v
	}
	for j := 0; j < s.dim; j += w {
		copy(values[j*chunk+position*w:], value[j:min(j+w, s.dim)])
	}
}

// copyFirst copies the first n positions of a node.
func (s cacheShape) copyFirst(dst, src []float32, n int) {
	const w = simd.PanelWidth
	for layer := range s.layers {
		for head := range s.heads {
			to, from := s.keys(dst, layer, head), s.keys(src, layer, head)
			for p := 0; p < n; p += w {
				for i := range s.dim {
					at := p*s.dim + i*w
					copy(to[at:at+min(w, n-p)], from[at:])
				}
			}
			to, from = s.values(dst, layer, head), s.values(src, layer, head)
			for j := 0; j < s.dim; j += w {
				copy(to[j*chunk:j*chunk+n*w], from[j*chunk:])
			}
		}
	}
}

// cache is a bounded pool of nodes. Sequences in progress may exceed the bound; what is only remembered may not. Safe for
// concurrent use.
type cache struct {
	shape cacheShape

	mu     sync.Mutex
	root   node
	idle   node // in the ring of nodes without pins, newer than the newest and older than the oldest; children are older than their parents
	nodes  int  // in the tree
	limit  int  // most nodes
	spares [][]float32
}

func newCache(c Config, bytes int64) *cache {
	k := &cache{shape: newCacheShape(c)}
	k.limit = int(bytes / (4 * int64(k.shape.size())))
	k.idle.newer, k.idle.older = &k.idle, &k.idle
	return k
}

// find walks down from the root along ids: the full nodes that match, then the child that shares n > 0 more ids, if any.
func (k *cache) find(ids []int32) (full []*node, part *node, n int) {
	at := &k.root
	for {
		part, n = nil, 0
		for _, child := range at.children {
			if m := common(child.ids, ids); m > n {
				part, n = child, m
			}
		}
		if n < chunk {
			return full, part, n
		}
		full, ids, at = append(full, part), ids[n:], part
	}
}

// common returns the length of the longest common prefix.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// known returns how many of ids' first positions are in the cache.
func (k *cache) known(ids []int32) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	full, _, n := k.find(ids)
	return len(full)*chunk + n
}

// open starts a sequence that is going to begin with ids. It returns the nodes that hold its first ready ids, pinned; the
// last of them is the sequence's own unless it is full.
func (k *cache) open(ids []int32) (path []*node, ready int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	path, part, n := k.find(ids)
	for _, x := range path {
		k.pin(x)
	}
	ready = len(path)*chunk + n
	switch {
	case n == 0:
	case n == len(part.ids) && part.pins == 0:
		k.pin(part)
		path = append(path, part)
	default:
		k.pin(part) // so that making room does not take it
		own := k.grow(path)
		k.shape.copyFirst(own.kv, part.kv, n)
		own.ids = append(own.ids, part.ids[:n]...)
		k.unpin(part)
		path = append(path, own)
	}
	return path, ready
}

// extend returns the path with room for positions 0…n−1.
func (k *cache) extend(path []*node, n int) []*node {
	if len(path)*chunk >= n {
		return path
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(path)*chunk < n {
		path = append(path, k.grow(path))
	}
	return path
}

// publish says that the keys and values of ids, which begin at a position, have been written.
func (k *cache) publish(path []*node, position int, ids []int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(ids) > 0 {
		x := path[position/chunk]
		n := min(chunk-position%chunk, len(ids))
		x.ids = append(x.ids, ids[:n]...)
		position, ids = position+n, ids[n:]
	}
}

// close ends a sequence. What it published stays until room is needed.
func (k *cache) close(path []*node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range slices.Backward(path) {
		k.unpin(x)
		if x.pins == 0 && len(x.ids) == 0 {
			k.remove(x)
		}
	}
	for k.nodes > k.limit && k.idle.newer != &k.idle {
		k.remove(k.idle.newer)
	}
}

// grow adds an empty pinned node under the end of a path, in place of the oldest idle ones if the cache is full.
func (k *cache) grow(path []*node) *node {
	for k.nodes >= k.limit && k.idle.newer != &k.idle {
		k.remove(k.idle.newer)
	}
	x := &node{parent: &k.root, pins: 1}
	if len(path) > 0 {
		x.parent = path[len(path)-1]
	}
	if n := len(k.spares); n > 0 {
		x.kv, k.spares = k.spares[n-1], k.spares[:n-1]
	} else {
		x.kv = make([]float32, k.shape.size())
	}
	x.parent.children = append(x.parent.children, x)
	k.nodes++
	return x
}

// pin takes a node off the list of idle ones.
func (k *cache) pin(x *node) {
	x.pins++
	if x.pins == 1 {
		x.newer.older, x.older.newer = x.older, x.newer
		x.newer, x.older = nil, nil
	}
}

// unpin makes a node the newest idle one if nobody else holds it. The nodes of a path are unpinned from its end, so that
// parents are newer than their children.
func (k *cache) unpin(x *node) {
	x.pins--
	if x.pins == 0 {
		x.newer, x.older = &k.idle, k.idle.older
		x.newer.older, x.older.newer = x, x
	}
}

// remove takes an idle node without children out of the tree.
func (k *cache) remove(x *node) {
	x.newer.older, x.older.newer = x.older, x.newer
	siblings := x.parent.children
	i := slices.Index(siblings, x)
	siblings[i] = siblings[len(siblings)-1]
	siblings[len(siblings)-1] = nil
	x.parent.children = siblings[:len(siblings)-1]
	k.nodes--
	if k.nodes+len(k.spares) < k.limit {
		k.spares = append(k.spares, x.kv)
	}
	x.kv = nil
}
