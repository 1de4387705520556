package be

import (
	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// pinThread keeps the calling thread on one CPU: sched_setaffinity(2).
func pinThread(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	err := unix.SchedSetaffinity(0, &set)
	if err == unix.EINVAL {
		return errors.Wrap(err, "there is no such CPU, or this process may not use it (taskset -pc lists those it may)")
	}
	return err
}
