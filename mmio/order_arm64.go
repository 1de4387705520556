package mmio

// WriteBarrier makes every earlier store to ordinary memory visible to the
// device before any later store: between filling a ring and ringing its doorbell,
// and between an entry and its valid bit. (DMB OSHST.)
//
//go:noescape
func WriteBarrier()

// ReadBarrier keeps later loads after an earlier one that saw the device's store:
// between reading a completion's owner bit and the rest of it. (DMB OSHLD.)
//
//go:noescape
func ReadBarrier()
