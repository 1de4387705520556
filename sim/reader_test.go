//go:build !race

package sim_test

import (
	"runtime"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

// TestReaderIsWaitedFor takes memory back while the peer's NIC is in the middle
// of copying from it: whatever takes it back returns only after that copy. The
// test looks at the target during the copy, which is a race by design.
func TestReaderIsWaitedFor(t *testing.T) {
	const size = 32 << 20
	// Copied early and late: not the very ends, which copy may save for last.
	const first, late = size / 8, size / 8 * 7
	for _, c := range []struct {
		what string
		do   func(a *end)
	}{
		{"deregister", func(a *end) { check(t, a.pd.Deregister(a.reg)) }},
		{"close", func(a *end) { check(t, a.qp.Close()) }},
		{"reset", func(a *end) { check(t, a.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState)) }},
		{"flush", func(a *end) {
			check(t, a.qp.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
			a.next()
		}},
	} {
		caught := 0
		for try := 0; try < 40 && caught < 3; try++ {
			f := sim.NewFabric(sim.Config{})
			o := options{buf: size}
			o.fill()
			a, b := newEnd(t, must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{})), &o), newEnd(t, must[*sim.Device](t)(f.NewDevice("b", sim.DeviceConfig{})), &o)
			connect(a, b)
			for i := 0; i < size; i += 64 {
				a.buf[i] = 1
			}
			done := make(chan struct{})
			go func() {
				a.send(qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, SGEs: a.sge(0, size)})
				close(done)
			}()
			for b.buf[first] == 0 {
				runtime.Gosched()
			}
			early := b.buf[late] == 0
			c.do(a)
			if early {
				caught++
				if b.buf[late] == 0 {
					t.Errorf("%s: returned while the memory was being read", c.what)
				}
			}
			<-done
			if c.what == "deregister" {
				check(t, a.qp.Close())
				check(t, a.cq.Close())
				check(t, a.pd.Close())
				check(t, a.ctx.Close())
			} else {
				a.close()
			}
			b.close()
			check(t, f.Close())
		}
		if caught == 0 {
			t.Logf("%s: never came in the middle of a copy", c.what)
		}
	}
}
