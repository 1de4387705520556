package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

const (
	// MaxService is the longest service name in bytes.
	MaxService = 200
	// MaxText is the longest text that goes with a refusal in bytes.
	MaxText = 200
	// MaxControl is the longest control message other than DATA, header included.
	MaxControl = HeaderLen + 4 + max(MaxService, MaxText)
)

// Reason says why a peer refused, rejected or ended something.
type Reason uint32

// The reasons. Values that are not known are kept as they are.
const (
	ReasonNone      Reason = 0
	ReasonNoService Reason = 1 // nobody listens
	ReasonBusy      Reason = 2 // the accept queue or the socket table is full
	ReasonLeaving   Reason = 3 // the node is closing
	ReasonTooLarge  Reason = 4 // longer than the receiver takes
	ReasonNoMemory  Reason = 5 // the receiver has no memory for it
	ReasonCanceled  Reason = 6 // the sender gave it up
)

// String is the reason in words.
func (r Reason) String() string {
	switch r {
	case ReasonNone:
		return "no reason given"
	case ReasonNoService:
		return "nobody listens there"
	case ReasonBusy:
		return "too many sockets are waiting or open"
	case ReasonLeaving:
		return "the node is closing"
	case ReasonTooLarge:
		return "the message is longer than the receiver takes"
	case ReasonNoMemory:
		return "the receiver has no memory for the message"
	case ReasonCanceled:
		return "the sender gave the message up"
	}
	return "unknown reason"
}

// PutOpen encodes the body of OPEN and says how long it is. service must be at
// most MaxService bytes.
func PutOpen(b []byte, listener uint32, service string) int {
	binary.LittleEndian.PutUint32(b, listener)
	return 4 + copy(b[4:4+MaxService], service)
}

// ParseOpen decodes the body of OPEN.
func ParseOpen(b []byte) (listener uint32, service string, err error) {
	if len(b) < 4 || len(b) > 4+MaxService {
		return 0, "", &FieldError{Type: Open, Field: "body length", Value: uint64(len(b)), Want: "4 to 204"}
	}
	if !utf8.Valid(b[4:]) {
		return 0, "", &FieldError{Type: Open, Field: "service", Value: uint64(len(b) - 4), Want: "UTF-8"}
	}
	return binary.LittleEndian.Uint32(b), string(b[4:]), nil
}

// PutRefuse encodes the body of REFUSE and says how long it is; text is cut at
// MaxText bytes.
func PutRefuse(b []byte, reason Reason, text string) int {
	binary.LittleEndian.PutUint32(b, uint32(reason))
	return 4 + copy(b[4:4+MaxText], text)
}

// ParseRefuse decodes the body of REFUSE.
func ParseRefuse(b []byte) (reason Reason, text string, err error) {
	if len(b) < 4 || len(b) > 4+MaxText {
		return 0, "", &FieldError{Type: Refuse, Field: "body length", Value: uint64(len(b)), Want: "4 to 204"}
	}
	return Reason(binary.LittleEndian.Uint32(b)), string(b[4:]), nil
}

// PutU32 encodes a body of one 32-bit number: REJECT, CLOSE and CLOSED's reason.
func PutU32(b []byte, v uint32) int {
	binary.LittleEndian.PutUint32(b, v)
	return 4
}

// U32 decodes what PutU32 wrote; Parse has checked the length.
func U32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// PutU64 encodes a body of one 64-bit number: RTS's length, PING's nonce.
func PutU64(b []byte, v uint64) int {
	binary.LittleEndian.PutUint64(b, v)
	return 8
}

// U64 decodes what PutU64 wrote; Parse has checked the length.
func U64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// Grant is the body of CTS: where the peer may write a message.
type Grant struct {
	Transfer uint32 // the immediate of the final WRITE_WITH_IMM
	Addr     uint64
	RKey     uint32
}

// Put encodes the grant and says how long it is.
func (g *Grant) Put(b []byte) int {
	binary.LittleEndian.PutUint32(b, g.Transfer)
	binary.LittleEndian.PutUint64(b[4:], g.Addr)
	binary.LittleEndian.PutUint32(b[12:], g.RKey)
	return 16
}

// ParseGrant decodes the body of CTS; Parse has checked the length.
func ParseGrant(b []byte) Grant {
	return Grant{
		Transfer: binary.LittleEndian.Uint32(b),
		Addr:     binary.LittleEndian.Uint64(b[4:]),
		RKey:     binary.LittleEndian.Uint32(b[12:]),
	}
}

// offerLen is the length of an Offer.
const offerLen = 20

// Offer is the body of RTS in get mode: where the receiver may read a message.
type Offer struct {
	Length uint64
	Addr   uint64
	RKey   uint32
}

// Put encodes the offer and says how long it is.
func (o *Offer) Put(b []byte) int {
	binary.LittleEndian.PutUint64(b, o.Length)
	binary.LittleEndian.PutUint64(b[8:], o.Addr)
	binary.LittleEndian.PutUint32(b[16:], o.RKey)
	return offerLen
}

// ParseOffer decodes the body of RTS in get mode; Parse has checked the length.
func ParseOffer(b []byte) Offer {
	return Offer{Length: binary.LittleEndian.Uint64(b), Addr: binary.LittleEndian.Uint64(b[8:]), RKey: binary.LittleEndian.Uint32(b[16:])}
}

// PutPair encodes a body of two 32-bit numbers: FIN's transfer and status,
// GOAWAY's last socket and reason.
func PutPair(b []byte, v, w uint32) int {
	binary.LittleEndian.PutUint32(b, v)
	binary.LittleEndian.PutUint32(b[4:], w)
	return 8
}

// Pair decodes what PutPair wrote; Parse has checked the length.
func Pair(b []byte) (v, w uint32) {
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
}
