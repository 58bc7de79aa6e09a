package simd

import "golang.org/x/sys/cpu"

//go:generate go run -C asm . -out ../simd_amd64.s -stubs ../stubs_amd64.go -pkg simd

var avx512 = kernels{
	name:            "avx512",
	gemm:            tiling{rows: 14, columns: 32, run: tileAVX512}.gemm,
	transpose:       transposeSquares,
	dot:             dotAVX512,
	axpy:            axpyAVX512,
	add:             addAVX512,
	scale:           scaleAVX512,
	max:             maxAVX512,
	expSum:          expSumAVX512,
	sumSquares:      sumSquaresAVX512,
	swiGLU:          swiGLUAVX512,
	swiGLUBackward:  swiGLUBackwardAVX512,
	softmaxBackward: softmaxBackwardAVX512,
	norm:            normAVX512,
	normDot:         normDotAVX512,
	normBackward:    normBackwardAVX512,
	rotary:          rotaryAVX512,
	adamW:           adamWAVX512,
	widen:           widenBlocks,
	peak:            peakAVX512,
}

var avx2 = kernels{
	name:            "avx2",
	gemm:            tiling{rows: 6, columns: 16, run: tileAVX2}.gemm,
	transpose:       transposeSquares,
	dot:             dotAVX2,
	axpy:            axpyAVX2,
	add:             addAVX2,
	scale:           scaleAVX2,
	max:             maxAVX2,
	expSum:          expSumAVX2,
	sumSquares:      sumSquaresAVX2,
	swiGLU:          swiGLUAVX2,
	swiGLUBackward:  swiGLUBackwardAVX2,
	softmaxBackward: softmaxBackwardAVX2,
	norm:            normAVX2,
	normDot:         normDotAVX2,
	normBackward:    normBackwardAVX2,
	rotary:          rotaryAVX2,
	adamW:           adamWAVX2,
	widen:           widenBlocks,
	peak:            peakAVX2,
}

// available returns the implementations this machine can run, the fastest last.
func available() []kernels {
	all := []kernels{generic}
	if x := &cpu.X86; x.HasAVX2 && x.HasFMA && x.HasBMI2 {
		all = append(all, avx2)
		if x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL {
			all = append(all, avx512)
		}
	}
	return all
}
