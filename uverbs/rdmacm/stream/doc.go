// Package stream makes of reliable RDMA connections byte streams, for what two programs
// have to say to each other before they can use queue pairs of their own: set-up, and
// then a line whose end tells that the peer is gone. Connections are made by IP address
// and port through the kernel's connection manager ([rdmacm]); no TCP is needed. It is
// not for bulk data: bytes are copied, and one message is on its way at a time.
//
// [Net] has the shape of a network: Dial gives a [net.Conn], Listen a [net.Listener].
//
// # On the wire
//
// Both sides put [Protocol] into the private data of the connection's request and
// answer (see rdmacm.Frame), and refuse another. After that each SEND carries 1 to 4096
// bytes of the stream. A side has one SEND outstanding; the receiver posts receives again
// as messages come, up to what it is willing to hold. Beyond that the peer's NIC gets
// receiver-not-ready answers and tries again, so that a reader that is slow holds the
// writer back. (Linux's rxe before 6.1 does not survive such answers: there what waits
// for a reader must stay below the 8 receives that are posted, as set-up does.)
//
// A Write has ended when the bytes are in the peer's memory, so nothing that was written
// is lost by a Close after it.
package stream
