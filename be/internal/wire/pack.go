package wire

import "encoding/binary"

const (
	// MaxParts is how many messages a PACK has at most: its header and table are then no
	// longer than the longest other control message.
	MaxParts = 16
	// PartLen is the length of a part's entry in the table in bytes.
	PartLen = 12
)

// Part is one message of a PACK, as the table has it.
//
//	0 socket u32 | 4 sequence u32 | 8 length u32
type Part struct {
	Socket   uint32
	Sequence uint32 // of the message on its socket
	Length   uint32 // bytes of its payload
}

// Put encodes the i-th part into the table of a PACK, whose header is at the start of b.
func (p *Part) Put(b []byte, i int) {
	b = b[HeaderLen+i*PartLen:]
	_ = b[PartLen-1]
	binary.LittleEndian.PutUint32(b, p.Socket)
	binary.LittleEndian.PutUint32(b[4:], p.Sequence)
	binary.LittleEndian.PutUint32(b[8:], p.Length)
}

// ToPack makes the header of DATA with that many bytes of payload, which is at the start
// of b, one of a PACK of one part.
func ToPack(b []byte, length int) {
	p := Part{binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:]), uint32(length)}
	p.Put(b, 0)
	b[0] = byte(Pack)
	binary.LittleEndian.PutUint32(b[8:], 0)
	binary.LittleEndian.PutUint32(b[12:], 1)
}

// AddPart adds a part to a PACK of n parts, whose header is at the start of b.
func AddPart(b []byte, n int, p Part) {
	p.Put(b, n)
	binary.LittleEndian.PutUint32(b[12:], uint32(n+1))
}

// ParsePack checks the body of a PACK: the parts' payloads fill what is behind the
// table, and nothing else does. It gives the table and the payloads.
func (h *Header) ParsePack(body []byte) (table, payload []byte, err error) {
	n := uint64(h.Sequence)
	switch {
	case h.Socket != 0:
		return nil, nil, &FieldError{Type: h.Type, Field: "socket", Value: uint64(h.Socket), Want: "0"}
	case n < 2 || n > MaxParts:
		return nil, nil, &FieldError{Type: h.Type, Field: "parts", Value: n, Want: "2 to 16"}
	case uint64(len(body)) < n*PartLen:
		return nil, nil, &FieldError{Type: h.Type, Field: "body length", Value: uint64(len(body)), Want: "room for its parts"}
	}
	table, payload = body[:n*PartLen], body[n*PartLen:]
	sum := uint64(0)
	for i := range int(n) {
		sum += uint64(PartAt(table, i).Length)
	}
	if sum != uint64(len(payload)) {
		return nil, nil, &FieldError{Type: h.Type, Field: "sum of lengths", Value: sum, Want: "all that is behind the table"}
	}
	return table, payload, nil
}

// PartAt decodes the i-th entry of a table.
func PartAt(table []byte, i int) Part {
	b := table[i*PartLen:]
	return Part{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
}
