package archon

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"
)

// tcpSocket is one TCP connection after its hello. A writer goroutine lives from
// the start and a reader goroutine from OnMessage on, both until Close or an error.
type tcpSocket struct {
	cfg               TCP
	conn              net.Conn
	service           string
	peerMax           int           // longest message that the peer takes
	ended             func()        // hears of the end once; nil: nobody does
	arrived, departed atomic.Uint64 // bytes

	mu     sync.Mutex
	err    error // why the socket ended
	wake   sync.Cond
	idle   bool       // the writer waits for wake
	queue  []outgoing // to be written
	queued int        // bytes in queue and at the writer
}

func newTCPSocket(cfg TCP, conn net.Conn, service string, peerMax int, ended func()) *tcpSocket {
	s := &tcpSocket{cfg: cfg, conn: conn, service: service, peerMax: peerMax, ended: ended}
	s.wake.L = &s.mu
	go s.writeLoop()
	return s
}

func (s *tcpSocket) Alloc(size int) ([]byte, error) {
	if size < 0 || size > s.peerMax {
		return nil, errors.Errorf("tcp: buffer of %d bytes, the peer takes messages of at most %d", size, s.peerMax)
	}
	return buffers.get(size), nil
}

func (s *tcpSocket) Free(b []byte)   { buffers.put(b) }
func (s *tcpSocket) MaxMessage() int { return s.peerMax }
func (s *tcpSocket) Service() string { return s.service }

func (s *tcpSocket) OnMessage(fn func(b []byte, err error)) { go s.readLoop(fn) }

// Arrived is how many bytes have come, of messages that are not whole yet too.
func (s *tcpSocket) Arrived() uint64 { return s.arrived.Load() }

// Departed is how many bytes the system has taken to send, likewise.
func (s *tcpSocket) Departed() uint64 { return s.departed.Load() }

// Close ends the connection.
func (s *tcpSocket) Close() error {
	s.fail(errTCPClosed)
	return nil
}

var errTCPClosed = errors.WithMessage(net.ErrClosed, "tcp: closed on this side")

// fail ends the socket with err, unless it has ended before, and gives the error
// that it ended with.
func (s *tcpSocket) fail(err error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
		s.conn.Close()
		s.wake.Signal()
	}
	err = s.err
	s.mu.Unlock()
	if first && s.ended != nil {
		s.ended()
	}
	return err
}
