//go:build unix

package be

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is the processor time of the process so far.
func CPUTime(t testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
