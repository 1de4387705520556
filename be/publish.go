package be

import (
	"context"
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
)

// ErrToken says that a token is not one of the socket's peer, or of another socket.
var ErrToken = core.ErrToken

// Token lets the other end of a socket write to a published buffer. It is sent
// there in a message, and means nothing on any other socket.
type Token [wire.TokenLen]byte

// Publication is a buffer that the peer of a socket may write to at any time.
type Publication struct {
	n      *Node
	key    mr.Region // of the published bytes alone
	token  Token
	writes atomic.Uint64
	waited uint64 // Wait's
	notify chan struct{}
	closed chan struct{}
	unuse  func() // of owners
	err    error  // set before closed is closed
}

// Publish lets the peer write to b, memory of the node's Alloc or of Recv, by PostPut,
// as often as it likes and with no exchange before each write: for a buffer that is
// used again and again, as of a tensor whose size is known. It ends with the socket; b
// stays the caller's, and must not be freed before Done is closed. Not for
// callbacks: it waits for the worker, and for the device, with which b is registered
// once more: so that the peer has a key to b alone, and only until Done. ErrUnsupported
// if the peer does not know published buffers.
func (s *Socket) Publish(b []byte) (*Publication, error) {
	if _, err := s.check(b); err != nil {
		return nil, err
	}
	n := s.conn.n
	if _, err := n.mem.LKey(b); err != nil {
		return nil, ErrNotRegistered
	}
	if !n.begin() {
		return nil, ErrClosed
	}
	defer n.wg.Done()
	p := &Publication{n: n, notify: make(chan struct{}, 1), closed: make(chan struct{})}
	var err error
	if p.unuse, err = n.mem.owners.share("Publish", [][]byte{b}, false); err != nil {
		return nil, err
	}
	if err := p.register(b); err != nil {
		p.unuse()
		return nil, s.wrap(errors.Wrapf(err, "publish %d bytes", len(b)))
	}
	ok := s.conn.w.call(func() {
		var k wire.Token
		if k, err = s.core.Engine().Publish(s.core, b, p.key.RKey, p.written); err == nil {
			k.Put(p.token[:])
		}
	})
	if !ok {
		err = ErrClosed
	}
	if err != nil {
		p.deregister()
		return nil, s.wrap(err)
	}
	return p, nil
}

// register makes a key for b. A write of no bytes needs none.
func (p *Publication) register(b []byte) (err error) {
	if len(b) > 0 {
		p.key, err = p.n.pd.Register(b, domainAccess[writableDomain])
	}
	return err
}

// deregister ends the key. A device that refuses keeps the node from being closed,
// with the reason.
func (p *Publication) deregister() {
	if p.key.Length > 0 {
		_ = p.n.pd.Deregister(p.key)
	}
	p.unuse()
}

// Token is what the peer needs to write.
func (p *Publication) Token() Token { return p.token }

// Writes is how many writes have ended so far.
func (p *Publication) Writes() uint64 { return p.writes.Load() }

// Wait waits until a write has ended that no Wait has told of, and gives the number
// of all so far. When the socket ended, and its last write was told of, it gives
// the socket's error. One goroutine at a time may call it.
func (p *Publication) Wait(ctx context.Context) (uint64, error) {
	for {
		select {
		case <-p.closed:
			if n := p.writes.Load(); n > p.waited {
				p.waited = n
				return n, nil
			}
			return p.waited, p.err
		default:
		}
		if n := p.writes.Load(); n > p.waited {
			p.waited = n
			return n, nil
		}
		if ctx == nil {
			return p.waited, errNoContext
		}
		select {
		case <-p.notify:
		case <-p.closed:
		case <-ctx.Done():
			return p.waited, ctx.Err()
		}
	}
}

// Done is closed when the peer can write no more: the buffer is wholly the
// caller's again.
func (p *Publication) Done() <-chan struct{} { return p.closed }

// written is the worker's.
func (p *Publication) written(err error) {
	if err != nil {
		p.err = err
		p.n.wg.Go(func() { // not on the worker's time
			p.deregister()
			close(p.closed)
		})
		return
	}
	p.writes.Add(1)
	select {
	case p.notify <- struct{}{}:
	default:
	}
}

// PostPut writes b to the start of the buffer that the peer published as t, without
// waiting; b and done are as with Post. done(nil) says that all of it is in the
// peer's memory, and the peer hears of it too. It keeps no order with messages, and
// of two writes to one buffer it is for the applications to see that the first was
// used. done is told ErrToken for a token that the socket's peer did not publish on it,
// such as one of this side's own, or of an earlier socket; and ErrTooLarge for b longer
// than what was published. One that was made up ends the engine; so may those that are
// ErrToken, if the peer is of an older version, whose tokens do not tell whose they are.
func (s *Socket) PostPut(t Token, b []byte, done func(error)) error { return s.postPut(t, b, 0, done) }

func (s *Socket) postPut(t Token, b []byte, tag uint64, done func(error)) error {
	lkey, err := s.check(b)
	if err != nil {
		return err
	}
	var k wire.Token
	if err := k.Parse(t[:]); err != nil {
		return err
	}
	if done, err = s.conn.n.mem.owners.give("PostPut", b, true, done); err != nil {
		return err
	}
	rest := rests.Get().(*commandRest)
	rest.token = k
	if !s.conn.w.submit(&command{kind: cmdPut, conn: s.conn, sock: s.core, buf: b, lkey: lkey, commandRest: rest, tag: tag, done: done}) {
		return s.kept(b)
	}
	return nil
}
