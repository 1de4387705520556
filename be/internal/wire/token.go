package wire

import "encoding/binary"

// TokenLen is the length of an encoded Token in bytes.
const TokenLen = 32

// Token names a published buffer to the peer of its socket. Applications carry it.
//
//	0 socket u32 | 4 transfer u32 | 8 rkey u32 | 12 tag u32 | 16 address u64 | 24 length u64
type Token struct {
	Socket   uint32
	Transfer uint32 // the immediate of the final WRITE_WITH_IMM
	RKey     uint32
	Tag      uint32 // of the end of the socket that published it: no other's, on any engine; 0 without the feature "tags"
	Addr     uint64
	Length   uint64
}

// Put encodes the token into b, which must hold TokenLen bytes.
func (t *Token) Put(b []byte) {
	_ = b[TokenLen-1]
	binary.LittleEndian.PutUint32(b, t.Socket)
	binary.LittleEndian.PutUint32(b[4:], t.Transfer)
	binary.LittleEndian.PutUint32(b[8:], t.RKey)
	binary.LittleEndian.PutUint32(b[12:], t.Tag)
	binary.LittleEndian.PutUint64(b[16:], t.Addr)
	binary.LittleEndian.PutUint64(b[24:], t.Length)
}

// Parse decodes a token and checks what can be checked.
func (t *Token) Parse(b []byte) error {
	if len(b) != TokenLen {
		return &FieldError{Field: "token length", Value: uint64(len(b)), Want: "32"}
	}
	*t = Token{
		Socket: binary.LittleEndian.Uint32(b), Transfer: binary.LittleEndian.Uint32(b[4:]), RKey: binary.LittleEndian.Uint32(b[8:]), Tag: binary.LittleEndian.Uint32(b[12:]),
		Addr: binary.LittleEndian.Uint64(b[16:]), Length: binary.LittleEndian.Uint64(b[24:]),
	}
	if t.Addr+t.Length < t.Addr {
		return &FieldError{Field: "length of the token", Value: t.Length, Want: "an end below 2^64"}
	}
	return nil
}
