package allocjob

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pause sleeps, as a C program's nanosleep does, and keeps the P meanwhile. time.Sleep of a thread
// whose P has nothing else to run waits in epoll, which counts in milliseconds: two threads
// that wait for each other's batches would sleep ten times as long as the definition says, and go
// on doing so, because neither has batches enough to work until the other wakes.
func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}
