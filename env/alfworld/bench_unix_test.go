//go:build unix

package alfworld

import "syscall"

// processorSeconds is what this process has had of the processors.
func processorSeconds() (float64, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, true
}
