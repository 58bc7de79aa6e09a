package simd

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Widen sets dst to the bfloat16 numbers of src, two bytes each, little-endian. Every bfloat16 is a float32: nothing is
// rounded, and NaN keeps its bits.
func Widen(dst []float32, src []byte) {
	if len(src) != 2*len(dst) {
		panic(fmt.Sprintf("simd.Widen: %d bytes for %d numbers", len(src), len(dst)))
	}
	active.widen(dst, src)
}

func widenGeneric(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}
