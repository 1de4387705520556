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
// # Typed calls
//
// A method declared once with the types and codecs of its messages ([NewUnary]) is served
// by [Handle] or [HandleInline] and called by [Invoke], or by [Send] when nobody waits
// for an answer. A [Codec] writes straight into the transport's buffer: [Binary] those
// types that marshal themselves, [Raw] what needs none and is not copied; protobuf is
// a Codec of a few lines in a module of its own. A method that answers with a stream
// is declared with [NewServerStream], served by [HandleStream] and called by
// [OpenStream]. Invoke, Send and OpenStream take any [Invoker] or [Opener]: a Client, or
// what stands in front of several.
//
// # Streams
//
// A stream's messages come in order until its end, which is how the handler
// ended. The client says how many bytes may wait for it (Invocation.Window); the handler's
// Send waits while they do. Closing the stream, its context's end and its deadline
// end the handler's context.
//
// # Metadata and interceptors
//
// Requests and responses carry [Metadata], keys and values of 8 KiB at most.
// Interceptors stand around all handlers of a server, unary or stream, and around
// a client's Do and Open.
//
// # Buffers
//
// A message is a fixed header, metadata, the payload and an optional detail, in one
// transport buffer. The payload is written behind the room for the header, so
// that nothing is copied on its way to the transport; over ByteExpress the
// buffer is registered memory, but for messages up to 2 KiB: those are copied,
// and travel together when there are several. Who owns what:
//
//   - A [Buf] is the caller's until it is given to Call or Go, whatever they return.
//   - A response, and a stream's message, is the caller's until Release.
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
// # Overload and shutdown
//
// A server bounds its workers, the calls that wait for them and their bytes, its
// streams, and its responses in memory. What is beyond is refused at once with a
// retryable [ResourceExhausted]; so is a call that would wait for a worker for more than
// half of its time. Shutdown refuses new calls with a retryable [Unavailable], tells
// the clients (Client.Draining), and lets those under way end. A client asks whether its
// server lives with Ping, which is answered before any queue, and learns the server's
// incarnation.
//
// # Goroutines
//
// Callbacks (done of Go, handlers registered Inline) run on the goroutine that
// moves the socket's bytes, and must not block it. Other handlers run on a
// bounded set of workers; when their queue is full, calls are refused with
// [ResourceExhausted] at once.
package archon
