// Package cluster runs the engines of ByteExpress (package be/core, the very code
// of production) on the hosts of a fabric, in virtual time and in one goroutine.
//
//	f, err := fabric.Single(fabric.Config{Seed: 1}, 2, fabric.Link{Gbps: 100, Delay: des.Microsecond})
//	c, err := cluster.New(f, cluster.Config{})
//	err = c.Connect(0, 1)
//	k, err := c.Node(0).Open(1, "bulk")
//	c.Node(0).SendBytes(k, 1<<20, func(error) { ... })
//	err = c.Run(des.Millisecond)
//
// A [Node] is what be.Node is in real time: it polls the completion queue, gives
// completions to engines, flushes them, and calls them at their deadlines. It does
// so a fixed time after the first completion came, which stands for the processor.
// Two nodes are connected without a bootstrap, at once.
//
// Functions of the application are called between the calls of engines, never
// within them, so they may send, open and close. Everything belongs to the
// goroutine that runs the cluster.
package cluster
