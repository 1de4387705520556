// Package tcp is a model of TCP in the kernels of the hosts of a fabric, packet by
// packet, for comparison with RDMA: windows and their growth (Cubic, DCTCP, Reno),
// selective acknowledgements, retransmission by them, by probe and by timeout,
// socket buffers, segmentation and aggregation in the NIC, and what all of it costs
// the processor.
//
//	n, err := tcp.New(f, tcp.Tuned())
//	a, b := n.Dial(0, 1)
//	b.OnMessage = func(m tcp.Message) { b.Send(100, m.Tag) } // a reply
//	a.OnMessage = func(m tcp.Message) { ... }
//	a.Send(20_000, 1)
//	err = f.Kernel().Run(des.Second)
//
// Connections are there from the start. A message is a number of bytes with a tag;
// its bytes are not kept, and its bounds are known to the receiver. All calls, and
// all calls back, belong to the goroutine that runs the fabric's kernel.
//
// # Model
//
// Each connection has a core of its host, on which its system calls, its protocol
// processing and the thread that reads from it take their turns. A message costs a
// system call and a copy, then each burst of up to Config.TSOBytes the stack and the
// driver; it leaves as frames of a segment each. What arrives waits for the
// interrupt's delay, is merged into aggregates, and acknowledged; then a thread
// that sleeps is woken and reads. A core that has more to poll goes on without an
// interrupt.
//
// A segment is taken for lost when three after it were acknowledged (a forward
// acknowledgement), one that was sent again as soon as one sent later was: the ways
// of a fabric do not reorder. There is neither a handshake nor an end of a
// connection, no timestamps, no hybrid slow start, no pacing.
package tcp
