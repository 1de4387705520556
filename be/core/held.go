package core

import (
	"time"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

// A large message of the peer needs memory before it is asked for. It waits in one of two
// lines: parked, while its socket holds as much as one may, and then held, while the node
// has none. So a socket whose messages nobody takes keeps its own waiting, and costs the
// others neither memory nor time.

// MemoryRetry is how long an engine with messages that wait for memory waits before it asks
// again: its Deadline is no later.
const MemoryRetry = 2 * time.Millisecond

// admit has a message wait for memory, once its socket has room for it.
func (e *Engine) admit(now time.Duration, in *incoming) {
	in.since = now
	if s := in.sock; s.parked == 0 && s.fits(in.length, 0, e.cfg.SocketQuota) {
		e.hold(in)
		return
	}
	in.state = recvParked
	in.sock.parked++
	e.parked.push(in)
	if t := e.cfg.HoldTimeout; t > 0 {
		e.retryBy(in.since + t)
	}
}

// hold has a message wait for memory.
func (e *Engine) hold(in *incoming) {
	in.state = recvHeld
	in.sock.held++
	e.held.push(in)
}

// Room has messages of a socket wait for memory that waited for its room. It is due when
// Release says so.
func (e *Engine) Room(now time.Duration, s *Socket) {
	e.unpark(s)
	e.Retry(now)
}

// unpark moves those on that a socket has room for. Retry is to follow.
func (e *Engine) unpark(s *Socket) {
	more := 0
	for in := s.inHead; in != nil && s.parked > 0; in = in.next {
		if in.state != recvParked {
			continue
		}
		if !s.fits(in.length, more, e.cfg.SocketQuota) {
			return
		}
		more += in.length
		s.parked--
		e.parked.remove(in)
		e.hold(in)
	}
}

// unwait has a message that gets no memory wait no more.
func (e *Engine) unwait(in *incoming) {
	in.line.remove(in)
	if in.state == recvParked {
		in.sock.parked--
	} else {
		in.sock.held--
	}
	in.state = recvVoid
	e.madeRoom(in.sock)
}

// madeRoom has messages of a socket go on that waited for one that was given up.
func (e *Engine) madeRoom(s *Socket) {
	if s.parked > 0 && e.state == engineUp {
		e.unpark(s)
		e.retryBy(0)
	}
}

// Bounds of a walk over held requests: how many that lack memory it looks at, half of
// them the oldest, the others by turns; and how many later ones may pass one that lacks
// memory. Then all wait for that one, so that short messages do not starve a long one:
// for maxStop. If memory does not come back meanwhile, since nobody takes what is in it,
// twice as many may pass, and so on.
const (
	maxLooked = 16
	maxPassed = 1 << 10
	maxStop   = 100 * time.Millisecond
)

// stopsAll reports whether all that came later wait for a message that lacks memory.
func (in *incoming) stopsAll(now time.Duration) bool {
	switch {
	case in.passed < maxPassed<<in.stops:
		return false
	case in.stopBy == 0:
		in.stopBy = now + maxStop
	case now >= in.stopBy:
		in.passed, in.stopBy = 0, 0
		in.stops = min(in.stops+1, 20)
		return false
	}
	return true
}

// tryNew grants a request that has just come, if there is memory for it. Those that came
// before were looked at when memory came back.
func (e *Engine) tryNew(now time.Duration, in *incoming) {
	first := e.held.head
	behind := !in.sock.unordered && in.sock.held > 1
	if !behind && (first == in || !first.stopsAll(now)) && e.grant(now, in) && first != in && !first.coming {
		first.passed++
	}
	e.lookAgain(now)
}

// lookAgain has Retry called some time, if any message waits.
func (e *Engine) lookAgain(now time.Duration) {
	if e.Held() > 0 || e.waiting.head != nil {
		e.retryBy(now + MemoryRetry)
	}
}

// Retry grants held requests for which there is memory now, oldest first. One that
// waits stops those behind it on its own socket, and for a while only those.
func (e *Engine) Retry(now time.Duration) {
	if e.state == engineFailed {
		if e.unpackAll(); e.packed.n > 0 {
			e.retryBy(now + MemoryRetry)
		}
	}
	if e.state != engineUp {
		return
	}
	if e.inLines {
		e.arrivals.Admit(now)
	}
	e.unpackAll()
	e.walk++
	skipped := 0
	var lacks *incoming // the first that was skipped
	in := e.held.head
	for in != nil {
		next := in.lineNext
		s := in.sock
		if s.walk == e.walk {
			// it waits behind another
		} else if skipped >= maxLooked/2 && in.round > e.round { // it had its turn
			if !s.unordered {
				s.walk = e.walk
			}
		} else if !s.fits(in.length, 0, e.cfg.SocketQuota) {
			s.walk = e.walk
		} else if e.grant(now, in) {
			if lacks != nil {
				lacks.passed++
			}
		} else {
			in.round = e.round + 1
			if skipped++; skipped == maxLooked || in.stopsAll(now) {
				break
			}
			if lacks == nil && !in.coming {
				lacks = in
			}
			if !s.unordered {
				s.walk = e.walk
			}
		}
		in = next
	}
	if in == nil {
		e.round++ // each had its turn
	}
	e.expire(now, &e.held)
	e.expire(now, &e.parked)
	e.lookAgain(now)
}

// expire rejects the messages that have waited for too long.
func (e *Engine) expire(now time.Duration, l *arrivalLine) {
	t := e.cfg.HoldTimeout
	if t == 0 {
		return
	}
	for in := l.head; in != nil; in = l.head {
		if now-in.since < t {
			e.retryBy(in.since + t)
			return
		}
		s := in.sock
		e.reject(in, wire.ReasonNoMemory)
		e.deliver(s)
	}
}

// grant has one held request answered, now or when its turn comes, and reports false
// when the node lacks what it takes.
func (e *Engine) grant(now time.Duration, in *incoming) bool {
	in.coming = false
	if !e.quota.Reserve(in.length) {
		return false
	}
	var buf []byte
	var err error
	if in.get { // our own device writes there
		if buf, err = e.mem.Alloc(in.length); err == nil {
			in.lkey, err = e.mem.LKey(buf)
		}
	} else if buf, in.key, err = e.mem.AllocWritable(in.length); err == nil {
		in.transfer, err = e.transfers.take(in)
	}
	if err != nil {
		if buf != nil {
			e.mem.Free(buf)
		}
		e.quota.Release(in.length)
		in.coming = err == ErrComing
		return false
	}
	in.buf, in.reserved = buf, in.length
	in.sock.inUse.Add(int64(in.length))
	in.sock.held--
	e.held.remove(in)
	in.state = recvWriting
	if in.get {
		in.state = recvReading
		in.sock.reading++
	}
	e.arrivals.expect(now, in)
	return true
}
