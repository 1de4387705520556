//go:build unix

package be_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time of the process so far.
func cpuTime(t testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
