package mr

import (
	"errors"
	"fmt"
)

// ErrAccess is wrapped by errors about a combination of access flags that no
// device accepts.
var ErrAccess = errors.New("bad access flags")

// LKey is a local key: it names a region in this host's own work requests.
type LKey uint32

// RKey is a remote key: a peer that holds it, and the region's address, may use
// the region as the region's access flags allow.
type RKey uint32

// Region is a registered range of memory. It is a plain value; it stays valid
// until the [Registrar] that made it deregisters it. Posting with a region that
// was deregistered, or of another protection domain, is refused by the device: by
// an error completion, not by the post.
type Region struct {
	Addr   uint64 // first byte, as this process and its peers address it
	Length uint64 // bytes
	LKey   LKey
	RKey   RKey
	Handle uint64 // the Registrar's own; opaque to everyone else
}

// Contains reports whether the n bytes at addr lie in the region. Arguments may
// come from a peer: no sum wraps around.
func (r Region) Contains(addr, n uint64) bool {
	return addr >= r.Addr && n <= r.Length && addr-r.Addr <= r.Length-n
}

// String names the region for errors and logs.
func (r Region) String() string {
	return fmt.Sprintf("mr[%#x+%d lkey %#x rkey %#x]", r.Addr, r.Length, uint32(r.LKey), uint32(r.RKey))
}

// Registrar registers memory with one device or several. Its methods may be
// called from any goroutine.
type Registrar interface {
	// Register makes buf known to the device with the given access. buf must be
	// memory from mmap and must stay mapped until Deregister returned. The error
	// names the device, the length asked for and the limit that was hit.
	Register(buf []byte, access Access) (Region, error)
	// Deregister ends the region. No posted work request may refer to it.
	Deregister(Region) error
}
