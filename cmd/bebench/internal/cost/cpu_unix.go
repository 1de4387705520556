//go:build unix

package cost

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the user and system time of all threads of the process.
func cpuTime() (time.Duration, bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
