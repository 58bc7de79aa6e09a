//go:build unix

package transformer

import "syscall"

// cpuSeconds is the processor time this process has used: what counts on a machine that is shared.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
