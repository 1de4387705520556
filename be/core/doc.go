// Package core is the ByteExpress engine as a state machine: no clock, no
// goroutine, no lock and no I/O of its own. Package be drives it in real time; a
// discrete-event loop can drive the same code in virtual time.
//
// An [Engine] owns one queue pair to one remote node and everything that shares
// it: the ring of work requests ([Chain]), the ring of posted receives, the
// receive credits ([Credits]), the send window ([Window]), the scheduler and the
// sockets. The receives may also be those of a queue that engines share
// ([SharedRecv]), and fragments bounded over engines ([Cap]): one goroutine then
// drives them all. Its driver calls it from one goroutine at a time:
//
//   - Prepare after the queue pair reached INIT (posts the receives), Start when
//     the peer is ready too;
//   - Complete for each completion of the queue pair;
//   - Open, Send, Gather, Publish, Put, Cancel, CloseSocket, Taken for what the
//     application wants; Goodbye to leave;
//   - Retry when memory came back;
//   - Flush after any of these: it schedules and posts with one doorbell;
//   - Tick when the time given by Deadline has come.
//
// The engine answers through a [Handler]. Time is a duration since an origin
// that the driver chose.
//
// # Buffers
//
// A buffer is the application's, or the engine's from Send until its done
// function was called with nil, or the device's from post to completion. After
// an error the engine gives the buffer back to [Memory] as soon as no posted
// request refers to it. A delivered message is the handler's.
package core
