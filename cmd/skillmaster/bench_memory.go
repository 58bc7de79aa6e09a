package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
)

// startPeak gives back what memory is free, begins the peak of resident memory anew and returns what is resident; false
// where the system does not tell.
func startPeak() (int64, bool) {
	debug.FreeOSMemory()
	if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) != nil { // Linux: proc_pid_clear_refs(5)
		return 0, false
	}
	return resident("VmRSS")
}

// resident returns a size from the kernel's status of this process: VmRSS or, at its highest, VmHWM.
func resident(name string) (size int64, known bool) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	_, rest, found := bytes.Cut(b, []byte(name+":"))
	if !found {
		return 0, false
	}
	if _, err := fmt.Sscanf(string(rest), "%d kB", &size); err != nil {
		return 0, false
	}
	return size << 10, true
}
