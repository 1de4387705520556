package netconn

import (
	"io"
)

// Read copies what has come, and waits if that is nothing. It is io.EOF after the
// peer's CloseWrite or Close, and io.ErrUnexpectedEOF, wrapped, when the peer's node
// closed or gave up before.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.rmu.Lock()
	err := c.fill()
	n := 0
	if err == nil {
		n = copy(p, c.rest)
		c.consume(n)
	}
	c.rmu.Unlock()
	c.reap()
	return n, c.opError("read", err)
}

// WriteTo writes to w, out of the buffers that messages came in, all that comes
// until the end of the stream, which is no error. If w is a Conn of the same node,
// it is given the buffers themselves.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	c.rmu.Lock()
	defer c.reap()
	defer c.rmu.Unlock()
	dst, _ := w.(*Conn)
	for {
		if err := c.fill(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, c.opError("read", err)
		}
		k := len(c.rest)
		if dst != nil && dst.node == c.node && k == len(c.buf) && k <= dst.sock.MaxMessage() {
			b := c.buf
			c.buf, c.rest = nil, nil
			if err := dst.pass(b); err != nil {
				return n, err
			}
		} else {
			k, err = w.Write(c.rest)
			c.consume(k)
		}
		n += int64(k)
		if err != nil {
			return n, err
		}
	}
}

// fill waits until there is something to read. The caller has rmu.
func (c *Conn) fill() error {
	until := c.rd.current()
	if err := until.Err(); err != nil {
		return err
	}
	if len(c.rest) > 0 {
		return nil
	}
	if c.eof {
		return io.EOF
	}
	b, err := c.sock.Recv(until)
	if err != nil {
		return cause(err, io.ErrUnexpectedEOF)
	}
	if len(b) == 0 {
		c.node.Free(b)
		c.eof = true
		return io.EOF
	}
	c.buf, c.rest = b, b
	return nil
}

// consume takes n bytes off the message, and frees it when they were the last.
func (c *Conn) consume(n int) {
	c.rest = c.rest[n:]
	if len(c.rest) == 0 {
		c.node.Free(c.buf)
		c.buf, c.rest = nil, nil
	}
}

// reap frees the message that is being read once the Conn is closed. Both Close and
// whoever gives rmu back call it, without rmu: of two that overlap, the one that
// finds rmu taken leaves it to the other.
func (c *Conn) reap() {
	if c.closed.Load() && c.rmu.TryLock() {
		c.node.Free(c.buf)
		c.buf, c.rest = nil, nil
		c.rmu.Unlock()
	}
}
