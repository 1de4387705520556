package be

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/internal/wire"
)

const (
	maxService    = wire.MaxService
	acceptBacklog = 1024 // sockets that wait for Accept
	maxGreeting   = 256  // clients of one listener in the bootstrap at a time
)

// Listener takes sockets of peers that dialed its address. Up to 1,024 of them wait for
// Accept; a dial beyond that is refused with ErrBusy.
type Listener struct {
	n    *Node
	id   uint32
	line net.Listener
	done chan struct{}
	slot chan struct{} // one token a client in the bootstrap

	mu      sync.Mutex
	closed  bool
	sockets chan *Socket
}

// Listen starts to take peers at an address of Config.Bootstrap, as "127.0.0.1:0".
// Clients that misbehave are dropped; the listener goes on.
func (n *Node) Listen(addr string) (*Listener, error) {
	t, err := n.cfg.Bootstrap.Listen(addr)
	if err != nil {
		return nil, errors.Wrapf(err, "be: listen on %s: it must be an address of this host, and a port that is free, or 0 for any", addr)
	}
	l := &Listener{n: n, line: t, done: make(chan struct{}), slot: make(chan struct{}, maxGreeting), sockets: make(chan *Socket, acceptBacklog)}
	n.mu.Lock()
	if n.closing {
		n.mu.Unlock()
		t.Close()
		return nil, errors.WithMessagef(ErrClosed, "be: listen on %s: node", addr)
	}
	n.lastListener++
	l.id = n.lastListener
	n.listeners[l.id] = l
	n.wg.Add(1)
	n.mu.Unlock()
	go l.serve()
	return l, nil
}

// Addr is the address that peers dial.
func (l *Listener) Addr() net.Addr { return l.line.Addr() }

// Accept waits for the next socket. ErrClosed after Close.
func (l *Listener) Accept(ctx context.Context) (*Socket, error) {
	select {
	case s := <-l.sockets:
		return s, nil
	default:
	}
	if ctx == nil {
		return nil, errNoContext
	}
	select {
	case s := <-l.sockets:
		return s, nil
	case <-l.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close stops listening. Sockets that were accepted stay open; those that wait
// for Accept are closed.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.n.mu.Lock()
	delete(l.n.listeners, l.id)
	l.n.mu.Unlock()
	err := l.line.Close()
	close(l.done)
	for {
		select {
		case s := <-l.sockets:
			s.Close()
		default:
			return err
		}
	}
}

// offer puts a socket into the accept queue; false when it is full or closed.
func (l *Listener) offer(s *Socket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	select {
	case l.sockets <- s:
		return true
	default:
		return false
	}
}

// serve accepts connections until Close.
func (l *Listener) serve() {
	defer l.n.wg.Done()
	for {
		c, err := l.line.Accept()
		if err != nil {
			select {
			case <-l.done:
				return
			default:
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			waitFor(l.done, lastPause) // out of descriptors, for one: the next may work
			continue
		}
		select {
		case l.slot <- struct{}{}:
			l.n.wg.Add(1)
			go l.greet(c)
		default:
			c.Close()
		}
	}
}

// greet runs the listener's bootstrap with one client.
func (l *Listener) greet(c net.Conn) {
	n := l.n
	defer n.wg.Done()
	defer func() { <-l.slot }()
	b := &bootstrap{n: n, attempt: attempt{line: c}, addr: c.RemoteAddr().String()}
	defer context.AfterFunc(n.life, func() { c.Close() })()
	if err := l.bootstrap(b); err != nil {
		n.badClients.Add(1)
		b.undo(err)
	}
}

func (l *Listener) bootstrap(b *bootstrap) error {
	n := b.n
	b.enter("read the client's hello")
	if err := readFrame(b.attempt.line, n.cfg.StepTimeout, &b.their); err != nil {
		return b.fail(err)
	}
	refuse := func(code string, err error) error {
		h := n.hello(l.id)
		h.Lane, h.GIDTypes = b.number, b.path.types
		h.Refused = &refusal{Code: code, Text: err.Error()}
		writeFrame(b.attempt.line, n.cfg.StepTimeout, &h)
		return fmt.Errorf("%w: %w", errSaid, err)
	}
	if err := b.their.checkVersion(); err != nil {
		return refuse("version", err)
	}
	id := b.their.Incarnation
	if id == n.id {
		return refuse("self", errors.New("the address is the node's own listener"))
	}
	if b.number = b.their.Lane; b.number < 0 || b.number >= maxWorkers {
		return refuse("lane", fmt.Errorf("%w: lane %d, at most %d", ErrProtocol, b.number, maxWorkers-1))
	}
	b.theirs = noPairs
	if b.their.Workers > 0 {
		if b.their.PeerLane < 0 {
			return refuse("lane", fmt.Errorf("%w: peer lane %d, at least 0", ErrProtocol, b.their.PeerLane))
		}
		b.number, b.theirs = b.their.PeerLane%len(n.workers), b.their.Lane
	}
	if err := n.claimIn(b.lane(), &b.attempt); err != nil {
		return refuse("exists", err)
	}
	b.gidType = b.their.GIDType // the dialer has chosen
	err := b.prepare(l.id)
	if err != nil {
		err = refuse("setup", err)
	} else if _, bad := b.their.agree(&b.own, b.path.port.LinkLayer); bad != nil {
		code := "path"
		if errors.Is(bad, ErrGIDType) {
			code = "gid_type"
		}
		err = refuse(code, bad)
	}
	if err == nil && n.aborted(&b.attempt) {
		err = refuse("exists", errExists)
	}
	if err == nil {
		b.enter("send our hello")
		err = b.fail(writeFrame(b.attempt.line, n.cfg.StepTimeout, &b.own))
	}
	if err == nil && !n.answered(&b.attempt) {
		err = errExists
	}
	if err == nil {
		b.greeted = true
		err = b.bringUp(false)
	}
	if err == nil {
		err = b.swapReady(false)
	}
	if err != nil {
		n.release(b.lane(), &b.attempt, nil)
	}
	return err
}
