package cost

import (
	"time"

	"golang.org/x/sys/windows"
)

// cpuTime is the user and kernel time of the process. A Filetime's Nanoseconds
// counts from 1601 as a date; a duration is its plain number of 100 ns.
func cpuTime() (time.Duration, bool) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return 0, false
	}
	return span(kernel) + span(user), true
}

func span(f windows.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
}
