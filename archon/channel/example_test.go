package channel_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// open opens a simulated device of its own. On hardware, package provider opens one by
// its name.
func open() (verbs.Context, error) {
	dev, err := sim.Open("sim:")
	if err != nil {
		return nil, err
	}
	return dev.Open()
}

// serve starts a server that greets, and listens over RDMA and over TCP.
func serve(name string, rdma archon.Transport) (*archon.Server, channel.Endpoint) {
	server := archon.NewServer(archon.ServerConfig{})
	err := server.HandleInline(archon.NewMethod("Greeter.Greet"), func(call *archon.ServerCall) error {
		out, err := call.Alloc(len("hello, ") + len(call.Payload()))
		if err != nil {
			return err
		}
		copy(out[copy(out, "hello, "):], call.Payload())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	var addrs []string
	for _, t := range []archon.Transport{rdma, archon.TCP{}} {
		l, err := t.Listen("127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		addrs = append(addrs, l.Addr().String())
		go server.Serve(context.Background(), l)
	}
	return server, channel.Endpoint{Name: name, RDMA: addrs[0], TCP: addrs[1]}
}

// A service of two replicas, one of which goes away: calls go on.
func Example() {
	serverDevice, clientDevice := channel.NewDevice(open, be.Config{}), channel.NewDevice(open, be.Config{})
	defer serverDevice.Close()
	defer clientDevice.Close()
	one, first := serve("one", serverDevice)
	two, second := serve("two", serverDevice)
	defer two.Close()

	greet := archon.NewMethod("Greeter.Greet")
	ch, err := channel.New(channel.Config{
		Service:    "greeter",
		Resolver:   channel.Static(first, second),
		RDMA:       clientDevice,
		Idempotent: []archon.Method{greet}, // to greet twice does no harm
	})
	if err != nil {
		log.Fatal(err)
	}
	defer ch.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 2 {
		resp, err := ch.Do(ctx, &archon.Invocation{Method: greet, Request: archon.Bytes("world")})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(resp.Payload()))
		resp.Release()
		one.Close()
	}
	// Output:
	// hello, world
	// hello, world
}
