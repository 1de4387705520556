package archon_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// Span is a message that marshals itself, into the transport's buffer.
type Span struct{ From, To uint32 }

func (s *Span) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(b, s.From)
	return binary.LittleEndian.AppendUint32(b, s.To), nil
}

func (s *Span) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

func (s *Span) UnmarshalBinary(b []byte) error {
	if len(b) != 8 {
		return fmt.Errorf("span of %d bytes, must be 8", len(b))
	}
	s.From, s.To = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return nil
}

// What client and server share: methods with the types of their messages.
var (
	reverse = archon.NewUnary("Spans.Reverse", archon.Binary[Span](), archon.Binary[Span]())
	split   = archon.NewServerStream("Spans.Split", archon.Binary[Span](), archon.Binary[Span]())
)

// Typed methods over TCP: one that answers with a message, one with a stream.
func ExampleInvoke() {
	server := archon.NewServer(archon.ServerConfig{})
	err := errors.Join(
		archon.Handle(server, reverse, func(call *archon.ServerCall, req, resp *Span) error {
			if _, ok := call.Metadata().Get("user"); !ok {
				return archon.Errorf(archon.Unauthenticated, "who asks?")
			}
			*resp = Span{req.To, req.From}
			return nil
		}),
		archon.HandleStream(server, split, func(_ *archon.ServerCall, req *Span, out *archon.ItemSender[Span]) error {
			for i := req.From; i < req.To; i++ {
				if err := out.Send(&Span{i, i + 1}); err != nil {
					return err // the client has given up
				}
			}
			return nil
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := archon.TCP{}.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(context.Background(), listener)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := archon.Dial(ctx, archon.TCP{}, listener.Addr().String(), "spans", archon.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	var got Span
	fmt.Println(archon.Invoke(ctx, client, reverse, &Span{1, 2}, &got))
	var md archon.Metadata
	if err := md.Add("user", "ada"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(archon.Invoke(archon.WithMetadata(ctx, &md), client, reverse, &Span{1, 2}, &got), got)

	stream, err := archon.OpenStream(ctx, client, split, &Span{5, 8})
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	for err = stream.Recv(&got); err == nil; err = stream.Recv(&got) {
		fmt.Println(got)
	}
	fmt.Println(err == io.EOF)

	// Calls under way end; then the server does.
	fmt.Println(server.Shutdown(ctx))
	// Output:
	// Unauthenticated: who asks?
	// <nil> {2 1}
	// {5 6}
	// {6 7}
	// {7 8}
	// true
	// <nil>
}
