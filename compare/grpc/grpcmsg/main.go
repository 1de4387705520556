// Command grpcmsg measures messages over streams of gRPC-Go on TCP loopback, between two
// ends in this process, for "bebench msg compare --also grpc=grpcmsg":
//
//	grpcmsg bw|lat --size BYTES --sockets STREAMS --depth N --seconds S
//
// It prints one row of bebench's JSON results. A socket is a stream of one client
// connection. In bw the client sends on each stream for the time given, and the server
// answers when it has all of it; so many messages as gRPC's own flow control allows are
// under way, and depth is not used. In lat a message goes back and forth on each stream.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/byteexpress/byteexpress/compare/calls"
	raw "github.com/byteexpress/byteexpress/compare/grpc"
)

// service has a call of each kind.
var service = grpc.ServiceDesc{
	ServiceName: "messages",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Sink", Handler: sink, ClientStreams: true, ServerStreams: true},
		{StreamName: "Echo", Handler: echo, ClientStreams: true, ServerStreams: true},
	},
}

// sink takes messages until the client has no more, and answers with an empty one. It
// also answers an empty message, so that the client knows that the stream is warm.
func sink(_ any, s grpc.ServerStream) error {
	var b, none []byte
	for {
		switch err := s.RecvMsg(&b); {
		case err == io.EOF:
			return s.SendMsg(&none)
		case err != nil:
			return err
		case len(b) == 0:
			if err := s.SendMsg(&none); err != nil {
				return err
			}
		}
	}
}

// echo sends each message back. The stream may read from a buffer until the client has
// it, which sends its next message only then.
func echo(_ any, s grpc.ServerStream) error {
	var b []byte
	for {
		switch err := s.RecvMsg(&b); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := s.SendMsg(&b); err != nil {
			return err
		}
	}
}

// test is one measurement.
type test struct {
	latency bool
	size    int
	seconds float64
	streams []*stream
	wall    time.Duration
}

// stream is one socket of it.
type stream struct {
	grpc.ClientStream
	ops   int64
	times []time.Duration
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grpcmsg:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "bw" && args[0] != "lat" {
		return errors.New("say which: bw or lat")
	}
	t := test{latency: args[0] == "lat"}
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	fs.IntVar(&t.size, "size", 64, "bytes of a message")
	sockets := fs.Int("sockets", 1, "streams")
	fs.Int("depth", 0, "not used: gRPC decides how much is under way")
	fs.Float64Var(&t.seconds, "seconds", 1, "how long to measure")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if t.size < 1 || *sockets < 1 || !(t.seconds > 0) {
		return errors.New("--size, --sockets and --seconds must be more than 0")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw.Raw{}), grpc.MaxRecvMsgSize(1<<31-1))
	server.RegisterService(&service, nil)
	go server.Serve(l)
	defer server.Stop()
	c, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw.Raw{}), grpc.MaxCallRecvMsgSize(1<<31-1)))
	if err != nil {
		return err
	}
	defer c.Close()
	return t.measure(c, *sockets, out)
}

// measure opens the streams, warms them, measures and prints the row.
func (t *test) measure(c *grpc.ClientConn, streams int, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	desc, path := &service.Streams[0], "/messages/Sink"
	if t.latency {
		desc, path = &service.Streams[1], "/messages/Echo"
	}
	for range streams {
		s, err := c.NewStream(ctx, desc, path)
		if err != nil {
			return err
		}
		t.streams = append(t.streams, &stream{ClientStream: s})
	}
	if err := calls.Each(t.streams, t.warm); err != nil {
		return err
	}
	cpu, began := calls.CPUTime(), time.Now()
	if err := calls.Each(t.streams, t.work); err != nil {
		return err
	}
	cpu, t.wall = calls.CPUTime()-cpu, time.Since(began)
	return json.NewEncoder(out).Encode(t.row(cpu))
}

// warm has the memory of a stream's messages allocated.
func (t *test) warm(s *stream) error {
	b, in, none := make([]byte, t.size), make([]byte, t.size), []byte{}
	for range 2 {
		if err := s.SendMsg(&b); err != nil {
			return err
		}
		if t.latency {
			if err := s.RecvMsg(&in); err != nil {
				return err
			}
		}
	}
	if t.latency {
		return nil
	}
	if err := s.SendMsg(&none); err != nil {
		return err
	}
	return s.RecvMsg(&in)
}

// work sends until the time is over, or exchanges messages.
func (t *test) work(s *stream) error {
	b, in := make([]byte, t.size), make([]byte, t.size)
	d := time.Duration(t.seconds * float64(time.Second))
	began := time.Now()
	for now := began; now.Sub(began) < d; s.ops++ {
		if err := s.SendMsg(&b); err != nil {
			return err
		}
		if t.latency {
			if err := s.RecvMsg(&in); err != nil {
				return err
			}
			if len(in) != t.size {
				return fmt.Errorf("%d bytes came back of %d", len(in), t.size)
			}
			s.times = append(s.times, time.Since(now))
		}
		now = time.Now()
	}
	if !t.latency {
		if err := s.CloseSend(); err != nil {
			return err
		}
		if err := s.RecvMsg(&in); err != nil {
			return err
		}
	}
	return nil
}

// row is the result in the terms of bebench's JSON.
func (t *test) row(cpu time.Duration) map[string]any {
	var ops int64
	var times []time.Duration
	for _, s := range t.streams {
		ops += s.ops
		times = append(times, s.times...)
	}
	moved := ops * int64(t.size)
	r := map[string]any{"ops": ops, "seconds": t.wall.Seconds(), "ops_per_s": float64(ops) / t.wall.Seconds(), "cpu_ns_per_op": float64(cpu) / float64(ops)}
	if !t.latency {
		r["bytes_per_s"], r["gbit_per_s"] = float64(moved)/t.wall.Seconds(), float64(moved)*8/t.wall.Seconds()/1e9
		r["cpu_ns_per_byte"] = float64(cpu) / float64(moved)
		return r
	}
	r["cpu_ns_per_byte"] = float64(cpu) / float64(2*moved)
	slices.Sort(times)
	half := func(d time.Duration) float64 { return float64(d) / 2e3 } // of a round trip, in microseconds
	at := func(share float64) float64 { return half(times[min(int(share*float64(len(times))), len(times)-1)]) }
	var sum time.Duration
	for _, d := range times {
		sum += d
	}
	r["latency_us"] = map[string]float64{"min": half(times[0]), "p50": at(0.5), "mean": half(sum) / float64(len(times)), "p99": at(0.99), "p999": at(0.999), "max": half(times[len(times)-1])}
	return r
}
