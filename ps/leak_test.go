package ps

import (
	"os"
	"runtime"
	"testing"
)

// use is what this process uses: bytes of the heap, goroutines, and descriptors, 0 if they
// cannot be counted here.
func use() (heap, goroutines, descriptors int) {
	for range 3 { // pools keep what is free for one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	list, _ := os.ReadDir("/proc/self/fd")
	return int(m.HeapAlloc), runtime.NumGoroutine(), len(list)
}

// TestChangesLeaveNothing: many changes under load take no more memory, goroutines and
// descriptors, of shards and of clients, than a few do.
func TestChangesLeaveNothing(t *testing.T) {
	if testing.Short() || slowed {
		t.Skip("takes long")
	}
	const changes = 40
	v := serveShards(t, 2)
	v.load(3)
	change := func(times int) {
		for range times {
			next := v.next()
			if err := Rebalance(limit(t), v.m, next, RebalanceConfig{}); err != nil {
				t.Fatal(err)
			}
			v.m = next
		}
	}
	change(15) // more than there are maps remembered
	heap, goroutines, descriptors := use()
	change(changes)
	heap2, goroutines2, descriptors2 := use()
	if heap2-heap > 4<<20 || goroutines2-goroutines > 20 || descriptors2-descriptors > 8 {
		t.Errorf("after %d changes more: %d bytes more, %d goroutines, %d descriptors", changes, heap2-heap, goroutines2-goroutines, descriptors2-descriptors)
	}
	v.stop()
	v.wg.Wait()
	v.check()
}
