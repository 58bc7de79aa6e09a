//go:build !unix

package transformer

// cpuSeconds is not known here; metrics that divide by it are infinite.
func cpuSeconds() float64 { return 0 }
