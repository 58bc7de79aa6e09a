//go:build !amd64

package simd

// available returns the implementations this machine can run, the fastest last.
func available() []kernels { return []kernels{generic} }
