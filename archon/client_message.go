package archon

import "github.com/pkg/errors"

// onMessage takes what the server sends. It runs on the socket's goroutine.
func (c *Client) onMessage(b []byte, err error) {
	if err != nil {
		c.fail(&Error{Code: Unavailable, Message: "connection lost", Cause: err})
		close(c.done)
		return
	}
	h, err := parseHeader(b)
	if err == nil {
		err = c.message(&h, b)
	}
	if err != nil {
		c.sock.Free(b)
		c.sock.Close()
		c.fail(&Error{Code: Unavailable, Message: "the server's message", Cause: err})
	}
}

// message takes one message. With an error, b is still to be freed.
func (c *Client) message(h *header, b []byte) error {
	c.received.Add(1)
	switch h.kind {
	case kindResponse:
		return c.response(h, b)
	case kindItem:
		return c.item(h, b)
	case kindPong:
		return c.pong(h, b)
	case kindGoAway:
		c.goAway(h, b)
		return nil
	}
	return errors.Wrapf(ErrProtocol, "message of kind %d from a server", h.kind)
}

// response ends a call.
func (c *Client) response(h *header, b []byte) error {
	c.mu.Lock()
	used := c.calls.used(h.id)
	call := c.calls.take(h.id)
	c.mu.Unlock()
	switch {
	case !used:
		return errors.Wrapf(ErrProtocol, "response to call %#x, which never was", uint64(h.id))
	case call == nil: // given up before: a late response
		c.sock.Free(b)
	case call.stream != nil && h.payload != 0:
		err := errors.Wrap(ErrProtocol, "stream that ends with a payload")
		call.finish(Response{}, &Error{Code: Unavailable, Message: "the server's message", Cause: err})
		return err
	case h.code == OK:
		call.finish(Response{raw: b, sock: c.sock, meta: h.meta}, nil)
	default:
		e := &Error{Code: h.code, Message: string(b[h.at()+int(h.payload):]), Retryable: h.flags&flagRetryable != 0}
		if h.code == Unimplemented {
			e.Message += ": " + call.Method.String() // the server knows its number only
		}
		if h.meta != 0 {
			e.Metadata.CopyFrom(Metadata{b[HeaderSize:h.at()]})
		}
		c.sock.Free(b)
		call.finish(Response{}, e)
	}
	return nil
}

// goAway notes that the server takes no new calls.
func (c *Client) goAway(h *header, b []byte) {
	e := &Error{Code: Unavailable, Message: "the server goes away: " + string(b[h.at():]), Retryable: true}
	c.sock.Free(b)
	c.mu.Lock()
	if c.away == nil {
		c.away = e
		close(c.draining)
	}
	c.mu.Unlock()
	c.tell(header{kind: kindGoAway}) // no request comes behind it
}
