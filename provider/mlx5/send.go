package mlx5

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/qp"
)

// operation says how a request of an opcode is built.
type operation struct {
	code   uint8 // of the control segment
	units  uint8 // of 16 bytes before the payload
	remote bool  // a remote address segment follows
	atomic bool  // and an atomic segment
	imm    bool  // SendWR.Imm goes along
	key    bool  // SendWR.RKey goes along in the immediate's place
}

var operations = [16]operation{
	qp.Write:        {code: opcodeWrite, units: 2, remote: true},
	qp.WriteWithImm: {code: opcodeWriteImm, units: 2, remote: true, imm: true},
	qp.Send:         {code: opcodeSend, units: 1},
	qp.SendWithImm:  {code: opcodeSendImm, units: 1, imm: true},
	qp.Read:         {code: opcodeRead, units: 2, remote: true},
	qp.CompareSwap:  {code: opcodeCompareSwap, units: 3, remote: true, atomic: true},
	qp.FetchAdd:     {code: opcodeFetchAdd, units: 3, remote: true, atomic: true},
	qp.LocalInv:     {code: opcodeUMR, units: 1, key: true},
	qp.BindMW:       {code: opcodeUMR, units: 1, key: true},
	qp.SendWithInv:  {code: opcodeSendInvalidate, units: 1, key: true},
}

// flagBits are the bits of the control segment by send flags, inline left out.
var flagBits = [16]uint8{
	qp.Signaled: ctrlCQUpdate, qp.Solicited: ctrlSolicited, qp.Signaled | qp.Solicited: ctrlCQUpdate | ctrlSolicited,
	qp.Fence: ctrlFence, qp.Fence | qp.Signaled: ctrlFence | ctrlCQUpdate, qp.Fence | qp.Solicited: ctrlFence | ctrlSolicited,
	qp.Fence | qp.Signaled | qp.Solicited: ctrlFence | ctrlCQUpdate | ctrlSolicited,
}

// sendRing is a send queue's memory: a power of two of 64-byte blocks. A request
// begins at a block and goes on at the start where the memory ends.
type sendRing struct {
	b     []byte
	mask  uint32 // blocks less one
	qpn   uint32
	every uint8 // ctrlCQUpdate if every request is signaled
	fence uint8 // bits owed to the next request
}

// put writes a request from a block on, which counts blocks ever posted, and
// returns its length in units of 16 bytes. It stores what the NIC reads and no
// more. The caller made sure that it fits.
func (s *sendRing) put(block uint32, w *qp.SendWR) (units uint32) {
	at := int(block&s.mask) << blockShift
	head := (*[blockSize]byte)(s.b[at:])
	op := &operations[w.Opcode&15]
	off := int(op.units) * 16
	if op.remote {
		putBE64(head[16:24], w.RemoteAddr)
		putBE64(head[24:32], uint64(w.RKey)<<32)
		if op.atomic {
			putAtomic(head[32:48], w)
		}
	}
	fence := s.fence
	s.fence = 0
	switch {
	case op.code == opcodeUMR:
		off += s.putUMR(at, w)
		s.fence = ctrlSmallFence
	case w.Flags&qp.Inline != 0:
		if len(w.Inline) > 0 {
			off += s.putInline(at+off, w.Inline)
		}
	case len(w.SGEs) == 1 && off < 48 && w.SGEs[0].Length != 0: // most often
		g := &w.SGEs[0]
		d := head[off&48:]
		putBE64(d[:8], uint64(g.Length)<<32|uint64(g.LKey))
		putBE64(d[8:16], g.Addr)
		off += dataSize
	default:
		off += s.putData(at+off, w.SGEs)
	}
	units = uint32(off) >> 4
	bits := flagBits[w.Flags&(qp.Fence|qp.Signaled|qp.Solicited)] | s.every
	if w.Flags&qp.Fence == 0 {
		bits |= fence
	}
	imm := uint32(0)
	switch {
	case op.imm:
		imm = w.Imm
	case op.key:
		imm = uint32(w.RKey)
	}
	// opmod_idx_opcode and qpn_ds; signature, stream channel, fm_ce_se and imm.
	putBE64(head[:8], uint64(block&0xffff<<8|uint32(op.code))<<32|uint64(s.qpn<<8|units))
	putBE64(head[8:16], uint64(bits)<<32|uint64(imm))
	return units
}

func putAtomic(b []byte, w *qp.SendWR) {
	if w.Opcode == qp.FetchAdd {
		atomicSwapAdd.Put(b, w.CompareAdd)
		return
	}
	atomicSwapAdd.Put(b, w.Swap)
	atomicCompare.Put(b, w.CompareAdd)
}

// putData writes the segments that are not empty (a length of 0 means 2^31) and
// returns how many bytes they take.
func (s *sendRing) putData(at int, sges []qp.SGE) (n int) {
	if at == len(s.b) {
		at = 0
	}
	for i := range sges {
		g := &sges[i]
		if g.Length == 0 {
			continue
		}
		d := s.b[at : at+dataSize : at+dataSize]
		dataByteCount.Put(d, g.Length)
		dataLKey.Put(d, uint32(g.LKey))
		dataAddr.Put(d, g.Addr)
		if at += dataSize; at == len(s.b) {
			at = 0
		}
		n += dataSize
	}
	return n
}

// putInline writes the payload as one segment and returns how many bytes it takes,
// padding included.
func (s *sendRing) putInline(at int, p []byte) int {
	if at == len(s.b) {
		at = 0
	}
	binary.BigEndian.PutUint32(s.b[at:], uint32(len(p))|inlineFlag)
	if k := copy(s.b[at+inlineHeader:], p); k < len(p) {
		copy(s.b, p[k:])
	}
	return roundUp(inlineHeader+len(p), 16)
}
