package archon

import (
	"context"
	"sync"
)

// Unary is a method with the types of its messages: the one declaration that client
// and server share. It is made once, with NewUnary, and used by any goroutines.
type Unary[Req, Resp any] struct {
	Method
	req       Codec[Req]
	resp      Codec[Resp]
	invokings sync.Pool // *invoking[Req]
	handlings sync.Pool // *handling[Req, Resp]
}

// NewUnary declares a method; its name is "Service.Method" by custom.
func NewUnary[Req, Resp any](name string, req Codec[Req], resp Codec[Resp]) *Unary[Req, Resp] {
	m := &Unary[Req, Resp]{Method: NewMethod(name), req: req, resp: resp}
	m.invokings.New = func() any { return newInvoking(m.Method, req) }
	m.handlings.New = func() any { return &handling[Req, Resp]{unary: m} }
	return m
}

// Invoke makes a call and decodes its response into resp, which may be used again for
// the next. Metadata comes from WithMetadata, and goes to WithReplyMetadata. The
// error is an *Error. Steady use allocates nothing but what the codecs do.
func Invoke[Req, Resp any](ctx context.Context, to Invoker, m *Unary[Req, Resp], req *Req, resp *Resp) error {
	i := m.invokings.Get().(*invoking[Req])
	i.prepare(ctx, req)
	r, err := to.Do(ctx, &i.Invocation)
	i.end()
	m.invokings.Put(i)
	takeReplyMetadata(ctx, &r, err)
	if err != nil {
		return err
	}
	return decodeResponse(m.resp, &r, resp)
}

// decodeResponse makes v of a response, which is released, unless v keeps it.
func decodeResponse[T any](c Codec[T], r *Response, v *T) error {
	if raw, ok := any(v).(*Raw); ok {
		*raw = Raw{buffer: *r}
		return nil
	}
	err := c.Decode(r.Payload(), v)
	r.Release()
	if err != nil {
		return &Error{Code: Internal, Message: "decode the response", Cause: err}
	}
	return nil
}

// Send makes a one-way call: it does not wait, and nobody says whether the handler ran.
// An overloaded server drops it. nil means that it is with the transport.
func Send[Req, Resp any](ctx context.Context, to Invoker, m *Unary[Req, Resp], req *Req) error {
	i := m.invokings.Get().(*invoking[Req])
	i.prepare(ctx, req)
	i.OneWay = true
	_, err := to.Do(ctx, &i.Invocation)
	i.end()
	m.invokings.Put(i)
	return err
}

// invoking is an Invocation that encodes a Req.
type invoking[Req any] struct {
	Invocation
	method Method
	codec  Codec[Req]
	req    *Req
	kept   []byte // memory of Metadata
}

func newInvoking[Req any](m Method, codec Codec[Req]) *invoking[Req] {
	return &invoking[Req]{method: m, codec: codec}
}

func (i *invoking[Req]) Size() int { return i.codec.Size(i.req) }

func (i *invoking[Req]) Append(dst []byte) ([]byte, error) { return i.codec.Append(dst, i.req) }

func (i *invoking[Req]) takeBuffer(c *Client) (Buf, bool) { return takeRaw(i.req, c) }

func (i *invoking[Req]) prepare(ctx context.Context, req *Req) {
	i.req = req
	i.Invocation = Invocation{Method: i.method, Request: i, Metadata: Metadata{i.kept}}
	if md, ok := ctx.Value(metadataKey{}).(*Metadata); ok {
		i.Metadata.CopyFrom(*md)
	}
}

// end makes i ready for its next use.
func (i *invoking[Req]) end() {
	releaseRaw(i.req)
	i.kept, i.req = i.Metadata.b[:0], nil
	i.Invocation = Invocation{}
}

type (
	metadataKey      struct{}
	replyMetadataKey struct{}
)

// WithMetadata gives a context whose calls by Invoke, Send and OpenStream carry md, which
// must not change while it is in use.
func WithMetadata(ctx context.Context, md *Metadata) context.Context {
	return context.WithValue(ctx, metadataKey{}, md)
}

// WithReplyMetadata gives a context whose calls by Invoke store in md what the server
// sent along with its response, or failure. It is for one call at a time.
func WithReplyMetadata(ctx context.Context, md *Metadata) context.Context {
	return context.WithValue(ctx, replyMetadataKey{}, md)
}

func takeReplyMetadata(ctx context.Context, r *Response, err error) {
	md, ok := ctx.Value(replyMetadataKey{}).(*Metadata)
	if !ok {
		return
	}
	from := r.Metadata()
	if e, failed := err.(*Error); failed { //nolint:errorlint // what Do gives is not wrapped
		from = e.Metadata
	}
	md.CopyFrom(from)
}
