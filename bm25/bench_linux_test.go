package bm25

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// clock is what this process has had of the processors: what counts on a machine that is shared.
func clock(b *testing.B) (now time.Duration, unit string) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano()), "processor-ms"
}
