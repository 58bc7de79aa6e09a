package transformer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"skillmaster/policy/transformer/internal/simd"
)

// read returns the key and value at a position of a node.
func (s cacheShape) read(kv []float32, layer, head, position int) (key, value []float32) {
	const w = simd.PanelWidth
	for i := range s.dim {
		key = append(key, s.keys(kv, layer, head)[position/w*w*s.dim+i*w+position%w])
		value = append(value, s.values(kv, layer, head)[i/w*w*chunk+position*w+i%w])
	}
	return key, value
}

// mark writes keys and values that tell ids and positions apart into the positions from fed on.
func mark(k *cache, path []*node, ids []int32, fed int) {
	for p := fed; p < len(ids); p++ {
		key, value := make([]float32, k.shape.dim), make([]float32, k.shape.dim)
		for layer := range k.shape.layers {
			for head := range k.shape.heads {
				for i := range key {
					key[i] = float32(int(ids[p])*1000 + p + layer*7 + head*3 + i)
					value[i] = -key[i]
				}
				k.shape.put(path[p/chunk].kv, layer, head, p%chunk, key, value)
			}
		}
	}
}

// checkMarks compares positions 0…n−1 with what mark wrote.
func checkMarks(t *testing.T, k *cache, path []*node, ids []int32, n int) {
	t.Helper()
	for p := range n {
		for layer := range k.shape.layers {
			for head := range k.shape.heads {
				key, value := k.shape.read(path[p/chunk].kv, layer, head, p%chunk)
				for i := range key {
					if want := float32(int(ids[p])*1000 + p + layer*7 + head*3 + i); key[i] != want || value[i] != -want {
						t.Fatalf("position %d layer %d head %d: got %v and %v, want ±%v", p, layer, head, key[i], value[i], want)
					}
				}
			}
		}
	}
}

// check reports broken invariants of the tree and the ring.
func (k *cache) check(t *testing.T) {
	t.Helper()
	idle, age := 0, map[*node]int{}
	for x := k.idle.newer; x != &k.idle; x = x.newer {
		if x.newer.older != x || x.pins != 0 {
			t.Fatalf("the ring is broken at a node with %d pins", x.pins)
		}
		idle++
		age[x] = idle
	}
	nodes, unpinned := 0, 0
	var walk func(x *node)
	walk = func(x *node) {
		for _, child := range x.children {
			nodes++
			if child.parent != x {
				t.Fatal("a child does not know its parent")
			}
			if child.pins == 0 {
				unpinned++
				if x != &k.root && x.pins == 0 && age[x] < age[child] {
					t.Fatal("a parent is older than its child")
				}
			} else if x != &k.root && x.pins == 0 {
				t.Fatal("a parent is idle while its child is not")
			}
			if x != &k.root && len(x.ids) < chunk && len(child.ids) > 0 {
				t.Fatal("a node that is not full has a child that holds something")
			}
			walk(child)
		}
	}
	walk(&k.root)
	if nodes != k.nodes || unpinned != idle {
		t.Fatalf("%d nodes in the tree, counted %d; %d without pins, %d in the ring", nodes, k.nodes, unpinned, idle)
	}
}

var cacheConfig = Config{Vocab: 4, Width: 8, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 34, Hidden: 8, Context: 1000}

// TestCacheAgainstMarks opens, extends and closes sequences at random; whatever the cache says it knows must be there.
func TestCacheAgainstMarks(t *testing.T) {
	for _, limit := range []int{0, 3, 12, 1000} {
		k := newCache(cacheConfig, 0)
		k.limit = limit
		r := rand.New(rand.NewPCG(uint64(limit), 1))
		type sequence struct {
			ids  []int32
			path []*node
		}
		var running []sequence
		ended := [][]int32{{}}
		hits := 0
		for range 300 {
			if len(running) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(running))
				k.close(running[i].path)
				ended = append(ended, running[i].ids)
				running = slices.Delete(running, i, i+1)
			} else {
				base := ended[r.IntN(len(ended))]
				ids := slices.Clone(base[:r.IntN(len(base)+1)])
				for range 1 + r.IntN(200) {
					ids = append(ids, int32(r.IntN(2)))
				}
				ids = ids[:min(len(ids), cacheConfig.Context)]
				path, ready := k.open(ids)
				checkMarks(t, k, path, ids, ready)
				hits += ready
				path = k.extend(path, len(ids))
				mark(k, path, ids, ready)
				k.publish(path, ready, ids[ready:])
				checkMarks(t, k, path, ids, len(ids))
				if got := k.known(ids); got != len(ids) {
					t.Fatalf("the cache knows %d of %d ids just published", got, len(ids))
				}
				running = append(running, sequence{ids, path})
			}
			k.check(t)
			if len(running) == 0 && k.nodes > limit {
				t.Fatalf("%d nodes are remembered, at most %d are allowed", k.nodes, limit)
			}
		}
		for _, s := range running {
			checkMarks(t, k, s.path, s.ids, len(s.ids))
			k.close(s.path)
			k.check(t)
		}
		if limit > 0 && hits == 0 {
			t.Errorf("limit %d: nothing was ever found", limit)
		}
	}
}

func TestCacheForgetsTheOldest(t *testing.T) {
	k := newCache(cacheConfig, 0)
	k.limit = 2
	play := func(first int32) (ready int) {
		ids := slices.Repeat([]int32{first}, 50)
		path, ready := k.open(ids)
		path = k.extend(path, len(ids))
		k.publish(path, ready, ids[ready:])
		k.close(path)
		return ready
	}
	for _, v := range []struct {
		first int32
		want  int
	}{{0, 0}, {1, 0}, {0, 50}, {2, 0}, {0, 50}, {1, 0}, {2, 0}} {
		if got := play(v.first); got != v.want {
			t.Errorf("sequence of %d: %d ids were known, want %d", v.first, got, v.want)
		}
	}
}

func TestCacheBytes(t *testing.T) {
	c := benchConfig.Complete()
	k := newCache(c, 1<<30)
	if want := (1 << 30) / (4 * 4 * 128 * 2 * chunk); k.limit != want {
		t.Errorf("a GiB holds %d nodes, want %d", k.limit, want)
	}
}
