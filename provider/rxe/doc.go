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
// The encoding of requests and the decoding of completions are pure functions on
// bytes, held against what rdma-core's provider writes for the same requests.
package rxe
