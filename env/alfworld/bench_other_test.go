//go:build !unix

package alfworld

func processorSeconds() (float64, bool) { return 0, false }
