//go:build linux

package mlx5_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// One arm gives one event; a completion that was there before gives none.
func TestArmAndWait(t *testing.T) {
	p := connect(t, pairConfig{})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range 20 {
		p.b.recv(t, uint64(i), p.b.sge(0, 64))
		must(t, p.b.cq.Arm(false))
		p.b.empty(t)
		p.a.send(t, qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 64)}})
		must(t, p.b.cq.Wait(ctx))
		p.b.want(t, cq.Completion{ID: uint64(i), Opcode: cq.Recv, ByteLen: 64})
		p.a.want(t, cq.Completion{ID: uint64(i), Opcode: cq.Send})
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := p.b.cq.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second event of one arm: %v", err)
	}
}

// Armed for solicited completions only, the queue stays quiet for others.
func TestSolicited(t *testing.T) {
	p := connect(t, pairConfig{})
	p.b.recv(t, 1, p.b.sge(0, 64))
	p.b.recv(t, 2, p.b.sge(0, 64))
	must(t, p.b.cq.Arm(true))
	send := func(id uint64, flags qp.SendFlags) {
		p.a.send(t, qp.SendWR{ID: id, Opcode: qp.Send, Flags: flags | qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 8)}})
		p.a.want(t, cq.Completion{ID: id, Opcode: cq.Send})
	}
	send(1, 0)
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := p.b.cq.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("event for an unsolicited completion: %v", err)
	}
	send(2, qp.Solicited)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must(t, p.b.cq.Wait(ctx))
	p.b.want(t, cq.Completion{ID: 1, Opcode: cq.Recv, ByteLen: 8})
	p.b.want(t, cq.Completion{ID: 2, Opcode: cq.Recv, ByteLen: 8})
}

func TestWakeAndCancel(t *testing.T) {
	p := connect(t, pairConfig{})
	q := p.a.cq
	q.Wake() // before the Wait: it must not be lost
	must(t, q.Wait(context.Background()))

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
	must(t, q.Wait(context.Background()))
	if n := testing.AllocsPerRun(100, q.Wake); n != 0 {
		t.Errorf("Wake allocates %v times", n)
	}
}

// Close ends a Wait and refuses everything after it, while the owner polls.
func TestCloseWhileWaiting(t *testing.T) {
	p := connect(t, pairConfig{})
	must(t, p.a.qp.Close())
	var wg sync.WaitGroup
	wg.Go(func() {
		var buf [1]cq.Completion
		for {
			if _, err := p.a.cq.Poll(buf[:]); err == cq.ErrClosed {
				return
			}
		}
	})
	wg.Go(func() {
		if err := p.a.cq.Wait(context.Background()); !errors.Is(err, cq.ErrClosed) {
			t.Errorf("Wait of a closed queue: %v", err)
		}
	})
	must(t, p.a.cq.Close())
	wg.Wait()
	for _, err := range []error{p.a.cq.Arm(false), p.a.cq.Close(), p.a.cq.Wait(context.Background())} {
		if !errors.Is(err, cq.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
	p.a.cq.Wake()
}
