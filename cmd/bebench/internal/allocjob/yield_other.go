//go:build !linux

package allocjob

import (
	"runtime"
	"time"
)

// yield lets others run.
func yield() { runtime.Gosched() }

// pause sleeps.
func pause(d time.Duration) { time.Sleep(d) }
