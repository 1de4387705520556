package be

import (
	"context"

	"github.com/pkg/errors"
)

// Who takes the messages of a socket.
const (
	takenByRecv     uint32 = iota // or nobody yet
	takenByMux                    // see Mux.Add
	takenByFunction               // see OnMessage
)

// takerErrors are those of others who ask for the messages.
var takerErrors = [...]error{takenByMux: ErrInMux, takenByFunction: ErrOnMessage}

// take makes one the taker of the messages, from whom they are not taken away any more.
func (s *Socket) take(by uint32) error {
	if !s.taker.CompareAndSwap(takenByRecv, by) {
		return takerErrors[s.taker.Load()]
	}
	return nil
}

// wakeRecv has Recvs that wait see that another one is the taker.
func (s *Socket) wakeRecv() {
	if s.waiters.Load() > 0 {
		s.ring()
	}
}

// Recv waits for the next message. The buffer is the caller's: it may be kept,
// passed on, sent, and is given back with the node's Free. After the last message
// the socket's error is returned; ErrInMux or ErrOnMessage when the messages go there.
func (s *Socket) Recv(ctx context.Context) ([]byte, error) {
	for {
		if t := s.taker.Load(); t != takenByRecv {
			s.ring() // who waits besides
			return nil, takerErrors[t]
		}
		if m, ok := s.pop(); ok {
			return m, nil
		}
		s.waiters.Add(1)
		if !s.box.empty() || s.taker.Load() != takenByRecv {
			s.waiters.Add(-1)
			continue
		}
		if s.ended.Load() {
			// The error was set after the last message: look once more.
			s.waiters.Add(-1)
			if m, ok := s.pop(); ok {
				return m, nil
			}
			return nil, s.err
		}
		if ctx == nil {
			s.waiters.Add(-1)
			return nil, errNoContext
		}
		select {
		case <-s.notify:
		case <-s.closed:
		case <-ctx.Done():
			s.waiters.Add(-1)
			return nil, ctx.Err()
		}
		s.waiters.Add(-1)
	}
}

// pop takes a message for the application.
func (s *Socket) pop() ([]byte, bool) {
	m, ok := s.box.pop()
	if !ok {
		return nil, false
	}
	if s.mux.Load() == nil && s.waiters.Load() > 0 && !s.box.empty() {
		s.ring()
	}
	s.release(m)
	s.took()
	return m.b, true
}

// release gives back what a message counted towards the quotas.
func (s *Socket) release(m message) {
	if s.core.Release(m.reserved) {
		s.conn.w.submit(&command{kind: cmdRoom, conn: s.conn, sock: s.core})
	}
}

// took counts a message that the application has, and tells the worker at every half
// backlog.
func (s *Socket) took() {
	half := s.conn.half
	if n := s.popped.Add(1); n >= half && n%half == 0 { // several may pop at once
		s.popped.Add(-half)
		s.conn.w.submit(&command{kind: cmdTaken, conn: s.conn, sock: s.core, tag: uint64(half)})
	}
}

// ring wakes one waiting Recv.
func (s *Socket) ring() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// deliver is the worker's: a message has come.
func (s *Socket) deliver(m message) {
	if s.direct {
		s.hand(m)
		return
	}
	if mux := s.mux.Load(); mux != nil && m.b != nil && mux.hand(s, m) {
		return
	}
	if !s.box.push(m, s.conn.n.cfg.Backlog) {
		// The backlog bounds what the peer may send; the engine has checked it.
		panic("be: more messages than the backlog")
	}
	if mux := s.mux.Load(); mux != nil {
		mux.wake(s)
	} else if s.waiters.Load() > 0 {
		s.ring()
	}
}

// hand calls the function of OnMessage.
func (s *Socket) hand(m message) {
	s.release(m)
	s.core.Engine().Taken(s.core, 1)
	s.fn(m.b, nil)
}

// OnMessage has fn called with each message, in order, on the worker's goroutine. The
// buffer is fn's: it may be sent, kept, passed on, and is given back with the node's
// Free. The last call has an error and no buffer. It is for good: a second OnMessage,
// Mux.Add and Recv, one that waits too, give ErrOnMessage, and OnMessage gives ErrInMux if
// the socket is in a [Mux]. With an error, fn is never called.
//
// fn must not block, and whatever it takes is time that all sockets of that worker
// wait for: Alloc, Free, Post, PostGather and Close may be called from it; Send, Recv,
// Dial and the node's Close would wait for the worker that calls them. A message
// counts as taken when fn is called, so the peer is never held back: work that takes
// longer belongs into a Mux. A panic in fn, as in the done of a Post, ends the program.
func (s *Socket) OnMessage(fn func(b []byte, err error)) error {
	if fn == nil {
		return errors.New("be: OnMessage needs a function")
	}
	if err := s.take(takenByFunction); err != nil {
		return err
	}
	s.wakeRecv()
	ok := s.conn.w.submit(calling(func() {
		s.fn, s.direct = fn, true
		for m, ok := s.box.pop(); ok; m, ok = s.box.pop() {
			s.hand(m)
		}
		if s.ended.Load() && s.fn != nil {
			s.fn, s.direct = nil, false
			fn(nil, s.err)
		}
		s.conn.w.touch(s.conn)
	}))
	if !ok {
		<-s.conn.w.done
		fn(nil, s.conn.n.closedErr(s))
	}
	return nil
}

// drain drops what was received and not taken.
func (s *Socket) drain() {
	for m, ok := s.box.pop(); ok; m, ok = s.box.pop() {
		s.release(m)
		s.conn.n.mem.Free(m.b)
	}
}
