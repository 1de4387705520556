// Package bemalloc serves buffers from memory that a NIC may already use.
//
// Registering memory with a NIC costs microseconds to milliseconds and pins
// pages, so it cannot happen per message. A [Pool] registers 4 MiB blocks once,
// through a [mr.Registrar], cuts them into buffers of any size at the price of
// an ordinary allocation, and answers for every buffer which memory region it
// lies in ([Pool.MR]) in constant time.
//
// # Use
//
//   - Any goroutine may call [Pool.Alloc] and [Pool.Free]. A goroutine that
//     allocates all the time (an engine's worker) takes a [Heap] of its own.
//   - Any Free takes any buffer of the pool, whichever goroutine or heap it came
//     from. A buffer is known by its first byte: Free(b[:k]) is fine, Free(b[1:])
//     is [ErrBadFree].
//   - len(b) == cap(b): an append past the end copies to Go memory instead of
//     overrunning a neighbour.
//   - Buffers are not zeroed, start on 64-byte boundaries, and must not hold Go
//     pointers: the collector does not look into them.
//   - A buffer may be freed only when no posted work request refers to it; after
//     a queue pair's error that means after its flush completions. The pool
//     cannot see work requests.
//   - The race detector does not see accesses to this memory. Tests of buffer
//     ownership tag the contents, or use [Debug].
//
// # How it is built
//
//	reservation   one range of address space, block-aligned; never moves
//	block         4 MiB, opened (backed, populated, registered) on demand
//	unit          64 KiB; a block's free units are one 64-bit mask
//	run           consecutive units of one block: buffers over 32 KiB, and spans
//	span          a run of 1, 2 or 4 units that holds objects of one size class
//	huge run      consecutive blocks under one region: buffers over 4 MiB
//
// Objects up to 32 KiB pass through three levels: the magazine of a cache (a
// heap's, or the current P's), the central list of their class, and the run
// allocator. Batches move between the levels, so most calls touch the magazine
// only. A cache also holds its share of the free units, from which it cuts runs of up
// to 1 MiB and in which they join again. All records lie on the Go heap, outside
// the blocks, and hold no pointers: a late DMA write cannot corrupt them.
//
// Opening a block is single flight and happens under no lock. When it fails the
// pool is as it was before, the error is a [RegisterError] that names the limit
// and the remedy, and further attempts back off. Free blocks beyond
// Config.RetainBytes are given back after a delay that grows when they are
// needed again soon, so that a steady load registers nothing.
//
// Handle-less calls use the cache of the current P, pinned by the runtime's
// procPin for a few nanoseconds. Under the race detector, with a Go newer than 1.26, and
// with the build tag bemalloc_nolinkname, mutex-guarded shards take its place.
//
// # Environment
//
// BEMALLOC_DEBUG turns on checks in every pool of the process, as a comma
// separated list: check, poison, quarantine=BYTES, sites, guard. With check, a node of
// package be also tells of buffers that are used by who does not own them.
package bemalloc
