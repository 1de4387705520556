//go:build !race && !bemalloc_nolinkname

package bemalloc

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

// havePin tells that caches per P are compiled in.
const havePin = true

// procPin keeps the goroutine on its P until procUnpin and returns the P's
// number. The runtime keeps both for linkname's sake (see runtime/proc.go).
// Between the two calls: no lock, channel, system call, allocation or panic.
//
//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// gracePeriod returns when every section that was pinned at the call has ended:
// it stops the world, which waits for pinned goroutines. It costs some tens of
// microseconds of every goroutine's time.
func gracePeriod() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
}
