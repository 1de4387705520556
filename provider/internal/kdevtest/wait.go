//go:build linux

package kdevtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// ArmAndWait: one arm gives one event; a completion that was there before gives none.
func (r *Rig) ArmAndWait(t *testing.T) {
	testdev.Verb(t, "CQ: arm and wait")
	p := r.Connect(t, Config{})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range 20 {
		p.B.Recv(t, uint64(i), p.B.SGE(0, 64))
		Must(t, p.B.CQ.Arm(false))
		p.B.Empty(t)
		p.A.Send(t, qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}})
		Must(t, p.B.CQ.Wait(ctx))
		p.B.Want(t, cq.Completion{ID: uint64(i), Opcode: cq.Recv, ByteLen: 64})
		p.A.Want(t, cq.Completion{ID: uint64(i), Opcode: cq.Send})
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := p.B.CQ.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second event of one arm: %v", err)
	}
}

// Solicited: armed for solicited completions only, the queue stays quiet for others.
func (r *Rig) Solicited(t *testing.T) {
	testdev.Verb(t, "CQ: arm for solicited completions")
	p := r.Connect(t, Config{})
	p.B.Recv(t, 1, p.B.SGE(0, 64))
	p.B.Recv(t, 2, p.B.SGE(0, 64))
	Must(t, p.B.CQ.Arm(true))
	send := func(id uint64, flags qp.SendFlags) {
		p.A.Send(t, qp.SendWR{ID: id, Opcode: qp.Send, Flags: flags | qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}})
		p.A.Want(t, cq.Completion{ID: id, Opcode: cq.Send})
	}
	send(1, 0)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := p.B.CQ.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("event for an unsolicited completion: %v", err)
	}
	send(2, qp.Solicited)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	Must(t, p.B.CQ.Wait(ctx))
	p.B.Want(t, cq.Completion{ID: 1, Opcode: cq.Recv, ByteLen: 8})
	p.B.Want(t, cq.Completion{ID: 2, Opcode: cq.Recv, ByteLen: 8})
}

// WakeAndCancel: Wake ends a Wait before, during and after others that end with their
// context.
func (r *Rig) WakeAndCancel(t *testing.T) {
	p := r.Connect(t, Config{})
	q := p.A.CQ
	q.Wake() // before the Wait: it must not be lost
	Must(t, q.Wait(context.Background()))

	for range 200 { // during
		done := make(chan error, 1)
		go func() { done <- q.Wait(context.Background()) }()
		q.Wake()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Wait(ctx) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Wait after cancel: %v", err)
	}
	if err := q.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with an ended context: %v", err)
	}
	q.Wake() // the ended contexts left nothing behind that eats a wake
	Must(t, q.Wait(context.Background()))
	if n := testing.AllocsPerRun(100, q.Wake); n != 0 {
		t.Errorf("Wake allocates %v times", n)
	}
}

// CloseWhileWaiting: Close ends a Wait and refuses everything after it, while the
// owner polls.
func (r *Rig) CloseWhileWaiting(t *testing.T) {
	p := r.Connect(t, Config{})
	Must(t, p.A.QP.Close())
	var wg sync.WaitGroup
	wg.Go(func() {
		var buf [1]cq.Completion
		for {
			if _, err := p.A.CQ.Poll(buf[:]); err == cq.ErrClosed {
				return
			}
		}
	})
	wg.Go(func() {
		if err := p.A.CQ.Wait(context.Background()); !errors.Is(err, cq.ErrClosed) {
			t.Errorf("Wait of a closed queue: %v", err)
		}
	})
	Must(t, p.A.CQ.Close())
	wg.Wait()
	for _, err := range []error{p.A.CQ.Arm(false), p.A.CQ.Close(), p.A.CQ.Wait(context.Background())} {
		if !errors.Is(err, cq.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
	if _, err := p.PD.CreateQP(verbs.QPConfig{SendCQ: p.B.CQ, RecvCQ: p.A.CQ, Caps: qp.Caps{SendWR: 1, RecvWR: 1}}); !errors.Is(err, cq.ErrClosed) {
		t.Errorf("queue pair with a closed queue: %v", err)
	}
	p.A.CQ.Wake()
}
