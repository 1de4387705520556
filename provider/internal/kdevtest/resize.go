//go:build linux

package kdevtest

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Resize: a completion queue grows and shrinks with completions in it, none of which
// is lost; it is armed and waited for as before; what cannot be is refused.
func (r *Rig) Resize(t *testing.T) {
	testdev.Verb(t, "CQ: resize")
	p := r.Connect(t, Config{Caps: qp.Caps{SendWR: 64, RecvWR: 64, SendSGE: 1, RecvSGE: 1}})
	q := p.B.CQ
	err := q.Resize(200)
	testdev.Supported(t, err)
	Must(t, err)
	if q.Capacity() < 200 {
		t.Fatalf("capacity is %d", q.Capacity())
	}
	id, polled := uint64(0), uint64(0)
	fill := func(n int) { // B has n more completions when this returns
		t.Helper()
		for range n {
			p.B.Recv(t, id, p.B.SGE(0, 8))
			p.A.Send(t, qp.SendWR{ID: id, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}})
			p.A.Want(t, cq.Completion{ID: id, Opcode: cq.Send})
			id++
		}
	}
	drain := func(n int) {
		t.Helper()
		for range n {
			p.B.Want(t, cq.Completion{ID: polled, Opcode: cq.Recv, ByteLen: 8})
			polled++
		}
	}
	for _, size := range []int{300, 40, 41, 128, 1000, 33} {
		fill(32)
		drain(5) // the ring is entered at every place
		Must(t, q.Resize(size))
		if q.Capacity() < size {
			t.Errorf("capacity is %d, asked for %d", q.Capacity(), size)
		}
		drain(27)
		p.B.Empty(t)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		Must(t, q.Arm(false))
		fill(1)
		if err := q.Wait(ctx); err != nil {
			t.Fatalf("event after resizing to %d: %v", size, err)
		}
		cancel()
		drain(1)
	}
	Must(t, q.Resize(64))
	fill(32)
	before := q.Capacity()
	if err := q.Resize(8); !errors.Is(err, syscall.EINVAL) || q.Capacity() != before {
		t.Errorf("shrunk below the 32 that wait, to %d: %v", q.Capacity(), err)
	}
	drain(32)
	attr, err := p.Ctx.Attr()
	Must(t, err)
	for _, n := range []int{-1, 0, attr.MaxCQE + 1} {
		if err := q.Resize(n); !errors.Is(err, verbs.ErrLimit) {
			t.Errorf("resized to %d: %v", n, err)
		}
	}
	closed, err := p.Ctx.CreateCQ(verbs.CQConfig{Entries: 4})
	Must(t, err)
	Must(t, closed.Close())
	if err := closed.Resize(8); !errors.Is(err, cq.ErrClosed) {
		t.Errorf("a closed queue: %v", err)
	}
}

// ResizeAtWork: completions that come while the queue is resized are not lost.
func (r *Rig) ResizeAtWork(t *testing.T) {
	testdev.Verb(t, "CQ: resize")
	p := r.Connect(t, Config{Caps: qp.Caps{SendWR: 64, RecvWR: 64, SendSGE: 1, RecvSGE: 1}})
	q := p.B.CQ
	testdev.Supported(t, q.Resize(128))
	const n = 1000
	for i := range 64 {
		p.B.Recv(t, uint64(i), p.B.SGE(0, 8))
	}
	done := make(chan error, 1)
	go func() { done <- sendAll(&p.A, n) }()
	var buf [8]cq.Completion
	for got := 0; got < n; {
		k, err := q.Poll(buf[:])
		Must(t, err)
		for _, c := range buf[:k] {
			if c.Err() != nil || c.ID != uint64(got) {
				t.Fatalf("completion %d: %+v", got, c)
			}
			if got+64 < n {
				p.B.Recv(t, uint64(got+64), p.B.SGE(0, 8))
			}
			got++
		}
		if k > 0 && got%7 == 0 {
			Must(t, q.Resize(64+got%100))
		}
	}
	Must(t, <-done)
}

// sendAll sends n messages, at most 16 at a time.
func sendAll(e *End, n int) error {
	var buf [16]cq.Completion
	wr := []qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{e.SGE(0, 8)}}}
	for sent, done := 0, 0; done < n; {
		if sent < n && sent-done < 16 {
			if _, err := e.QP.PostSend(wr); err != nil {
				return err
			}
			sent++
		}
		k, err := e.CQ.Poll(buf[:])
		if err != nil {
			return err
		}
		for i := range buf[:k] {
			if err := buf[i].Err(); err != nil {
				return err
			}
		}
		done += k
	}
	return nil
}
