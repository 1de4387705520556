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
//	 0  u8   version, 2
//	 1  u8   kind
//	 2  u8   code (response, go away)
//	 3  u8   flags
//	 4  u32  payload length
//	 8  u64  call id (all but go away)
//	16  u64  method id (request), incarnation of the server (pong)
//	24  u64  time left until the deadline in nanoseconds, 0 for none (request)
//	32  u32  detail length (failed response, go away); bytes of window (stream request, window)
//	36  u16  metadata length, a multiple of 8 (request, response)
//	38  u16  0
//	40  metadata, then payload, then detail (the message of a code)
//
// A field that a kind does not use is 0. The message's length is exactly header
// plus metadata plus payload plus detail.
//
// The kinds, and who sends them:
//
//	1  request   client  begins a call
//	2  response  server  ends it; the end of a stream has no payload
//	3  cancel    client  nobody waits for the call any more
//	4  item      server  one message of a stream
//	5  window    client  the stream's sender may send so many bytes more
//	6  ping      client  is answered at once
//	7  pong      server  the answer
//	8  go away   both    the server takes no new calls on this connection;
//	                     the client has sent its last
//
// Flags: bit 0 in a failed response, retryable: its handler did not run; in a
// request bit 1, one-way: there is no response, and the id is 0; bit 2, stream: items
// come before the response.
const (
	// HeaderSize is the room that a message without metadata has in front of its
	// payload.
	HeaderSize = 40

	wireVersion = 2
	maxDetail   = 4 << 10 // bytes of an error's message that travel
)

type kind uint8

const (
	kindRequest  kind = 1
	kindResponse kind = 2
	kindCancel   kind = 3
	kindItem     kind = 4
	kindWindow   kind = 5
	kindPing     kind = 6
	kindPong     kind = 7
	kindGoAway   kind = 8
)

const (
	flagRetryable = 1 << 0
	flagOneWay    = 1 << 1
	flagStream    = 1 << 2
)

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
	id      CallID
	method  uint64        // or a pong's incarnation
	timeout time.Duration // 0: none
	detail  uint32        // bytes of the code's message
	window  uint32        // of a stream
	meta    uint16        // bytes of metadata
}

// hasWindow tells which of its two meanings the field at 32 has.
func (h *header) hasWindow() bool { return h.kind == kindWindow || h.kind == kindRequest }

// at is where the payload begins.
func (h *header) at() int { return HeaderSize + int(h.meta) }

// put writes the header into the first HeaderSize bytes of b.
func (h *header) put(b []byte) {
	_ = b[HeaderSize-1]
	b[0], b[1], b[2], b[3] = wireVersion, byte(h.kind), byte(h.code), h.flags
	binary.LittleEndian.PutUint32(b[4:], h.payload)
	binary.LittleEndian.PutUint64(b[8:], uint64(h.id))
	binary.LittleEndian.PutUint64(b[16:], h.method)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.timeout))
	binary.LittleEndian.PutUint32(b[32:], h.detail|h.window) // one of them is 0
	binary.LittleEndian.PutUint32(b[36:], uint32(h.meta))
}

// ErrProtocol is wrapped when a peer sends what the protocol does not allow. Its
// connection is closed.
var ErrProtocol = errors.New("protocol error")

// parseHeader reads and checks the header of a whole message, and its metadata.
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
	if h.hasWindow() {
		h.window = binary.LittleEndian.Uint32(b[32:])
	} else {
		h.detail = binary.LittleEndian.Uint32(b[32:])
	}
	h.meta = binary.LittleEndian.Uint16(b[36:])
	if total := uint64(h.at()) + uint64(h.payload) + uint64(h.detail); total != uint64(len(b)) {
		return h, errors.Wrapf(ErrProtocol, "message of %d bytes, its header says %d", len(b), total)
	}
	if left > math.MaxInt64 {
		return h, errors.Wrapf(ErrProtocol, "time left %d ns is negative", int64(left))
	}
	h.timeout = time.Duration(left)
	if field := h.misused(binary.LittleEndian.Uint16(b[38:])); field != "" {
		return h, errors.Wrapf(ErrProtocol, "kind %d with bad %s", h.kind, field)
	}
	if h.meta != 0 {
		return h, checkMetadata(b[HeaderSize:h.at()])
	}
	return h, nil
}

// misused names a field that the header's kind does not allow as it is, or "".
func (h *header) misused(reserved uint16) string {
	switch {
	case reserved != 0:
		return "reserved field"
	case h.kind < kindRequest || h.kind > kindGoAway:
		return "kind"
	case h.kind != kindRequest && (h.method != 0 && h.kind != kindPong || h.timeout != 0):
		return "method or time left"
	case h.kind != kindResponse && h.kind != kindGoAway && h.code != OK:
		return "code"
	case h.code > maxCode:
		return "code"
	case h.flags&^h.allowed() != 0 || h.flags == flagOneWay|flagStream:
		return "flags"
	case h.detail != 0 && (h.code == OK || h.detail > maxDetail):
		return "detail length"
	case h.payload != 0 && h.kind != kindRequest && h.kind != kindResponse && h.kind != kindItem:
		return "payload length"
	case h.id != 0 && (h.kind == kindGoAway || h.flags&flagOneWay != 0):
		return "call id"
	case (h.window != 0) != (h.kind == kindWindow || h.flags&flagStream != 0) || h.window > maxWindow:
		return "window"
	case h.meta != 0 && (h.kind != kindRequest && h.kind != kindResponse || h.meta > MaxMetadata || h.meta%metaAlign != 0):
		return "metadata length"
	}
	return ""
}

// allowed are the flags that the header's kind may have.
func (h *header) allowed() uint8 {
	switch {
	case h.kind == kindRequest:
		return flagOneWay | flagStream
	case h.kind == kindResponse && h.code != OK:
		return flagRetryable
	}
	return 0
}
