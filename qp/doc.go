// Package qp is the vocabulary of reliable-connection queue pairs: work
// requests, states and their legal transitions, capacities, attributes, what a
// queue pair can do, and how it is brought up.
//
// A queue pair (QP) is one end of a connection: a send queue and a receive
// queue. It is created in RESET and brought up INIT, RTR, RTS with [Path];
// receives may be posted from INIT on, sends in RTS. An error takes it to ERR,
// where every posted request completes once, as flushed.
package qp
