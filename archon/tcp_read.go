package archon

import (
	"encoding/binary"
	"io"

	"github.com/pkg/errors"
)

const (
	readBuffer = 64 << 10 // what one read may gather of small messages
	// largeFrame is the length from which a message, when it has not arrived whole,
	// is read straight into its own buffer.
	largeFrame = 4 << 10
	// smallRead is what is read behind a large message: more large ones follow
	// probably, and what is read of them here must be copied.
	smallRead = 4 << 10
	// trusted is the length up to which a message's memory is taken because the peer
	// says so. Beyond, it is taken as the bytes arrive.
	trusted = 1<<20 + 4<<10
)

// readLoop delivers the messages that arrive, and at last why no more will.
func (s *tcpSocket) readLoop(fn func([]byte, error)) {
	r := frameReader{conn: s.conn, max: s.cfg.MaxMessage, buf: make([]byte, readBuffer), ask: readBuffer}
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

// frameReader cuts a connection's bytes into messages.
type frameReader struct {
	conn  io.Reader
	max   int // longest message
	buf   []byte
	begin int // buf[begin:end] was read and not yet cut
	end   int
	ask   int // bytes to read at once
}

// next gives the next message, in a buffer from the pool.
func (r *frameReader) next() ([]byte, error) {
	for r.end-r.begin < 4 {
		if err := r.fill(4); err != nil {
			return nil, err
		}
	}
	length := int64(binary.LittleEndian.Uint32(r.buf[r.begin:]))
	if length > int64(r.max) {
		return nil, errors.Wrapf(ErrProtocol, "tcp: message of %d bytes, at most %d are taken", length, r.max)
	}
	n := int(length)
	if n < largeFrame {
		for r.end-r.begin < 4+n {
			if err := r.fill(4 + n); err != nil {
				return nil, notEOF(err)
			}
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
