//go:build unix

package allocjob

import (
	"time"

	"golang.org/x/sys/unix"
)

// processCPU gives the CPU time of the whole process so far.
func processCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
