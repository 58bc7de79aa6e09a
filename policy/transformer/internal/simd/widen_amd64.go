package simd

// widenBlocks is widenGeneric in blocks of sixteen as far as they go.
func widenBlocks(dst []float32, src []byte) {
	const block = 16
	blocks := len(dst) / block
	if blocks > 0 {
		widenAVX2(&dst[0], &src[0], blocks)
	}
	widenGeneric(dst[block*blocks:], src[2*block*blocks:])
}
