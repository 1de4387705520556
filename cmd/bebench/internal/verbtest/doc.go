// Package verbtest measures an RDMA device at the level of verbs, as perftest
// does: SEND, WRITE, WRITE with immediate, READ and fetch-and-add, bandwidth and
// latency, between two ends that agree over a control connection.
//
// The client and the server run the same code ([Run]) in two roles. One
// measurement (a message size) is a round: both ends make queue pairs and
// memory, exchange addresses, run, tell each other what they did, and compare
// the bytes. A round is made of flows: one goroutine with its own completion
// queue and queue pairs at each end, of which one end initiates and the other
// responds. With Bidirectional there are flows in both directions.
//
// Latency of SEND and WRITE is measured by ping-pong and is half a round trip;
// latency of READ and atomics is the whole operation. In bandwidth tests it is
// the time from posting a signaled request to its completion, queueing included.
//
// Verification: each message slot has its own byte sequence. Where a completion
// tells the receiver of a message (SEND, WRITE with immediate, READ, atomics),
// every message is checked and its slot is wiped; a plain WRITE tells nothing,
// so the slots are checked once at the end of the round.
package verbtest
