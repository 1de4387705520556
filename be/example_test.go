package be_test

import (
	"context"
	"fmt"
	"log"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// Two nodes in one process, each on a simulated device, and one message.
func Example() {
	ctx := context.Background()
	nodes, end := newNodes()
	defer end()
	l, err := nodes[0].Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	client, err := nodes[1].Dial(ctx, l.Addr().String(), "greetings")
	if err != nil {
		log.Fatal(err)
	}
	server, err := l.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}

	b, err := nodes[1].Alloc(5)
	if err != nil {
		log.Fatal(err)
	}
	copy(b, "hello")
	if err := client.Send(ctx, b); err != nil {
		log.Fatal(err) // b is gone
	}
	nodes[1].Free(b) // b is ours again

	got, err := server.Recv(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s\n", server.Service(), got)
	nodes[0].Free(got)
	// Output: greetings: hello
}

// newNodes makes two nodes in this process, each on a simulated device.
func newNodes() (nodes [2]*be.Node, end func()) {
	var close []func() error
	for i := range nodes {
		dev, err := sim.Open("sim:")
		if err != nil {
			log.Fatal(err)
		}
		rdma, err := dev.Open()
		if err != nil {
			log.Fatal(err)
		}
		if nodes[i], err = be.NewNode(rdma, be.Config{}); err != nil {
			log.Fatal(err)
		}
		close = append(close, nodes[i].Close, rdma.Close)
	}
	return nodes, func() {
		for _, f := range close {
			if err := f(); err != nil {
				log.Fatal(err)
			}
		}
	}
}
