//go:build !race && !bemalloc_nolinkname && !go1.27

package bemalloc

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

// havePin tells that caches per P are compiled in.
const havePin = true

// procPin keeps the goroutine on its P until procUnpin and returns the P's
// number. Between the two calls: no lock, channel, system call, allocation or panic.
//
// They are the runtime's own, reached by linkname, since nothing that Go exports gives a
// goroutine a cache that it need not lock: sync.Pool, which has one, drops what it holds
// when the collector runs. The runtime keeps both names and signatures for such use
// (runtime/proc.go, "Do not remove or change the type signature", Go 1.23 to 1.26). A
// later Go has not been looked at, so with it unpinned.go is built instead, shards under
// mutexes, until somebody has and raises the bound in both files.
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
