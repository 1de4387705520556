package core

import (
	"fmt"
	"testing"

	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// each gives the key and the bytes of each message in a request, header included.
func each(w *qp.SendWR, f func(mr.LKey, int)) {
	if len(w.SGEs) == 1 { // a fragment, or a control message
		f(w.SGEs[0].LKey, int(w.SGEs[0].Length))
		return
	}
	for _, g := range w.SGEs[1:] {
		f(g.LKey, wire.HeaderLen+int(g.Length))
	}
}

// tapQP counts the bytes of each key, headers included, and keeps the requests of the last
// post.
type tapQP struct {
	nullQP
	bytes map[mr.LKey]int
	last  []qp.SendWR
}

func (q *tapQP) PostSend(wrs []qp.SendWR) (int, error) {
	q.last = append(q.last[:0], wrs...)
	for i := range wrs {
		each(&wrs[i], func(k mr.LKey, n int) { q.bytes[k] += n })
	}
	return q.nullQP.PostSend(wrs)
}

// source is a socket that always has a message of size bytes to send. Its key is
// its socket number + 100.
type source struct {
	size, weight int
	s            *Socket
}

// loop is an engine whose sockets' large messages are granted at once.
type loop struct {
	t       testing.TB
	e       *Engine
	q       *tapQP
	sources []*source
	buf     []byte
}

func newLoop(t testing.TB, sources ...*source) *loop {
	q := &tapQP{bytes: map[mr.LKey]int{}}
	return newLoopOn(t, q, q, sources...)
}

// newLoopOn is newLoop on a queue pair that stands on q.
func newLoopOn(t testing.TB, dev qp.QP, q *tapQP, sources ...*source) *loop {
	l := &loop{t: t, q: q, sources: sources}
	var mem *poolMemory
	l.e, _, mem = newNullOn(t, dev, &q.nullQP)
	l.buf, _ = mem.Alloc(1 << 20)
	for i, c := range sources {
		c.s = l.e.addSocket(uint32(2*i + 3))
		c.s.state = sockOpen
		if c.weight > 0 {
			l.e.SetWeight(c.s, c.weight)
		}
		c.weight = int(c.s.weight)
	}
	return l
}

func key(s *Socket) mr.LKey { return mr.LKey(s.id + 100) }

// turn tops every source up, posts once, and completes all of it.
func (l *loop) turn() {
	e := l.e
	for _, c := range l.sources {
		most := 40
		if c.size <= e.cfg.PackLimit {
			most *= 10 // several in a request
		}
		for int(c.s.sending) < most {
			e.Send(c.s, l.buf[:c.size], key(c.s), 0, nil)
		}
	}
	e.credits.granted = e.credits.consumed + 1000
	e.Flush(1)
	for _, c := range l.sources {
		for m := c.s.requested.head; m != nil; m = c.s.requested.head {
			if err := e.onCTS(c.s, &wire.Header{Type: wire.CTS, Sequence: m.seq}, wire.Grant{}); err != nil {
				l.t.Fatal(err)
			}
		}
		c.s.peerTaken = c.s.sent
	}
	l.q.complete(e)
}

// shares gives what each source has sent so far, for each of its weight.
func (l *loop) shares() (v []float64) {
	for _, c := range l.sources {
		v = append(v, float64(l.q.bytes[key(c.s)])/float64(c.s.weight))
	}
	return v
}

// jain is Jain's index of fairness: 1 when all are equal, 1/n when one has all.
func jain(v []float64) float64 {
	var sum, squares float64
	for _, x := range v {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(v)) * squares)
}

// TestFairShares: sockets that begin messages share by their weights, and so do
// sockets that write fragments, at every moment to within two of the longest
// pieces, and one when all pieces are equal. In the control a round is without
// end: then each turn counts the same, whatever it sends.
func TestFairShares(t *testing.T) {
	const fragment, eager = 64 << 10, 8<<10 + wire.HeaderLen
	for _, tt := range []struct {
		desc    string
		sources []*source
		within  int
	}{
		{"two equal ones", []*source{{size: 1 << 20}, {size: 1 << 20}}, fragment},
		{"weights 1, 2, 5", []*source{{size: 1 << 20}, {size: 1 << 20, weight: 2}, {size: 1 << 20, weight: 5}}, fragment},
		{"whole and odd fragments", []*source{{size: 1 << 20}, {size: 70000}, {size: 9000}}, 2 * fragment},
		{"small messages", []*source{{size: 64}, {size: 8000}, {size: 500, weight: 3}}, 2 * eager},
	} {
		for _, control := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/control=%v", tt.desc, control), func(t *testing.T) {
				l := newLoop(t, tt.sources...)
				if control {
					l.e.sched.shift = 62
				}
				turn := func() int {
					l.turn()
					v := l.shares()
					lo, hi := v[0], v[0]
					for _, x := range v {
						lo, hi = min(lo, x), max(hi, x)
					}
					return int(hi - lo)
				}
				for range 20 { // the first large messages are asked for
					turn()
				}
				clear(l.q.bytes)
				worst := 0
				for range 5000 {
					worst = max(worst, turn())
				}
				index := jain(l.shares())
				fair := worst <= tt.within && index >= 0.99
				if fair == control {
					t.Errorf("shares %v: up to %v bytes apart, Jain %v", l.shares(), worst, index)
				}
			})
		}
	}
}

// TestIdleSocketsCostNothing: the scheduler does not look at sockets that have
// nothing to send, however many there are.
func TestIdleSocketsCostNothing(t *testing.T) {
	visits := func(idle int) (visited, sent uint64) {
		l := newLoop(t, &source{size: 64}, &source{size: 1 << 20})
		for i := range idle {
			l.e.addSocket(uint32(2*i + 1000)).state = sockOpen
		}
		for range 200 {
			l.turn()
		}
		st := l.e.Stats()
		return st.Visits, st.Requests + st.Packed
	}
	few, sent := visits(0)
	many, sentToo := visits(100_000)
	if few != many || sent != sentToo || few > 2*sent {
		t.Errorf("%d visits for %d requests, with 100,000 idle sockets %d for %d", few, sent, many, sentToo)
	}
}

// TestBlockedSocketsCostNothing: sockets whose last fragment waits for a credit are
// looked at once, not at every flush.
func TestBlockedSocketsCostNothing(t *testing.T) {
	var sources []*source
	for range 1000 {
		sources = append(sources, &source{size: 60000})
	}
	l := newLoop(t, sources...)
	e := l.e
	for _, c := range sources {
		e.Send(c.s, l.buf[:c.size], 1, 0, nil)
	}
	for e.sched.beginners() > 0 {
		e.credits.granted = e.credits.consumed + 1000
		e.Flush(1)
		l.q.complete(e)
	}
	e.credits.granted = e.credits.consumed + 1 // the reserve
	for _, c := range sources {
		e.onCTS(c.s, &wire.Header{Type: wire.CTS}, wire.Grant{})
	}
	for range 100 {
		e.Flush(1)
	}
	if v := e.Stats().Visits; v > 3000 || e.sched.finals.n != 1000 || e.Stats().CreditStalls == 0 {
		t.Errorf("%d visits of 1000 sockets, %d wait for a credit", v, e.sched.finals.n)
	}
	for range 1000 {
		e.credits.granted = e.credits.consumed + 3
		e.Flush(1)
		l.q.complete(e)
	}
	if n := e.Stats().Rendezvous; n != 1000 {
		t.Errorf("%d messages went out after the credits came, want 1000", n)
	}
}

// TestControlGoesFirst: what the engine has to say is ahead of any payload.
func TestControlGoesFirst(t *testing.T) {
	l := newLoop(t, &source{size: 64}, &source{size: 1 << 20})
	for i := range 100 {
		l.turn()
		l.e.control(control{typ: wire.Ping, a: uint64(i)})
		l.turn()
		if w := l.q.last[0]; w.Opcode != qp.Send || w.SGEs[0].Length != wire.HeaderLen+8 {
			t.Fatalf("turn %d: the first request is %v of %d bytes", i, w.Opcode, w.SGEs[0].Length)
		}
	}
}

// TestTurnsOfSmallMessages: several small messages of a socket go out in a row, fewer
// where many wait, and one where very many do.
func TestTurnsOfSmallMessages(t *testing.T) {
	for _, tt := range []struct{ sockets, want int }{{2, turnMost}, {64, cycleMost / 64}, {cycleMost, 1}, {3000, 1}} {
		c := newScheduler(64 << 10)
		socks := make([]Socket, tt.sockets)
		for i := range socks {
			socks[i] = Socket{weight: 1, socketRest: new(socketRest)}
			c.add(starts, &socks[i])
		}
		for i := range 4 * tt.want * tt.sockets {
			k, s := c.next(startable)
			if want := &socks[i/tt.want%tt.sockets]; s != want {
				t.Fatalf("%d sockets: piece %d is of another than the one whose turn it is", tt.sockets, i)
			}
			c.spend(k, s, 16, true)
		}
	}
}
