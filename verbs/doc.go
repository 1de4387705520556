// Package verbs is what every RDMA device looks like from above: devices,
// contexts, protection domains, ports, GIDs and asynchronous events, whether a
// kernel driver or a simulator is behind them.
//
// Code that moves data takes a [Device] (or a [Context]) and the vocabulary of
// packages mr, cq and qp; which NIC it is does not show. Package provider opens
// devices by name.
//
// Order of close: memory windows, queue pairs, shared receive queues, completion
// queues, memory regions, protection domains, context. Closing what is still in use fails with an error that wraps
// syscall.EBUSY.
package verbs
