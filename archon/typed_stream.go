package archon

import "context"

// ServerStream is a method that answers with a stream, with the types of its
// messages: the one declaration that client and server share.
type ServerStream[Req, Item any] struct {
	Method
	req  Codec[Req]
	item Codec[Item]
}

// NewServerStream declares a method that answers with a stream.
func NewServerStream[Req, Item any](name string, req Codec[Req], item Codec[Item]) *ServerStream[Req, Item] {
	return &ServerStream[Req, Item]{Method: NewMethod(name), req: req, item: item}
}

// ItemSender is a Sender of typed messages.
type ItemSender[Item any] struct {
	*Sender
	encoder itemEncoder[Item]
}

// Send sends a message, as Sender.Send.
func (o *ItemSender[Item]) Send(item *Item) error {
	o.encoder.item = item
	b, err := o.encode(&o.encoder)
	if err != nil {
		return err
	}
	return o.Sender.Send(b)
}

type itemEncoder[Item any] struct {
	codec Codec[Item]
	item  *Item
}

func (e *itemEncoder[Item]) Size() int { return e.codec.Size(e.item) }

func (e *itemEncoder[Item]) Append(dst []byte) ([]byte, error) { return e.codec.Append(dst, e.item) }

// HandleStream registers a typed handler that answers with a stream, as
// Server.HandleStream. The request must not be used after the handler has returned.
func HandleStream[Req, Item any](s *Server, m *ServerStream[Req, Item], h func(call *ServerCall, req *Req, out *ItemSender[Item]) error) error {
	if h == nil {
		return s.HandleStream(m.Method, nil)
	}
	return s.HandleStream(m.Method, func(call *ServerCall, out *Sender) error {
		var req Req
		if err := m.req.Decode(call.Payload(), &req); err != nil {
			return &Error{Code: InvalidArgument, Message: "decode the request", Cause: err}
		}
		return h(call, &req, &ItemSender[Item]{Sender: out, encoder: itemEncoder[Item]{codec: m.item}})
	})
}

// Receiver is the client's end of a typed stream.
type Receiver[Item any] struct {
	*Stream
	codec Codec[Item]
}

// OpenStream starts a call that is answered with a stream. ctx is that of the whole
// stream. The caller reads it to its end or closes it.
func OpenStream[Req, Item any](ctx context.Context, to Opener, m *ServerStream[Req, Item], req *Req) (*Receiver[Item], error) {
	i := newInvoking(m.Method, m.req)
	i.prepare(ctx, req)
	s, err := to.Open(ctx, &i.Invocation)
	i.end()
	if err != nil {
		return nil, err
	}
	return &Receiver[Item]{s, m.item}, nil
}

// Recv decodes the next message into item, which may be used again for the next; the
// rest is as Stream.Recv. A message that cannot be decoded ends the stream.
func (r *Receiver[Item]) Recv(item *Item) error {
	m, err := r.Stream.Recv()
	if err != nil {
		return err
	}
	if err := decodeResponse(r.codec, &m, item); err != nil {
		r.Close()
		return err
	}
	return nil
}
