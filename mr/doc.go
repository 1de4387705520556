// Package mr is the vocabulary of memory regions: what registered memory is
// called, who may reach it, and who registers it.
//
// A memory region (MR) is a range of this process's memory that a NIC may
// address. Registering it pins its pages and yields two keys: the local key
// ([LKey]) goes into this host's own work requests, the remote key ([RKey]) is
// given to a peer that may read or write the region one-sidedly.
//
// A buffer longer than a device's regions may be is registered by [RegisterSplit]. A
// memory window ([Window]) lends a part of a region to one peer for a while, by a key
// of its own, without registering anything (package verbs, Memory).
//
// Memory that a device can see comes from mmap, never from the Go heap: the
// device keeps an address that the collector does not know of. Package bemalloc
// gives registered buffers, and mmio.Anonymous bare memory to register.
package mr
