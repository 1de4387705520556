package archon

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

const (
	readBuffer = 64 << 10 // what one read may gather of small messages
	// largeFrame is the length from which a message, when it has not arrived whole,
	// is read straight into its own buffer: that saves a copy and takes a read of its own.
	largeFrame = 16 << 10
	// smallRead is what is read behind a large message: more large ones follow
	// probably, and what is read of them here must be copied.
	smallRead = 4 << 10
	// trusted is the length up to which a message's memory is taken because the peer
	// says so. Beyond, it is taken as the bytes arrive.
	trusted = 1<<20 + 4<<10
)

// readLoop delivers the messages that arrive, and at last why no more will.
func (s *tcpSocket) readLoop(fn func([]byte, error)) {
	conn := deadlineReader{conn: s.conn, timeout: s.cfg.MessageTimeout, arrived: &s.arrived}
	r := frameReader{conn: &conn, max: s.cfg.MaxMessage, buf: make([]byte, readBuffer), ask: readBuffer}
	for {
		b, err := r.next()
		if err != nil {
			if err == io.EOF {
				err = errors.WithMessage(err, "tcp: the peer closed the connection")
			}
			fn(nil, s.fail(err))
			return
		}
		fn(b, nil)
	}
}

// deadlineReader reads from a connection, and fails when what has begun does not
// arrive in time.
type deadlineReader struct {
	conn    net.Conn
	timeout time.Duration
	set     bool // the connection has a deadline
	arrived *atomic.Uint64
}

func (r *deadlineReader) Read(b []byte) (int, error) {
	n, err := r.conn.Read(b)
	r.arrived.Add(uint64(n))
	return n, err
}

// begun gives what is read from here on its time, from now; whole, all of it.
func (r *deadlineReader) begun() {
	r.set = true
	r.conn.SetReadDeadline(time.Now().Add(r.timeout))
}

func (r *deadlineReader) whole() {
	if r.set {
		r.set = false
		r.conn.SetReadDeadline(time.Time{})
	}
}

// frameSource is where a frameReader's bytes come from. It hears when a message has
// begun to arrive and is waited for, or another MiB of it, and when none is.
type frameSource interface {
	io.Reader
	begun()
	whole()
}

// frameReader cuts a connection's bytes into messages.
type frameReader struct {
	conn  frameSource
	max   int // longest message
	buf   []byte
	begin int // buf[begin:end] was read and not yet cut
	end   int
	ask   int // bytes to read at once
}

// next gives the next message, in a buffer from the pool.
func (r *frameReader) next() ([]byte, error) {
	if r.begin == r.end {
		r.conn.whole()
		if err := r.fill(4); err != nil {
			return nil, err
		}
	}
	if err := r.need(4); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(r.buf[r.begin:]))
	if length > int64(r.max) {
		return nil, errors.Wrapf(ErrProtocol, "tcp: message of %d bytes, at most %d are taken", length, r.max)
	}
	n := int(length)
	if n < largeFrame {
		if err := r.need(4 + n); err != nil {
			return nil, err
		}
	}
	b := buffers.get(min(n, trusted))
	have := copy(b, r.buf[r.begin+4:r.end])
	r.begin += 4 + have
	r.ask = readBuffer
	if have == n {
		return b, nil
	}
	r.ask = smallRead
	for {
		r.conn.begun()
		if _, err := io.ReadFull(r.conn, b[have:]); err != nil {
			buffers.put(b)
			return nil, notEOF(err)
		}
		if len(b) == n {
			return b, nil
		}
		more := buffers.get(min(n, 2*len(b)))
		have = copy(more, b)
		buffers.put(b)
		b = more
	}
}

// need reads until n bytes of the message are there, which has begun.
func (r *frameReader) need(n int) error {
	if r.end-r.begin >= n {
		return nil
	}
	r.conn.begun()
	for r.end-r.begin < n {
		if err := r.fill(n); err != nil {
			return notEOF(err)
		}
	}
	return nil
}

// fill reads once, after it has made room for n bytes from begin on. An end of the
// connection between messages is io.EOF.
func (r *frameReader) fill(n int) error {
	if r.begin == r.end {
		r.begin, r.end = 0, 0
	} else if r.begin+n > len(r.buf) {
		r.end = copy(r.buf, r.buf[r.begin:r.end])
		r.begin = 0
	}
	got, err := r.conn.Read(r.buf[r.end:min(len(r.buf), r.end+r.ask)])
	r.end += got
	if got > 0 {
		return nil
	}
	if err == io.EOF && r.end > r.begin {
		return notEOF(err)
	}
	if err == nil {
		return nil
	}
	return err
}

func notEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.WithMessage(io.ErrUnexpectedEOF, "tcp: the connection ended inside a message")
	}
	return err
}
