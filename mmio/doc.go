// Package mmio is memory that this process shares with a device or a driver:
// mappings of a file descriptor, device registers (doorbells), the barriers that
// order stores and loads as a device sees them, and the index arithmetic of rings.
//
// Go's sync/atomic orders memory between goroutines. A device on a bus is not one
// of them: a store to a register must be one plain store of its full width, and
// the barriers must be those that reach the bus. They are in assembly for amd64
// and arm64. Elsewhere [HasBarriers] is false, and what drives a register must
// refuse to run; rings shared with a kernel driver (software RDMA) need only
// [LoadUint32] and [StoreUint32] and run everywhere.
//
// Pointers into a mapping come from [Mapping.Uint32] and [Mapping.Uint64], which
// check bounds and alignment once, at set-up.
package mmio
