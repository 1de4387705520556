package tcp_test

import (
	"fmt"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/tcp"
)

// A request and its reply, over TCP in virtual time.
func Example() {
	f, err := fabric.Single(fabric.Config{Seed: 1}, 2, fabric.Link{Gbps: 100, Delay: des.Microsecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := tcp.New(f, tcp.Tuned())
	if err != nil {
		fmt.Println(err)
		return
	}
	client, server := n.Dial(0, 1)
	server.OnMessage = func(m tcp.Message) {
		fmt.Printf("request %d: %d bytes\n", m.Tag, m.Size)
		server.Send(20_000, m.Tag)
	}
	client.OnMessage = func(m tcp.Message) { fmt.Printf("reply %d: %d bytes\n", m.Tag, m.Size) }
	client.Send(100, 7)
	if err := f.Kernel().Run(des.Second); err != nil {
		fmt.Println(err)
	}
	fmt.Println("retransmissions:", n.Stats().Retransmits)
	// Output:
	// request 7: 100 bytes
	// reply 7: 20000 bytes
	// retransmissions: 0
}
