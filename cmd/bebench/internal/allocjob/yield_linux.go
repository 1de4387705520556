package allocjob

import "golang.org/x/sys/unix"

// yield lets the system run another thread, as a C program's sched_yield does. Gosched would only
// look for another goroutine, of which a thread of a job, which has its P, has none: the
// thread waited for would get no time, and the caller would soon sleep instead.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
