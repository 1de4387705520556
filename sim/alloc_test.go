package sim_test

import (
	"context"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

// pingOnce does one message of each kind that the data path uses, from post to
// poll.
func pingOnce(t testing.TB, a, b *end, recvs []qp.RecvWR, sends []qp.SendWR) {
	if _, err := b.qp.PostRecv(recvs); err != nil {
		t.Fatal(err)
	}
	if err := a.cq.Arm(false); err != nil {
		t.Fatal(err)
	}
	if n, err := a.qp.PostSend(sends); n != len(sends) {
		t.Fatal(n, err)
	}
	for got := 0; got < len(sends); {
		n, err := a.cq.Poll(a.got[:])
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if a.got[i].Status != cq.Success {
				t.Fatal(a.got[i].Err())
			}
		}
		got += n
	}
	a.cq.Wake()
	if err := a.cq.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < len(recvs); {
		n, err := b.cq.Poll(b.got[:])
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
}

func TestDataPathDoesNotAllocate(t *testing.T) {
	for _, segment := range []bool{false, true} {
		a, b, _ := newPair(t, sim.Config{Segment: segment}, options{})
		recvs := []qp.RecvWR{{ID: 1, SGEs: b.sge(0, 4096)}, {ID: 2, SGEs: b.sge(4096, 64)}}
		remote := qp.SendWR{RemoteAddr: b.reg.Addr + 8192, RKey: b.reg.RKey, Flags: qp.Signaled}
		var sends []qp.SendWR
		for _, op := range []qp.Opcode{qp.Send, qp.WriteWithImm, qp.Write, qp.Read} {
			w := remote
			w.Opcode, w.SGEs = op, append(a.sge(0, 1000), a.sge(2000, 3000)...)
			sends = append(sends, w)
		}
		sends[0].SGEs = a.sge(0, 4096)
		w := remote
		w.Opcode, w.SGEs = qp.FetchAdd, a.sge(8, 8)
		sends = append(sends, w)
		w = remote
		w.Opcode, w.Inline, w.Flags = qp.Write, a.buf[:100], qp.Signaled|qp.Inline
		sends = append(sends, w)
		for range 10 {
			pingOnce(t, a, b, recvs, sends)
		}
		if n := testing.AllocsPerRun(100, func() { pingOnce(t, a, b, recvs, sends) }); n != 0 {
			t.Errorf("segment=%v: %v allocations, want none", segment, n)
		}
	}
}

// TestWaitDoesNotAllocate has a goroutine that really sleeps in Wait until a
// message of another one comes.
func TestWaitDoesNotAllocate(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{})
	sends := []qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: a.sge(0, 8)}}
	recvs := []qp.RecvWR{{SGEs: b.sge(0, 64)}}
	start, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for range start {
			if _, err := a.qp.PostSend(sends); err != nil {
				done <- err
				return
			}
			for n := 0; n == 0; {
				n, _ = a.cq.Poll(a.got[:])
			}
		}
		done <- nil
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if n := testing.AllocsPerRun(200, func() {
		if _, err := b.qp.PostRecv(recvs); err != nil {
			t.Fatal(err)
		}
		if err := b.cq.Arm(false); err != nil {
			t.Fatal(err)
		}
		start <- struct{}{}
		for n := 0; n == 0; n, _ = b.cq.Poll(b.got[:]) {
			if err := b.cq.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	close(start)
	check(t, <-done)
}
