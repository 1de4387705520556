package sim_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

// TestMemoryIsOursAfterFlush: when a request came back flushed, or its queue pair
// or region is closed, nobody reads its memory any more, though the peer's NIC may
// have been copying from it a moment ago. The race detector is the judge: the test
// writes to the memory at once.
func TestMemoryIsOursAfterFlush(t *testing.T) {
	const size = 256 << 10
	for _, way := range []string{"flush", "reset", "close"} {
		t.Run(way, func(t *testing.T) {
			f := sim.NewFabric(sim.Config{})
			o := options{buf: 2 * size}
			o.fill()
			target := must[*sim.Device](t)(f.NewDevice("target", sim.DeviceConfig{}))
			b, busyPeer := newEnd(t, target, &o), newEnd(t, target, &o)
			busy := newEnd(t, must[*sim.Device](t)(f.NewDevice("busy", sim.DeviceConfig{})), &o)
			a := newEnd(t, must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{})), &o)
			connect(busy, busyPeer)
			var stop atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() { // keeps the target's NIC in other hands
				for !stop.Load() {
					busy.send(qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: busyPeer.reg.Addr, RKey: busyPeer.reg.RKey, SGEs: busy.sge(0, size)})
					if c := busy.next(); c.Status != cq.Success {
						t.Error(c.Err())
						return
					}
				}
			})
			reset := func(e *end) { check(t, e.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState)) }
			for i := range 60 {
				connect(a, b)
				a.send(qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, size)})
				for range i * 23 % 60 { // so that the copy has begun in some rounds
					runtime.Gosched()
				}
				switch way {
				case "flush":
					check(t, a.qp.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
					a.next() // done or flushed, both can be
				case "reset":
					reset(a)
				case "close":
					check(t, a.qp.Close())
					check(t, a.pd.Deregister(a.reg))
				}
				for k := range a.buf {
					a.buf[k] = byte(i)
				}
				if way == "close" {
					a.reg = must[mr.Region](t)(a.pd.Register(a.buf, allAccess))
					n := newQPOf(t, a, &o)
					a.qp = n
				} else {
					reset(a)
				}
				reset(b)
				for n := 1; n > 0; {
					n, _ = a.cq.Poll(a.got[:])
				}
			}
			stop.Store(true)
			wg.Wait()
			for _, e := range []*end{a, b, busy, busyPeer} {
				e.close()
			}
			check(t, f.Close())
		})
	}
}
