package archon

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/pkg/errors"
)

const (
	// DefaultWindow is how many bytes of a stream's messages may wait at the client
	// when the invocation does not say.
	DefaultWindow = 1 << 20
	maxWindow     = 1 << 30
)

// Stream is the client's end of a call that is answered with many messages. One
// goroutine at a time receives; Close may be called from any.
//
// The server sends as long as fewer bytes than the window, headers included, wait
// here or are on their way: a client that does not receive holds the server up, and
// takes the window and one message of memory at most.
type Stream struct {
	client *Client
	call   Call
	limit  int64 // the window
	wake   chan struct{}
	owed   int64 // received by the application, not yet granted to the server anew

	mu    sync.Mutex
	stop  func() bool // of what watches the context
	queue itemQueue
	room  int64 // bytes that the server may still send
	over  bool  // no more items come
	err   error // why; nil: the handler returned nil
	reply Metadata
}

func (c *Client) openStream(ctx context.Context, inv *Invocation, b Buf) (*Stream, error) {
	s, err := c.beginStream(ctx, inv, b)
	if err != nil {
		c.sock.Free(b.raw)
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.end(contextError(ctx.Err())) })
	s.mu.Lock()
	s.stop = stop
	over := s.over
	s.mu.Unlock()
	if over {
		stop()
	}
	return s, nil
}

func (c *Client) beginStream(ctx context.Context, inv *Invocation, b Buf) (*Stream, error) {
	limit := inv.Window
	if limit == 0 {
		limit = DefaultWindow
	}
	if limit < 0 || limit > maxWindow {
		return nil, Errorf(InvalidArgument, "window of %d bytes, must be 1 to %d", limit, maxWindow)
	}
	s := &Stream{client: c, limit: int64(limit), room: int64(limit), wake: make(chan struct{}, 1)}
	s.call.Method, s.call.stream = inv.Method, s
	return s, c.beginWhenFree(ctx, &s.call, b, streamOver)
}

// Recv gives the next message, which the caller releases. After the last it gives
// io.EOF if the handler returned nil, else the *Error with which the stream ended.
// Messages that came before a failure are given first, unless the stream was ended
// on this side.
func (s *Stream) Recv() (Response, error) {
	for {
		r, ok, err := s.next()
		if ok {
			s.owed += itemCost(len(r.raw) - HeaderSize)
			s.grant()
			return r, nil
		}
		if err != nil {
			return Response{}, err
		}
		var again <-chan time.Time
		if s.grantDue() { // which the full send queue refused
			again = time.After(maxPause)
		}
		select {
		case <-s.wake:
		case <-again:
			s.grant()
		}
	}
}

// next gives the first message in the queue, or why there will be none.
func (s *Stream) next() (r Response, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok = s.queue.pop(); ok {
		return r, true, nil
	}
	if !s.over {
		return r, false, nil
	}
	if s.err != nil {
		return r, false, s.err
	}
	return r, false, io.EOF
}

// grantDue tells whether the server should hear of the room that there is again.
func (s *Stream) grantDue() bool { return s.owed >= (s.limit+1)/2 }

// grant gives the server the room that receiving made, half a window at a time.
func (s *Stream) grant() {
	if !s.grantDue() {
		return
	}
	s.mu.Lock()
	s.room += s.owed
	over := s.over
	s.mu.Unlock()
	if over {
		return
	}
	for s.owed > 0 { // a long message may owe more than the window
		n := min(s.owed, maxWindow)
		if !s.client.tell(header{kind: kindWindow, id: s.call.id, window: uint32(n)}) {
			s.mu.Lock()
			s.room -= s.owed
			s.mu.Unlock()
			return
		}
		s.owed -= n
	}
}

// Metadata is what the server sent along at the end. It is complete once Recv has given
// an error.
func (s *Stream) Metadata() Metadata {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reply
}

// Close gives the stream up, unless it is over, and frees what was not received. It
// is called when the stream is not read to its end, and may be called in any case.
func (s *Stream) Close() { s.end(errStreamClosed) }

var errStreamClosed = &Error{Code: Canceled, Message: "the stream was closed on this side"}

// end ends the stream from this side.
func (s *Stream) end(err error) {
	s.client.Cancel(&s.call, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, ok := s.queue.pop(); ok; r, ok = s.queue.pop() {
		r.Release()
		s.err = err // not all was received
	}
}

// streamOver is the done of a stream's call.
func streamOver(call *Call) {
	s := call.stream
	resp, err := call.Response, call.Err
	s.mu.Lock()
	s.over, s.err = true, err
	stop := s.stop
	if e, ok := err.(*Error); ok { //nolint:errorlint // what ends a call is not wrapped
		s.reply.CopyFrom(e.Metadata)
	} else {
		s.reply.CopyFrom(resp.Metadata())
	}
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	resp.Release()
	s.signal()
}

func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// itemCost is what a message takes of the window.
func itemCost(payload int) int64 { return int64(HeaderSize + payload) }

// item takes a message of a stream.
func (c *Client) item(h *header, b []byte) error {
	c.mu.Lock()
	used := c.calls.used(h.id)
	call := c.calls.find(h.id)
	c.mu.Unlock()
	switch {
	case !used || call != nil && call.stream == nil:
		return errors.Wrapf(ErrProtocol, "item for call %#x, which is no stream", uint64(h.id))
	case call == nil: // given up before
		c.sock.Free(b)
		return nil
	}
	return call.stream.take(Response{raw: b, sock: c.sock})
}

// take puts a message into the queue.
func (s *Stream) take(r Response) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		r.Release()
		return nil
	}
	if s.room <= 0 {
		return errors.Wrapf(ErrProtocol, "item beyond the window of %d bytes", s.limit)
	}
	s.room -= itemCost(len(r.raw) - HeaderSize)
	s.queue.push(r)
	s.signal()
	return nil
}

// itemQueue is a ring of messages that grows to what the window lets in.
type itemQueue struct {
	ring  []Response // a power of two
	first int
	n     int
}

func (q *itemQueue) push(r Response) {
	if q.n == len(q.ring) {
		ring := make([]Response, max(16, 2*q.n))
		for i := range q.n {
			ring[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
		}
		q.ring, q.first = ring, 0
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = r
	q.n++
}

func (q *itemQueue) pop() (r Response, ok bool) {
	if q.n == 0 {
		return r, false
	}
	at := &q.ring[q.first]
	r, *at = *at, Response{}
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return r, true
}
