package simd

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWiden: every bfloat16 there is, at every length around a block, and nothing beside it is written.
func TestWiden(t *testing.T) {
	all := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(all[2*i:], uint16(i))
	}
	eachKernel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range append([]int{0, 1 << 16}, lengths...) {
			dst, intact := guarded(r, n)
			Widen(dst, all[len(all)-2*n:])
			for i, v := range dst {
				if got, want := math.Float32bits(v), uint32(1<<16-n+i)<<16; got != want {
					t.Fatalf("%d numbers: number %d has the bits %#08x, want %#08x", n, i, got, want)
				}
			}
			if !intact() {
				t.Fatalf("%d numbers: something beside them was written", n)
			}
		}
	})
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "5 bytes for 3 numbers") {
			t.Errorf("panic %q", s)
		}
	}()
	Widen(make([]float32, 3), make([]byte, 5))
}
