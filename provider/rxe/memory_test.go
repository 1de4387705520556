//go:build linux

package rxe

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// When the device is gone nothing new is made, and windows and regions are given
// back as if they had been destroyed.
func TestMemoryOfLostDevice(t *testing.T) {
	noLeaks(t)
	k := newFake(t)
	_, pd, q, p := stand(t, k)
	mem, err := verbs.MemoryOf(pd)
	must(t, err)
	region, err := mem.RegisterDMABuf(verbs.DMABuf{Length: 4096, Addr: 4096}, 0)
	must(t, err)
	w, err := mem.AllocWindow()
	must(t, err)
	p.ctx.Bind(w.RKey, p.Num())
	k.mu.Lock()
	k.fail = func(int, *uverbs.Call) syscall.Errno { return unix.EIO }
	k.mu.Unlock()
	k.events[0].Close()
	for !p.ctx.Lost() {
		must(t, q.Wait(t.Context()))
	}
	_, err1 := mem.AllocWindow()
	_, err2 := mem.RegisterDMABuf(verbs.DMABuf{Length: 4096, Addr: 4096}, 0)
	_, err3 := mem.Reregister(region, nil, 0)
	err4 := mem.Advise(mr.Prefetch, false, []qp.SGE{{Length: 1}})
	for i, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, verbs.ErrDeviceLost) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	must(t, p.Close()) // though the window may be bound: nobody waits for it any more
	must(t, mem.FreeWindow(w))
	must(t, pd.Deregister(region))
}

// The kernel may give the key of a window that is being freed to one of another
// domain, before we have forgotten the first.
func TestWindowKeyUsedAgain(t *testing.T) {
	k := newFake(t)
	ctx, domain, _, _ := stand(t, k)
	ctx.BindsWindows = true
	pd, err := ctx.AllocPD()
	must(t, err)
	mem, err := verbs.MemoryOf(domain)
	must(t, err)
	other, err := verbs.MemoryOf(pd)
	must(t, err)
	first, err := mem.AllocWindow()
	must(t, err)
	var second mr.Window
	k.fail = func(_ int, c *uverbs.Call) syscall.Errno {
		if c.Op == "free memory window" {
			k.fail = nil
			k.mu.Unlock()
			second, err = other.AllocWindow()
			k.mu.Lock()
		}
		return 0
	}
	must(t, mem.FreeWindow(first))
	must(t, err)
	if first.RKey != second.RKey || first.Handle == second.Handle {
		t.Fatalf("the windows are %v and %v, want one key", first, second)
	}
	must(t, other.FreeWindow(second))
	must(t, pd.Close())
}

// A queue pair that may have bound a window is not destroyed before the window: the
// kernel would wait for it. Once the window is free, or bound by another, it is.
func TestCloseBeforeWindow(t *testing.T) {
	k := newFake(t)
	_, pd, q, p := stand(t, k)
	mem, err := verbs.MemoryOf(pd)
	must(t, err)
	w, err := mem.AllocWindow()
	must(t, err)
	must(t, (&qp.Path{MTU: qp.MTU1024}).Connect(p))
	bind := qp.SendWR{Opcode: qp.BindMW, RKey: w.RKey, Bind: &qp.Bind{Length: 8, RKey: w.RKey.Next()}}
	if n, err := p.PostSend([]qp.SendWR{bind}); n != 0 || err != qp.ErrOpcode {
		t.Errorf("bound on a device without windows: %d, %v", n, err)
	}
	p.Given.Windows = true
	if n, err := p.PostSend([]qp.SendWR{bind}); n != 1 || err != nil {
		t.Fatalf("bind: %d, %v", n, err)
	}
	var op *verbs.OpError
	if err := p.Close(); !errors.Is(err, syscall.EBUSY) || !errors.As(err, &op) || op.Remedy == "" {
		t.Errorf("closed with a window bound: %v", err)
	}
	if n, err := p.PostSend([]qp.SendWR{{Opcode: qp.Send}}); n != 1 || err != nil {
		t.Errorf("the queue pair is not as before: %d, %v", n, err)
	}
	other, err := pd.CreateQP(verbs.QPConfig{SendCQ: q, RecvCQ: q, Caps: fakeCaps})
	must(t, err)
	p.ctx.Bind(w.RKey.Next(), other.Num())
	must(t, p.Close())
	if err := other.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("the other one closed with a window bound: %v", err)
	}
	must(t, mem.FreeWindow(w))
	must(t, other.Close())
}

// A LOCAL_INV that would find the window free does not reach the kernel: not when
// nothing was bound, nor a second time, nor after the peer's or a failure of the
// queue pair, nor from another queue pair.
func TestInvalidateOnce(t *testing.T) {
	k := newFake(t)
	_, pd, q, p := stand(t, k)
	mem, err := verbs.MemoryOf(pd)
	must(t, err)
	w, err := mem.AllocWindow()
	must(t, err)
	must(t, (&qp.Path{MTU: qp.MTU1024}).Connect(p))
	p.Given.Windows = true
	key := w.RKey
	bind := func() {
		t.Helper()
		if n, err := p.PostSend([]qp.SendWR{{Opcode: qp.BindMW, RKey: key, Bind: &qp.Bind{Length: 8, RKey: key.Next()}}}); n != 1 || err != nil {
			t.Fatalf("bind: %d, %v", n, err)
		}
		p.sqProducer = 0 // the fake takes nothing from the queue
		key = key.Next()
	}
	invalidate := func(want error) {
		t.Helper()
		wrs := []qp.SendWR{{Opcode: qp.Send}, {Opcode: qp.LocalInv, RKey: key}, {Opcode: qp.Send}}
		if n, err := p.PostSend(wrs); err != want || (n == 3) != (want == nil) || n == 0 {
			t.Errorf("invalidate: %d, %v; want %v", n, err, want)
		}
		p.sqProducer = 0
	}
	invalidate(qp.ErrBind)
	bind()
	invalidate(nil)
	invalidate(qp.ErrBind)
	bind()
	var buf [1]cq.Completion
	k.complete(cq.Completion{QPNum: p.Num(), Opcode: cq.Recv, Flags: cq.HasInvalidate, Imm: uint32(key)})
	if n, err := q.Poll(buf[:]); n != 1 || err != nil || buf[0].Flags != cq.HasInvalidate || mr.RKey(buf[0].Imm) != key {
		t.Fatalf("completion %+v, %v", buf, err)
	}
	invalidate(qp.ErrBind)
	bind()
	if p.ctx.Invalidate(key, p.Num()+1) {
		t.Error("another queue pair's window was invalidated")
	}
	k.complete(cq.Completion{QPNum: p.Num(), Status: cq.MWBindError})
	if n, err := q.Poll(buf[:]); n != 1 || err != nil {
		t.Fatalf("%d completions, %v", n, err)
	}
	invalidate(qp.ErrBind)
	must(t, mem.FreeWindow(w))
}

// The bytes of a BIND_MW, field by field: the vectors have none.
func TestPutBind(t *testing.T) {
	e := make([]byte, minSendElem)
	for i := range e {
		e[i] = 0xee
	}
	putSend(e, &qp.SendWR{ID: 1, Opcode: qp.BindMW, RKey: 0x1234, Bind: &qp.Bind{Region: 5, Addr: 6 << 32, Length: 7 << 32, Access: mr.RemoteRead, RKey: 0x1235}}, true)
	if sendWROpcode.Get(e) != 8 || sendWRSendFlags.Get(e) != uint32(qp.Signaled) || sendWRMWAddr.Get(e) != 6<<32 || sendWRMWLength.Get(e) != 7<<32 ||
		sendWRMWMRLkey.Get(e) != 5 || sendWRMWRkey.Get(e) != 0x1234 || sendWRMWNewRkey.Get(e) != 0x1235 || sendWRMWAccess.Get(e) != 4 ||
		dmaNumSGE.Get(sendWQEDma.In(e)) != 0 || dmaLength.Get(sendWQEDma.In(e)) != 0 {
		t.Errorf("element %x", e)
	}
}
