package archon

import (
	"net"
	"sync"

	"github.com/byteexpress/byteexpress/be"
	"github.com/pkg/errors"
)

// maxBundles is how many bundles of a socket may be on their way before further short
// messages wait for the next to arrive, and go together. The first ones do not wait, so
// that few calls at once are as fast as can be.
const maxBundles = 2

// maxShort is how many may be on their way while PostShort takes messages, of which
// nobody keeps account: what a peer that does not read can make this side hold.
const maxShort = 32

// beSocket is a be.Socket that bundles short messages. Their buffers are from the Go
// heap, those of longer messages from the node; a buffer's capacity tells which.
type beSocket struct {
	*be.Socket
	node *be.Node
	fn   func([]byte, error) // takes messages; the worker's, nil after the last
	size int                 // of a bundle, in bytes

	mu     sync.Mutex
	bundle *bundle // that is being filled; nil: none
	flying int     // bundles posted and not arrived
	corked bool    // messages wait until a bundle that came in is dealt with
	ended  bool    // bundles are not kept any more
	idle   []*bundle
	gather sync.Pool // *gatheredSend
}

// bundle is one on its way out.
type bundle struct {
	sock     *beSocket
	raw      []byte // registered
	length   int
	count    int         // messages
	messages []outgoing  // those of Post
	fn       func(error) // arrived, bound once
}

var errBundleLost = errors.WithMessage(net.ErrClosed, "be: the socket ended before the message was sent")

func newBESocket(s *be.Socket, n *be.Node) *beSocket {
	sock := &beSocket{Socket: s, node: n, size: min(bundleBytes, s.MaxMessage())}
	sock.gather.New = func() any {
		g := &gatheredSend{sock: sock}
		g.fn = g.sent
		return g
	}
	return sock
}

// MaxMessage leaves room for a bundle around a short message.
func (s *beSocket) MaxMessage() int {
	n := s.Socket.MaxMessage()
	if n < bundleBytes {
		n = max(0, (n-bundleHeader-4)&^3)
	}
	return n
}

func (s *beSocket) Alloc(size int) ([]byte, error) {
	if size >= 0 && size <= bundledBytes {
		return buffers.get(size), nil
	}
	return s.node.Alloc(size)
}

func (s *beSocket) Free(b []byte) {
	if cap(b) <= bundledBytes {
		buffers.put(b)
		return
	}
	s.node.Free(b)
}

func (s *beSocket) Post(b []byte, done func(error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return errBundleLost
	case len(b) > s.MaxMessage():
		return errors.Errorf("be: message of %d bytes, the peer takes at most %d", len(b), s.MaxMessage())
	case len(b) <= bundledBytes:
		return s.add(b, done)
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.Socket.Post(b, done)
}

// PostShort copies b into a bundle.
func (s *beSocket) PostShort(b []byte) error {
	if len(b) > min(bundledBytes, s.MaxMessage()) {
		return ErrNotShort
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return errBundleLost
	case s.flying >= maxShort:
		return ErrQueueFull
	}
	return s.add(b, nil)
}

// add puts a message into the bundle, and sends that unless it is to wait. Without done
// nobody is told of its end. The caller holds mu.
func (s *beSocket) add(b []byte, done func(error)) error {
	if s.bundle != nil && s.bundle.length+bundledSize(len(b)) > s.size {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if s.bundle == nil {
		fresh, err := s.newBundle()
		if err != nil {
			return err
		}
		s.bundle = fresh
	}
	to, before := s.bundle, s.bundle.length
	to.length = appendBundled(to.raw, before, b)
	to.count++
	if done != nil {
		to.messages = append(to.messages, outgoing{b: b, done: done})
	}
	if s.corked || s.flying >= maxBundles {
		return nil
	}
	err := s.flush()
	if err != nil { // b stays the caller's
		to.length = before
		to.count--
		if done != nil {
			to.messages = to.messages[:len(to.messages)-1]
		}
	}
	return err
}

// flush sends the bundle, if there is one with messages. With an error it stays. The
// caller holds mu.
func (s *beSocket) flush() error {
	b := s.bundle
	if b == nil || b.count == 0 {
		return nil
	}
	putBundleHeader(b.raw, b.count)
	if err := s.Socket.Post(b.raw[:b.length], b.fn); err != nil {
		return err
	}
	s.bundle = nil
	s.flying++
	return nil
}

func (s *beSocket) newBundle() (*bundle, error) {
	if last := len(s.idle) - 1; last >= 0 {
		b := s.idle[last]
		s.idle = s.idle[:last]
		return b, nil
	}
	raw, err := s.node.Alloc(s.size)
	if err != nil {
		return nil, errors.WithMessage(ErrQueueFull, err.Error()) // there may be memory later
	}
	b := &bundle{sock: s, raw: raw, length: bundleHeader}
	b.fn = b.arrived
	return b, nil
}

// arrived ends a bundle, and sends the next, which has waited for it. A lost bundle
// ends the socket, since not all senders of its messages are told.
func (b *bundle) arrived(err error) {
	s := b.sock
	s.mu.Lock()
	s.flying--
	var stuck *bundle
	if !s.corked {
		stuck = s.flushOrTake()
	}
	s.mu.Unlock()
	if err != nil {
		s.Socket.Close()
	}
	b.end(err)
	s.recycle(b, err == nil)
	s.fail(stuck)
}

// flushOrTake sends the bundle; one that cannot be sent any more is given. The caller
// holds mu.
func (s *beSocket) flushOrTake() *bundle {
	if s.flush() == nil {
		return nil
	}
	b := s.bundle
	s.bundle = nil
	return b
}

// fail ends a bundle that was never sent; nil does nothing.
func (s *beSocket) fail(b *bundle) {
	if b != nil {
		b.end(errBundleLost)
		s.recycle(b, true)
	}
}

// end tells the senders of the messages.
func (b *bundle) end(err error) {
	for i := range b.messages {
		m := &b.messages[i]
		if err != nil {
			b.sock.Free(m.b)
		}
		m.done(err)
		*m = outgoing{}
	}
	b.messages, b.count, b.length = b.messages[:0], 0, bundleHeader
}

// recycle keeps an empty bundle for its next use; ours tells whether its buffer still
// is.
func (s *beSocket) recycle(b *bundle, ours bool) {
	if !ours {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || len(s.idle) == maxShort {
		s.node.Free(b.raw)
		return
	}
	s.idle = append(s.idle, b)
}

// OnMessage cuts bundles into their messages.
func (s *beSocket) OnMessage(fn func(b []byte, err error)) {
	s.fn = fn
	if err := s.Socket.OnMessage(s.take); err != nil {
		fn(nil, err)
	}
}

// take runs on the worker.
func (s *beSocket) take(b []byte, err error) {
	if s.fn == nil { // after a protocol error
		if err == nil {
			s.node.Free(b)
		}
		return
	}
	switch {
	case err != nil:
		s.last(err)
	case isBundle(b):
		err = s.takeBundle(b)
		s.node.Free(b)
	case cap(b) <= bundledBytes: // its capacity would make it one of the Go heap
		copied := buffers.get(len(b))
		copy(copied, b)
		s.node.Free(b)
		s.fn(copied, nil)
	default:
		s.fn(b, nil)
	}
	if err != nil && s.fn != nil {
		s.Socket.Close()
		s.last(err)
	}
}

// takeBundle hands out the messages of a bundle. What is posted meanwhile, answers
// probably, goes together.
func (s *beSocket) takeBundle(b []byte) error {
	s.mu.Lock()
	s.corked = true
	s.mu.Unlock()
	err := eachBundled(b, func(m []byte) {
		copied := buffers.get(len(m))
		copy(copied, m)
		s.fn(copied, nil)
	})
	s.mu.Lock()
	s.corked = false
	stuck := s.flushOrTake()
	s.mu.Unlock()
	s.fail(stuck)
	return err
}

// last tells the receiver that no more messages come.
func (s *beSocket) last(err error) {
	fn := s.fn
	s.fn = nil
	s.release()
	fn(nil, err)
}

// Close ends the socket, which still sends what was posted, for the node's Linger at
// most.
func (s *beSocket) Close() error {
	s.mu.Lock()
	stuck := s.flushOrTake()
	s.mu.Unlock()
	err := s.Socket.Close()
	s.fail(stuck)
	s.release()
	return err
}

// release gives back the memory of bundles that are not on their way.
func (s *beSocket) release() {
	s.mu.Lock()
	idle, stuck := s.idle, s.bundle
	s.idle, s.bundle, s.ended = nil, nil, true
	s.mu.Unlock()
	for _, b := range idle {
		s.node.Free(b.raw)
	}
	s.fail(stuck)
}

// PostGather sends from the node's memory only.
func (s *beSocket) PostGather(head []byte, parts [][]byte, done func(error)) error {
	raw, err := s.node.Alloc(len(head))
	if err != nil {
		return errors.WithMessage(ErrQueueFull, err.Error())
	}
	copy(raw, head)
	g := s.gather.Get().(*gatheredSend)
	g.head, g.done = raw, done
	s.mu.Lock()
	if err = s.flush(); err == nil {
		err = s.Socket.PostGather(raw, parts, g.fn)
	}
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	s.node.Free(raw)
	g.recycle()
	if err == be.ErrNotRegistered { //nolint:errorlint // the sentinel itself, on the data path
		return ErrNotGatherable
	}
	return err
}

// gatheredSend is a gathered message on its way out: its head was copied into
// registered memory.
type gatheredSend struct {
	sock *beSocket
	head []byte
	done func(error)
	fn   func(error) // sent, bound once
}

func (g *gatheredSend) sent(err error) {
	done := g.done
	g.sock.node.Free(g.head)
	g.recycle()
	done(err)
}

func (g *gatheredSend) recycle() {
	g.head, g.done = nil, nil
	g.sock.gather.Put(g)
}
