package be

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
)

var noDeadline time.Time

// Pauses between tries when the peer says that an engine exists and this side
// has none: the peer has not noticed yet that the old one ended.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// Dial makes a socket for the named service to the node that listens at addr.
// The first dial brings an engine up; later ones, and those of other goroutines
// at the same time, share it; with Config.Workers, sockets go by turns to the pairs of
// a worker of ours and one of the peer's, each with an engine of its own. service is at most 200 bytes and means what the
// two applications want it to mean.
func (n *Node) Dial(ctx context.Context, addr, service string) (*Socket, error) {
	return n.DialWith(ctx, addr, service, SocketOptions{})
}

// SocketOptions say what kind of socket a dial makes. The zero value is that of
// Dial.
type SocketOptions struct {
	// Unordered has messages, both ways, delivered as they are whole, each still once:
	// an answer does not wait behind a longer one, or one for which there is no memory
	// yet. ErrUnsupported if the peer does not know such sockets.
	Unordered bool
}

// DialWith is Dial for a socket of another kind.
func (n *Node) DialWith(ctx context.Context, addr, service string, o SocketOptions) (*Socket, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if len(service) > maxService {
		return nil, fmt.Errorf("be: service name of %d bytes, at most %d", len(service), maxService)
	}
	turn := n.turnOf(addr)
	for try := 0; ; try++ {
		to := n.wayOf(addr, turn)
		r, err := n.route(ctx, to)
		if now := n.wayOf(addr, turn); err == nil && now != to { // the peer said how many workers it has
			r, err = n.route(ctx, now)
		}
		if err != nil {
			return nil, err
		}
		s, err := r.conn.open(ctx, r.listener, service, o)
		if err == nil {
			return s, nil
		}
		// The engine may have ended since it was looked up: dial anew, twice.
		if ctx.Err() != nil || !r.conn.dead.Load() || errors.Is(err, ErrRefused) || try == 2 {
			return nil, errors.Wrapf(&StepError{Step: StepOpen, Peer: addr, Err: err}, "be: dial %q", service)
		}
	}
}

// way is an address, and by which pair of workers to the node there.
type way struct {
	addr   string
	number int // of our worker
	theirs int // as in lane; or a wish, while it is not known how many the peer has
}

// route is where an address leads: an engine, and the listener behind it.
type route struct {
	conn     *conn
	listener uint32
}

// flight is a dial in progress that any number of callers wait for.
type flight struct {
	done  chan struct{}
	boot  *bootstrap
	route route
	err   error
}

// route finds the engine for an address, or brings one up.
func (n *Node) route(ctx context.Context, to way) (route, error) {
	n.mu.Lock()
	if n.closing {
		n.mu.Unlock()
		return route{}, errors.WithMessagef(ErrClosed, "be: dial %s: node", to.addr)
	}
	if r, ok := n.routes[to]; ok && !r.conn.dead.Load() {
		n.mu.Unlock()
		return r, nil
	}
	f := n.flights[to]
	if f == nil {
		f = &flight{done: make(chan struct{}), boot: &bootstrap{n: n, addr: to.addr, number: to.number, wish: max(to.theirs, 0)}}
		f.boot.enter(StepConnect)
		n.flights[to] = f
		n.wg.Add(1)
		go n.fly(to, f)
	}
	n.mu.Unlock()
	select {
	case <-f.done:
		return f.route, f.err
	case <-ctx.Done():
		return route{}, &StepError{Step: *f.boot.step.Load(), Peer: to.addr, Err: ctx.Err()}
	}
}

// fly brings an engine up for an address and lane and tells all who wait.
func (n *Node) fly(to way, f *flight) {
	defer n.wg.Done()
	ctx, cancel := context.WithTimeout(n.life, 8*n.cfg.StepTimeout)
	defer cancel()
	f.boot.enter("wait before the engine is rebuilt")
	n.awaitRebuild(ctx, to)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		f.route, f.err = n.connect(ctx, to.addr, f.boot)
		if errors.Is(f.err, ErrGIDType) && f.boot.gidType == "" {
			if f.boot.gidType = f.boot.their.commonType(&f.boot.own); f.boot.gidType != "" {
				continue // with a GID that the peer can reach
			}
		}
		if !errors.Is(f.err, errExists) {
			break
		}
		wait, stop := context.WithTimeout(ctx, n.cfg.StepTimeout)
		c := n.await(wait, f.boot.lane())
		stop()
		if c != nil && !c.dead.Load() {
			f.route, f.err = route{conn: c, listener: f.boot.their.Listener}, nil
			break
		}
		f.boot.enter("wait for the engine that the peer has")
		waitFor(ctx.Done(), pause)
		if ctx.Err() != nil {
			f.err = f.boot.fail(errExists)
			break
		}
	}
	if n.life.Err() != nil {
		f.err = ErrClosed
	}
	n.mu.Lock()
	delete(n.flights, to)
	if f.err == nil {
		n.routes[to] = f.route
		n.routes[way{to.addr, f.boot.number, f.boot.theirs}] = f.route
	}
	n.mu.Unlock()
	close(f.done)
}

// connect runs the dialer's bootstrap once.
func (n *Node) connect(ctx context.Context, addr string, b *bootstrap) (r route, err error) {
	b.q, b.conn, b.attempt, b.their, b.greeted = nil, nil, attempt{}, hello{}, false
	b.enter(StepConnect)
	dialCtx, cancel := context.WithTimeout(ctx, n.cfg.StepTimeout)
	b.attempt.line, err = n.cfg.Bootstrap.Dial(dialCtx, addr)
	cancel()
	if err != nil {
		return r, b.fail(err)
	}
	defer context.AfterFunc(n.life, func() { b.attempt.line.Close() })()
	if err = b.prepare(0); err == nil {
		err = b.greet()
	}
	if err == nil {
		if err = n.claimOut(b.lane(), &b.attempt); err == nil {
			if err = b.bringUp(true); err == nil {
				err = b.swapReady(true)
			}
			if n.aborted(&b.attempt) {
				err = errExists
			}
			if c := b.conn; c != nil && c.dead.Load() && err != nil && !errors.Is(err, errExists) {
				err = b.fail(*c.cause.Load()) // the line's end is what followed
			}
			if err != nil {
				n.release(b.lane(), &b.attempt, nil)
			}
		}
	}
	if err != nil {
		b.undo(err)
		return r, err
	}
	return route{conn: b.conn, listener: b.their.Listener}, nil
}

func (n *Node) aborted(a *attempt) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return a.aborted
}

// greet exchanges hellos as the dialer.
func (b *bootstrap) greet() error {
	b.enter("send our hello")
	if err := writeFrame(b.attempt.line, b.n.cfg.StepTimeout, &b.own); err != nil {
		return b.fail(err)
	}
	b.enter("read the peer's hello")
	if err := readFrame(b.attempt.line, b.n.cfg.StepTimeout, &b.their); err != nil {
		return b.fail(err)
	}
	if err := b.their.checkVersion(); err != nil {
		return b.fail(err)
	}
	if b.theirs = noPairs; b.their.Workers > 0 {
		b.theirs = b.their.Lane
	}
	b.n.learn(b.addr, &b.their)
	if r := b.their.Refused; r != nil {
		switch r.Code {
		case "exists":
			return errExists
		case "version":
			return b.fail(fmt.Errorf("%w: %s", ErrVersion, r.Text))
		case "gid_type":
			return b.fail(fmt.Errorf("%w: %w: %s", ErrRefused, ErrGIDType, strings.TrimPrefix(r.Text, ErrGIDType.Error()+": ")))
		}
		return b.fail(fmt.Errorf("%w: %s: %s", ErrRefused, r.Code, r.Text))
	}
	if b.their.Incarnation == b.n.id {
		return b.fail(fmt.Errorf("%w: the address is this node's own listener", ErrRefused))
	}
	b.greeted = true
	return nil
}

// open makes a socket on a connection's engine.
func (c *conn) open(ctx context.Context, listener uint32, service string, o SocketOptions) (*Socket, error) {
	s := newSocket(c, service)
	ok := c.w.submit(calling(func() {
		open := c.e.Open
		if o.Unordered {
			open = c.e.OpenUnordered
		}
		cs, err := open(listener, service, s)
		s.core = cs
		if err != nil {
			s.end(c.peerError(err))
			close(s.opened)
		}
		c.w.touch(c)
	}))
	if !ok {
		c.n.untrack(s)
		return nil, ErrClosed
	}
	select {
	case <-s.opened:
		if err := s.Err(); err != nil && s.core == nil || err != nil && errors.Is(err, ErrRefused) || err != nil && c.dead.Load() {
			c.n.untrack(s)
			return nil, err
		}
		return s, nil
	case <-ctx.Done():
		s.Close()
		return nil, fmt.Errorf("wait for the peer to accept: %w", ctx.Err())
	}
}

// waitFor waits for d or until stop is closed.
func waitFor(stop <-chan struct{}, d time.Duration) {
	select {
	case <-stop:
	case <-time.After(d):
	}
}
