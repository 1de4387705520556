package archon

import (
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

// StreamHandler answers a call with any number of messages by out, and then with
// how it went.
type StreamHandler func(call *ServerCall, out *Sender) error

// HandleStream registers a handler that answers with a stream. Each call has a
// goroutine of its own, since it waits for its client; MaxStreams bounds them.
func (s *Server) HandleStream(m Method, h StreamHandler) error {
	if h == nil {
		return s.register(&method{Method: m})
	}
	return s.register(&method{Method: m, streams: true, handler: func(call *ServerCall) error { return h(call, call.out) }})
}

// Sender is the server's end of a stream. One goroutine at a time uses it, until the
// handler returns.
type Sender struct {
	call   *ServerCall
	limit  int64 // the client's window
	credit atomic.Int64
	more   chan struct{}
	sent   int
}

// Alloc gives a buffer for a message whose payload has n bytes. It goes to Send, or
// back with Free.
func (o *Sender) Alloc(n int) (Buf, error) {
	s := o.call.conn.server
	if err := s.reserve(n); err != nil {
		return Buf{}, err
	}
	b, err := allocBuf(o.call.conn.sock, nil, n)
	if err != nil {
		s.respSize.Add(-int64(n))
	}
	return b, err
}

// Free gives back a buffer that is not sent after all.
func (o *Sender) Free(b Buf) {
	if b.raw != nil {
		o.call.conn.server.respSize.Add(-int64(len(b.raw) - HeaderSize))
		o.call.conn.sock.Free(b.raw)
	}
}

// encode writes a message into a buffer.
func (o *Sender) encode(e Encoder) (Buf, error) {
	b, err := o.Alloc(e.Size())
	if err != nil {
		return Buf{}, err
	}
	room := b.Payload()
	out, err := appendTo(room, e)
	if err == nil && isPrefix(out, room) {
		o.call.conn.server.respSize.Add(int64(len(out) - len(room)))
		return b.cut(len(out)), nil
	}
	o.Free(b)
	if err != nil {
		return Buf{}, err
	}
	if b, err = o.Alloc(len(out)); err == nil {
		copy(b.Payload(), out)
	}
	return b, err
}

// Sent is the number of messages so far.
func (o *Sender) Sent() int { return o.sent }

// Send sends a message, which is gone whatever happens. It waits while the client has
// no room, and fails when the client has given the stream up, its deadline has passed,
// or the connection is lost; the handler then returns. nil means that it is with the
// transport.
func (o *Sender) Send(b Buf) error {
	if b.raw == nil {
		return errNoBuffer
	}
	err := o.post(b)
	if err != nil {
		o.Free(b)
	}
	return err
}

func (o *Sender) post(b Buf) error {
	if err := o.waitForRoom(); err != nil {
		return err
	}
	n := len(b.raw) - HeaderSize
	h := header{kind: kindItem, id: o.call.id, payload: uint32(n)}
	h.put(b.raw)
	o.credit.Add(-itemCost(n))
	ctx := o.call.Context()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := o.call.conn.postItem(b.raw, n)
		if err == nil {
			o.sent++
			return nil
		}
		if !errors.Is(err, ErrQueueFull) {
			return postError(err)
		}
		select {
		case <-ctx.Done():
			return contextError(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// waitForRoom waits until the client has room.
func (o *Sender) waitForRoom() error {
	ctx := o.call.Context()
	for {
		if err := ctx.Err(); err != nil {
			return contextError(err)
		}
		if o.credit.Load() > 0 {
			return nil
		}
		select {
		case <-o.more:
		case <-ctx.Done():
		}
	}
}

// startStream runs a stream's handler on a goroutine, or refuses the call.
func (c *serverConn) startStream(call *ServerCall, window int64) {
	s := c.server
	refusal := c.hold(call)
	if refusal == nil && s.load.streams.Add(1) > int64(s.cfg.MaxStreams) {
		s.load.streams.Add(-1)
		refusal = errStreamed
	}
	if refusal != nil {
		s.stats.overloaded.Add(1)
		call.answer(refusal)
		return
	}
	call.out = &Sender{call: call, limit: window, more: make(chan struct{}, 1)}
	call.out.credit.Store(window)
	call.Deadline() // counts from now
	c.list(call)
	s.workers.Go(call.run)
}

// grant gives a stream's sender room. Streams that are over are none of the client's
// fault; room that was never taken is.
func (c *serverConn) grant(id CallID, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uint64(id.slot()) >= uint64(c.server.cfg.MaxCalls) {
		return errors.Wrapf(ErrProtocol, "window for call %#x, which cannot be", uint64(id))
	}
	call := c.find(id)
	if call == nil {
		return nil
	}
	o := call.out
	if o == nil || o.credit.Load()+n > o.limit {
		return errors.Wrapf(ErrProtocol, "window of %d bytes that were not sent", n)
	}
	o.credit.Add(n)
	select {
	case o.more <- struct{}{}:
	default:
	}
	return nil
}
