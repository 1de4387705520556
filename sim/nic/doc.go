// Package nic is one software RDMA NIC as a state machine: memory regions with
// key, bounds and domain checks, completion queues, and reliable-connection
// queue pairs with packet sequence numbers, acknowledgements, RNR and retry
// counters, go-back-N, error state and flush.
//
// It has no clock, no goroutine, no I/O and no lock of its own. Whoever drives a
// [NIC] calls it from one goroutine at a time:
//
//	n.Deliver(now, &packet) // for each packet that arrived; or DeliverAll for several
//	n.Ring(q)               // for each doorbell
//	more := n.Run(now)      // answers, sends, runs timers
//	at, ok := n.Deadline()  // when Run wants to be called next
//
// Run sends packets through the [Fabric] and adds completions to the [CQ]s. The
// queue rings are the exception to the one-goroutine rule: [QP.PostSend],
// [QP.PostRecv] and [CQ.Poll] belong to the application's goroutine and run
// beside the NIC, synchronized by the rings' indexes alone, as with hardware.
//
// # Payload
//
// A packet's payload refers to the sender's registered memory; the receiver's
// NIC makes the one copy, of neighbours that arrive together as one piece. So the sender's memory may be read by another
// goroutine, and two counters guard it: a [Region] cannot be given back, and a
// failed queue pair does not complete its requests, while such a copy runs.
//
// # Rules followed
//
// Section numbers in comments are those of the InfiniBand Architecture
// Specification, volume 1, release 1.4 ("IBTA 1.4").
package nic
