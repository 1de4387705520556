package wire

import "encoding/binary"

// HeaderLen is the length of the common header in bytes.
const HeaderLen = 16

// Type is the kind of a control message.
type Type uint8

// The control messages. The zero value is none.
const (
	Open         Type = 1 + iota // make a socket; body: listener, service
	Accept                       // the socket is made
	Refuse                       // it is not; body: reason, text
	Data                         // a small message, whole; body: payload
	RTS                          // a large message wants to be sent; body: length, or an Offer
	CTS                          // write it there; body: transfer, address, rkey
	Fin                          // get mode: it was read; body: transfer, status
	Reject                       // that message is not taken; body: reason
	Cancel                       // the sender gives that message up
	Credit                       // carries the header's Granted only
	Ping                         // body: nonce
	Pong                         // the answer; body: the same nonce
	Close                        // end of a socket; body: reason
	Closed                       // the answer, ordered after the last WRITE; body: reason
	GoAway                       // orderly end of the engine; body: last socket, reason
	SocketCredit                 // Sequence is how many messages the application took
	Recall                       // Sequence is how many credits the other side may keep unused
	Return                       // Sequence is how many it gives back, beside that of this message
	Pack                         // small messages, whole; Sequence is how many; body: a table of Parts, payloads

	endType
)

var typeNames = [endType]string{
	"none", "OPEN", "ACCEPT", "REFUSE", "DATA", "RTS", "CTS", "FIN", "REJECT", "CANCEL", "CREDIT", "PING", "PONG", "CLOSE",
	"CLOSED", "GOAWAY", "SOCKET_CREDIT", "RECALL", "RETURN", "PACK",
}

// String is the type's name in the protocol.
func (t Type) String() string {
	if t < endType {
		return typeNames[t]
	}
	return "unknown"
}

// bodyLen is the exact body length of each type; -1: variable.
var bodyLen = [endType]int{
	Open: -1, Refuse: -1, Data: -1, Pack: -1,
	RTS: 8, CTS: 16, Fin: 8, Reject: 4, Ping: 8, Pong: 8, Close: 4, Closed: 4, GoAway: 8,
}

// The flags. Each belongs to one type, and is sent only to a peer whose hello has
// the feature.
const (
	// FlagUnordered of OPEN: messages of the socket are delivered as they are whole.
	FlagUnordered = 1 << 0
	// FlagGet of RTS: the message is to be read from where its longer body says.
	FlagGet = 1 << 0
)

// flagsOf are the flags that a type may have.
var flagsOf = [endType]uint8{Open: FlagUnordered, RTS: FlagGet}

// Header is the common header.
//
//	0 type u8 | 1 flags u8 | 2 header length u8 | 3 reserved u8
//	4 granted u32 | 8 socket u32 | 12 sequence u32
type Header struct {
	Type     Type
	Flags    uint8
	Granted  uint32 // receives ever posted by the sender of this message, mod 2^32
	Socket   uint32 // 0: the engine itself
	Sequence uint32 // of the message on its socket
}

// Put encodes the header into b, which must hold HeaderLen bytes.
func (h *Header) Put(b []byte) { PutHeader(b, h.Type, h.Flags, h.Granted, h.Socket, h.Sequence) }

// PutHeader is Put of a header with these fields. Who makes a header only to put it uses
// this: the compiler copies a Header by loads of 16 bytes, and the processor cannot
// forward the smaller stores that just made it to those.
func PutHeader(b []byte, t Type, flags uint8, granted, socket, sequence uint32) {
	_ = b[HeaderLen-1]
	b[0], b[1], b[2], b[3] = byte(t), flags, HeaderLen, 0
	binary.LittleEndian.PutUint32(b[4:], granted)
	binary.LittleEndian.PutUint32(b[8:], socket)
	binary.LittleEndian.PutUint32(b[12:], sequence)
}

// Parse decodes a header and checks it, and that a body of bodyBytes bytes fits
// its type.
func (h *Header) Parse(b []byte, bodyBytes int) error {
	if len(b) < HeaderLen {
		return &FieldError{Field: "message length", Value: uint64(len(b)), Want: "at least 16"}
	}
	h.Type, h.Flags = Type(b[0]), b[1]
	h.Granted = binary.LittleEndian.Uint32(b[4:])
	h.Socket = binary.LittleEndian.Uint32(b[8:])
	h.Sequence = binary.LittleEndian.Uint32(b[12:])
	switch {
	case h.Type == 0 || h.Type >= endType:
		return &FieldError{Field: "type", Value: uint64(b[0]), Want: "a known message type"}
	case h.Flags&^flagsOf[h.Type] != 0:
		return &FieldError{Type: h.Type, Field: "flags", Value: uint64(h.Flags), Want: "only flags of its type"}
	case b[2] != HeaderLen:
		return &FieldError{Type: h.Type, Field: "header length", Value: uint64(b[2]), Want: "16"}
	case b[3] != 0:
		return &FieldError{Type: h.Type, Field: "reserved", Value: uint64(b[3]), Want: "0"}
	}
	n := bodyLen[h.Type]
	if h.Type == RTS && h.Flags&FlagGet != 0 {
		n = offerLen
	}
	if n >= 0 && n != bodyBytes {
		return &FieldError{Type: h.Type, Field: "body length", Value: uint64(bodyBytes), Want: "the length of its type"}
	}
	return nil
}

// SocketOf reads only the socket's number of a header in b, unchecked. b is at least
// HeaderLen bytes.
func SocketOf(b []byte) uint32 { return binary.LittleEndian.Uint32(b[8:]) }
