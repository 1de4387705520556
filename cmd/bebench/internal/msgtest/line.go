package msgtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

// line is one socket at one end during one round. Its sender and its receiver are
// one goroutine each, or together one in a latency test.
type line struct {
	p      *Params
	on     transport
	sock   socket
	index  int
	client bool
	size   int
	stop   *atomic.Bool
	free   *idle // buffers that may be sent; as many as may be posted
	held   int   // buffers of Alloc

	// The receiver learns how many messages there are when the peer has finished.
	target atomic.Int64 // -1: not yet

	ops     atomic.Int64 // sent and completed, or round trips
	sent    int64
	began   time.Time // the sender
	ended   time.Time
	ledger  *ledger
	stopped bool
	bad     string // first mismatch; the receiver's
	missing int64  // sum of the numbers of messages that did not come, less those that came in their place
}

var errMissing = errors.New("the peer says that it sent more messages than came")

// parcel is a buffer with a message, or what became of it.
type parcel struct {
	b    []byte
	at   time.Time
	err  error
	done func(error) // bound once
	next *parcel     // of idle
}

func (r *round) newLine(index int) *line {
	l := &line{p: r.p, on: r.s.transport, sock: r.s.sockets[index], index: index, client: r.client, size: r.size, stop: &r.stop, ledger: r.ledger}
	l.target.Store(-1)
	return l
}

// stock allocates and fills n buffers to send.
func (l *line) stock(n int) error {
	l.free = newIdle()
	for range n {
		b, err := l.on.alloc(l.size)
		if err != nil {
			return err
		}
		fill(b, l.p.seed(l.index, l.client))
		pc := &parcel{b: b}
		pc.done = func(err error) {
			if err != nil { // else its line stays the sender's
				pc.err = err
			}
			l.free.add(pc)
		}
		l.free.add(pc)
		l.held++
	}
	return nil
}

// clear waits for all buffers and frees them. After an error some do not come back.
func (l *line) clear(ctx context.Context) {
	for ; l.held > 0; l.held-- {
		pc, err := l.free.take(ctx)
		if err != nil {
			return
		}
		if pc.err == nil {
			l.on.free(pc.b)
		}
	}
}

// post sends message m, with a buffer that has it.
func (l *line) post(pc *parcel, m int64) error {
	if err := l.sock.Post(pc.b, pc.done); err != nil {
		l.free.giveBack(pc) // it stays ours
		return err
	}
	l.sent = m + 1
	return nil
}

// take gives the next buffer that may be sent.
func (l *line) take(ctx context.Context) (pc *parcel, err error) {
	if pc, err = l.free.take(ctx); err != nil {
		return nil, err
	}
	if pc.err != nil {
		l.held-- // the node has it
		return nil, pc.err
	}
	return pc, nil
}

// more reports whether to begin message m.
func (l *line) more(m int64, now time.Time) bool {
	if l.stop.Load() {
		l.stopped = true
		return false
	}
	if l.p.Duration > 0 {
		return now.Sub(l.began) < l.p.Duration
	}
	return m < int64(l.p.Iters)
}

// send keeps Depth messages posted until all are done.
func (l *line) send(ctx context.Context) error {
	l.began = time.Now()
	now := l.began
	burst := make([]*parcel, 0, l.held)
	for m := int64(0); l.more(m, now); {
		// As many as there are: goroutine and worker, if they run on two cores, then pass
		// each other's memory back and forth less often, and the clock, which takes as long
		// as a part of sending a short message, is read once.
		burst = burst[:0]
		for more := true; more; {
			pc, err := l.take(ctx)
			if err != nil {
				l.free.giveBack(burst...)
				return err
			}
			burst = append(burst, pc)
			more = l.free.any() && (l.p.Duration > 0 || m+int64(len(burst)) < int64(l.p.Iters))
		}
		now = l.completed(burst)
		for i, pc := range burst {
			stamp(pc.b, m+int64(i))
			pc.at = now
		}
		for i, pc := range burst {
			if err := l.post(pc, m); err != nil {
				l.free.giveBack(burst[i+1:]...)
				return err
			}
			m++
		}
	}
	// All buffers back: all messages are done.
	burst = burst[:0]
	defer func() { l.free.giveBack(burst...) }()
	for range l.held {
		pc, err := l.take(ctx)
		if err != nil {
			return err
		}
		burst = append(burst, pc)
		l.completed(burst[len(burst)-1:])
	}
	l.ended = time.Now()
	return nil
}

// completed books the messages that buffers carried, of those that carried one.
func (l *line) completed(burst []*parcel) time.Time {
	now, n := time.Now(), int64(0)
	b := l.ledger.of(l.index)
	b.mu.Lock()
	for _, pc := range burst {
		if !pc.at.IsZero() {
			b.lat.Record(now.Sub(pc.at))
			n++
		}
	}
	b.mu.Unlock()
	l.ops.Add(n)
	b.ops.Add(n)
	l.ledger.look(now)
	return now
}

// receive takes messages until all have come. finished ends when the peer has told
// how many there are.
func (l *line) receive(ctx, finished context.Context, limit time.Duration) error {
	defer l.complete()
	for m := int64(0); ; m++ {
		if t := l.target.Load(); t >= 0 && m >= t {
			return nil
		}
		b, err := l.sock.Recv(finished)
		if err != nil && finished.Err() != nil && ctx.Err() == nil {
			if m >= l.target.Load() {
				return nil
			}
			// It was acknowledged, so it is here or comes at once.
			last, cancel := context.WithTimeoutCause(ctx, limit, errMissing)
			if b, err = l.sock.Recv(last); err != nil && last.Err() != nil {
				err = context.Cause(last)
			}
			cancel()
		}
		if err != nil {
			return err
		}
		l.check(b, m)
		l.on.free(b)
	}
}

// check looks at the m-th message that came: always at its length and number, with
// Verify at every byte.
func (l *line) check(b []byte, m int64) {
	if l.bad != "" {
		return
	}
	if l.p.Unordered && len(b) >= numberBytes {
		l.missing += m
		m = int64(binary.LittleEndian.Uint64(b)) // whichever it is
		l.missing -= m
	}
	if what := check(b, l.size, l.p.seed(l.index, !l.client), m, l.p.Verify); what != "" {
		l.bad = fmt.Sprintf("socket %d, message %d: %s", l.index, m, what)
	}
}

// complete checks that of messages without order each came once.
func (l *line) complete() {
	if l.missing != 0 && l.bad == "" {
		l.bad = fmt.Sprintf("socket %d: the numbers of the messages that came are not those that were sent", l.index)
	}
}

// ping sends a message, waits for the answer, and records the round trip.
func (l *line) ping(ctx context.Context) error {
	l.began = time.Now()
	now, book := l.began, l.ledger.of(l.index)
	for m := int64(0); l.more(m, now); m++ {
		pc, err := l.take(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		stamp(pc.b, m)
		if err := l.post(pc, m); err != nil {
			return err
		}
		b, err := l.sock.Recv(ctx)
		if err != nil {
			return err
		}
		now = time.Now()
		book.mu.Lock()
		book.lat.Record(now.Sub(start))
		book.mu.Unlock()
		l.ops.Add(1)
		l.check(b, m)
		l.on.free(b)
	}
	l.ended = time.Now()
	return nil
}

// pong answers each message with one of its own, and checks it after that.
func (l *line) pong(ctx, finished context.Context) error {
	for m := int64(0); ; m++ {
		if t := l.target.Load(); t >= 0 && m >= t {
			return nil
		}
		b, err := l.sock.Recv(finished)
		if err != nil {
			if finished.Err() != nil && ctx.Err() == nil && m >= l.target.Load() {
				return nil
			}
			return err
		}
		pc, err := l.take(ctx)
		if err == nil {
			stamp(pc.b, m)
			err = l.post(pc, m)
		}
		if err == nil {
			l.check(b, m)
		}
		l.on.free(b)
		if err != nil {
			return err
		}
	}
}
