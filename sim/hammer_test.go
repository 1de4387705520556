package sim_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

// echo sends numbered messages over a connection and waits for each to come
// back; peer answers. Both sides sleep in Wait: a lost wake-up hangs the test.
func echo(e *end, peer *end, rounds int, rng func(int) int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	errs := make(chan error, 2)
	go func() { errs <- answer(ctx, peer, rounds) }()
	go func() { errs <- ask(ctx, e, rounds, rng) }()
	err := <-errs
	if err != nil {
		cancel()
	}
	if err2 := <-errs; err == nil {
		err = err2
	}
	return err
}

const (
	messageArea = 8192
	windowSize  = 8
)

func ask(ctx context.Context, e *end, rounds int, rng func(int) int) error {
	var wrs [1]qp.SendWR
	var rcv [1]qp.RecvWR
	sent, back, free := 0, 0, windowSize
	sizes := [windowSize]int{}
	for i := range windowSize {
		rcv[0] = qp.RecvWR{SGEs: e.sge((windowSize+i)*messageArea, messageArea)}
		if _, err := e.qp.PostRecv(rcv[:]); err != nil {
			return err
		}
	}
	for back < rounds {
		for free > 0 && sent < rounds && sent-back < windowSize {
			size := 9 + rng(messageArea-8)
			at := sent % windowSize * messageArea
			sizes[sent%windowSize] = size
			b := e.buf[at : at+size]
			binary.LittleEndian.PutUint64(b, uint64(sent))
			b[size-1] = byte(sent)
			wrs[0] = qp.SendWR{ID: 1, Opcode: qp.Send, Flags: qp.Signaled, SGEs: e.sge(at, size)}
			if _, err := e.qp.PostSend(wrs[:]); err != nil {
				return err
			}
			sent, free = sent+1, free-1
		}
		n, err := pollWait(ctx, e)
		if err != nil {
			return err
		}
		for _, c := range e.got[:n] {
			if c.Status != cq.Success {
				return c.Err()
			}
			if c.Opcode == cq.Send {
				free++
				continue
			}
			i := back % windowSize
			b := e.buf[(windowSize+i)*messageArea:][:c.ByteLen]
			if len(b) != sizes[i] || binary.LittleEndian.Uint64(b) != uint64(back) || b[len(b)-1] != byte(back) {
				return fmt.Errorf("message %d came back as %d of %d bytes, want %d", back, binary.LittleEndian.Uint64(b), len(b), sizes[i])
			}
			back++
			rcv[0] = qp.RecvWR{SGEs: e.sge((windowSize+i)*messageArea, messageArea)}
			if _, err := e.qp.PostRecv(rcv[:]); err != nil {
				return err
			}
		}
	}
	for free < windowSize {
		n, err := pollWait(ctx, e)
		if err != nil {
			return err
		}
		free += n
	}
	return nil
}

// answer sends each message back from where it lies.
func answer(ctx context.Context, e *end, rounds int) error {
	var wrs [1]qp.SendWR
	var rcv [1]qp.RecvWR
	for i := range 2 * windowSize {
		rcv[0] = qp.RecvWR{ID: uint64(i), SGEs: e.sge(i*messageArea, messageArea)}
		if _, err := e.qp.PostRecv(rcv[:]); err != nil {
			return err
		}
	}
	for got, out := 0, 0; got < rounds || out < rounds; {
		n, err := pollWait(ctx, e)
		if err != nil {
			return err
		}
		for _, c := range e.got[:n] {
			switch {
			case c.Status != cq.Success:
				return c.Err()
			case c.Opcode == cq.Recv:
				got++
				wrs[0] = qp.SendWR{ID: c.ID, Opcode: qp.Send, Flags: qp.Signaled, SGEs: e.sge(int(c.ID)*messageArea, int(c.ByteLen))}
				if _, err := e.qp.PostSend(wrs[:]); err != nil {
					return err
				}
			default:
				out++
				rcv[0] = qp.RecvWR{ID: c.ID, SGEs: e.sge(int(c.ID)*messageArea, messageArea)}
				if _, err := e.qp.PostRecv(rcv[:]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pollWait polls, and sleeps when there is nothing: arm, poll again, wait.
func pollWait(ctx context.Context, e *end) (int, error) {
	for {
		if n, err := e.cq.Poll(e.got[:]); n > 0 || err != nil {
			return n, err
		}
		if err := e.cq.Arm(false); err != nil {
			return 0, err
		}
		if n, err := e.cq.Poll(e.got[:]); n > 0 || err != nil {
			return n, err
		}
		if err := e.cq.Wait(ctx); err != nil {
			return 0, err
		}
	}
}

// TestHammer runs 16 connections among 4 NICs from 32 goroutines.
func TestHammer(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  sim.Config
		set  sim.Faults
		hand bool // every turn is handed to a goroutine
	}{
		{name: "direct"},
		{name: "handed on", hand: true},
		{name: "segmented", cfg: sim.Config{Segment: true}},
		{name: "lossy", cfg: sim.Config{Segment: true}, set: sim.Faults{Drop: 0.002, Duplicate: 0.01, Delay: 0.01, Corrupt: 0.001, MaxDelay: 200 * time.Microsecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rounds := 500
			if testing.Short() || c.set.Drop > 0 {
				rounds = 100
			}
			c.cfg.Seed = seed(t)
			f := sim.NewFabric(c.cfg)
			if c.hand {
				f.SetShare(-1)
			}
			var devs []*sim.Device
			for i := range 4 {
				devs = append(devs, must[*sim.Device](t)(f.NewDevice(fmt.Sprint("nic", i), sim.DeviceConfig{})))
			}
			o := options{buf: 2 * windowSize * messageArea, path: qp.Path{AckTimeout: 8}} // 1 ms
			o.fill()
			var ends [32]*end
			for i := range ends {
				ends[i] = newEnd(t, devs[i*7%4], &o)
				ends[i].path.SendPSN = qp.PSN(0xffff00 + i)
			}
			f.SetFaults(c.set)
			var wg sync.WaitGroup
			var x atomic.Uint64
			x.Store(c.cfg.Seed)
			rng := func(n int) int { return int(x.Add(0x9e3779b97f4a7c15)>>33) % n }
			for i := 0; i < len(ends); i += 2 {
				connect(ends[i], ends[i+1])
				wg.Go(func() {
					if err := echo(ends[i], ends[i+1], rounds, rng); err != nil {
						t.Errorf("connection %d: %v", i/2, err)
					}
				})
			}
			wg.Wait()
			f.SetFaults(sim.Faults{})
			if t.Failed() {
				for _, d := range devs {
					t.Logf("%s: %+v", d.Info().Name, d.Stats())
				}
			}
			if c.set.Drop > 0 {
				t.Logf("faults: %+v", f.FaultStats())
			}
			for _, e := range ends {
				e.close()
			}
			check(t, f.Close())
		})
	}
}

// TestInboxAtTheEndOfATurn stops a NIC in the middle of its turn, after it took
// its inbox, and puts something new in. The turn must notice that at its end:
// nobody else will.
func TestInboxAtTheEndOfATurn(t *testing.T) {
	for _, what := range []string{"doorbell", "packet"} {
		f := sim.NewFabric(sim.Config{})
		o := options{} // no timer helps
		o.fill()
		da := must[*sim.Device](t)(f.NewDevice("a", sim.DeviceConfig{}))
		db := must[*sim.Device](t)(f.NewDevice("b", sim.DeviceConfig{}))
		a, b, a2, b2 := newEnd(t, da, &o), newEnd(t, db, &o), newEnd(t, da, &o), newEnd(t, db, &o)
		connect(a2, b2)
		// A stays in RTR, so that the first packet is an event, on which its turn stops.
		a.aim(b)
		b.aim(a)
		check(t, a.path.ToInit(a.qp))
		check(t, a.path.ToRTR(a.qp))
		check(t, b.path.Connect(b.qp))
		release := sim.HoldEvents(a.ctx)
		done := make(chan struct{})
		go func() {
			b.send(qp.SendWR{Opcode: qp.Write, RemoteAddr: a.reg.Addr, RKey: a.reg.RKey, SGEs: b.sge(0, 8)})
			close(done)
		}()
		for !da.InTurn() {
			runtime.Gosched()
		}
		x, y := a2, b2
		if what == "packet" {
			x, y = b2, a2
		}
		x.send(qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: y.reg.Addr, RKey: y.reg.RKey, SGEs: x.sge(0, 8)})
		x.none()
		release()
		<-done
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if _, err := pollWait(ctx, x); err != nil {
			t.Errorf("a %s is stuck: %v", what, err)
		}
		cancel()
		for _, e := range []*end{a, b, a2, b2} {
			e.close()
		}
		check(t, f.Close())
	}
}

// TestNoDoorbellIsLost: two goroutines put something into one NIC's inbox at the
// same time, then nobody does anything until both messages arrived. A doorbell or
// packet that the other's turn overlooked would lie there for ever.
func TestNoDoorbellIsLost(t *testing.T) {
	for _, c := range []struct {
		what    string
		devices [2]int // of the two senders
	}{{"doorbells of one NIC", [2]int{0, 0}}, {"packets of two NICs for one", [2]int{0, 1}}} {
		t.Run(c.what, func(t *testing.T) {
			f := sim.NewFabric(sim.Config{})
			o := options{} // no timer helps
			o.fill()
			var devs []*sim.Device
			for i := range 3 {
				devs = append(devs, must[*sim.Device](t)(f.NewDevice(fmt.Sprint(i), sim.DeviceConfig{})))
			}
			var senders, receivers [2]*end
			for i := range senders {
				senders[i], receivers[i] = newEnd(t, devs[c.devices[i]], &o), newEnd(t, devs[2], &o)
				connect(senders[i], receivers[i])
			}
			const rounds = 2000
			var at atomic.Int64 // senders that are ready, in all rounds
			var wg sync.WaitGroup
			for i, e := range senders {
				wg.Go(func() {
					wr := []qp.SendWR{{Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: receivers[i].reg.Addr, RKey: receivers[i].reg.RKey, SGEs: e.sge(0, 8)}}
					for round := range int64(rounds) {
						at.Add(1)
						for spins := 1; at.Load() < 2*(round+1); spins++ {
							if spins%1000 == 0 {
								runtime.Gosched() // with one processor the other needs it
							}
							if spins%20_000 == 0 {
								time.Sleep(time.Microsecond) // so that another process does not take its place
							}
						}
						if _, err := e.qp.PostSend(wr); err != nil {
							t.Error(err)
							return
						}
						ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
						_, err := pollWait(ctx, e)
						cancel()
						if err != nil {
							t.Errorf("round %d: a message is stuck: %v", round, err)
							at.Store(2 * rounds)
							return
						}
					}
				})
			}
			wg.Wait()
			for i := range senders {
				senders[i].close()
				receivers[i].close()
			}
			check(t, f.Close())
		})
	}
}
