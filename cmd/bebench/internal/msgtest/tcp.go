package msgtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be"
)

// A message on a TCP connection is its length in 4 bytes, then its bytes. The first
// of a connection, from the dialing side, is the number of the socket.
const lengthBytes = 4

// readBuffer is what one read takes at most of short messages; a longer message is read
// straight into its buffer.
const readBuffer = 64 << 10

// overTCP is messages over TCP connections, one a socket, as somebody would write it who
// has no RDMA: with batch, all messages that are posted on a socket go out in one
// writev, by a goroutine of the socket's; without, Post writes.
type overTCP struct {
	batch bool
	send  int // Params.TCPBuffer
	ln    net.Listener
	mu    sync.Mutex
	idle  [][]byte // buffers to use again
}

func (o *overTCP) alloc(n int) ([]byte, error) { return make([]byte, n), nil }

// buffer gives a buffer for a message that comes.
func (o *overTCP) buffer(n int) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.idle) - 1; last >= 0 {
		b := o.idle[last]
		o.idle = o.idle[:last]
		if cap(b) >= n {
			return b[:n]
		}
	}
	return make([]byte, n)
}

func (o *overTCP) free(b []byte) {
	o.mu.Lock()
	o.idle = append(o.idle, b)
	o.mu.Unlock()
}

func (o *overTCP) listen(host string) (addr string, err error) {
	if o.ln, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return "", err
	}
	return o.ln.Addr().String(), nil
}

func (o *overTCP) accept(ctx context.Context) (socket, string, error) {
	defer context.AfterFunc(ctx, func() { _ = o.ln.Close() })()
	c, err := o.ln.Accept()
	if err != nil {
		return nil, "", errors.Wrap(explain(err), "accept")
	}
	s := o.newSocket(c)
	number, err := s.Recv(ctx)
	if err != nil {
		_ = s.Close()
		return nil, "", errors.Wrap(err, "number of a socket")
	}
	return s, string(number), nil
}

func (o *overTCP) dial(ctx context.Context, addr string, number int) (socket, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, explain(err)
	}
	s := o.newSocket(c)
	err = s.Post([]byte(strconv.Itoa(number)), func(error) {})
	return s, err
}

// explain names the remedy for what a test with many sockets meets.
func explain(err error) error {
	if errors.Is(err, syscall.EMFILE) {
		return errors.WithMessage(err, "a socket over TCP takes a file at each end: raise `ulimit -n`, or use fewer --sockets")
	}
	return err
}

func (o *overTCP) read() reading            { return reading{} }
func (o *overTCP) queues() map[string]int64 { return nil }

func (o *overTCP) close() error {
	if o.ln != nil {
		_ = o.ln.Close()
	}
	return nil
}

// tcpSocket is one connection.
type tcpSocket struct {
	o *overTCP
	c net.Conn
	r *bufio.Reader

	post    chan posted // nil: Post writes
	running sync.WaitGroup
	heads   []byte      // of the messages that are written
	vector  net.Buffers // their parts
	batch   []posted

	// The message that is read.
	head [lengthBytes]byte
	b    []byte
	got  int // bytes of both

	mu   sync.Mutex // of what follows, to change it
	ctx  context.Context
	stop func() bool
}

type posted struct {
	b    []byte
	done func(error)
}

// mostBatch is the messages of one writev, half of Linux's IOV_MAX.
const mostBatch = 512

func (o *overTCP) newSocket(c net.Conn) *tcpSocket {
	if t, ok := c.(*net.TCPConn); ok && o.send > 0 {
		_ = t.SetWriteBuffer(o.send) // the system's stays, if it may not
	}
	s := &tcpSocket{o: o, c: c, r: bufio.NewReaderSize(c, readBuffer), heads: make([]byte, 0, mostBatch*lengthBytes)}
	if o.batch {
		s.post = make(chan posted, mostBatch)
		s.running.Go(s.writeLoop)
	}
	return s
}

func (s *tcpSocket) MaxMessage() int { return be.DefaultMaxMessage }

func (s *tcpSocket) Post(b []byte, done func(error)) error {
	p := posted{b, done}
	if s.post != nil {
		s.post <- p
		return nil
	}
	s.batch = append(s.batch[:0], p)
	s.write()
	return nil
}

// writeLoop writes what was posted, as much at once as there is.
func (s *tcpSocket) writeLoop() {
	for p := range s.post {
		s.batch = append(s.batch[:0], p)
		for more := true; more && len(s.batch) < mostBatch; {
			select {
			case p, more = <-s.post:
				if more {
					s.batch = append(s.batch, p)
				}
			default:
				more = false
			}
		}
		s.write()
	}
}

// write writes the batch and ends its messages.
func (s *tcpSocket) write() {
	s.heads, s.vector = s.heads[:0], s.vector[:0]
	for _, p := range s.batch {
		s.heads = binary.BigEndian.AppendUint32(s.heads, uint32(len(p.b)))
		s.vector = append(s.vector, s.heads[len(s.heads)-lengthBytes:], p.b)
	}
	v := s.vector // WriteTo moves it on
	_, err := v.WriteTo(s.c)
	for _, p := range s.batch {
		p.done(err)
	}
}

// Recv goes on where one broke off whose context ended.
func (s *tcpSocket) Recv(ctx context.Context) ([]byte, error) {
	s.until(ctx)
	for s.got < lengthBytes {
		n, err := s.r.Read(s.head[s.got:])
		if s.got += n; err != nil {
			return nil, ended(ctx, err)
		}
	}
	if s.b == nil {
		n := binary.BigEndian.Uint32(s.head[:])
		if n > be.DefaultMaxMessage {
			return nil, errors.Errorf("receive: message of %d bytes, at most %d", n, be.DefaultMaxMessage)
		}
		s.b = s.o.buffer(int(n))
	}
	for s.got < lengthBytes+len(s.b) {
		n, err := s.r.Read(s.b[s.got-lengthBytes:])
		if s.got += n; err != nil {
			return nil, ended(ctx, err)
		}
	}
	b := s.b
	s.b, s.got = nil, 0
	return b, nil
}

// until has reads break off when ctx ends. It is the same for many messages.
func (s *tcpSocket) until(ctx context.Context) {
	if s.ctx == ctx {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
	s.ctx = ctx
	_ = s.c.SetReadDeadline(time.Time{})
	s.stop = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ctx == ctx {
			_ = s.c.SetReadDeadline(time.Unix(1, 0))
		}
	})
}

// ended gives the context's error, if its end is why a read broke off.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Wrap(err, "receive")
}

func (s *tcpSocket) Close() error {
	err := s.c.Close()
	if s.stop != nil {
		s.stop()
	}
	if s.post != nil {
		close(s.post)
		s.running.Wait()
	}
	return err
}
