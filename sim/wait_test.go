package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

// wantEvent checks that a Wait returns at once, and uses that up.
func (e *end) wantEvent(what string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := e.cq.Wait(ctx); err != nil {
		e.t.Fatalf("no event: %s: %v", what, err)
	}
}

// wantNoEvent checks that a Wait does not return.
func (e *end) wantNoEvent(what string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if err := e.cq.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		e.t.Fatalf("event: %s: %v", what, err)
	}
}

func TestArmAndWait(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{})
	msg := func(flags qp.SendFlags) {
		t.Helper()
		b.recv(1, 0, 64)
		a.send(qp.SendWR{Opcode: qp.Send, Flags: flags | qp.Signaled, SGEs: a.sge(0, 8)})
		wantStatus(t, a.next(), 0, cq.Success) // so the peer's completion is there
	}
	poll := func(want int) {
		t.Helper()
		if n, err := b.cq.Poll(b.got[:]); n != want || err != nil {
			t.Fatalf("poll: %d, %v, want %d", n, err, want)
		}
	}
	b.wantNoEvent("before any arm")
	msg(0)
	b.wantNoEvent("the queue is not armed")
	check(t, b.cq.Arm(false))
	b.wantNoEvent("the completion was there before the arm")
	poll(1)
	msg(0)
	msg(0)
	b.wantEvent("armed")
	b.wantNoEvent("one arm gives one event")
	poll(2)
	check(t, b.cq.Arm(true))
	msg(0)
	b.wantNoEvent("armed for solicited, unsolicited message")
	msg(qp.Solicited)
	b.wantEvent("armed for solicited, solicited message")
	b.cq.Wake()
	b.cq.Wake()
	b.wantEvent("Wake before Wait")
	b.wantNoEvent("Wakes before Wait are one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.cq.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait with a cancelled context: %v", err)
	}
}

// TestWakeups has a waiter and three kinds of causes at once; each cause must
// end a Wait.
func TestWakeups(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{})
	const rounds = 1000
	done := make(chan error, 1)
	taken := make(chan struct{}, 1)
	go func() {
		for range rounds {
			n, err := pollWait(t.Context(), b)
			if err != nil || n != 1 || b.got[0].Status != cq.Success {
				done <- errors.Join(err, b.got[0].Err())
				return
			}
			taken <- struct{}{}
		}
		done <- nil
	}()
	wake := make(chan struct{})
	go func() { // spurious ones do no harm
		for {
			select {
			case <-wake:
				return
			default:
				b.cq.Wake()
			}
		}
	}()
	for i := range rounds {
		b.recv(uint64(i), 0, 64)
		a.send(qp.SendWR{Opcode: qp.Send, Flags: qp.Signaled, SGEs: a.sge(0, 8)})
		select {
		case <-taken:
		case <-time.After(20 * time.Second):
			t.Fatal("lost wake-up")
		}
		a.next()
	}
	close(wake)
	check(t, <-done)
}

func TestWaitEndsWithClose(t *testing.T) {
	f := sim.NewFabric(sim.Config{})
	o := options{}
	o.fill()
	e := newEnd(t, must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{})), &o)
	done := make(chan error)
	go func() { done <- e.cq.Wait(context.Background()) }()
	if err := e.cq.Close(); err == nil {
		t.Fatal("closed a queue that a queue pair uses")
	}
	check(t, e.qp.Close())
	check(t, e.cq.Close())
	if err := <-done; !errors.Is(err, cq.ErrClosed) {
		t.Fatalf("wait: %v", err)
	}
	if _, err := e.cq.Poll(e.got[:]); !errors.Is(err, cq.ErrClosed) {
		t.Fatalf("poll: %v", err)
	}
	if err := e.cq.Arm(false); !errors.Is(err, cq.ErrClosed) {
		t.Fatalf("arm: %v", err)
	}
	check(t, e.pd.Deregister(e.reg))
	check(t, e.pd.Close())
	check(t, e.ctx.Close())
	check(t, f.Close())
}

// TestTimers: a timer runs while an answer is due, and none is left when the
// last context closed.
func TestTimers(t *testing.T) {
	a, b, f := newPair(t, sim.Config{}, options{path: qp.Path{AckTimeout: 20}}) // 4 s
	d := a.dev.(*sim.Device)
	if d.TimerSet() || b.dev.(*sim.Device).TimerSet() {
		t.Fatal("a timer without a request")
	}
	f.SetFaults(sim.Faults{Drop: 1})
	a.send(qp.SendWR{Opcode: qp.Send, SGEs: a.sge(0, 8)})
	if !d.TimerSet() {
		t.Fatal("no timer while an answer is due")
	}
	a.close()
	if d.TimerSet() {
		t.Error("a timer is left after the last context closed")
	}
}
