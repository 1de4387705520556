package mmio

import "sync/atomic"

// The processor keeps stores to ordinary memory in order among themselves, and loads
// from it, also as a device sees and makes them: the barriers need no instruction
// (the kernel's dma_wmb and dma_rmb are none either), but must keep the compiler from
// moving anything across.
var ordered uint32

// WriteBarrier makes every earlier store to ordinary memory visible to the
// device before any later store: between filling a ring and ringing its doorbell,
// and between an entry and its valid bit. (amd64 no instruction; arm64 DMB OSHST.)
func WriteBarrier() { atomic.LoadUint32(&ordered) }

// ReadBarrier keeps later loads after an earlier one that saw the device's store:
// between reading a completion's owner bit and the rest of it. (amd64 no instruction;
// arm64 DMB OSHLD.)
func ReadBarrier() { atomic.LoadUint32(&ordered) }
