//go:build !linux

package bm25

import (
	"testing"
	"time"
)

var start = time.Now()

// clock is the time of day, where no finer clock tells what this process has had of the processors.
func clock(*testing.B) (now time.Duration, unit string) { return time.Since(start), "ms" }
