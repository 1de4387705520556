package cq

import "fmt"

// Opcode says which kind of work request completed. The values are those of
// enum ibv_wc_opcode in libibverbs/verbs.h; the send kinds are also those of enum
// ib_uverbs_wc_opcode in rdma/ib_user_verbs.h. The receive kinds have bit 7 set. It is meaningful
// only in a completion with status [Success]: tell sends from receives of a
// failed one by your own book-keeping (the work request's ID).
type Opcode uint8

// What completed. A SEND with immediate completes as Send at its sender and as
// Recv with the flag HasImm at its receiver; a WRITE with immediate as Write and
// as RecvWriteWithImm.
const (
	Send             Opcode = 0
	Write            Opcode = 1
	Read             Opcode = 2
	CompareSwap      Opcode = 3
	FetchAdd         Opcode = 4
	BindMW           Opcode = 5
	LocalInvalidate  Opcode = 6
	Recv             Opcode = 128
	RecvWriteWithImm Opcode = 129
)

// IsRecv reports whether the completion belongs to a receive queue.
func (o Opcode) IsRecv() bool { return o&Recv != 0 }

// String is the opcode's standard name without its prefix.
func (o Opcode) String() string {
	switch o {
	case Send:
		return "SEND"
	case Write:
		return "RDMA_WRITE"
	case Read:
		return "RDMA_READ"
	case CompareSwap:
		return "COMP_SWAP"
	case FetchAdd:
		return "FETCH_ADD"
	case BindMW:
		return "BIND_MW"
	case LocalInvalidate:
		return "LOCAL_INV"
	case Recv:
		return "RECV"
	case RecvWriteWithImm:
		return "RECV_RDMA_WITH_IMM"
	}
	return fmt.Sprintf("OPCODE_%d", uint8(o))
}
