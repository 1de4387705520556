package be

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/mr"
)

// ReadToken lets peers read exposed memory. It is sent to them in a message, and means
// nothing at another node, nor at this one after it was started anew.
type ReadToken [wire.ReadTokenLen]byte

// Exposed is memory of a node that its peers may read at any time.
type Exposed struct {
	n     *Node
	b     []byte
	key   mr.Region // of those bytes alone
	token ReadToken
	once  sync.Once
	ended atomic.Bool
	unuse func() // of owners
	err   error  // of Close
}

// Expose lets every peer that has the token read b, at least a byte of memory of the node's
// Alloc, by Read, as often as it likes: the device answers, and nobody at this node hears of
// it. b stays the caller's, who does not free it before Close, nor write to it but by Set:
// a peer may be reading. It is registered once more, alone: a peer that makes keys up can
// guess those of b, and of what else is exposed, and reads nothing else.
func (n *Node) Expose(b []byte) (*Exposed, error) {
	if _, err := n.mem.LKey(b); err != nil || len(b) == 0 {
		return nil, ErrNotRegistered
	}
	if !n.begin() {
		return nil, ErrClosed
	}
	defer n.wg.Done()
	x := &Exposed{n: n, b: b}
	var err error
	if x.unuse, err = n.mem.owners.share("Expose", [][]byte{b}, false); err != nil {
		return nil, err
	}
	if x.key, err = n.pd.Register(b, domainAccess[readableDomain]); err != nil {
		x.unuse()
		return nil, errors.Wrapf(err, "be: %s: expose %d bytes", n.device, len(b))
	}
	t := wire.ReadToken{Node: n.id, Addr: mr.Addr(b), Length: uint64(len(b)), RKey: uint32(x.key.RKey)}
	t.Put(x.token[:])
	return x, nil
}

// Token is what a peer needs to read.
func (x *Exposed) Token() ReadToken { return x.token }

// Set makes the 8 bytes at an offset, a multiple of 8, the little-endian form of v. Peers
// see all 8 as they were, or all as they are. One goroutine at a time may call it;
// after Close it is ErrClosed.
func (x *Exposed) Set(offset int, v uint64) error {
	if offset < 0 || offset%8 != 0 || offset > len(x.b)-8 {
		return errors.Errorf("be: set 8 bytes at offset %d of %d exposed ones: must be a multiple of 8, and within", offset, len(x.b))
	}
	if x.ended.Load() {
		return ErrClosed
	}
	storeShared(x.b[offset:offset+8], v)
	return nil
}

// Close ends it: b is wholly the caller's again. Who still reads gets an error, which ends
// the engine that it reads on, so peers should have been told before.
func (x *Exposed) Close() error {
	x.once.Do(func() {
		x.ended.Store(true)
		x.unuse()
		x.err = errors.Wrapf(x.n.pd.Deregister(x.key), "be: %s: end the exposure of %d bytes", x.n.device, len(x.b))
	})
	return x.err
}

// CanRead reports whether the peer's memory can be read by Read: both devices take READs,
// and the peer is no version of this package that does not know them.
func (s *Socket) CanRead() bool { return s.conn.e.CanGet() }

// Read reads what the socket's peer exposed as t into b, from an offset on; b is memory of
// the node's Alloc. With nil, b has all of it and is the caller's; with an error, b goes as
// with Send, and as with that ctx's end is not waited out. Nobody at the peer takes part:
// whether what was read is old, or was changed meanwhile, is for b to tell. A token of
// another node, or of an earlier start of it, is ErrToken; one whose memory is exposed no
// more ends the engine at both ends, and so does one that was made up: with
// cq.RemoteAccessError, or ErrPeerLost if the peer is quicker to say so.
func (s *Socket) Read(ctx context.Context, t *ReadToken, offset int, b []byte) error {
	c := command{kind: cmdFetch, buf: b, commandRest: rests.Get().(*commandRest)}
	if err := s.find(t, offset, len(b), &c.token); err != nil {
		s.conn.n.Free(b)
		return err
	}
	return s.wait(ctx, &c)
}

// PostRead is Read without waiting; b and done are as with Post.
func (s *Socket) PostRead(t *ReadToken, offset int, b []byte, done func(error)) error {
	c := command{kind: cmdFetch, conn: s.conn, sock: s.core, buf: b, done: done, commandRest: rests.Get().(*commandRest)}
	err := s.find(t, offset, len(b), &c.token)
	if err == nil {
		c.lkey, err = s.check(b)
	}
	if err == nil {
		c.done, err = s.conn.n.mem.owners.give("PostRead", b, false, done)
	}
	if err != nil {
		return err
	}
	if !s.conn.w.submit(&c) {
		return s.kept(b)
	}
	return nil
}

// find checks what is to be read, and says where it is.
func (s *Socket) find(t *ReadToken, offset, n int, at *wire.Token) error {
	if t == nil {
		return errNoToken
	}
	var k wire.ReadToken
	if err := k.Parse(t[:]); err != nil {
		return err
	}
	switch {
	case k.Node != s.conn.peer:
		return errOtherNode
	case n == 0 || offset < 0 || uint64(offset) > k.Length || uint64(n) > k.Length-uint64(offset):
		return errors.WithMessagef(core.ErrTooLarge, "be: read %d bytes at offset %d of %d that are exposed: must be a byte or more, and within", n, offset, k.Length)
	case !s.CanRead():
		return ErrUnsupported
	}
	at.Addr, at.RKey = k.Addr+uint64(offset), k.RKey
	return nil
}

var (
	errOtherNode = errors.WithMessage(core.ErrToken, "be: it is of another node than the socket's peer, or of an earlier start of it")
	errNoToken   = errors.WithMessage(core.ErrToken, "be: it is nil")
)
