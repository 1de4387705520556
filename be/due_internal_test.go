package be

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/cq"
)

// TestOnlyThoseDueAreTicked has time pass for engines of which some hear from their peers:
// after each turn none is overdue, each is looked at in time, and those that heard nothing
// for a keepalive asked for a sign of life, and no others. However long a turn
// takes, what was said before is heard in it.
func TestOnlyThoseDueAreTicked(t *testing.T) {
	const peers = 60
	d := newInstant(t, peers)
	rng := rand.New(rand.NewPCG(1, 9))
	n := d.sock.Node()
	for _, p := range d.peers {
		p.sock.OnMessage(func(b []byte, err error) {
			if err == nil {
				n.Free(b)
			}
		})
	}
	d.turn()
	keepalive := n.cfg.Keepalive
	var spoke [peers]bool // since the last turn
	var heard [peers]struct{ after, by time.Duration }
	for i := range heard {
		heard[i].by = d.w.now
	}
	// So few messages come that what is sent are signs of life.
	pings := func(i int) uint64 { return d.peers[i].sock.conn.e.Stats().Sends }
	for round := range 100 {
		n.start = n.start.Add(-keepalive / 10)
		start := time.Since(n.start)
		before := make([]uint64, peers)
		for i := range peers {
			before[i] = pings(i)
			if rng.IntN(8) == 0 {
				d.peers[i].announce(64)
				spoke[i] = true
			}
		}
		d.turn()
		now := d.w.now
		first := core.Never
		for i, p := range d.peers {
			c := p.sock.conn
			if deadline := c.e.Deadline(); deadline <= now || c.due > deadline || d.w.due[c.place] != c {
				t.Fatalf("round %d, engine %d: deadline %v, looked at %v, now %v", round, i, deadline, c.due, now)
			}
			first = min(first, c.due)
			if spoke[i] {
				spoke[i], heard[i].after, heard[i].by = false, start, now
			}
			asked := pings(i) > before[i]
			if most, least := now-heard[i].after, now-heard[i].by; asked && most < keepalive || !asked && least >= keepalive {
				t.Fatalf("round %d, engine %d: asked %v after %v to %v of silence", round, i, asked, least, most)
			}
			if asked { // the peer answers
				p.announce(64)
				spoke[i] = true
			}
		}
		if d.w.next > first {
			t.Fatalf("round %d: next is %v, the first is due %v", round, d.w.next, first)
		}
	}
}

// BenchmarkTick is a look at the deadlines of a thousand engines of which none is due.
func BenchmarkTick(b *testing.B) {
	d := newInstant(b, 1000)
	for b.Loop() {
		d.w.tick()
	}
}

// TestOnlyThoseThatWaitRetry: when memory comes back, engines with messages that wait for
// it get some, in that turn, and those at rest are not looked at.
func TestOnlyThoseThatWaitRetry(t *testing.T) {
	const peers = 40
	d := newInstant(t, peers)
	n := d.sock.Node()
	got := 0
	for _, p := range d.peers {
		p.sock.OnMessage(func(b []byte, err error) {
			if err == nil {
				n.Free(b)
				got++
			}
		})
	}
	d.turn()
	n.quota.used.Store(n.quota.limit)
	waits := map[int]bool{3: true, 17: true, 39: true}
	for i := range waits {
		d.peers[i].announce(1 << 20)
	}
	d.turn()
	for i, p := range d.peers {
		c := p.sock.conn
		if (c.e.Held() > 0) != waits[i] {
			t.Fatalf("engine %d: %d messages wait", i, c.e.Held())
		}
	}
	n.quota.used.Store(0)
	engines := map[*conn]*core.Engine{}
	for i, p := range d.peers {
		if c := p.sock.conn; !waits[i] {
			engines[c], c.e = c.e, nil // who looks at it fails
		}
	}
	d.w.retryHeld()
	for c, e := range engines {
		c.e = e
	}
	for i := range waits {
		if k := d.peers[i].sock.conn.e.Held(); k != 0 {
			t.Errorf("engine %d: %d messages wait", i, k)
		}
	}
	if d.turn(); got != len(waits) {
		t.Errorf("%d messages came, want %d", got, len(waits))
	}
}

// TestFlushedSendIsLookedAt: an engine of which a request was flushed has a deadline by
// which it fails without the cause, and the worker knows of it.
func TestFlushedSendIsLookedAt(t *testing.T) {
	d := newInstant(t, 1)
	c := d.sock.conn
	d.turn()
	b, err := d.sock.Node().Alloc(64)
	if err == nil {
		err = d.sock.Post(b, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.w.turn()
	for i := range d.done.list {
		d.done.list[i].Status = cq.WRFlushError
	}
	d.turn()
	if deadline := c.e.Deadline(); deadline > d.w.now+time.Second || c.due > deadline || d.w.next > deadline {
		t.Errorf("now %v, deadline %v, looked at %v, %v", d.w.now, deadline, c.due, d.w.next)
	}
}
