// Package sim is an RDMA device in software, for every machine that has Go: NICs
// that obey the rules of reliable connections (package sim/nic) behind the
// verbs interfaces, joined by a fabric inside the process. Real bytes move, one
// copy a message.
//
// [Open] gives devices of the process's default fabric by name:
//
//	sim:      a new NIC each time, with GIDs of its own
//	sim:NAME  the NIC of that name, made at first use
//
// All of them reach one another, and none those of another process: a queue pair to a
// GID that nobody here has is refused with EHOSTUNREACH. Tests make a [Fabric] of their
// own with [NewFabric], with limits, ports and faults as they need them; there, what is
// sent to such a GID is lost.
//
// # Who does the work
//
// No goroutine waits in the background. A doorbell or a packet lies in a NIC's
// inbox, and the goroutine that put it there runs the NIC, then the NICs that got
// packets thereby, until none has anything to do; if another goroutine runs the
// NIC already, that one takes it along. So a small message is in the peer's
// completion queue when PostSend returns, or when the goroutine that was at it
// finishes. A goroutine that found more than its share of work leaves the rest to
// a new one, which ends with the work. Timers exist only while a queue pair waits
// for an answer.
//
// Nobody holds the locks of two NICs, so NICs cannot block one another.
//
// # Path MTU
//
// A message travels as one packet, whatever the path MTU, unless
// [Config].Segment asks for packets of the path MTU. Messages that the two sides
// would have cut differently are refused in both cases.
package sim
