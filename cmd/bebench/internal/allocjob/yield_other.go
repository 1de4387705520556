//go:build !linux

package allocjob

import "runtime"

// yield lets others run.
func yield() { runtime.Gosched() }
