package alfworld

import "math/bits"

// bitset is a set of small numbers.
type bitset []uint64

func wordsFor(n int) int { return (n + 63) / 64 }

func (b bitset) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitset) add(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) remove(i int)   { b[i>>6] &^= 1 << (i & 63) }

// list gives the members, ascending.
func (b bitset) list() []int {
	var is []int
	for w, x := range b {
		for ; x != 0; x &= x - 1 {
			is = append(is, w<<6+bits.TrailingZeros64(x))
		}
	}
	return is
}

// slab is the part of a state that play changes, in one piece of memory so that a copy is one allocation. layout says
// where in it the sets are.
type slab []uint64

// layout of a slab: for every receptacle the objects in it, and the objects taken from it and not put back; for every
// object the locations it is near; the receptacles that are open; for every condition the objects in it.
type layout struct {
	perObjects, perLocations         int // words of a set of objects, of locations
	out, near, opened, having, words int // where the parts start, and the whole
	perReceptacles                   int
}

func layoutOf(objects, receptacles, locations int) layout {
	l := layout{perObjects: wordsFor(objects), perLocations: wordsFor(locations), perReceptacles: wordsFor(receptacles)}
	l.out = receptacles * l.perObjects
	l.near = 2 * l.out
	l.opened = l.near + objects*l.perLocations
	l.having = l.opened + l.perReceptacles
	l.words = l.having + conditions*l.perObjects
	return l
}

func (s slab) set(start, words int) bitset { return bitset(s[start : start+words : start+words]) }

// in is the set of objects in a receptacle.
func (s slab) in(l *layout, receptacle int) bitset {
	return s.set(receptacle*l.perObjects, l.perObjects)
}

// out is the set of objects that were taken from a receptacle and not put back.
func (s slab) out(l *layout, receptacle int) bitset {
	return s.set(l.out+receptacle*l.perObjects, l.perObjects)
}

// near is the set of locations an object is near.
func (s slab) near(l *layout, object int) bitset {
	return s.set(l.near+object*l.perLocations, l.perLocations)
}

// opened is the set of open receptacles.
func (s slab) opened(l *layout) bitset { return s.set(l.opened, l.perReceptacles) }

// having is the set of objects in one condition.
func (s slab) having(l *layout, c Condition) bitset {
	return s.set(l.having+bits.TrailingZeros8(uint8(c))*l.perObjects, l.perObjects)
}

// condition is the set of conditions of one object.
func (s slab) condition(l *layout, object int) Condition {
	var c Condition
	for i := range conditions {
		if s.having(l, 1<<i).has(object) {
			c |= 1 << i
		}
	}
	return c
}
