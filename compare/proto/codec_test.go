package proto_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/compare/proto"
)

var later = archon.NewUnary("Clock.Later", proto.Codec[durationpb.Duration](), proto.Codec[timestamppb.Timestamp]())

func connect() (client *archon.Client, stop func()) {
	server := archon.NewServer(archon.ServerConfig{})
	err := archon.HandleInline(server, later, func(_ *archon.ServerCall, d *durationpb.Duration, t *timestamppb.Timestamp) error {
		if !d.IsValid() {
			return archon.Errorf(archon.InvalidArgument, "that is no duration")
		}
		at := time.Unix(1_000_000_000, 0).Add(d.AsDuration())
		t.Seconds, t.Nanos = at.Unix(), int32(at.Nanosecond())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	l, err := archon.TCP{}.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(context.Background(), l)
	client, err = archon.Dial(context.Background(), archon.TCP{}, l.Addr().String(), "clock", archon.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		client.Close()
		server.Close()
	}
}

// Protobuf messages as request and response of a method of archon.
func ExampleCodec() {
	client, stop := connect()
	defer stop()
	var t timestamppb.Timestamp
	if err := archon.Invoke(context.Background(), client, later, durationpb.New(time.Minute), &t); err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.AsTime())
	fmt.Println(archon.Invoke(context.Background(), client, later, &durationpb.Duration{Nanos: -1, Seconds: 1}, &t))
	// Output:
	// 2001-09-09 01:47:40 +0000 UTC
	// InvalidArgument: that is no duration
}

// TestAllocations: the codec writes into the transport's buffer, and reads from it.
func TestAllocations(t *testing.T) {
	client, stop := connect()
	defer stop()
	in, out := durationpb.New(time.Hour), new(timestamppb.Timestamp)
	if n := testing.AllocsPerRun(1000, func() {
		if err := archon.Invoke(context.Background(), client, later, in, out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
