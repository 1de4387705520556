// Package be is ByteExpress: messages between processes over RDMA, without a
// copy on the way (but of short ones that wait together, see Config.PackBytes).
//
// A [Node] stands on an opened RDMA device (a [verbs.Context], of hardware or of
// a simulator). It listens and dials by addresses of a [Bootstrap], TCP unless
// Config says otherwise; that carries only the bootstrap and shows when a peer is
// gone. All sockets to one remote node share
// one engine: one queue pair with its work-request chain, receive credits and
// send window. A worker goroutine drives the engines of a node, or,
// with [Config].Workers, several do: then there is an engine to a peer for each, and for
// each of the peer's, and sockets are spread over them.
//
// # Buffers
//
// A message is a buffer of [Node.Alloc]. Send and Post take it; when they
// succeed it is the caller's again, and when they fail the node takes it back.
// PostGather sends scattered parts of such buffers as one message and leaves them
// the caller's in either case. PostContext and its like give a message up when a context
// ends.
// Recv gives a buffer that the caller owns and returns with [Node.Free].
// Nothing is copied: a small message lands in the buffer that Recv gives, and
// a large one is written there by the peer's device, or with [Socket.SetGet] read
// by this node's. Only short messages that came several in one SEND are each copied
// to a buffer of their own.
//
// BEMALLOC_DEBUG=check, or [Config].Debug, has a node tell of whoever breaks these rules: a
// buffer that is posted twice, written to on its way, or freed by who does not own it is an
// [OwnerError]. The other checks of package bemalloc find what is written after Free, and
// who allocated what is never freed.
//
// # Trust
//
// What a peer says is checked: one that lies ends its own engine only. What its
// device may reach is bounded by the keys that it was given. A node's memory is in
// key domains, pools of blocks of 4 MiB, and a key opens one block of one of them:
//
//   - Messages to be sent, and all that comes by SEND: no peer has a key to them.
//   - Where peers write large messages: the key opens the block to writes, with the
//     large messages of other peers in it, for as long as the block is registered.
//   - Messages that are offered to be read ([Socket.SetGet]): the key opens the block
//     to reads.
//   - A published buffer ([Socket.Publish]) has a key of its own, for writes to it
//     alone and until the publication ends. Exposed memory ([Node.Expose]) likewise,
//     for reads.
//
// A domain has no block before it is used ([Stats].Registered).
//
// With shared receives (Config.SharedReceives) a peer that sends more than it was
// granted takes a receive of the others before its engine is ended. It is posted again
// at once, and a message of theirs that came in between is tried again by the device.
//
// Connect nodes that trust one another, and keep others out by the network.
//
// # Who takes messages
//
// Recv, on any goroutine, suits few sockets. OnMessage calls back on the worker: the
// shortest way for what is short, and it must not block. A [Mux] hands the messages of
// thousands of sockets to a fixed number of goroutines, which may block.
//
// # Workers beside goroutines that compute
//
// Go's scheduler lets a goroutine that computes run for 10 ms before another has its
// core. Where there are as many of them as GOMAXPROCS, a worker may wait for that, for
// each of them: set GOMAXPROCS above their number by at least the number of workers, and
// the kernel shares the cores, far sooner. A worker that meets with such waits no longer
// lets others run just to look again, but blocks, since who is woken goes first.
//
// # How messages share an engine
//
// Sockets that have something to send share their engine by weights
// ([Socket.SetWeight]); a socket with nothing to send costs nothing. What is on its
// way is bounded by the window of the engine (Config.WindowBytes), fixed or adaptive
// (Config.WindowTarget), and by that of the node (Config.NodeWindowBytes). With adaptive
// windows a node also has the large messages that come to it take turns
// (Config.InboundBytes).
//
// A large message is written into memory that the receiver gives, or read by the
// receiver at its own pace ([Socket.SetGet]). A buffer that is used again and again
// can be published to the peer, which then writes with no exchange
// ([Socket.Publish], [Socket.PostPut]); one that many peers want can be exposed to
// their reads ([Node.Expose], [Socket.Read]). A socket may drop the order of its messages
// ([SocketOptions]).
//
// # Errors
//
// A failed engine ends all its sockets at once with the cause. Nothing is sent
// again: whether a message may be repeated is known only to the layer above.
// The next Dial brings a new engine up.
//
// Package netconn makes net.Conn and net.Listener of sockets and listeners, for
// programs that want streams of bytes.
//
// Package core holds the state machines; this package is their clock, goroutine
// and I/O.
package be
