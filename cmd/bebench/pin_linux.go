package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// canPin tells why a thread cannot be kept on a CPU; it tries with one of its own, which
// ends with the goroutine that locked it.
func canPin(cpu int) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		var set unix.CPUSet
		set.Set(cpu)
		result <- unix.SchedSetaffinity(0, &set)
	}()
	return <-result
}
