package rpcjob

import (
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/pkg/errors"

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

// Idempotent are the methods that a channel may repeat.
func Idempotent() []archon.Method { return []archon.Method{methodEcho, methodWorker} }

// Server answers the calls of clients.
type Server struct {
	Addrs  map[string]string // by the name of the transport
	server *archon.Server
	lns    []archon.Listener
	served sync.WaitGroup
}

// Serve starts a server on a port of the host for each transport.
func Serve(ctx context.Context, host string, transports map[string]archon.Transport) (*Server, error) {
	s := archon.NewServer(archon.ServerConfig{})
	for _, err := range []error{
		s.HandleInline(methodEcho, echo), s.Handle(methodWorker, echo), s.HandleStream(methodStream, stream),
	} {
		if err != nil {
			return nil, err
		}
	}
	r := &Server{Addrs: map[string]string{}, server: s}
	for name, t := range transports {
		ln, err := t.Listen(net.JoinHostPort(host, "0"))
		if err != nil {
			_ = r.Close()
			return nil, errors.WithMessagef(err, "listen over %s", name)
		}
		r.Addrs[name], r.lns = ln.Addr().String(), append(r.lns, ln)
		r.served.Go(func() { _ = s.Serve(ctx, ln) })
	}
	return r, nil
}

// Close ends the server and its connections.
func (r *Server) Close() error {
	err := r.server.Close()
	for _, ln := range r.lns {
		if lnErr := ln.Close(); err == nil {
			err = lnErr
		}
	}
	r.served.Wait()
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
