package cq

import "fmt"

// QPNum is a queue pair number: 24 bits, unique on one device while the queue
// pair exists.
type QPNum uint32

// Flags tell which optional fields of a [Completion] are valid. The values are
// those of enum ibv_wc_flags in libibverbs/verbs.h.
type Flags uint8

// The flags of a receive's completion.
const (
	HasGRH        Flags = 1 << 0 // the message came with a global routing header
	HasImm        Flags = 1 << 1 // Imm is valid
	HasInvalidate Flags = 1 << 3 // Imm holds the invalidated rkey
)

// Completion reports one finished work request. With a Status other than
// [Success], only ID, Status, QPNum and VendorErr are meaningful.
type Completion struct {
	ID        uint64 // the work request's own
	Status    Status
	VendorErr uint32 // device-specific detail of an error
	ByteLen   uint32 // bytes received, read or swapped
	Imm       uint32 // immediate as the sender's number; see HasImm
	QPNum     QPNum
	Opcode    Opcode
	Flags     Flags
}

// Err is nil for a successful completion, else an [Error] that names the queue
// pair, request, status and vendor code. It allocates: call it off the data path.
func (c *Completion) Err() error {
	if c.Status == Success {
		return nil
	}
	return &Error{QPNum: c.QPNum, ID: c.ID, Status: c.Status, VendorErr: c.VendorErr}
}

// Error is a failed completion as an error. errors.Is and errors.As find its
// [Status].
type Error struct {
	QPNum     QPNum
	ID        uint64
	Status    Status
	VendorErr uint32
}

// Error says which request of which queue pair failed, how and why.
func (e *Error) Error() string {
	return fmt.Sprintf("qp %#x: request %#x: %v (vendor code %#x)", uint32(e.QPNum), e.ID, e.Status.Error(), e.VendorErr)
}

// Unwrap gives the status.
func (e *Error) Unwrap() error { return e.Status }
