package msgtest

import (
	"sync"
	"sync/atomic"
)

// busy has n goroutines compute without a pause, as an application's may beside the
// workers, until stop is called.
func busy(n int) (stop func()) {
	var done atomic.Bool
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			for x := uint64(1); !done.Load(); {
				for range 1 << 20 {
					x = x*6364136223846793005 + 1442695040888963407
				}
				sink.Store(x)
			}
		})
	}
	return func() {
		done.Store(true)
		running.Wait()
	}
}

// sink keeps what busy goroutines compute, so that they do.
var sink atomic.Uint64
