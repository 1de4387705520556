package mmio

// BlockSize is the size in bytes of what StoreBlock stores.
const BlockSize = 64

// StoreBlock copies the first 64 bytes of src to write-combining device memory at
// dst, in ascending order with stores of at least 8 bytes, so that they can reach
// the device as one write (BlueFlame). Enclose it in [FlushWriteCombining]. It
// panics if src is shorter.
func StoreBlock(dst *uint64, src []byte) {
	storeBlock(dst, &src[:BlockSize:BlockSize][0])
}
