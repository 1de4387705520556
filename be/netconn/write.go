package netconn

import (
	"io"
	"sync"
	"syscall"
)

const (
	// SendBuffer is how many bytes of one Conn may wait for the device before Write
	// waits: enough to keep 100 Gb/s busy for 80 microseconds, several round trips.
	SendBuffer = 1 << 20
	// chunk is how many bytes go in one message: the default fragment, so that
	// sockets of one engine take turns, and several chunks are under way at a time.
	chunk = 64 << 10
	// packetCost is what a message takes of SendBuffer beside its bytes: the least
	// that the allocator cuts, so that small Writes do not pile up.
	packetCost = 256
)

// Write queues p, copied to registered memory, and returns when all of it is queued.
// After an error, n bytes are.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if len(p) == 0 {
		return 0, c.opError("write", c.usable(c.wr.current()))
	}
	for n < len(p) {
		b, err := c.buffer(len(p) - n)
		if err != nil {
			return n, c.opError("write", err)
		}
		copy(b, p[n:])
		if err := c.post(b); err != nil {
			return n, c.opError("write", err)
		}
		n += len(b)
	}
	return n, nil
}

// ReadFrom queues all that r gives until io.EOF, which is no error, and reads it
// straight into registered memory. A Write at the same time waits for its end.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	for {
		b, err := c.buffer(chunk)
		if err != nil {
			return n, c.opError("write", err)
		}
		k, rerr := r.Read(b)
		if k == 0 {
			c.node.Free(b)
		} else if err := c.post(b[:k]); err != nil {
			return n, c.opError("write", err)
		}
		n += int64(k)
		if rerr == io.EOF {
			return n, nil
		}
		if rerr != nil {
			return n, rerr
		}
	}
}

// pass queues a received message as it is. It takes the buffer in any case.
func (c *Conn) pass(b []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	err := c.room()
	if err != nil {
		c.node.Free(b)
	} else {
		err = c.post(b)
	}
	return c.opError("write", err)
}

// buffer waits for room and gives a buffer for the next n bytes or less.
func (c *Conn) buffer(n int) ([]byte, error) {
	if err := c.room(); err != nil {
		return nil, err
	}
	return c.node.Alloc(min(n, chunk, c.sock.MaxMessage()))
}

// room waits until something may be queued.
func (c *Conn) room() error {
	until := c.wr.current()
	for {
		if err := c.usable(until); err != nil {
			return err
		}
		if c.queued.Load() < SendBuffer {
			return nil
		}
		select {
		case <-c.wake:
		case <-until.Done():
		}
	}
}

// usable is why nothing can be written any more.
func (c *Conn) usable(until *expiry) error {
	if err := until.Err(); err != nil {
		return err
	}
	if c.fin.Load() {
		return syscall.EPIPE
	}
	if err := c.werr.Load(); err != nil {
		return *err
	}
	return cause(c.sock.Err(), syscall.EPIPE)
}

// post queues a buffer, and takes it in any case. The caller has wmu.
func (c *Conn) post(b []byte) error {
	p := newPacket()
	p.c, p.b = c, b
	c.queued.Add(int64(len(b)) + packetCost)
	err := c.sock.Post(b, p.done)
	if err != nil {
		c.node.Free(b)
		p.end()
	}
	return cause(err, syscall.EPIPE)
}

// packet is one message that was queued.
type packet struct {
	c    *Conn
	b    []byte
	done func(error) // finish
}

var packets sync.Pool

func newPacket() *packet {
	if p, ok := packets.Get().(*packet); ok {
		return p
	}
	p := new(packet)
	p.done = p.finish
	return p
}

// finish runs on the node's worker.
func (p *packet) finish(err error) {
	if err == nil {
		p.c.node.Free(p.b)
	} else {
		why := cause(err, syscall.EPIPE)
		p.c.werr.CompareAndSwap(nil, &why)
	}
	p.end()
}

// end gives the message's room back.
func (p *packet) end() {
	c, n := p.c, int64(len(p.b))+packetCost
	p.c, p.b = nil, nil
	packets.Put(p)
	c.queued.Add(-n)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
