package archon

// Raw is a message without a codec: bytes that are not copied between application
// and transport.
//
//   - A request is made with Client.AllocRaw, for a call on that client; the call
//     takes its buffer, whatever happens.
//   - The server's handler sees the request until it returns, and writes its
//     response with ServerCall.Alloc or Gather; its own Raw it leaves alone.
//   - A response is the caller's until Release.
//
// RawBytes, which is copied once, serves where no buffer is at hand.
type Raw struct {
	buffer Response // what is owned; none: bytes
	client *Client  // whose call can take the buffer; nil: none's
	bytes  []byte
}

// AllocRaw gives a request with a payload of n bytes to fill.
func (c *Client) AllocRaw(n int) (Raw, error) {
	b, err := c.Alloc(n)
	if err != nil {
		return Raw{}, err
	}
	return Raw{buffer: Response{raw: b.raw, sock: c.sock}, client: c}, nil
}

// RawBytes is a message in any memory, which must hold still until the call is over.
func RawBytes(b []byte) Raw { return Raw{bytes: b} }

// Payload is the bytes. They must not be used after Release, or after the call took
// them.
func (r *Raw) Payload() []byte {
	if r.buffer.raw != nil {
		return r.buffer.Payload()
	}
	return r.bytes
}

// Release gives the buffer of a response, or of a request that is not sent after all,
// back, from any goroutine. A second Release does nothing.
func (r *Raw) Release() { r.buffer.Release() }

// RawCodec is the codec of Raw.
func RawCodec() Codec[Raw] { return rawCodec{} }

type rawCodec struct{}

func (rawCodec) Size(v *Raw) int { return len(v.Payload()) }

func (rawCodec) Append(dst []byte, v *Raw) ([]byte, error) { return append(dst, v.Payload()...), nil }

func (rawCodec) Decode(src []byte, v *Raw) error {
	*v = Raw{bytes: src}
	return nil
}

// takeRaw gives the buffer of v, if it is a Raw with one of that client.
func takeRaw(v any, c *Client) (b Buf, ok bool) {
	r, ok := v.(*Raw)
	if !ok || r.buffer.raw == nil || r.client != c {
		return Buf{}, false
	}
	b = Buf{raw: r.buffer.raw, meta: r.buffer.meta}
	r.buffer = Response{}
	return b, true
}

// releaseRaw gives back what a call did not take.
func releaseRaw(v any) {
	if r, ok := v.(*Raw); ok {
		r.Release()
	}
}
