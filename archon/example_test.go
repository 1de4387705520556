package archon_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// A server that doubles bytes, and a client that calls it with a deadline.
func Example() {
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
	listener, err := archon.TCP{}.Listen("127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(context.Background(), listener)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := archon.Dial(ctx, archon.TCP{}, listener.Addr().String(), "math", archon.ClientConfig{})
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
