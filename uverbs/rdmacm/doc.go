// Package rdmacm sets RDMA connections up by IP address and port, as librdmacm does:
// through the kernel's RDMA connection manager and its device node
// /dev/infiniband/rdma_cm (the "ucma" ABI, version 4).
//
// Most programs need [Dial], [Listen] and [Conn] only: they give queue pairs that are
// ready to send, made by a function of the caller's on the device that the address
// leads to.
//
// Below them lie the kernel's own objects. A [Channel] is one descriptor of the node.
// An [ID] is one end of a connection, or a listener; its methods are the kernel's
// commands, and [ID.Next] gives its events. Any goroutine may wait for events of its
// own ID: whoever waits reads for all, and no goroutine or thread is kept for it.
//
// It is for RoCE and InfiniBand. On iWARP the kernel moves queue pairs by itself, which
// this package does not do.
//
// # Sequence
//
// The active side: ResolveAddr, ResolveRoute (an event ends each), Route, make a queue
// pair, InitQPAttr and Modify to INIT, post receives, Connect, event ConnectResponse,
// Modify to RTR and RTS, Establish. The passive side: Bind, Listen, event
// ConnectRequest with a new ID, Route, make a queue pair, INIT, post receives, RTR, RTS,
// Accept, event Established.
//
// # Private data
//
// A request, an acceptance and a rejection carry up to 56, 196 and 148 bytes to the
// peer. The peer is not told how many it was sent: it gets all of the room, with zeros
// at the end. [Dial] and [Listen] therefore put a length in front, see [Frame].
//
// # Errors
//
// A failed command is a [verbs.OpError] that wraps the errno; besides that
// [verbs.ErrClosed] when the ID or channel was closed, [verbs.ErrDeviceLost] when the
// device was removed, [verbs.UnsupportedError] on systems and kernels without RDMA CM.
// An event that reports a failure gives an [EventError], which wraps an errno or, when
// the peer rejected, a [Reason].
package rdmacm
