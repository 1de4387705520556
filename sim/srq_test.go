package sim_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// TestSRQ sends over three connections into one shared receive queue, with its
// limit event and the refusals.
func TestSRQ(t *testing.T) {
	const each = 4
	o := options{}
	o.fill()
	f := sim.NewFabric(sim.Config{})
	dev := must[*sim.Device](t)(f.NewDevice("server", sim.DeviceConfig{}))
	server := newEnd(t, dev, &o)
	check(t, server.qp.Close())
	srq := must[qp.SRQ](t)(server.pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 16, RecvSGE: 2}}))
	for i := range 3 * each {
		half := qp.SGE{Addr: server.reg.Addr + uint64(16*i), Length: 8, LKey: server.reg.LKey}
		rest := qp.SGE{Addr: half.Addr + 8, Length: 8, LKey: half.LKey}
		if n, err := srq.PostRecv([]qp.RecvWR{{ID: uint64(i), SGEs: []qp.SGE{half, rest}}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	check(t, srq.Arm(3*each-1))
	var servers []qp.QP
	for i := range 3 {
		client := newEnd(t, must[*sim.Device](t)(f.NewDevice("client"+string(rune('0'+i)), sim.DeviceConfig{})), &o)
		server.qp = must[qp.QP](t)(server.pd.CreateQP(verbs.QPConfig{SendCQ: server.cq, RecvCQ: server.cq, Caps: o.caps, SRQ: srq}))
		servers = append(servers, server.qp)
		connect(client, server)
		if n, err := server.qp.PostRecv([]qp.RecvWR{{}}); n != 0 || !errors.Is(err, qp.ErrSharedRecv) {
			t.Errorf("a receive on a queue pair with a shared queue: %d, %v", n, err)
		}
		for j := range each {
			must[int](t)(client.qp.PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Inline, Inline: []byte{byte(i), byte(j), 9: 7}}}))
		}
		t.Cleanup(client.close)
	}
	next := map[cq.QPNum]byte{}
	seen := map[uint64]bool{}
	for got := 0; got < 3*each; {
		check(t, server.cq.Arm(false))
		var c [64]cq.Completion
		n := must[int](t)(server.cq.Poll(c[:]))
		if n == 0 {
			check(t, server.cq.Wait(context.Background()))
		}
		for _, c := range c[:n] {
			check(t, c.Err())
			b := server.buf[16*c.ID:]
			if c.ByteLen != 10 || b[1] != next[c.QPNum] || b[9] != 7 || seen[c.ID] {
				t.Errorf("completion %+v with %x, want message %d", c, b[:10], next[c.QPNum])
			}
			next[c.QPNum]++
			seen[c.ID] = true
			got++
		}
	}
	if e := must[verbs.Event](t)(server.ctx.NextEvent(context.Background())); e.Type != verbs.EventSRQLimit || e.SRQ != srq {
		t.Errorf("event %v of %v, want the limit of the queue", e, e.SRQ)
	}
	if a := must[qp.SRQAttr](t)(srq.Query()); a.Limit != 0 || a.Caps != srq.Caps() {
		t.Errorf("after its limit event the queue says %+v", a)
	}
	if err := srq.Arm(17); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("limit beyond the queue: %v", err)
	}
	if err := srq.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("closed in use: %v", err)
	}
	check(t, servers[0].Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
	if e := must[verbs.Event](t)(server.ctx.NextEvent(context.Background())); e.Type != verbs.EventLastWQEReached || e.QP != servers[0].Num() {
		t.Errorf("event %v, want the end of %#x's receives", e, servers[0].Num())
	}
	for _, q := range servers {
		check(t, q.Close())
	}
	if err := server.pd.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("domain closed with a shared receive queue: %v", err)
	}
	check(t, srq.Close())
	if _, err := srq.PostRecv([]qp.RecvWR{{}}); !errors.Is(err, qp.ErrClosed) {
		t.Errorf("post after close: %v", err)
	}
	server.close()
}

// TestSRQOfAnotherDomain refuses a queue pair whose shared queue is of another
// domain or device.
func TestSRQOfAnotherDomain(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{})
	srq := must[qp.SRQ](t)(b.pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 1, RecvSGE: 1}}))
	if _, err := a.pd.CreateQP(verbs.QPConfig{SendCQ: a.cq, RecvCQ: a.cq, SRQ: srq}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("queue pair with another domain's shared queue: %v", err)
	}
	check(t, srq.Close())
}

// TestSRQEmpty lets a sender wait for a receive, and posts it then.
func TestSRQEmpty(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{path: qp.Path{RNRRetry: 7, RNRTimer: 1, MTU: qp.MTU4096, MaxReads: 1, MaxDestReads: 1}})
	srq := must[qp.SRQ](t)(b.pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 4, RecvSGE: 1}}))
	check(t, b.qp.Close())
	check(t, a.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	b.qp = must[qp.QP](t)(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, Caps: qp.Caps{SendWR: 1}, SRQ: srq}))
	t.Cleanup(func() { check(t, b.qp.Close()); check(t, srq.Close()) })
	connect(a, b)
	must[int](t)(a.qp.PostSend([]qp.SendWR{{Opcode: qp.SendWithImm, Flags: qp.Signaled, Imm: 5}}))
	must[int](t)(srq.PostRecv([]qp.RecvWR{{ID: 3}}))
	check(t, b.cq.Arm(false))
	var c [1]cq.Completion
	for n := 0; n == 0; {
		if n = must[int](t)(b.cq.Poll(c[:])); n == 0 {
			check(t, b.cq.Wait(context.Background()))
		}
	}
	if c[0].ID != 3 || c[0].Imm != 5 || c[0].Err() != nil {
		t.Errorf("completion %+v", c[0])
	}
}

// TestSRQDoesNotAllocate: posting to a shared receive queue and what takes from it.
func TestSRQDoesNotAllocate(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{})
	srq := must[qp.SRQ](t)(b.pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 4, RecvSGE: 2}}))
	check(t, b.qp.Close())
	check(t, a.qp.Modify(&qp.Attr{State: qp.Reset}, qp.MaskState))
	b.qp = must[qp.QP](t)(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, Caps: qp.Caps{SendWR: 1}, SRQ: srq}))
	t.Cleanup(func() { check(t, b.qp.Close()); check(t, srq.Close()) })
	connect(a, b)
	recvs := []qp.RecvWR{{SGEs: append(b.sge(0, 100), b.sge(200, 100)...)}}
	sends := []qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: a.sge(0, 200)}}
	if n := testing.AllocsPerRun(100, func() {
		if n, err := srq.PostRecv(recvs); n != 1 {
			t.Fatal(err)
		}
		if n, err := a.qp.PostSend(sends); n != 1 {
			t.Fatal(err)
		}
		for _, e := range []*end{a, b} {
			if n, err := e.cq.Poll(e.got[:]); n != 1 || e.got[0].Status != cq.Success {
				t.Fatal(n, err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// TestResize keeps what waits in a queue that grows and shrinks, and refuses to
// shrink below that.
func TestResize(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{cqe: 4})
	for i := range 3 {
		must[int](t)(b.qp.PostRecv([]qp.RecvWR{{ID: uint64(i)}}))
		must[int](t)(a.qp.PostSend([]qp.SendWR{{Opcode: qp.Send}}))
	}
	if err := b.cq.Resize(2); !errors.Is(err, syscall.EINVAL) || b.cq.Capacity() != 4 {
		t.Errorf("shrunk below 3 completions to %d: %v", b.cq.Capacity(), err)
	}
	if err := b.cq.Resize(0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("no entries: %v", err)
	}
	check(t, b.cq.Resize(100))
	for i := range 60 {
		must[int](t)(b.qp.PostRecv([]qp.RecvWR{{ID: uint64(3 + i)}}))
		must[int](t)(a.qp.PostSend([]qp.SendWR{{Opcode: qp.Send}}))
	}
	check(t, b.cq.Resize(63))
	var c [100]cq.Completion
	n := must[int](t)(b.cq.Poll(c[:]))
	for i := range c[:n] {
		if c[i].ID != uint64(i) || c[i].Err() != nil {
			t.Errorf("completion %d: %+v", i, c[i])
		}
	}
	if n != 63 || b.cq.Capacity() != 63 {
		t.Errorf("%d completions from a queue of %d, want 63", n, b.cq.Capacity())
	}
}

// TestSRQAtWork sends from several goroutines into one shared receive queue whose
// completion queue is resized meanwhile. Each message arrives once, in its
// connection's order.
func TestSRQAtWork(t *testing.T) {
	const conns, messages = 4, 500
	o := options{cqe: 16}
	o.fill()
	f := sim.NewFabric(sim.Config{})
	server := newEnd(t, must[*sim.Device](t)(f.NewDevice("server", sim.DeviceConfig{})), &o)
	check(t, server.qp.Close())
	srq := must[qp.SRQ](t)(server.pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 8, RecvSGE: 1}}))
	var clients []*end
	var servers []qp.QP
	for i := range conns {
		client := newEnd(t, must[*sim.Device](t)(f.NewDevice("client"+string(rune('0'+i)), sim.DeviceConfig{})), &o)
		client.path.RNRTimer = 1
		server.qp = must[qp.QP](t)(server.pd.CreateQP(verbs.QPConfig{SendCQ: server.cq, RecvCQ: server.cq, Caps: o.caps, SRQ: srq}))
		connect(client, server)
		clients, servers = append(clients, client), append(servers, server.qp)
	}
	post := func(id uint64) {
		sge := qp.SGE{Addr: server.reg.Addr + 8*id, Length: 8, LKey: server.reg.LKey}
		must[int](t)(srq.PostRecv([]qp.RecvWR{{ID: id, SGEs: []qp.SGE{sge}}}))
	}
	for id := range uint64(8) {
		post(id)
	}
	var sending sync.WaitGroup
	for _, c := range clients {
		sending.Go(func() {
			wr := []qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: make([]byte, 2)}}
			var buf [1]cq.Completion
			for i := range messages {
				wr[0].Inline[0], wr[0].Inline[1] = byte(i), byte(i>>8)
				if _, err := c.qp.PostSend(wr); err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(waitFor(c.cq, buf[:]), buf[0].Err()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	next := map[cq.QPNum]int{}
	for got := 0; got < conns*messages; {
		var buf [4]cq.Completion
		check(t, server.cq.Arm(false))
		n := must[int](t)(server.cq.Poll(buf[:]))
		if n == 0 {
			check(t, server.cq.Wait(context.Background()))
		}
		for _, c := range buf[:n] {
			check(t, c.Err())
			if b := server.buf[8*c.ID:]; int(b[0])|int(b[1])<<8 != next[c.QPNum] {
				t.Fatalf("message %d of %#x, want %d", int(b[0])|int(b[1])<<8, uint32(c.QPNum), next[c.QPNum])
			}
			next[c.QPNum]++
			post(c.ID)
			if got++; got%50 == 0 {
				check(t, server.cq.Resize(16+got%64))
			}
		}
	}
	sending.Wait()
	for i := range clients {
		clients[i].close()
		check(t, servers[i].Close())
	}
	check(t, srq.Close())
	server.close()
}

// waitFor waits for a completion.
func waitFor(q cq.CQ, dst []cq.Completion) error {
	for {
		if err := q.Arm(false); err != nil {
			return err
		}
		if n, err := q.Poll(dst); n > 0 || err != nil {
			return err
		}
		if err := q.Wait(context.Background()); err != nil {
			return err
		}
	}
}
