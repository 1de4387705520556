package wire

// TransferBits is how many low bits of a transfer number are the slot's index;
// the others are its generation.
const TransferBits = 16

// MaxTransfers is how many transfers one engine can receive at a time.
const MaxTransfers = 1 << TransferBits

// Transfer makes the 32-bit number that names a receiver's transfer slot.
func Transfer(index int, generation uint16) uint32 {
	return uint32(generation)<<TransferBits | uint32(index)&(MaxTransfers-1)
}

// SplitTransfer is Transfer's inverse.
func SplitTransfer(t uint32) (index int, generation uint16) {
	return int(t & (MaxTransfers - 1)), uint16(t >> TransferBits)
}
