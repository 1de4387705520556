package archon

import "context"

// Encoder writes a message's payload straight into a transport's buffer.
type Encoder interface {
	// Size is how many bytes Append adds, or a guess: a low one costs a copy.
	Size() int
	// Append appends the payload to dst, whose capacity is what Size said.
	Append(dst []byte) ([]byte, error)
}

// Bytes is a payload that lies ready and is copied into the transport's buffer.
type Bytes []byte

// Size is the number of bytes.
func (b Bytes) Size() int { return len(b) }

// Append copies the bytes.
func (b Bytes) Append(dst []byte) ([]byte, error) { return append(dst, b...), nil }

// Invocation is a call that is to be made, as interceptors see it.
type Invocation struct {
	Method   Method
	Request  Encoder  // nil: the payload is empty
	Metadata Metadata // for the server
	OneWay   bool     // Do does not wait for a response, and there is none
	Window   int      // of Open: bytes that may wait here; 0: DefaultWindow
}

// Invoker makes calls: a Client does, and what stands in front of several.
type Invoker interface {
	// Do makes a call and waits for its response, which the caller releases. It does
	// not keep inv when it has returned.
	Do(ctx context.Context, inv *Invocation) (Response, error)
}

// Opener opens streams.
type Opener interface {
	// Open starts a call that is answered with a stream, and does not keep inv.
	Open(ctx context.Context, inv *Invocation) (*Stream, error)
}

// Do makes a call and waits for its response, which the caller releases; a one-way
// call is over when it is with the transport. ctx's deadline and cancellation travel
// to the server. When the connection is full, Do waits.
func (c *Client) Do(ctx context.Context, inv *Invocation) (Response, error) { return c.do.Do(ctx, inv) }

// Open starts a call that is answered with a stream. ctx is that of the whole
// stream.
func (c *Client) Open(ctx context.Context, inv *Invocation) (*Stream, error) {
	return c.open.Open(ctx, inv)
}

// plainInvoker is a client without interceptors.
type plainInvoker struct{ c *Client }

func (p plainInvoker) Do(ctx context.Context, inv *Invocation) (Response, error) {
	b, err := p.c.Encode(inv)
	if err != nil {
		return Response{}, err
	}
	if inv.OneWay {
		return Response{}, p.c.sendOneWay(ctx, inv.Method, b)
	}
	return p.c.Call(ctx, inv.Method, b)
}

func (p plainInvoker) Open(ctx context.Context, inv *Invocation) (*Stream, error) {
	b, err := p.c.Encode(inv)
	if err != nil {
		return nil, err
	}
	return p.c.openStream(ctx, inv, b)
}

// bufferHolder is an Encoder whose payload is in a buffer of the client already.
type bufferHolder interface {
	// takeBuffer gives the buffer; ok is false when there is none of that client.
	takeBuffer(c *Client) (b Buf, ok bool)
}

// Encode makes the request of an invocation, for Go. It goes to Go, or back with Free.
func (c *Client) Encode(inv *Invocation) (Buf, error) {
	if inv.Request == nil {
		return allocBuf(c.sock, &inv.Metadata, 0)
	}
	if holder, ok := inv.Request.(bufferHolder); ok {
		if b, ok := holder.takeBuffer(c); ok {
			return c.withMetadata(&inv.Metadata, b)
		}
	}
	return encode(c.sock, &inv.Metadata, inv.Request)
}

// withMetadata gives b, or a copy of it with metadata. b is gone in the second case.
func (c *Client) withMetadata(md *Metadata, b Buf) (Buf, error) {
	if md.Empty() {
		return b, nil
	}
	with, err := allocBuf(c.sock, md, len(b.Payload()))
	if err == nil {
		copy(with.Payload(), b.Payload())
	}
	c.sock.Free(b.raw)
	return with, err
}

// encode writes a message into a buffer of the socket.
func encode(s Socket, md *Metadata, e Encoder) (Buf, error) {
	b, err := allocBuf(s, md, e.Size())
	if err != nil {
		return Buf{}, err
	}
	out, err := appendTo(b.Payload(), e)
	if err == nil && isPrefix(out, b.Payload()) {
		return b.cut(len(out)), nil
	}
	s.Free(b.raw)
	if err != nil {
		return Buf{}, err
	}
	if b, err = allocBuf(s, md, len(out)); err == nil {
		copy(b.Payload(), out)
	}
	return b, err
}

// appendTo runs an Encoder's Append within room, and gives its bytes wherever they are.
func appendTo(room []byte, e Encoder) ([]byte, error) {
	out, err := e.Append(room[:0:len(room)])
	if err != nil {
		return nil, &Error{Code: CodeOf(err), Message: "encode", Cause: err}
	}
	return out, nil
}

// isPrefix tells whether b lies at the beginning of room.
func isPrefix(b, room []byte) bool {
	return len(b) == 0 || len(b) <= len(room) && &b[0] == &room[0]
}
