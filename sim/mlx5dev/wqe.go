package mlx5dev

import (
	"encoding/binary"
	"fmt"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// Parts of a request, by the NIC's programming rules (as in rdma-core's
// providers/mlx5/mlx5dv.h): a ring of 64-byte blocks, segments of 16 bytes.
const (
	block     = 64
	segment   = 16
	inlineBit = 1 << 31 // of the first word of a payload segment

	fenceBits    = 0xe0 // fm_ce_se
	completeBits = 0x0c
	solicitedBit = 0x02
	knownBits    = fenceBits | completeBits | solicitedBit

	strongFence    = 0x80 // the fence mode of a fenced request
	smallFence     = 0x20 // that of one after a request that changes a key
	completeAlways = 0x08 // the completion mode of a signaled one
)

type opcode struct {
	name   string
	op     qp.Opcode
	remote bool // has a remote address segment
	atomic bool // and an atomic segment
	imm    bool // has an immediate, or a key in its place
	inline bool // may carry its payload in place
}

// opUMR is the opcode of requests that change a key.
const opUMR = 0x25

var opcodes = map[uint8]opcode{
	0x08:  {"RDMA_WRITE", qp.Write, true, false, false, true},
	0x09:  {"RDMA_WRITE_IMM", qp.WriteWithImm, true, false, true, true},
	0x0a:  {"SEND", qp.Send, false, false, false, true},
	0x0b:  {"SEND_IMM", qp.SendWithImm, false, false, true, true},
	0x10:  {"RDMA_READ", qp.Read, true, false, false, false},
	0x11:  {"ATOMIC_CS", qp.CompareSwap, true, true, false, false},
	0x12:  {"ATOMIC_FA", qp.FetchAdd, true, true, false, false},
	0x01:  {"SEND_INVAL", qp.SendWithInv, false, false, true, true},
	opUMR: {"UMR", qp.LocalInv, false, false, true, false},
}

// request is a send request as the NIC understands it.
type request struct {
	wr     qp.SendWR
	code   uint8
	blocks uint32
}

// decoder reads send requests of one queue pair. Its slices are used again for the
// next request; raw holds the last one's bytes in a row.
type decoder struct {
	qpn       uint32
	maxSGE    int
	maxInline int
	raw       []byte
	sges      []qp.SGE
	inline    []byte
	bind      qp.Bind
	owed      bool // the request before was a UMR: this one has to wait for it
}

// decode reads the request at a block of the ring, whose blocks are a power of
// two; avail are those that the NIC may read. The error tells the rule broken.
func (d *decoder) decode(ring []byte, index, avail uint32) (r request, err error) {
	count := uint32(len(ring) / block)
	at := int(index%count) * block
	d.raw = append(d.raw[:0], ring[at:at+segment]...)
	w0, w1 := binary.BigEndian.Uint32(d.raw), binary.BigEndian.Uint32(d.raw[4:])
	op, known := opcodes[uint8(w0)]
	units := w1 & 0xff
	r.code, r.blocks = uint8(w0), (units+3)/4
	for i := 1; i < int(min(units, 64)); i++ { // the whole of it, over the end of the ring
		p := (at + i*segment) % len(ring)
		d.raw = append(d.raw, ring[p:p+segment]...)
	}
	switch {
	case !known:
		return r, fmt.Errorf("opcode %#x is not known", uint8(w0))
	case w0>>24 != 0:
		return r, fmt.Errorf("opmod is %d, must be 0", w0>>24)
	case w0>>8&0xffff != index&0xffff:
		return r, fmt.Errorf("wqe index is %d at block %d", w0>>8&0xffff, index&0xffff)
	case w1>>8 != d.qpn:
		return r, fmt.Errorf("qp number is %#x in the queue of %#x", w1>>8, d.qpn)
	case units < 1 || units > 63:
		return r, fmt.Errorf("ds is %d units, must be 1 to 63", units)
	case r.blocks > avail:
		return r, fmt.Errorf("takes %d blocks, only %d were posted", r.blocks, avail)
	}
	b := d.raw
	switch fm := b[11]; {
	case b[8] != 0 || b[9] != 0 || b[10] != 0:
		return r, fmt.Errorf("signature or stream channel is not 0")
	case fm&^knownBits != 0:
		return r, fmt.Errorf("fm_ce_se %#x has unknown bits", fm)
	case fm&completeBits != 0 && fm&completeBits != completeAlways:
		return r, fmt.Errorf("completion mode %#x", fm&completeBits)
	case fm&fenceBits != 0 && fm&fenceBits != strongFence && fm&fenceBits != smallFence:
		return r, fmt.Errorf("fence mode %#x", fm&fenceBits)
	case d.owed && fm&fenceBits == 0:
		return r, fmt.Errorf("no fence after a request that changes a key")
	case !d.owed && fm&fenceBits == smallFence:
		return r, fmt.Errorf("fence mode %#x, but the request before changes no key", fm&fenceBits)
	default:
		if fm&strongFence != 0 {
			r.wr.Flags |= qp.Fence
		}
		if fm&completeAlways != 0 {
			r.wr.Flags |= qp.Signaled
		}
		if fm&solicitedBit != 0 {
			r.wr.Flags |= qp.Solicited
		}
	}
	r.wr.Opcode, r.wr.Imm = op.op, binary.BigEndian.Uint32(b[12:])
	if !op.imm && r.wr.Imm != 0 {
		return r, fmt.Errorf("%s has an immediate", op.name)
	}
	if op.op == qp.SendWithInv || r.code == opUMR {
		r.wr.RKey, r.wr.Imm = mr.RKey(r.wr.Imm), 0
	}
	d.owed = r.code == opUMR
	if d.owed {
		return r, d.umr(&r)
	}
	off := segment
	if op.remote {
		if len(b) < off+segment {
			return r, fmt.Errorf("%s without a remote address segment", op.name)
		}
		r.wr.RemoteAddr, r.wr.RKey = binary.BigEndian.Uint64(b[off:]), mr.RKey(binary.BigEndian.Uint32(b[off+8:]))
		if binary.BigEndian.Uint32(b[off+12:]) != 0 {
			return r, fmt.Errorf("reserved word of the remote address segment is not 0")
		}
		off += segment
	}
	if op.atomic {
		if len(b) < off+segment {
			return r, fmt.Errorf("%s without an atomic segment", op.name)
		}
		first, second := binary.BigEndian.Uint64(b[off:]), binary.BigEndian.Uint64(b[off+8:])
		if op.op == qp.CompareSwap {
			r.wr.Swap, r.wr.CompareAdd = first, second
		} else {
			r.wr.CompareAdd = first
		}
		off += segment
	}
	return r, d.payload(&r, op, b[off:])
}

// payload reads the segments of the data.
func (d *decoder) payload(r *request, op opcode, b []byte) error {
	d.sges = d.sges[:0]
	if len(b) > 0 && binary.BigEndian.Uint32(b)&inlineBit != 0 {
		n := int(binary.BigEndian.Uint32(b) &^ inlineBit)
		switch {
		case !op.inline:
			return fmt.Errorf("%s with inline payload", op.name)
		case n == 0 || n > d.maxInline:
			return fmt.Errorf("%d inline bytes, must be 1 to %d", n, d.maxInline)
		case (n+4+segment-1)/segment*segment != len(b):
			return fmt.Errorf("%d inline bytes in %d bytes of segments", n, len(b))
		}
		d.inline = append(d.inline[:0], b[4:4+n]...)
		r.wr.Flags |= qp.Inline
		r.wr.Inline = d.inline
		return nil
	}
	for ; len(b) > 0; b = b[segment:] {
		n := binary.BigEndian.Uint32(b)
		switch {
		case n&inlineBit != 0:
			return fmt.Errorf("inline segment after others")
		case n == 0:
			return fmt.Errorf("segment of length 0, which means 2^31")
		}
		d.sges = append(d.sges, qp.SGE{Length: n, LKey: mr.LKey(binary.BigEndian.Uint32(b[4:])), Addr: binary.BigEndian.Uint64(b[8:])})
	}
	if len(d.sges) > d.maxSGE {
		return fmt.Errorf("%d segments, at most %d", len(d.sges), d.maxSGE)
	}
	if op.atomic && (len(d.sges) != 1 || d.sges[0].Length != 8) {
		return fmt.Errorf("%s needs one segment of 8 bytes", op.name)
	}
	r.wr.SGEs = d.sges
	return nil
}

// noKey is the lkey of the segment that ends the list of a receive.
const noKey = 0x100

// decodeRecv reads a receive: segments up to the one that ends the list.
func decodeRecv(slot []byte, sges []qp.SGE) ([]qp.SGE, error) {
	for ; len(slot) > 0; slot = slot[segment:] {
		n, key, addr := binary.BigEndian.Uint32(slot), binary.BigEndian.Uint32(slot[4:]), binary.BigEndian.Uint64(slot[8:])
		if n == 0 && key == noKey {
			if addr != 0 {
				return sges, fmt.Errorf("last segment of a receive has an address")
			}
			return sges, nil
		}
		if n == 0 || n&inlineBit != 0 {
			return sges, fmt.Errorf("segment of a receive has length %#x", n)
		}
		sges = append(sges, qp.SGE{Length: n, LKey: mr.LKey(key), Addr: addr})
	}
	return sges, nil
}
