package wire

import "encoding/binary"

// ReadTokenLen is the length of an encoded ReadToken in bytes.
const ReadTokenLen = 40

// ReadToken names memory that a node exposes to its peers. Applications carry it.
//
//	0 incarnation of the node [16]u8 | 16 address u64 | 24 length u64 | 32 rkey u32 | 36 reserved u32
type ReadToken struct {
	Node   [16]byte
	Addr   uint64
	Length uint64
	RKey   uint32
}

// Put encodes the token into b, which must hold ReadTokenLen bytes.
func (t *ReadToken) Put(b []byte) {
	_ = b[ReadTokenLen-1]
	copy(b, t.Node[:])
	binary.LittleEndian.PutUint64(b[16:], t.Addr)
	binary.LittleEndian.PutUint64(b[24:], t.Length)
	binary.LittleEndian.PutUint32(b[32:], t.RKey)
	binary.LittleEndian.PutUint32(b[36:], 0)
}

// Parse decodes a token and checks what can be checked.
func (t *ReadToken) Parse(b []byte) error {
	if len(b) != ReadTokenLen {
		return &FieldError{Field: "read token length", Value: uint64(len(b)), Want: "40"}
	}
	copy(t.Node[:], b)
	t.Addr, t.Length = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	t.RKey = binary.LittleEndian.Uint32(b[32:])
	if r := binary.LittleEndian.Uint32(b[36:]); r != 0 {
		return &FieldError{Field: "reserved field of the read token", Value: uint64(r), Want: "0"}
	}
	if t.Addr+t.Length < t.Addr {
		return &FieldError{Field: "length of the read token", Value: t.Length, Want: "an end below 2^64"}
	}
	return nil
}
