// Package archon is remote procedure calls over message sockets: ByteExpress
// ([BE]) where there is RDMA, TCP ([TCP]) elsewhere, with the same code above.
//
// # Calls
//
// A [Client] runs any number of calls at once over one [Socket]; a [Server]
// answers them. Call is the plain form, Go the asynchronous one, which keeps
// thousands of calls outstanding without a goroutine each:
//
//	req, err := client.Alloc(n)            // a buffer the transport can send
//	copy(req.Payload(), ...)
//	resp, err := client.Call(ctx, method, req)
//	use(resp.Payload())                    // the received buffer itself
//	resp.Release()
//
// # Buffers
//
// A message is a fixed header, the payload and an optional detail, in one
// transport buffer. The payload is written behind the room for the header, so
// that nothing is copied on its way to the transport; over ByteExpress the
// buffer is registered memory. Who owns what:
//
//   - A [Buf] is the caller's until it is given to Call or Go, whatever they return.
//   - A response is the caller's until Release.
//   - On the server the request is the handler's until it returns; what
//     ServerCall.Alloc gave is sent when the handler returns nil, and freed
//     otherwise.
//   - What ServerCall.Gather lent is the transport's until it calls release.
//
// # Deadlines and cancellation
//
// A call carries the time that its deadline leaves, not a clock reading. The
// server sees it in ServerCall and refuses calls that expired in its queue. A
// call that the client gave up is cancelled on the server too, and its late
// response is dropped: the call's id names it nevermore.
//
// # Errors
//
// Every failed call gives an [*Error] with a [Code], named as in gRPC:
//
//	errors.Is(err, archon.DeadlineExceeded)
//
// A lost connection ends the calls on it with [Unavailable] and the cause. An
// error whose Retryable is set was refused before its handler ran.
//
// # Goroutines
//
// Callbacks (done of Go, handlers registered Inline) run on the goroutine that
// moves the socket's bytes, and must not block it. Other handlers run on a
// bounded set of workers; when their queue is full, calls are refused with
// [ResourceExhausted] at once.
package archon
