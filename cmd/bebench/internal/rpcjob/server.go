package rpcjob

import (
	"context"
	"encoding/binary"
	"net"

	"github.com/byteexpress/byteexpress/archon"
)

// The methods of the server. The request of a stream is its messages' number, u64, and
// bytes, u32, little-endian.
var (
	methodEcho   = archon.NewMethod("bench.Echo")
	methodWorker = archon.NewMethod("bench.EchoOnWorker")
	methodStream = archon.NewMethod("bench.Stream")
)

const streamRequest = 12

// maxStream bounds a message that a peer may ask for.
const maxStream = 1 << 30

// Server answers the calls of a client.
type Server struct {
	Addr   string
	server *archon.Server
	ln     archon.Listener
	served chan struct{}
}

// Serve starts a server on a port of the host.
func Serve(ctx context.Context, t archon.Transport, host string) (*Server, error) {
	s := archon.NewServer(archon.ServerConfig{})
	for _, err := range []error{
		s.HandleInline(methodEcho, echo), s.Handle(methodWorker, echo), s.HandleStream(methodStream, stream),
	} {
		if err != nil {
			return nil, err
		}
	}
	ln, err := t.Listen(net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	r := &Server{Addr: ln.Addr().String(), server: s, ln: ln, served: make(chan struct{})}
	go func() {
		defer close(r.served)
		_ = s.Serve(ctx, ln)
	}()
	return r, nil
}

// Close ends the server and its connections.
func (r *Server) Close() error {
	err := r.server.Close()
	if lnErr := r.ln.Close(); err == nil {
		err = lnErr
	}
	<-r.served
	return err
}

func echo(call *archon.ServerCall) error {
	out, err := call.Alloc(len(call.Payload()))
	copy(out, call.Payload())
	return err
}

// stream answers with messages that begin with their number.
func stream(call *archon.ServerCall, out *archon.Sender) error {
	if len(call.Payload()) != streamRequest {
		return archon.Errorf(archon.InvalidArgument, "request of %d bytes, must be %d", len(call.Payload()), streamRequest)
	}
	count, size := binary.LittleEndian.Uint64(call.Payload()), binary.LittleEndian.Uint32(call.Payload()[8:])
	if size < stampBytes || size > maxStream {
		return archon.Errorf(archon.InvalidArgument, "messages of %d bytes, must be %d to %d", size, stampBytes, maxStream)
	}
	for i := range count {
		b, err := out.Alloc(int(size))
		if err != nil {
			return err
		}
		stamp(b.Payload(), i)
		if err := out.Send(b); err != nil {
			return err
		}
	}
	return nil
}
