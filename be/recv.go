package be

import (
	"context"
)

// Recv waits for the next message. The buffer is the caller's: it may be kept,
// passed on, sent, and is given back with the node's Free. After the last message
// the socket's error is returned.
func (s *Socket) Recv(ctx context.Context) ([]byte, error) {
	for {
		if m, ok := s.pop(); ok {
			return m, nil
		}
		s.waiters.Add(1)
		if box := s.box.Load(); box != nil && !box.empty() {
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

// pop takes a message for the application, and tells the worker at every half
// backlog.
func (s *Socket) pop() ([]byte, bool) {
	box := s.box.Load()
	if box == nil {
		return nil, false
	}
	m, ok := box.pop()
	if !ok {
		return nil, false
	}
	if s.waiters.Load() > 0 && !box.empty() {
		s.ring()
	}
	s.core.Release(m.reserved)
	half := uint64(max(s.conn.n.cfg.Backlog/2, 1))
	if s.popped.Add(1)%half == 0 {
		s.conn.w.submit(&command{kind: cmdTaken, sock: s, tag: half})
	}
	return m.b, true
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
	if s.fn != nil {
		s.hand(m)
		return
	}
	box := s.box.Load()
	if box == nil {
		box = newInbox(s.conn.n.cfg.Backlog)
		s.box.Store(box)
	}
	if !box.push(m) {
		// The backlog bounds what the peer may send; the engine has checked it.
		panic("be: more messages than the backlog")
	}
	if s.waiters.Load() > 0 {
		s.ring()
	}
}

// hand calls the function of OnMessage.
func (s *Socket) hand(m message) {
	s.core.Release(m.reserved)
	s.core.Engine().Taken(s.core, 1)
	s.fn(m.b, nil)
}

// OnMessage has fn called with each message, in order, on the worker's
// goroutine: it must not block. The buffer is fn's. The last call has an error
// and no buffer. Use either OnMessage, once, or Recv.
func (s *Socket) OnMessage(fn func(b []byte, err error)) {
	ok := s.conn.w.submit(&command{kind: cmdCall, call: func() {
		s.fn = fn
		if box := s.box.Load(); box != nil {
			for m, ok := box.pop(); ok; m, ok = box.pop() {
				s.hand(m)
			}
		}
		if s.ended.Load() && s.fn != nil {
			s.fn = nil
			fn(nil, s.err)
		}
		s.conn.w.touch(s.conn)
	}})
	if !ok {
		<-s.conn.w.done
		fn(nil, s.conn.n.closedErr(s))
	}
}

// drain drops what was received and not taken.
func (s *Socket) drain() {
	box := s.box.Load()
	if box == nil {
		return
	}
	for m, ok := box.pop(); ok; m, ok = box.pop() {
		s.core.Release(m.reserved)
		s.conn.n.mem.Free(m.b)
	}
}
