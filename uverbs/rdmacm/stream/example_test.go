package stream_test

import (
	"context"
	"fmt"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm/stream"
	"github.com/byteexpress/byteexpress/verbs"
)

// A ByteExpress node that finds its peers by the connection manager: no TCP is used.
func ExampleNew() {
	var device verbs.Context // opened before
	lines, err := stream.New(device, stream.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	node, err := be.NewNode(device, be.Config{Bootstrap: lines})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	socket, err := node.Dial(context.Background(), "192.0.2.1:7174", "greetings")
	fmt.Println(socket, err)
}
