package archon

import (
	"context"
	"net"

	"github.com/pkg/errors"
)

// Socket is a connection that carries whole messages in order, reliably, and
// says when it cannot. Its methods may be called from any goroutine; callbacks run
// on the goroutine that moves the socket's bytes, one at a time for OnMessage, and
// must not block.
type Socket interface {
	// Alloc gives a buffer of size bytes that Post can send without a copy, with
	// any contents. It is the caller's.
	Alloc(size int) ([]byte, error)
	// Free gives back a buffer of Alloc or OnMessage, from any goroutine: the whole
	// slice or a prefix of it.
	Free(b []byte)
	// Post queues b, from Alloc, or a prefix of it, to be sent. done is called once:
	// with nil, b is the caller's again; with an error, b is gone and may not have
	// arrived. If Post itself gives an error, b stays the caller's and done is not
	// called; ErrQueueFull says that a later Post may succeed.
	Post(b []byte, done func(error)) error
	// OnMessage starts the delivery of messages to fn, which owns b and frees it.
	// The last call has an error, and no message, and comes after Close as well.
	// OnMessage is called once.
	OnMessage(fn func(b []byte, err error))
	// Close ends the socket at once; what was posted may be lost. It does not wait.
	Close() error
	// MaxMessage is the longest message that the peer takes, in bytes.
	MaxMessage() int
	// Service is the name that the dialer asked for.
	Service() string
}

// Gatherer is a Socket that can send a message in pieces.
type Gatherer interface {
	// PostGather queues head, from Alloc, and the parts behind it as one message.
	// done is called once; until then all of that memory holds still, and parts too,
	// and after it, whatever it is told, they are the caller's again. If PostGather
	// itself gives an error, done is not called; ErrNotGatherable says that the parts
	// are not in memory that this socket can send from.
	PostGather(head []byte, parts [][]byte, done func(error)) error
}

// ErrNotGatherable is wrapped when parts must be copied to be sent.
var ErrNotGatherable = errors.New("the socket cannot send from the memory of the parts")

// ShortPoster is a Socket that copies short messages when they are posted.
type ShortPoster interface {
	// PostShort queues a copy of b, in the order of Post. b stays the caller's either
	// way. A message that is lost later is lost with the socket. It gives ErrQueueFull
	// when there is no room at once, ErrNotShort for a message that only Post takes,
	// or why the socket ended.
	PostShort(b []byte) error
}

// ErrNotShort is given for a message that is not copied when it is posted.
var ErrNotShort = errors.New("the message is too long to be copied")

// maxServiceName is what package be carries, and so what every transport takes.
const maxServiceName = 200

// checkService refuses a name that not every transport carries.
func checkService(name string) error {
	if len(name) == 0 || len(name) > maxServiceName {
		return errors.Errorf("service name of %d bytes, must be 1 to %d", len(name), maxServiceName)
	}
	return nil
}

// Transport makes sockets.
type Transport interface {
	// Dial connects to the listener at addr. service names what is wanted there, 1
	// to 200 bytes.
	Dial(ctx context.Context, addr, service string) (Socket, error)
	// Listen takes connections at addr, "host:port".
	Listen(addr string) (Listener, error)
}

// Listener takes connections.
type Listener interface {
	// Accept gives the next connection. It returns ctx's error, or one that wraps
	// net.ErrClosed after Close.
	Accept(ctx context.Context) (Socket, error)
	// Addr is where the listener listens.
	Addr() net.Addr
	// Close ends the listener, and accepted sockets not.
	Close() error
}

// ErrQueueFull is wrapped when a Post is refused for now.
var ErrQueueFull = errors.New("the socket's send queue is full")

// Buf is a message buffer whose payload lies behind the room for the header and the
// metadata, which is in place already. The zero Buf is none.
type Buf struct {
	raw  []byte
	meta uint16 // bytes of metadata
}

// Payload is the part for the caller to fill.
func (b Buf) Payload() []byte {
	if b.raw == nil {
		return nil
	}
	return b.raw[b.at():]
}

// Metadata is what was given when the buffer was made.
func (b Buf) Metadata() Metadata {
	if b.meta == 0 {
		return Metadata{}
	}
	return Metadata{b.raw[HeaderSize:b.at()]}
}

func (b Buf) at() int { return HeaderSize + int(b.meta) }

// cut leaves n bytes of the payload.
func (b Buf) cut(n int) Buf {
	b.raw = b.raw[:b.at()+n]
	return b
}

// allocBuf gives a message buffer for metadata, which is written, and a payload of n
// bytes.
func allocBuf(s Socket, md *Metadata, n int) (Buf, error) {
	meta := 0
	if md != nil {
		meta = md.wireSize()
	}
	if most := s.MaxMessage() - HeaderSize - meta; n < 0 || n > most {
		return Buf{}, Errorf(InvalidArgument, "payload of %d bytes, at most %d", n, most)
	}
	raw, err := s.Alloc(HeaderSize + meta + n)
	if err != nil {
		return Buf{}, &Error{Code: ResourceExhausted, Message: "transport buffer", Cause: err, Retryable: true}
	}
	if meta != 0 {
		md.put(raw[HeaderSize : HeaderSize+meta])
	}
	return Buf{raw: raw, meta: uint16(meta)}, nil
}
