// Package fabric is a network in virtual time: hosts with a NIC each (package nic,
// the same state machine as in the simulator of real time), links with rate and
// delay, and store-and-forward switches with a finite shared buffer, ECN marking
// and priority flow control. One [Fabric] is one simulation on a [des.Kernel], in
// one goroutine: the same configuration and calls give the same run, to the byte of
// its trace.
//
//	f, err := fabric.Single(fabric.Config{Seed: 1}, 2, fabric.Link{Gbps: 100, Delay: des.Microsecond})
//	region, err := f.Host(0).Register(buf, mr.LocalWrite)
//	done := f.Host(0).NewCQ(64, func() { ... })
//	q, err := f.Host(0).NewQP(done, done, caps) // a qp.QP
//	...
//	err = f.Kernel().Run(des.Millisecond)
//
// Queue pairs are qp.QP, so that whatever drives a device can drive these: package
// cluster runs the engines of ByteExpress on them.
//
// # Model
//
// A frame is a packet with its headers: transport, UDP, IPv4, Ethernet. A link
// sends one at a time at its rate; it arrives whole after the link's delay. A port
// has three classes: control (acknowledgements, congestion notifications) goes
// before data, which is RDMA's, and lossy, for datagrams of other protocols; those two
// share a link by halves. The NIC takes its queue pairs in turn, one packet each,
// when the wire is free: at most one frame waits ahead of it. READ responses and
// acknowledgements do not wait for a turn.
//
// With NICConfig.Contexts, WQEs or Pages, a NIC has room for so many contexts of queue
// pairs, work requests or addresses of pages, and fetches the others as packets need
// them. Its way to memory can be slow (Host.SetDMA); it pauses its link
// then. Unreliable datagrams (Host.SendUD) take the NIC's time by their own measure.
//
// With NICConfig.DCQCN, receivers tell senders of marked packets, and the limit of a
// queue pair keeps it out of its turn.
//
// A switch charges its buffer, and the port that a frame came in by, until the
// frame's last bit has left; the egress queue is what has not begun to leave. With
// PFC, a port whose share of the buffer is used up makes its peer pause the data
// class; what still arrives has headroom, sized for frames of a KiB or more. Without
// it, frames that find no room are dropped, and NICs go back to the lost packet. The
// lossy class is not paused; one queue may hold as much as is free. When a link or a
// switch dies (Fabric.SetLinkDown, Switch.SetDown), its neighbours go around it after
// a while, and after a longer one all switches have the shortest ways that are left.
//
// A payload is not copied until its frame arrives, and not at all with
// Config.SkipWrites.
package fabric
