package episode

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Seed names one source of chance. A run has one root seed; every draw comes from a seed derived from it by what the
// draw is for, so that results do not depend on the order or the number of workers.
type Seed uint64

// Derive returns the seed of the draw named by label and its coordinates. Different labels or coordinates give
// independent seeds; the same ones give the same seed, on every machine.
func (s Seed) Derive(label string, coordinates ...uint64) Seed {
	h := sha256.New()
	var b [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	put(uint64(s))
	put(uint64(len(label)))
	h.Write([]byte(label))
	for _, c := range coordinates {
		put(c)
	}
	return Seed(binary.LittleEndian.Uint64(h.Sum(nil)))
}

// Rand returns a new generator (PCG) started from the seed. It is not safe for concurrent use.
func (s Seed) Rand() *rand.Rand {
	return rand.New(rand.NewPCG(uint64(s), 0x9e3779b97f4a7c15))
}
