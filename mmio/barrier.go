//go:build amd64 || arm64

package mmio

// HasBarriers reports that the barriers and register stores of this package are
// those of the processor, so that a hardware doorbell may be driven.
const HasBarriers = true

// WriteBarrier makes every earlier store to ordinary memory visible to the
// device before any later store: between filling a ring and ringing its doorbell,
// and between an entry and its valid bit. (amd64 keeps stores in order; arm64
// DMB OSHST.)
//
//go:noescape
func WriteBarrier()

// ReadBarrier keeps later loads after an earlier one that saw the device's store:
// between reading a completion's owner bit and the rest of it. (amd64 LFENCE;
// arm64 DMB OSHLD.)
//
//go:noescape
func ReadBarrier()

// FlushWriteCombining pushes stores to write-combining memory out to the device
// and keeps later ones from being combined with them. It also orders ordinary
// stores before them, so it is used before and after a BlueFlame copy. (amd64
// SFENCE; arm64 DSB ST.)
//
//go:noescape
func FlushWriteCombining()

// Store64 stores v to a device register with one plain 64-bit store.
//
//go:noescape
func Store64(p *uint64, v uint64)

// Store32 stores v to a device register with one plain 32-bit store.
//
//go:noescape
func Store32(p *uint32, v uint32)
