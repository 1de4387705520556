// Package uverbs is the Linux kernel's verbs ABI in Go and nothing else: finding
// devices, opening /dev/infiniband/uverbsN, the RDMA_VERBS_IOCTL requests for
// contexts, protection domains, memory regions and windows, completion channels,
// completion queues, queue pairs and shared receive queues, and the event
// descriptors. What a driver's rings look like is the business of the provider
// packages above it.
//
// Every request is one ioctl. Where the kernel has a native method it is used, and
// on a kernel without it the older write command, carried by the ioctl method
// INVOKE_WRITE (kernel 5.0). Only the [Doorbell] of software drivers is rung by
// write(), which is quicker; by the ioctl where the kernel refuses that.
//
// One table (methods.go) describes each request's attributes. The request builder
// refuses an attribute that is not in it, [Decode] checks a built request against
// it, and the tests read it.
//
// Memory: requests and their payload lie in command pages from mmap, which the
// builder owns, so neither the collector nor a moving stack can invalidate an
// address that the kernel was given.
//
// Errors are [verbs.OpError] values. They wrap the errno; besides that
// [verbs.ErrDeviceLost] when the device was removed, and [verbs.UnsupportedError]
// when the kernel or driver lacks the request.
//
// On systems other than Linux the package compiles, and finds no devices:
// [System.Devices] returns a [verbs.UnsupportedError].
package uverbs
