// Package netconn makes net.Conn and net.Listener of ByteExpress sockets, so that
// programs written for TCP run over RDMA: net/http, gRPC, crypto/tls.
//
// Both ends must use it: a [Conn] is a stream of bytes, carried as messages whose
// borders mean nothing. An empty message ends a direction. [Conn.CloseWrite] sends
// it, and Close does before it closes the socket, so that a Read tells a stream that
// ended, io.EOF, from one that broke off, io.ErrUnexpectedEOF.
//
// # Copies
//
// Read and Write copy: the caller's memory is not registered. [Conn.WriteTo] writes
// out of the message's own buffer and [Conn.ReadFrom] reads into one, so io.Copy
// between a Conn and a file copies nothing more; between two Conns of one node it
// passes the buffers on. A program that wants no copy uses be.Socket, and if
// that is to be so for short messages too, a negative be.Config.PackBytes.
//
// # Buffering and back-pressure
//
// Write returns when its bytes are queued, as TCP does: at most [SendBuffer] bytes a
// connection wait for the device, then Write waits. A failure shows in the next
// Write, or as an error of the peer's Read. How much a peer may send ahead of Read
// is bounded by be.Config: Backlog messages, and SocketQuotaBytes of the large ones, so a
// Conn that nobody reads does not hold up the others.
//
// # Deadlines
//
// They hold as those of package net: a deadline that passes, or is set in the past,
// wakes what is blocked, with os.ErrDeadlineExceeded. No goroutine belongs to a Conn.
package netconn
