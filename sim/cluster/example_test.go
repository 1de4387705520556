package cluster_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/sim/cluster"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// Two nodes, one message of 1 MiB, on an otherwise idle network.
func Example() {
	f, err := fabric.Single(fabric.Config{Seed: 1}, 2, fabric.Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := cluster.New(f, cluster.Config{})
	if err == nil {
		err = c.Connect(0, 1)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	sender, receiver := c.Node(0), c.Node(1)
	receiver.App.Message = func(_ *core.Socket, b []byte) { fmt.Println(len(b), "bytes arrived") }
	sender.App.Opened = func(k *core.Socket, err error) {
		if err == nil {
			err = sender.SendBytes(k, 1<<20, func(err error) { fmt.Println("sent:", err) })
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	if _, err = sender.Open(1, "bulk"); err == nil {
		err = c.Run(des.Millisecond)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1048576 bytes arrived
	// sent: <nil>
}
