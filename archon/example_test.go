package archon_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/sim"
)

// newNode gives a ByteExpress node on a simulated device of its own. On hardware,
// package provider opens the device.
func newNode() *be.Node {
	dev, err := sim.Open("sim:")
	if err != nil {
		log.Fatal(err)
	}
	rdma, err := dev.Open()
	if err != nil {
		log.Fatal(err)
	}
	node, err := be.NewNode(rdma, be.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return node
}

// A server that doubles bytes, and a client that calls it with a deadline, over
// ByteExpress. With archon.TCP{} in place of archon.BE, the rest is the same.
func Example() {
	serverNode, clientNode := newNode(), newNode()
	defer serverNode.Close()
	defer clientNode.Close()

	double := archon.NewMethod("Math.Double")
	server := archon.NewServer(archon.ServerConfig{})
	defer server.Close()
	err := server.HandleInline(double, func(call *archon.ServerCall) error {
		in := call.Payload()
		if len(in) == 0 {
			return archon.Errorf(archon.InvalidArgument, "nothing to double")
		}
		out, err := call.Alloc(len(in))
		if err != nil {
			return err
		}
		for i, b := range in {
			out[i] = 2 * b
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := archon.BE{Node: serverNode}.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(context.Background(), listener)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := archon.Dial(ctx, archon.BE{Node: clientNode}, listener.Addr().String(), "math", archon.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	request, err := client.Alloc(3)
	if err != nil {
		log.Fatal(err)
	}
	copy(request.Payload(), []byte{1, 2, 3})
	response, err := client.Call(ctx, double, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Payload())
	response.Release()

	request, err = client.Alloc(0)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Call(ctx, double, request)
	fmt.Println(err, errors.Is(err, archon.InvalidArgument))
	// Output:
	// [2 4 6]
	// InvalidArgument: nothing to double true
}
