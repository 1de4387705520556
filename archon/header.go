package archon

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"time"

	"github.com/pkg/errors"
)

// The header of every message, little-endian:
//
//	 0  u8   version, 1
//	 1  u8   kind: request, response, cancel
//	 2  u8   code (response)
//	 3  u8   flags
//	 4  u32  payload length
//	 8  u64  call id
//	16  u64  method id (request)
//	24  u64  time left until the deadline in nanoseconds, 0 for none (request)
//	32  u32  detail length
//	36  u32  0
//	40  payload, then detail (the message of a failed response)
//
// A field that a kind does not use is 0. The message's length is exactly header
// plus payload plus detail.
const (
	// HeaderSize is the room that a message's payload has in front of it.
	HeaderSize = 40

	wireVersion = 1
	maxDetail   = 4 << 10 // bytes of an error's message that travel
)

type kind uint8

const (
	kindRequest  kind = 1
	kindResponse kind = 2
	kindCancel   kind = 3
)

// flagRetryable in a failed response: its handler did not run.
const flagRetryable = 1 << 0

// CallID names a call on its connection: the client's slot in the low 32 bits,
// the slot's generation above. Generations wrap, so ids are compared for equality
// alone.
type CallID uint64

func newCallID(slot, generation uint32) CallID {
	return CallID(generation)<<32 | CallID(slot)
}

func (id CallID) slot() uint32       { return uint32(id) }
func (id CallID) generation() uint32 { return uint32(id >> 32) }

// Method names a method. Its id on the wire is the 64-bit FNV-1a hash of its name.
type Method struct {
	name string
	id   uint64
}

// NewMethod gives the method of that name; "Service.Method" by custom.
func NewMethod(name string) Method {
	h := fnv.New64a()
	h.Write([]byte(name))
	return Method{name: name, id: h.Sum64()}
}

// String is the method's name.
func (m Method) String() string { return m.name }

type header struct {
	kind    kind
	code    Code
	flags   uint8
	payload uint32
	detail  uint32
	id      CallID
	method  uint64
	timeout time.Duration // 0: none
}

// put writes the header into the first HeaderSize bytes of b.
func (h *header) put(b []byte) {
	_ = b[HeaderSize-1]
	b[0], b[1], b[2], b[3] = wireVersion, byte(h.kind), byte(h.code), h.flags
	binary.LittleEndian.PutUint32(b[4:], h.payload)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.id))
	binary.LittleEndian.PutUint64(b[16:], h.method)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.timeout))
	binary.LittleEndian.PutUint64(b[32:], uint64(h.detail))
}

// ErrProtocol is wrapped when a peer sends what the protocol does not allow. Its
// connection is closed.
var ErrProtocol = errors.New("protocol error")

// parseHeader reads and checks the header of a whole message.
func parseHeader(b []byte) (h header, err error) {
	if len(b) < HeaderSize {
		return h, errors.Wrapf(ErrProtocol, "message of %d bytes, a header has %d", len(b), HeaderSize)
	}
	if b[0] != wireVersion {
		return h, errors.Wrapf(ErrProtocol, "version %d, only %d is spoken", b[0], wireVersion)
	}
	h.kind, h.code, h.flags = kind(b[1]), Code(b[2]), b[3]
	h.payload = binary.LittleEndian.Uint32(b[4:])
	h.id = CallID(binary.LittleEndian.Uint64(b[8:]))
	h.method = binary.LittleEndian.Uint64(b[16:])
	left := binary.LittleEndian.Uint64(b[24:])
	h.detail = binary.LittleEndian.Uint32(b[32:])
	if total := uint64(HeaderSize) + uint64(h.payload) + uint64(h.detail); total != uint64(len(b)) {
		return h, errors.Wrapf(ErrProtocol, "message of %d bytes, its header says %d", len(b), total)
	}
	if left > math.MaxInt64 {
		return h, errors.Wrapf(ErrProtocol, "time left %d ns is negative", int64(left))
	}
	h.timeout = time.Duration(left)
	if field := h.misused(binary.LittleEndian.Uint32(b[36:])); field != "" {
		return h, errors.Wrapf(ErrProtocol, "kind %d with bad %s", h.kind, field)
	}
	return h, nil
}

// misused names a field that the header's kind does not allow as it is, or "".
func (h *header) misused(reserved uint32) string {
	switch {
	case reserved != 0:
		return "reserved field"
	case h.kind < kindRequest || h.kind > kindCancel:
		return "kind"
	case h.kind != kindRequest && (h.method != 0 || h.timeout != 0):
		return "method or time left"
	case h.kind != kindResponse && h.code != OK:
		return "code"
	case h.code > maxCode:
		return "code"
	case h.flags != 0 && (h.flags != flagRetryable || h.code == OK):
		return "flags"
	case h.detail != 0 && (h.code == OK || h.detail > maxDetail):
		return "detail length"
	case h.kind == kindCancel && h.payload != 0:
		return "payload length"
	}
	return ""
}
