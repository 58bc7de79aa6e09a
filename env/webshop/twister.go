package webshop

import "math/bits"

// twister is the Mersenne Twister MT19937, which Python's random and numpy's RandomState draw from. The shop's goals,
// their order and their price bounds were drawn with it, so that only the same generator gives the same goals.
// Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998); how draws are made of its words follows
// the documented behaviour of CPython and numpy. It is not safe for concurrent use.
type twister struct {
	state [stateWords]uint32
	next  int // index of the next word; stateWords: the state is used up
}

const stateWords = 624

// pythonTwister starts as random.seed(seed) does: from the 32-bit words of |seed|, lowest first.
func pythonTwister(seed int64) *twister {
	u := uint64(seed)
	if seed < 0 {
		u = -u
	}
	key := []uint32{uint32(u)}
	if u>>32 != 0 {
		key = append(key, uint32(u>>32))
	}
	t := numpyTwister(19650218)
	i, j := 1, 0
	advance := func() {
		if i++; i >= stateWords {
			t.state[0] = t.state[stateWords-1]
			i = 1
		}
	}
	for range max(stateWords, len(key)) {
		p := t.state[i-1]
		t.state[i] = t.state[i] ^ (p^p>>30)*1664525 + key[j] + uint32(j)
		advance()
		j = (j + 1) % len(key)
	}
	for range stateWords - 1 {
		p := t.state[i-1]
		t.state[i] = t.state[i] ^ (p^p>>30)*1566083941 - uint32(i)
		advance()
	}
	t.state[0] = 1 << 31
	return t
}

// numpyTwister starts as numpy.random.RandomState(seed) does.
func numpyTwister(seed uint32) *twister {
	t := &twister{next: stateWords}
	t.state[0] = seed
	for i := 1; i < stateWords; i++ {
		p := t.state[i-1]
		t.state[i] = (p^p>>30)*1812433253 + uint32(i)
	}
	return t
}

func (t *twister) uint32() uint32 {
	if t.next == stateWords {
		t.refill()
	}
	y := t.state[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (t *twister) refill() {
	const apart = 397
	for i := range t.state {
		y := t.state[i]&(1<<31) | t.state[(i+1)%stateWords]&(1<<31-1)
		mixed := t.state[(i+apart)%stateWords] ^ y>>1
		if y&1 != 0 {
			mixed ^= 0x9908b0df
		}
		t.state[i] = mixed
	}
	t.next = 0
}

// float is uniform in [0, 1), 53 bits.
func (t *twister) float() float64 {
	a, b := t.uint32()>>5, t.uint32()>>6
	return (float64(a)*(1<<26) + float64(b)) / (1 << 53)
}

// uniform lies between a and b.
func (t *twister) uniform(a, b float64) float64 { return a + (b-a)*t.float() }

// below is uniform in 0…n−1, as Python draws it. n lies between 1 and 2³²−1.
func (t *twister) below(n int) int {
	shift := 32 - bits.Len(uint(n))
	for {
		if v := int(t.uint32() >> shift); v < n {
			return v
		}
	}
}

// shuffle puts n things in the order that random.shuffle gives.
func (t *twister) shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, t.below(i+1))
	}
}

// sample draws k of 0…n−1 without replacement, as random.sample does for a list of n.
func (t *twister) sample(n, k int) []int {
	out := make([]int, k)
	pool := 21
	if k > 5 {
		pool += 1 << (2 * log4(3*k))
	}
	if n > pool { // few of many: draw again what is taken
		taken := make(map[int]bool, k)
		for i := range out {
			j := t.below(n)
			for taken[j] {
				j = t.below(n)
			}
			taken[j], out[i] = true, j
		}
		return out
	}
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	for i := range out {
		j := t.below(n - i)
		out[i], left[j] = left[j], left[n-i-1]
	}
	return out
}

// log4 is the logarithm of n to base 4, rounded up.
func log4(n int) int { return (bits.Len(uint(n-1)) + 1) / 2 }

// letters is a string of n letters a to z, as random.choices draws them.
func (t *twister) letters(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(t.float()*26)
	}
	return string(b)
}

// permutation is RandomState.permutation(n).
func (t *twister) permutation(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		mask := uint32(1)<<bits.Len(uint(i)) - 1
		j := t.uint32() & mask
		for j > uint32(i) {
			j = t.uint32() & mask
		}
		p[i], p[j] = p[j], p[i]
	}
	return p
}
