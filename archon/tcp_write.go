package archon

import (
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/pkg/errors"
)

const (
	// copyBelow is the length below which a message is copied next to its
	// neighbours instead of having an element of the vector to itself.
	copyBelow = 4 << 10
	// One write gathers at most so much, so that buffers come back in time.
	gatherBuffer   = 64 << 10
	gatherElements = 64
	gatherBytes    = 1 << 20
	// maxVector is the most elements that one writev takes (IOV_MAX of Linux).
	maxVector = 1024
)

// outgoing is a message in the queue.
type outgoing struct {
	b     []byte
	parts [][]byte // behind b; the poster's, b too then
	n     int      // bytes of all
	done  func(error)
}

func (s *tcpSocket) Post(b []byte, done func(error)) error {
	return s.post(outgoing{b: b, n: len(b), done: done})
}

// PostGather sends from any memory, by a vector of the parts.
func (s *tcpSocket) PostGather(head []byte, parts [][]byte, done func(error)) error {
	n := len(head)
	for _, p := range parts {
		n += len(p)
	}
	if parts == nil {
		parts = [][]byte{} // gathered all the same
	}
	return s.post(outgoing{b: head, parts: parts, n: n, done: done})
}

func (s *tcpSocket) post(o outgoing) error {
	if o.n > s.peerMax {
		return errors.Errorf("tcp: message of %d bytes, the peer takes at most %d", o.n, s.peerMax)
	}
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	if s.queued > s.cfg.MaxQueued {
		s.mu.Unlock()
		return ErrQueueFull
	}
	s.queue = append(s.queue, o)
	s.queued += o.n
	if s.idle {
		s.idle = false
		s.wake.Signal()
	}
	s.mu.Unlock()
	return nil
}

// writeLoop writes what is queued, as much at once as there is.
func (s *tcpSocket) writeLoop() {
	g := gather{conn: s.conn, small: make([]byte, 0, gatherBuffer), departed: &s.departed}
	var batch []outgoing
	written := 0
	for {
		s.mu.Lock()
		s.queued -= written
		for len(s.queue) == 0 && s.err == nil {
			s.idle = true
			s.wake.Wait()
		}
		s.idle = false
		batch, s.queue = s.queue, batch[:0]
		err := s.err
		s.mu.Unlock()
		written = 0
		for rest := batch; len(rest) > 0; {
			n, write := 1, g.writeParts
			if rest[0].parts == nil {
				n, write = g.take(rest), g.write
			}
			if err == nil {
				if werr := write(&rest[0]); werr != nil {
					err = s.fail(errors.WithMessage(werr, "tcp"))
				}
			}
			for i := range rest[:n] {
				o := &rest[i]
				written += o.n
				if err != nil && o.parts == nil {
					buffers.put(o.b)
				}
				o.done(err)
				*o = outgoing{}
			}
			rest = rest[n:]
		}
		if err != nil && s.drained() {
			return
		}
	}
}

// drained tells that the ended socket's queue is empty; it stays so.
func (s *tcpSocket) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) == 0
}

// gather makes one vector of many messages.
type gather struct {
	conn   net.Conn
	small  []byte // lengths and short messages; never grows
	vector [gatherElements][]byte
	n      int      // elements of vector
	long   [][]byte // the vector of a gathered message
	out    net.Buffers
	part   [1][]byte // of a long element

	departed *atomic.Uint64 // bytes written
}

// take gathers from the front of queue, at least one message, and tells how many.
func (g *gather) take(queue []outgoing) int {
	g.small, g.n = g.small[:0], 0
	from, bytes := 0, 0 // small[from:] is not in the vector yet
	for i, o := range queue {
		short := len(o.b) < copyBelow
		need := 4
		if short {
			need += len(o.b)
		}
		// Two elements may be needed: what is in small so far, and the message.
		if o.parts != nil || len(g.small)+need > cap(g.small) || g.n+3 > gatherElements || bytes >= gatherBytes {
			g.flushSmall(&from)
			return i
		}
		g.small = binary.LittleEndian.AppendUint32(g.small, uint32(len(o.b)))
		bytes += len(o.b)
		if short {
			g.small = append(g.small, o.b...)
			continue
		}
		g.flushSmall(&from)
		g.vector[g.n] = o.b
		g.n++
	}
	g.flushSmall(&from)
	return len(queue)
}

func (g *gather) flushSmall(from *int) {
	if *from < len(g.small) {
		g.vector[g.n] = g.small[*from:]
		g.n++
		*from = len(g.small)
	}
}

func (g *gather) write(*outgoing) error { return g.writeVector(g.vector[:g.n]) }

// writeChunk is how many bytes are written at once at most, so that the count of those
// that have left moves on while a long message does.
const writeChunk = 4 << 20

// writeVector writes v, which it uses up.
func (g *gather) writeVector(v [][]byte) error {
	for len(v) > 0 {
		n, size := 0, 0
		for n < len(v) && size+len(v[n]) <= writeChunk {
			size += len(v[n])
			n++
		}
		if n > 0 {
			g.out, v = v[:n], v[n:]
		} else { // the beginning of a long one
			size = writeChunk
			g.part[0], v[0] = v[0][:size], v[0][size:]
			g.out = g.part[:]
		}
		if _, err := g.out.WriteTo(g.conn); err != nil {
			return err
		}
		g.departed.Add(uint64(size))
	}
	return nil
}

// writeParts writes a gathered message: its parts are not copied.
func (g *gather) writeParts(o *outgoing) error {
	g.small = binary.LittleEndian.AppendUint32(g.small[:0], uint32(o.n))
	g.long = append(g.long[:0], g.small, o.b)
	for _, p := range o.parts {
		if len(g.long) == maxVector {
			if err := g.writeLong(); err != nil {
				return err
			}
		}
		g.long = append(g.long, p)
	}
	return g.writeLong()
}

func (g *gather) writeLong() error {
	err := g.writeVector(g.long)
	clear(g.long)
	g.long = g.long[:0]
	return err
}
