package nic

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Op is the operation of a packet. The values are the RC opcodes of the base
// transport header (IBTA 1.4, table 38).
type Op uint8

// The operations, by the specification's names.
const (
	OpSendFirst      Op     = 0x00
	OpSendMiddle     Op     = 0x01
	OpSendLast       Op     = 0x02
	OpSendLastImm    Op     = 0x03
	OpSendOnly       Op     = 0x04
	OpSendOnlyImm    Op     = 0x05
	OpWriteFirst     Op     = 0x06
	OpWriteMiddle    Op     = 0x07
	OpWriteLast      Op     = 0x08
	OpWriteLastImm   Op     = 0x09
	OpWriteOnly      Op     = 0x0a
	OpWriteOnlyImm   Op     = 0x0b
	OpReadRequest    Op     = 0x0c
	OpReadRespFirst  Op     = 0x0d
	OpReadRespMiddle Op     = 0x0e
	OpReadRespLast   Op     = 0x0f
	OpReadRespOnly   Op     = 0x10
	OpAck            Op     = 0x11
	OpAtomicAck      Op     = 0x12
	OpCompareSwap    Op     = 0x13
	OpFetchAdd       Op     = 0x14
	OpSendLastInv    Op     = 0x16
	OpSendOnlyInv    Op     = 0x17
	numOps                  = 0x18
	opBadFlags       opFlag = 0
)

// opFlag tells what a packet of an Op is and carries.
type opFlag uint16

const (
	isSend      opFlag = 1 << iota // part of a SEND
	isWrite                        // part of a WRITE
	isRead                         // READ request
	isAtomic                       // atomic request
	isReadResp                     // READ response
	isAck                          // acknowledgement, positive or negative
	starts                         // first packet of its message
	ends                           // last packet of its message
	hasImm                         // carries an immediate
	invalidates                    // carries the key of a window to invalidate
)

const (
	isRequest  = isSend | isWrite | isRead | isAtomic
	isResponse = isReadResp | isAck
)

var ops = [numOps]struct {
	name  string
	flags opFlag
}{
	OpSendFirst:      {"SEND_FIRST", isSend | starts},
	OpSendMiddle:     {"SEND_MIDDLE", isSend},
	OpSendLast:       {"SEND_LAST", isSend | ends},
	OpSendLastImm:    {"SEND_LAST_IMM", isSend | ends | hasImm},
	OpSendOnly:       {"SEND_ONLY", isSend | starts | ends},
	OpSendOnlyImm:    {"SEND_ONLY_IMM", isSend | starts | ends | hasImm},
	OpWriteFirst:     {"WRITE_FIRST", isWrite | starts},
	OpWriteMiddle:    {"WRITE_MIDDLE", isWrite},
	OpWriteLast:      {"WRITE_LAST", isWrite | ends},
	OpWriteLastImm:   {"WRITE_LAST_IMM", isWrite | ends | hasImm},
	OpWriteOnly:      {"WRITE_ONLY", isWrite | starts | ends},
	OpWriteOnlyImm:   {"WRITE_ONLY_IMM", isWrite | starts | ends | hasImm},
	OpReadRequest:    {"READ_REQUEST", isRead | starts | ends},
	OpReadRespFirst:  {"READ_RESP_FIRST", isReadResp | starts},
	OpReadRespMiddle: {"READ_RESP_MIDDLE", isReadResp},
	OpReadRespLast:   {"READ_RESP_LAST", isReadResp | ends},
	OpReadRespOnly:   {"READ_RESP_ONLY", isReadResp | starts | ends},
	OpAck:            {"ACK", isAck},
	OpAtomicAck:      {"ATOMIC_ACK", isAck | isAtomic},
	OpCompareSwap:    {"COMPARE_SWAP", isAtomic | starts | ends},
	OpFetchAdd:       {"FETCH_ADD", isAtomic | starts | ends},
	OpSendLastInv:    {"SEND_LAST_INV", isSend | ends | invalidates},
	OpSendOnlyInv:    {"SEND_ONLY_INV", isSend | starts | ends | invalidates},
}

// flags is 0 for an unknown operation.
func (o Op) flags() opFlag {
	if o < numOps {
		return ops[o].flags
	}
	return opBadFlags
}

// String is the operation's name.
func (o Op) String() string {
	if o < numOps && ops[o].name != "" {
		return ops[o].name
	}
	return fmt.Sprintf("OP_%#x", uint8(o))
}

// Syndrome is the first byte of the ACK extended transport header (IBTA 1.4,
// 9.7.5.2.2): what kind of acknowledgement it is, and its detail.
type Syndrome uint8

const (
	synAck     Syndrome = 0x1f // no end-to-end credits
	synRNR     Syndrome = 0x20 // | RNR timer
	synNak     Syndrome = 0x60 // | code
	synKind    Syndrome = 0x60
	synDetail  Syndrome = 0x1f
	nakPSN              = synNak     // PSN sequence error
	nakInvalid          = synNak | 1 // invalid request
	nakAccess           = synNak | 2 // remote access error
	nakRemote           = synNak | 3 // remote operational error
)

// Bytes of headers (IBTA 1.4, chapter 9.2 to 9.3).
const (
	bthBytes       = 12
	rethBytes      = 16 // first packet of a WRITE, READ request
	atomicBytes    = 28
	aethBytes      = 4 // acknowledgements, READ responses but middle ones
	atomicAckBytes = 8
	immBytes       = 4 // or the key to invalidate
)

// HeaderBytes is how long the transport headers of a packet of this operation are.
func (o Op) HeaderBytes() int {
	n, f := bthBytes, o.flags()
	switch {
	case f&isWrite != 0 && f&starts != 0, f&isRead != 0:
		n += rethBytes
	case o == OpAtomicAck:
		n += aethBytes + atomicAckBytes
	case f&isAtomic != 0:
		n += atomicBytes
	case f&isAck != 0, f&isReadResp != 0 && f&(starts|ends) != 0:
		n += aethBytes
	}
	if f&(hasImm|invalidates) != 0 {
		n += immBytes
	}
	return n
}

// IsAck reports whether the packet is an acknowledgement, positive or negative.
func (o Op) IsAck() bool { return o == OpAck || o == OpAtomicAck }

// IsReadResponse reports whether the packet carries what a READ asked for.
func (o Op) IsReadResponse() bool { return o >= OpReadRespFirst && o <= OpReadRespOnly }

// IsRead reports whether the packet asks for a READ or answers one.
func (o Op) IsRead() bool { return o >= OpReadRequest && o <= OpReadRespOnly }

// Packet is one packet between two NICs, headers as fields. It is a plain value;
// its payload refers to memory of the sender. Of its three lines of the cache, those
// whose payload is not read need two.
type Packet struct {
	Route     Route // the fabric's; where the packet goes
	To        *QP   // of the NIC that it goes to, if the fabric knows; nil: that one looks DestQP up
	DestQP    qp.Num
	PSN       qp.PSN
	MSN       uint32 // messages completed by the responder, 24 bits
	Imm       uint32 // as a number; the wire has it big-endian
	RKey      mr.RKey
	Length    uint32 // of the whole WRITE or READ
	Addr      uint64 // remote address of a WRITE, READ or atomic
	GIDType   verbs.GIDType
	Op        Op
	Syndrome  Syndrome // OpAck, OpAtomicAck, last and only READ responses
	MTU       qp.MTU   // the sender's path MTU, for fabrics that do not segment; 0: not told
	AckReq    bool
	Solicited bool
	SGID      verbs.GID
	DGID      verbs.GID
	Payload   Payload
	Compare   uint64 // OpCompareSwap
	Swap      uint64 // OpCompareSwap: new value; OpFetchAdd: summand; OpAtomicAck: old value
}

// String shows the headers.
func (p *Packet) String() string {
	return fmt.Sprintf("%v to qp %#x psn %#x len %d syn %#x", p.Op, uint32(p.DestQP), uint32(p.PSN), p.Payload.Len(), uint8(p.Syndrome))
}
