package bemalloc

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/mr"
)

// BenchmarkHook compares a pool whose registrar does nothing with one that has none:
// the bookkeeping is to be free. Rounds on the two alternate and are timed by the
// thread's CPU time, so that what else the machine does hits both; noop/none is the
// ratio of the medians, and MR-ns the CPU time of one look-up.
func BenchmarkHook(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const pairs = 1 << 14
	for _, size := range []int{1024, 128 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			pools := [2]*Pool{newPool(b, Config{}), newPool(b, Config{Registrar: noop{}})}
			var heaps [2]*Heap
			var live [2][64][]byte
			for i, p := range pools {
				heaps[i] = p.NewHeap(HeapOptions{})
			}
			round := func(k int) float64 {
				h, bufs := heaps[k], &live[k]
				start := threadCPU(b)
				for i := range pairs {
					slot := &bufs[i%len(bufs)]
					if err := h.Free(*slot); err != nil {
						b.Fatal(err)
					}
					buf, err := h.Alloc(size + i%16*size/16)
					if err != nil {
						b.Fatal(err)
					}
					*slot = buf
				}
				return float64(threadCPU(b)-start) / pairs
			}
			lookup := func() float64 {
				part := live[1][7][100:]
				start := threadCPU(b)
				for range pairs {
					if _, err := pools[1].MR(part); err != nil {
						b.Fatal(err)
					}
				}
				return float64(threadCPU(b)-start) / pairs
			}
			var ns [3][]float64
			round(0)
			round(1)
			for b.Loop() {
				for k := range pools {
					ns[k] = append(ns[k], round(k))
				}
				ns[2] = append(ns[2], lookup())
			}
			var med [3]float64
			for k := range ns {
				slices.Sort(ns[k])
				med[k] = ns[k][len(ns[k])/2]
			}
			b.ReportMetric(med[0], "none-ns/pair")
			b.ReportMetric(med[1], "noop-ns/pair")
			b.ReportMetric(med[1]/med[0], "noop/none")
			b.ReportMetric(med[2], "MR-ns")
			for k, h := range heaps {
				for _, buf := range live[k] {
					free(b, pools[k], buf)
				}
				_ = h.Close()
			}
		})
	}
}

// threadCPU gives the CPU time of this thread in ns.
func threadCPU(b *testing.B) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return ts.Nano()
}

// noop is a device that registers for free.
type noop struct{}

func (noop) Register(buf []byte, _ mr.Access) (mr.Region, error) {
	return mr.Region{Addr: mr.Addr(buf), Length: uint64(len(buf))}, nil
}
func (noop) Deregister(mr.Region) error { return nil }
