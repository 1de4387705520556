package archon

// serverSend is a message of a server that is no response, on its way out.
type serverSend struct {
	conn  *serverConn
	raw   []byte
	bytes int  // of it that count as waiting to be sent
	pong  bool // counts as one
	fn    func(error)
}

func (n *serverSend) sent(err error) {
	c := n.conn
	if err == nil {
		c.sock.Free(n.raw)
	}
	n.done()
}

func (n *serverSend) done() {
	c := n.conn
	if n.bytes != 0 {
		c.server.respSize.Add(-int64(n.bytes))
	}
	if n.pong {
		c.pongs.Add(-1)
	}
	*n = serverSend{fn: n.fn}
	c.server.sends.Put(n)
}

// postItem sends an item's message, of which n bytes are accounted for. With an
// error, all stays the caller's.
func (c *serverConn) postItem(raw []byte, n int) error {
	if c.short != nil {
		switch err := c.short.PostShort(raw); err {
		case nil:
			c.server.respSize.Add(-int64(n))
			c.sock.Free(raw)
			return nil
		case ErrNotShort:
		default: // a short one that is to wait is sooner copied later
			return err
		}
	}
	s := c.server.sends.Get().(*serverSend)
	s.conn, s.raw, s.bytes = c, raw, n
	err := c.sock.Post(raw, s.fn)
	if err != nil {
		s.bytes = 0
		s.done()
	}
	return err
}

// tell sends a header and a detail, if it can be sent at once.
func (c *serverConn) tell(h header, detail string, pong bool) {
	b, err := allocBuf(c.sock, nil, len(detail))
	if err != nil {
		return
	}
	h.detail = uint32(len(detail))
	h.put(b.raw)
	copy(b.Payload(), detail)
	if c.postShort(b.raw) {
		c.sock.Free(b.raw)
		return
	}
	s := c.server.sends.Get().(*serverSend)
	s.conn, s.raw, s.pong = c, b.raw, pong
	if pong {
		c.pongs.Add(1)
	}
	if c.sock.Post(b.raw, s.fn) != nil {
		c.sock.Free(b.raw)
		s.done()
	}
}

// pong answers a ping, unless the client does not read its answers.
func (c *serverConn) pong(id CallID) {
	if c.pongs.Load() < 2*maxPings {
		c.tell(header{kind: kindPong, id: id, method: c.server.cfg.Incarnation}, "", true)
	}
}
