package pddl

import "slices"

// table is a list of different tuples of a fixed length, found by what is in them.
type table struct {
	arity  int
	count  int
	flat   []int32   // the tuples, one after the other
	slots  []int32   // open addressing: a tuple's number + 1, 0 for none
	shown  int       // the tuples before this one are in the index
	index  [][]int32 // [position * objects + object]: tuples shown that have the object there
	all    []int32   // numbers of all tuples shown
	wanted bool      // index is kept
}

func (t *table) tuple(i int32) []int32 { return t.flat[int(i)*t.arity : (int(i)+1)*t.arity] }

func hash(tuple []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range tuple {
		h = (h ^ uint64(uint32(x))) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// find returns a tuple's number, -1 if it is not there.
func (t *table) find(tuple []int32) int32 {
	if len(t.slots) == 0 {
		return -1
	}
	i, _ := t.slot(tuple)
	return t.slots[i] - 1
}

// slot finds the slot of a tuple, or the free one where it belongs.
func (t *table) slot(tuple []int32) (slot int, found bool) {
	mask := len(t.slots) - 1
	for i := int(hash(tuple)) & mask; ; i = (i + 1) & mask {
		n := t.slots[i]
		if n == 0 {
			return i, false
		}
		if slices.Equal(t.tuple(n-1), tuple) {
			return i, true
		}
	}
}

// add puts a tuple in; false if it is there already.
func (t *table) add(tuple []int32) (number int32, added bool) {
	if 2*(t.count+1) > len(t.slots) {
		t.grow()
	}
	i, found := t.slot(tuple)
	if found {
		return t.slots[i] - 1, false
	}
	t.flat = append(t.flat, tuple...)
	t.count++
	t.slots[i] = int32(t.count)
	return int32(t.count - 1), true
}

func (t *table) grow() {
	t.slots = make([]int32, max(16, 2*len(t.slots)))
	for n := range int32(t.count) {
		i, _ := t.slot(t.tuple(n))
		t.slots[i] = n + 1
	}
}

// show puts the next tuple in the index.
func (t *table) show(objects int) {
	n := int32(t.shown)
	t.shown++
	if !t.wanted {
		return
	}
	t.all = append(t.all, n)
	if t.index == nil {
		t.index = make([][]int32, t.arity*objects)
	}
	for p, o := range t.tuple(n) {
		at := p*objects + int(o)
		t.index[at] = append(t.index[at], n)
	}
}
