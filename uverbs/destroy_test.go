//go:build linux

package uverbs

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What has events is destroyed by name, by method and by command, and the events that
// it had are read from where the answer has them.
func TestDestroyReported(t *testing.T) {
	for _, old := range []bool{false, true} {
		for _, tt := range []struct {
			m, older *method
			destroy  func(*Context) (Reported, error)
			answer   func(out []byte)
			want     Reported
		}{
			{mCQDestroy, wDestroyCQ, func(c *Context) (Reported, error) { return c.DestroyCQ(77) }, func(out []byte) {
				destroyCQRespCompEventsReported.Put(out, 5)
				destroyCQRespAsyncEventsReported.Put(out, 6)
			}, Reported{5, 6}},
			{mQPDestroy, wDestroyQP, func(c *Context) (Reported, error) { return c.DestroyQP(77) },
				func(out []byte) { destroyQPRespEventsReported.Put(out, 7) }, Reported{Async: 7}},
			{mSRQDestroy, wDestroySRQ, func(c *Context) (Reported, error) { return c.DestroySRQ(77) },
				func(out []byte) { destroySRQRespEventsReported.Put(out, 8) }, Reported{Async: 8}},
		} {
			k := newFake(t)
			handle := uint32(0)
			k.fail = func(call *Call) syscall.Errno {
				switch m := lookup(call.Object, call.Method, call.Command); {
				case m == tt.m && old:
					return unix.EPROTONOSUPPORT
				case m == tt.m:
					handle = u32(call.Attr("HANDLE").Value)
					tt.answer(call.Attr("RESP").Bytes)
				case m == tt.older:
					handle = u32(call.Attr("CORE_IN").Bytes[8:])
					out := call.Attr("CORE_OUT").Bytes
					tt.answer(out)
					k.next = u32(out) - 1 // the fake puts a number of its own there
				}
				return 0
			}
			if n, err := tt.destroy(k.open()); n != tt.want || err != nil || handle != 77 {
				t.Errorf("%s, old %v: handle %d, %+v, %v", tt.m.op, old, handle, n, err)
			}
		}
	}
}
