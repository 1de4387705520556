package be

import "golang.org/x/sys/unix"

// pinThread keeps the calling thread on one CPU: sched_setaffinity(2).
func pinThread(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}
