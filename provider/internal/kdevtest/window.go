//go:build linux

package kdevtest

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// SkipUnsupported skips the test if the error is that the kernel, its driver or
// the device lacks what is tested; it ends the test for any other error.
func SkipUnsupported(t testing.TB, err error) {
	t.Helper()
	testdev.Supported(t, err)
	Must(t, err)
}

// bound is a pair with a window over bytes 4096 to 8191 of B's memory.
type bound struct {
	*Pair
	mem    verbs.Memory
	region mr.Region // of B's memory, with WindowBind
	window mr.Window
	key    mr.RKey // in force
}

// windowed makes a pair whose B end has bound a window with these rights.
func (r *Rig) windowed(t *testing.T, access mr.Access) *bound {
	t.Helper()
	p := r.Connect(t, Config{})
	b := &bound{Pair: p}
	b.mem, b.window = window(t, p.PD)
	var err error
	b.region, err = p.PD.Register(p.B.Mem, allAccess|mr.WindowBind)
	Must(t, err)
	t.Cleanup(func() { // the window before the queue pair
		Must(t, b.mem.FreeWindow(b.window))
		Must(t, p.PD.Deregister(b.region))
	})
	b.key = b.window.RKey.Next()
	p.B.Send(t, b.bind(access))
	p.B.Want(t, cq.Completion{ID: 1, Opcode: cq.BindMW})
	return b
}

// window makes a window, or skips the test.
func window(t *testing.T, pd verbs.PD) (verbs.Memory, mr.Window) {
	t.Helper()
	mem, err := verbs.MemoryOf(pd)
	SkipUnsupported(t, err)
	w, err := mem.AllocWindow()
	SkipUnsupported(t, err)
	return mem, w
}

// bind is the request to bind the window to the key that is to be in force.
func (b *bound) bind(access mr.Access) qp.SendWR {
	old := b.key&^0xff | (b.key-1)&0xff
	return qp.SendWR{ID: 1, Opcode: qp.BindMW, Flags: qp.Signaled, RKey: old, Bind: &qp.Bind{
		Region: b.region.LKey, Addr: b.region.Addr + 4096, Length: 4096, Access: access, RKey: b.key}}
}

// write writes n bytes from A to off of B's memory by a key.
func (b *bound) write(t *testing.T, off, n int, key mr.RKey) {
	t.Helper()
	b.A.Send(t, qp.SendWR{ID: 2, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{b.A.SGE(0, n)}, RemoteAddr: b.region.Addr + uint64(off), RKey: key})
}

// Windows: the peer reaches what a window was bound to, all of it, until it is
// invalidated from either side; then it can be bound anew with another key.
func (r *Rig) Windows(t *testing.T) {
	testdev.Verb(t, "MW: allocate", "MW: bind", "MW: invalidate locally", "MW: invalidate by a send")
	b := r.windowed(t, mr.RemoteWrite|mr.RemoteRead)
	for i := range b.A.Mem {
		b.A.Mem[i] = byte(i * 7)
	}
	for range 3 {
		clear(b.B.Mem)
		b.write(t, 4096, 4096, b.key)
		b.A.Want(t, cq.Completion{ID: 2, Opcode: cq.Write})
		if !bytes.Equal(b.B.Mem[4096:8192], b.A.Mem[:4096]) || !bytes.Equal(b.B.Mem[:4096], make([]byte, 4096)) {
			t.Fatal("the data is not what was written through the window")
		}
		b.A.Send(t, qp.SendWR{ID: 3, Opcode: qp.Read, Flags: qp.Signaled, SGEs: []qp.SGE{b.A.SGE(8192, 16)}, RemoteAddr: b.region.Addr + 4200, RKey: b.key})
		b.A.Want(t, cq.Completion{ID: 3, Opcode: cq.Read, ByteLen: 16})
		if !bytes.Equal(b.A.Mem[8192:8208], b.A.Mem[104:120]) {
			t.Fatal("the data is not what was read through the window")
		}

		b.B.Recv(t, 4, b.B.SGE(0, 64))
		b.A.Send(t, qp.SendWR{ID: 5, Opcode: qp.SendWithInv, Flags: qp.Signaled, SGEs: []qp.SGE{b.A.SGE(0, 32)}, RKey: b.key})
		b.A.Want(t, cq.Completion{ID: 5, Opcode: cq.Send})
		if c := b.B.Next(t); c.ID != 4 || c.Status != cq.Success || c.Opcode != cq.Recv || c.ByteLen != 32 || c.Flags&cq.HasInvalidate == 0 || mr.RKey(c.Imm) != b.key {
			t.Fatalf("completion of the receive %+v, invalidated key %#x", c, b.key)
		}
		b.rebind(t)
		b.B.Send(t, qp.SendWR{ID: 6, Opcode: qp.LocalInv, Flags: qp.Signaled, RKey: b.key})
		b.B.Want(t, cq.Completion{ID: 6, Opcode: cq.LocalInvalidate})
		b.rebind(t)
	}
}

func (b *bound) rebind(t *testing.T) {
	t.Helper()
	b.key = b.key.Next()
	b.B.Send(t, b.bind(mr.RemoteWrite|mr.RemoteRead))
	b.B.Want(t, cq.Completion{ID: 1, Opcode: cq.BindMW})
}

// WindowRefusals: what a window does not give is refused, by an error completion.
func (r *Rig) WindowRefusals(t *testing.T) {
	r.without(t, testdev.LostErrors)
	for name, do := range map[string]func(*testing.T, *bound){
		"the old key": func(t *testing.T, b *bound) { b.write(t, 4096, 8, b.window.RKey) },
		"no right to": func(t *testing.T, b *bound) {
			b.A.Send(t, qp.SendWR{ID: 2, Opcode: qp.Read, SGEs: []qp.SGE{b.A.SGE(0, 8)}, RemoteAddr: b.region.Addr + 4096, RKey: b.key})
		},
		"of another pair": func(t *testing.T, b *bound) { b.A, b.B = b.B, b.A; b.write(t, 4096, 8, b.key) },
		"invalidated": func(t *testing.T, b *bound) {
			b.B.Send(t, qp.SendWR{ID: 6, Opcode: qp.LocalInv, Flags: qp.Signaled, RKey: b.key})
			b.B.Want(t, cq.Completion{ID: 6, Opcode: cq.LocalInvalidate})
			b.write(t, 4096, 8, b.key)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := r.windowed(t, mr.RemoteWrite)
			do(t, b)
			b.A.Want(t, cq.Completion{ID: 2, Status: cq.RemoteAccessError})
		})
	}
}

// WindowBounds: a window gives no more than its range.
func (r *Rig) WindowBounds(t *testing.T) {
	testdev.Verb(t, "MW: bounds")
	for _, off := range []int{4095, 8185} {
		b := r.windowed(t, mr.RemoteWrite)
		r.without(t, testdev.WindowBounds)
		b.write(t, off, 8, b.key)
		b.A.Want(t, cq.Completion{ID: 2, Status: cq.RemoteAccessError})
	}
}

// BadBinds: what may not be bound or invalidated fails as such.
func (r *Rig) BadBinds(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*bound, *qp.SendWR)
		want   cq.Status
	}{
		"region without the right": {func(b *bound, wr *qp.SendWR) { wr.Bind.Region = b.B.MR.LKey }, cq.MWBindError},
		"range past the region":    {func(b *bound, wr *qp.SendWR) { wr.Bind.Length = uint64(len(b.B.Mem)) }, cq.MWBindError},
		"key of no window":         {func(_ *bound, wr *qp.SendWR) { wr.RKey, wr.Bind.RKey = wr.RKey^0xff00, wr.Bind.RKey^0xff00 }, cq.MWBindError},
		"bound already":            {func(*bound, *qp.SendWR) {}, cq.MWBindError},
		"invalidate no window":     {func(b *bound, wr *qp.SendWR) { wr.Opcode, wr.RKey = qp.LocalInv, wr.RKey^0xff00 }, cq.LocalQPOperationError},
		"invalidate twice":         {func(b *bound, wr *qp.SendWR) { wr.Opcode = qp.LocalInv }, cq.LocalQPOperationError},
	} {
		t.Run(name, func(t *testing.T) {
			b := r.windowed(t, mr.RemoteWrite)
			b.key = b.key.Next()
			wr := b.bind(mr.RemoteWrite)
			if name != "bound already" {
				b.B.Send(t, qp.SendWR{ID: 6, Opcode: qp.LocalInv, Flags: qp.Signaled, RKey: wr.RKey})
				b.B.Want(t, cq.Completion{ID: 6, Opcode: cq.LocalInvalidate})
			}
			tt.change(b, &wr)
			if wr.Opcode == qp.LocalInv { // some providers must not let the kernel see it
				if n, err := b.B.QP.PostSend([]qp.SendWR{wr}); n == 0 && err == qp.ErrBind {
					return
				}
			} else {
				b.B.Send(t, wr)
			}
			r.wantStatus(t, &b.B, 1, tt.want)
		})
	}
}

// WindowLife: windows are counted, freed once, and hold what they are bound to.
func (r *Rig) WindowLife(t *testing.T) {
	b := r.windowed(t, mr.RemoteWrite)
	if err := b.PD.Deregister(b.region); err == nil {
		t.Error("a region was deregistered with a window bound to it")
	}
	_, w := window(t, b.PD)
	Must(t, b.mem.FreeWindow(w))
	if err := b.mem.FreeWindow(w); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("freed twice: %v", err)
	}
	pd, err := b.Ctx.AllocPD()
	Must(t, err)
	mem, w := window(t, pd)
	if err := b.mem.FreeWindow(w); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("freed in another domain: %v", err)
	}
	if err := pd.Close(); err == nil {
		t.Error("a domain was closed with a window in it")
	}
	Must(t, mem.FreeWindow(w))
	Must(t, pd.Close())
	if _, err := mem.AllocWindow(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("a window of a closed domain: %v", err)
	}
	for name, wr := range map[string]qp.SendWR{
		"nothing to bind to": {Opcode: qp.BindMW},
		"with a segment":     {Opcode: qp.LocalInv, SGEs: []qp.SGE{b.B.SGE(0, 8)}},
	} {
		if n, err := b.B.QP.PostSend([]qp.SendWR{wr}); n != 0 || err != qp.ErrBind {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	if err := b.B.QP.Close(); err != nil && !errors.Is(err, syscall.EBUSY) { // or it unbinds by itself
		t.Errorf("closing a queue pair that has bound a window: %v", err)
	}
}
