//go:build !amd64

package simd

func availablePairs() []pairKernels { return []pairKernels{genericPairs} }
