package perftest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/control"
)

// Conn is one end of the exchange. It belongs to one goroutine, and is closed by
// Close or by the end of its context.
type Conn struct {
	c      net.Conn
	r      *bufio.Reader
	ctx    context.Context
	stop   func() bool
	limit  time.Duration
	client bool
	mine   []Key
	peer   []Key
}

// New makes an end of the exchange of c. Each step may take limit.
func New(ctx context.Context, c net.Conn, limit time.Duration, client bool) *Conn {
	return &Conn{
		c: c, r: bufio.NewReader(c), ctx: ctx, limit: limit, client: client, stop: context.AfterFunc(ctx, func() { c.Close() }),
	}
}

// Peer is the other end's TCP address.
func (c *Conn) Peer() string { return c.c.RemoteAddr().String() }

// Client reports which end this is.
func (c *Conn) Client() bool { return c.client }

// Limit is the time limit of a step.
func (c *Conn) Limit() time.Duration { return c.limit }

// Close ends the connection.
func (c *Conn) Close() error {
	c.stop()
	return c.c.Close()
}

// ShortError is a message of which only a part came.
type ShortError struct {
	Got  []byte
	Want int // bytes
	Err  error
}

// Error says what came.
func (e *ShortError) Error() string {
	return fmt.Sprintf("the peer sent %d of %d bytes, %q: %v", len(e.Got), e.Want, e.Got, e.Err)
}

// Unwrap gives the cause.
func (e *ShortError) Unwrap() error { return e.Err }

func (c *Conn) fail(step string, err error) error {
	var short *ShortError
	if !errors.As(err, &short) {
		return control.Failed(c.ctx, step, c.Peer(), c.limit, err)
	}
	short.Err = errors.Unwrap(control.Failed(c.ctx, step, c.Peer(), c.limit, short.Err))
	return &control.StepError{Step: step, Peer: c.Peer(), Err: short}
}

// swap exchanges one message for one of the same length.
func (c *Conn) swap(step string, mine []byte) ([]byte, error) {
	peer := make([]byte, len(mine))
	if err := c.turns(step, mine, func() error { return c.read(peer) }); err != nil {
		return nil, err
	}
	return peer, nil
}

// turns writes and reads in the order of our role.
func (c *Conn) turns(step string, mine []byte, read func() error) error {
	_ = c.c.SetDeadline(time.Now().Add(c.limit))
	// One write: perftest takes what one read gives for the whole message.
	write := func() error { _, err := c.c.Write(mine); return err }
	order := []func() error{read, write}
	if c.client {
		slices.Reverse(order)
	}
	for _, f := range order {
		if err := f(); err != nil {
			return c.fail(step, err)
		}
	}
	return nil
}

// read fills b. A peer that stops in the middle gives an error that says how much
// came.
func (c *Conn) read(b []byte) error {
	n, err := io.ReadFull(c.r, b)
	if err != nil && n > 0 {
		err = &ShortError{b[:n], len(b), err}
	}
	return err
}

// swapKey exchanges one key.
func (c *Conn) swapKey(step string, mine *Key) (peer Key, err error) {
	err = c.turns(step, mine.append(nil), func() error {
		b := make([]byte, shortKey, longKey)
		if err := c.read(b); err != nil {
			return err
		}
		if isLong(b) {
			b = b[:longKey]
			if err := c.read(b[shortKey:]); err != nil {
				return err
			}
		}
		var err error
		if peer, err = parseKey(b); err != nil {
			return errors.WithMessagef(err, "the peer sent %q, which is no key", b)
		}
		return fits(mine, &peer)
	})
	return peer, err
}

// fits reports two ends that cannot talk to each other.
func fits(mine, peer *Key) error {
	switch {
	case mine.Global && !peer.Global:
		return errors.New("the peer sent a LID and no GID: start it with -x too")
	case !mine.Global && peer.Global:
		return errors.New("the peer sent a GID, and we address by LID: choose a GID here with -x")
	case mine.Global && mine.GID.IsIPv4() != peer.GID.IsIPv4():
		return errors.Errorf("our GID is %v, the peer's %v: choose GIDs of one IP version with -x", mine.GID, peer.GID)
	}
	return nil
}

// Connect exchanges keys. up gets the peer's, in the order of ours, and takes our
// queue pairs to RTS.
func (c *Conn) Connect(t Test, mine []Key, up func(peer []Key) error) error {
	c.mine = mine
	if t.Latency && t.OneSided {
		if _, err := c.swapKey("keys", &mine[0]); err != nil {
			return err
		}
	}
	for i := range mine {
		k, err := c.swapKey("keys", &mine[i])
		if err != nil {
			return err
		}
		c.peer = append(c.peer, k)
	}
	if err := up(c.peer); err != nil {
		return err
	}
	if !t.OneSided {
		if err := c.Barrier("connected"); err != nil {
			return err
		}
	}
	for i := range mine {
		k, err := c.swapKey("connected", &mine[i])
		if err != nil {
			return err
		}
		if k.Num != c.peer[i].Num {
			return c.fail("connected", errors.Errorf("the peer sent queue pair %#x as number %d, before it was %#x: start both ends with the same -q",
				uint32(k.Num), i, uint32(c.peer[i].Num)))
		}
	}
	if !t.OneSided {
		return nil // the barrier is each size's
	}
	return c.Barrier("connected")
}

// Barrier waits for the peer to come as far.
func (c *Conn) Barrier(step string) error {
	k, err := c.swapKey(step, &c.mine[0])
	if err == nil && k.Num != c.peer[0].Num {
		err = c.fail(step, errors.Errorf("the peer sent queue pair %#x, before it was %#x: start both ends with the same -q", uint32(k.Num), uint32(c.peer[0].Num)))
	}
	return err
}

// done is what both ends write last, with its final 0.
const done = "done\x00"

// Goodbye closes the exchange in good order: it returns when the peer has closed its
// end or said all that it has to say, so that our closing does not break its last
// write.
func (c *Conn) Goodbye() error {
	if err := c.Barrier("close"); err != nil {
		return err
	}
	// The peer may be gone already.
	_, _ = io.WriteString(c.c, done)
	_ = c.read(make([]byte, len(done)))
	return nil
}

// Linger waits until the peer closes its end, a step's limit at most.
func (c *Conn) Linger() {
	_ = c.c.SetDeadline(time.Now().Add(c.limit))
	_, _ = c.r.Peek(1)
}

// Watch tells the channel when the peer has gone on to its next step (nil), or is
// gone, until stop is called. Until then nothing else may use the connection.
func (c *Conn) Watch(step string) (news <-chan error, stop func()) {
	_ = c.c.SetDeadline(time.Time{})
	ch, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := c.r.Peek(1)
		ch <- c.fail(step, err)
	}()
	return ch, func() {
		_ = c.c.SetReadDeadline(time.Now())
		<-ended
	}
}
