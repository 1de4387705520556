package qp

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
)

// Opcode is the kind of a send request. The values are those of enum
// ib_uverbs_wr_opcode.
type Opcode uint8

// The operations of a reliable connection.
const (
	Write        Opcode = 0 // one-sided; the peer is not told
	WriteWithImm Opcode = 1 // WRITE, then a completion with the immediate at the peer; takes one of its receives
	Send         Opcode = 2 // takes one of the peer's receives
	SendWithImm  Opcode = 3
	Read         Opcode = 4
	CompareSwap  Opcode = 5 // 8 bytes, 8-aligned; the old value lands in the local segment
	FetchAdd     Opcode = 6
	LocalInv     Opcode = 7 // ends the binding of a memory window of this host; nothing goes to the peer
	BindMW       Opcode = 8 // binds a memory window of this host; nothing goes to the peer
	SendWithInv  Opcode = 9 // SEND that also ends the binding of a memory window of the peer
)

// String is the opcode's standard name.
func (o Opcode) String() string {
	switch o {
	case Write:
		return "RDMA_WRITE"
	case WriteWithImm:
		return "RDMA_WRITE_WITH_IMM"
	case Send:
		return "SEND"
	case SendWithImm:
		return "SEND_WITH_IMM"
	case Read:
		return "RDMA_READ"
	case CompareSwap:
		return "ATOMIC_CMP_AND_SWP"
	case FetchAdd:
		return "ATOMIC_FETCH_AND_ADD"
	case LocalInv:
		return "LOCAL_INV"
	case BindMW:
		return "BIND_MW"
	case SendWithInv:
		return "SEND_WITH_INV"
	}
	return fmt.Sprintf("OPCODE_%d", uint8(o))
}

// IsAtomic reports whether the opcode is one of the two atomics.
func (o Opcode) IsAtomic() bool { return o == CompareSwap || o == FetchAdd }

// HasImm reports whether the request carries an immediate.
func (o Opcode) HasImm() bool { return o == WriteWithImm || o == SendWithImm }

// ConsumesRecv reports whether the request takes one of the peer's receives.
func (o Opcode) ConsumesRecv() bool {
	return o == Send || o == SendWithImm || o == WriteWithImm || o == SendWithInv
}

// IsLocal reports whether the request changes a memory window of this host and
// sends nothing.
func (o Opcode) IsLocal() bool { return o == LocalInv || o == BindMW }

// SendFlags modify a send request. The values are those of enum ibv_send_flags in
// libibverbs/verbs.h.
type SendFlags uint8

// The send flags.
const (
	Fence     SendFlags = 1 << 0 // start after all earlier READs and atomics finished
	Signaled  SendFlags = 1 << 1 // report success too, not only failure
	Solicited SendFlags = 1 << 2 // the peer's completion is a solicited event
	Inline    SendFlags = 1 << 3 // the payload is SendWR.Inline, copied at post
)

// SGE is one scatter/gather segment of registered memory.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   mr.LKey
}

// SendWR is a request for the send queue. Memory named by SGEs is the device's
// from PostSend until this or a later request of the queue pair completed; the
// SendWR itself, its SGEs slice and its Inline bytes are the caller's again when
// PostSend returns.
type SendWR struct {
	ID         uint64 // comes back in the completion
	Opcode     Opcode
	Flags      SendFlags
	Imm        uint32  // the number to send with *WithImm; the wire has it big-endian
	RKey       mr.RKey // of the remote memory: WRITE, READ, atomics; of the window: LocalInv, BindMW, SendWithInv
	RemoteAddr uint64
	CompareAdd uint64 // CompareSwap: expected value; FetchAdd: summand
	Swap       uint64 // CompareSwap: new value
	SGEs       []SGE  // local memory; must be empty with the Inline flag
	Inline     []byte // the payload, from any memory, with the Inline flag; ignored without it
	Bind       *Bind  // BindMW: to what; the caller's again when PostSend returns
}

// Bind says what a memory window gives the peer of the queue pair that binds it.
// The window is free or was invalidated, and of the queue pair's protection domain;
// from the request's completion on, that peer may use RKey.
type Bind struct {
	Region mr.LKey   // of a region registered with mr.WindowBind
	Addr   uint64    // range within the region
	Length uint64    // bytes, at least 1
	Access mr.Access // RemoteRead, RemoteWrite, RemoteAtomic
	RKey   mr.RKey   // the new key: SendWR.RKey, the one until now, with another low byte (RKey.Next)
}

// Length is the number of payload bytes of the request.
func (w *SendWR) Length() uint64 {
	if w.Flags&Inline != 0 {
		return uint64(len(w.Inline))
	}
	return length(w.SGEs)
}

// RecvWR is a request for the receive queue. Its memory is the device's from
// PostRecv until its completion.
type RecvWR struct {
	ID   uint64
	SGEs []SGE
}

// Length is the number of bytes that the request can take.
func (w *RecvWR) Length() uint64 { return length(w.SGEs) }

func length(sges []SGE) (n uint64) {
	for i := range sges {
		n += uint64(sges[i].Length)
	}
	return n
}

// Caps are a queue pair's capacities: what was asked for at creation, and what
// the device gave (at least that).
type Caps struct {
	SendWR  int // send requests outstanding
	RecvWR  int // receive requests outstanding
	SendSGE int // segments a send request
	RecvSGE int // segments a receive request
	Inline  int // bytes of inline payload
	// Windows is what the device says, never asked for: the queue pair takes
	// BindMW, LocalInv and SendWithInv.
	Windows bool
}

// MaxMessage is the longest message of an RC queue pair: 2^31 bytes (IBTA 1.4,
// 9.7.7). Ports may allow less.
const MaxMessage = 1 << 31

// Check reports whether the request can be posted to a queue pair with these
// capacities, whatever its state. It returns one of the package's sentinels
// unwrapped, so that the data path does not allocate.
func (w *SendWR) Check(c *Caps) error {
	if w.Opcode > FetchAdd {
		if err := w.checkWindow(c); err != nil {
			return err
		}
	}
	if w.Flags&Inline != 0 {
		if len(w.SGEs) != 0 || w.Opcode == Read || w.Opcode.IsAtomic() {
			return ErrInlineUse
		}
		if len(w.Inline) > c.Inline {
			return ErrInlineTooLong
		}
		return nil
	}
	if len(w.SGEs) > c.SendSGE {
		return ErrTooManySGEs
	}
	n := length(w.SGEs)
	if n > MaxMessage {
		return ErrMessageTooLong
	}
	if w.Opcode.IsAtomic() && (n != 8 || w.RemoteAddr%8 != 0) {
		return ErrAtomic
	}
	return nil
}

// checkWindow checks what is special about requests for memory windows.
func (w *SendWR) checkWindow(c *Caps) error {
	if !c.Windows || w.Opcode > SendWithInv {
		return ErrOpcode
	}
	if w.Opcode.IsLocal() && (len(w.SGEs) > 0 || w.Flags&Inline != 0) {
		return ErrBind
	}
	if w.Opcode == BindMW {
		b := w.Bind
		if b == nil || b.Length == 0 || b.RKey == w.RKey || b.RKey&^0xff != w.RKey&^0xff || b.Access&^(mr.RemoteRead|mr.RemoteWrite|mr.RemoteAtomic) != 0 {
			return ErrBind
		}
	}
	return nil
}

// Check reports whether the request can be posted to a queue pair with these
// capacities. It returns one of the package's sentinels unwrapped.
func (w *RecvWR) Check(c *Caps) error {
	if len(w.SGEs) > c.RecvSGE {
		return ErrTooManySGEs
	}
	if length(w.SGEs) > MaxMessage {
		return ErrMessageTooLong
	}
	return nil
}
