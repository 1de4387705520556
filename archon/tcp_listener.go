package archon

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/pkg/errors"
)

// maxHellos bounds the connections whose hello is under way, or which wait for
// Accept; more are closed.
const maxHellos = 512

type tcpListener struct {
	cfg    TCP
	l      net.Listener
	ready  chan *tcpSocket
	closed chan struct{}
	all    sync.WaitGroup

	mu     sync.Mutex
	hellos map[net.Conn]struct{} // nil after Close
	conns  int                   // sockets that live, and those to be welcomed
}

func newTCPListener(cfg TCP, l net.Listener) *tcpListener {
	t := &tcpListener{
		cfg: cfg, l: l, ready: make(chan *tcpSocket, maxHellos), closed: make(chan struct{}), hellos: map[net.Conn]struct{}{},
	}
	t.all.Go(t.accept)
	return t
}

func (t *tcpListener) Addr() net.Addr { return t.l.Addr() }

// accept takes connections until Close. What the system lacks for a moment, such as
// file descriptors, is waited for.
func (t *tcpListener) accept() {
	for {
		conn, err := t.l.Accept()
		if err == nil {
			t.admit(conn)
			continue
		}
		select {
		case <-t.closed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (t *tcpListener) admit(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hellos == nil || len(t.hellos)+len(t.ready) >= maxHellos {
		conn.Close()
		return
	}
	t.hellos[conn] = struct{}{}
	t.all.Go(func() { t.hello(conn) })
}

// hello does the listener's part of the hello. A peer that does not manage in time
// is disconnected.
func (t *tcpListener) hello(conn net.Conn) {
	h, err := t.welcome(conn)
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.hellos != nil
	delete(t.hellos, conn)
	if err != nil || !open {
		conn.Close()
		return
	}
	t.ready <- newTCPSocket(t.cfg, conn, h.service, int(h.max), t.ended) // admit keeps room
}

// welcome reads the hello and answers it. Without an error, the connection is counted.
func (t *tcpListener) welcome(conn net.Conn) (hello, error) {
	conn.SetDeadline(time.Now().Add(t.cfg.HelloTimeout))
	h, err := readHello(conn)
	result := uint8(welcomeOK)
	switch {
	case errors.Is(err, errVersion):
		result = welcomeBadVersion
	case errors.Is(err, ErrProtocol):
		result = welcomeBadHello
	case err != nil:
		return h, err
	case !t.count():
		result, err = welcomeFull, errFull
	}
	if _, werr := conn.Write(appendPrelude(nil, result, uint32(t.cfg.MaxMessage))); err == nil && werr != nil {
		t.ended()
		return h, werr
	}
	conn.SetDeadline(time.Time{})
	return h, err
}

// count counts a connection, unless there are as many as may be.
func (t *tcpListener) count() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns >= t.cfg.MaxConns {
		return false
	}
	t.conns++
	return true
}

// ended takes a connection off the count.
func (t *tcpListener) ended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns--
}

func (t *tcpListener) Accept(ctx context.Context) (Socket, error) {
	select {
	case <-t.closed:
		return nil, errors.WithMessage(net.ErrClosed, "tcp")
	default:
	}
	select {
	case s := <-t.ready:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.closed:
		return nil, errors.WithMessage(net.ErrClosed, "tcp")
	}
}

func (t *tcpListener) Close() error {
	t.mu.Lock()
	if t.hellos == nil {
		t.mu.Unlock()
		return nil
	}
	for conn := range t.hellos {
		conn.Close()
	}
	t.hellos = nil
	close(t.closed)
	t.mu.Unlock()
	err := t.l.Close()
	t.all.Wait()
	for {
		select {
		case s := <-t.ready:
			s.Close()
		default:
			return err
		}
	}
}
