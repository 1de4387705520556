// Package rxe drives Soft-RoCE, the Linux kernel's software RDMA device (module
// rdma_rxe): its queue layouts, and the verbs on top of package uverbs.
//
// All queues are memory that the kernel allocates and this process maps once at
// creation: a header with the size of an element, the number of slots less one,
// and the two indexes, then the elements. The producer of a queue writes an
// element, then its index. A send queue also wants a doorbell, which is the
// POST_SEND request; a receive queue does not.
//
// The kernel moves the send queue's consumer index past every finished request,
// signaled or not. So room in the queue does not depend on completions.
//
// Memory windows are no protection here: on every kernel that has them (6.1 to 7.2 were
// tried) the driver holds what a peer does with a window's key against the range of the
// region that the window is bound to, not against the window's own.
//
// The encoding of requests and the decoding of completions are pure functions on
// bytes, held against what rdma-core's provider writes for the same requests.
package rxe
