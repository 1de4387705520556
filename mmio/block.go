package mmio

// BlockSize is the size in bytes of what DoorbellBlocks stores at a time.
const BlockSize = 64
