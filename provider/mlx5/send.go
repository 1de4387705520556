package mlx5

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/qp"
)

// The opcodes of enum ibv_wr_opcode that package qp does not have. They are encoded
// as rdma-core does, but PostSend's check refuses them.
const (
	localInvalidate    qp.Opcode = 7
	sendWithInvalidate qp.Opcode = 9
)

// operation says how a request of an opcode is built.
type operation struct {
	code   uint8 // of the control segment
	remote bool  // a remote address segment follows
	atomic bool  // and an atomic segment
	imm    bool  // SendWR.Imm goes along
}

var operations = [16]operation{
	qp.Write:           {code: opcodeWrite, remote: true},
	qp.WriteWithImm:    {code: opcodeWriteImm, remote: true, imm: true},
	qp.Send:            {code: opcodeSend},
	qp.SendWithImm:     {code: opcodeSendImm, imm: true},
	qp.Read:            {code: opcodeRead, remote: true},
	qp.CompareSwap:     {code: opcodeCompareSwap, remote: true, atomic: true},
	qp.FetchAdd:        {code: opcodeFetchAdd, remote: true, atomic: true},
	localInvalidate:    {code: opcodeUMR, imm: true},
	sendWithInvalidate: {code: opcodeSendInvalidate, imm: true},
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
func (s *sendRing) put(block uint32, w *qp.SendWR) (units int) {
	at := int(block&s.mask) << blockShift
	head := s.b[at : at+blockSize : at+blockSize]
	op := &operations[w.Opcode&15]
	off := ctrlSize
	if op.remote {
		r := head[off : off+raddrSize]
		raddrAddr.Put(r, w.RemoteAddr)
		raddrRKey.Put(r, uint32(w.RKey))
		raddrReserved.Put(r, 0)
		off += raddrSize
		if op.atomic {
			putAtomic(head[off:off+atomicSize], w)
			off += atomicSize
		}
	}
	fence := s.fence
	s.fence = 0
	switch {
	case w.Opcode == localInvalidate:
		off += s.putInvalidate(at)
		s.fence = ctrlSmallFence
	case w.Flags&qp.Inline != 0:
		if len(w.Inline) > 0 {
			off += s.putInline(at+off, w.Inline)
		}
	default:
		off += s.putData(at+off, w.SGEs)
	}
	units = off >> 4
	bits := flagBits[w.Flags&(qp.Fence|qp.Signaled|qp.Solicited)] | s.every
	if w.Flags&qp.Fence == 0 {
		bits |= fence
	}
	imm := uint32(0)
	if op.imm {
		imm = w.Imm
	}
	ctrlOpmodIdxOpcode.Put(head, block&0xffff<<8|uint32(op.code))
	ctrlQPNDS.Put(head, s.qpn<<8|uint32(units))
	binary.BigEndian.PutUint32(head[8:], uint32(bits)) // signature, stream channel, fm_ce_se
	ctrlImm.Put(head, imm)
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

// putInvalidate writes the body of a local invalidation: a UMR that frees the key
// (inline, checked to be in use: flags 0x98; mask of the state and key number bits)
// and the key's context, of which the NIC reads the status byte, free, and the
// queue pair number, any.
func (s *sendRing) putInvalidate(at int) int {
	u := s.b[at+ctrlSize : at+blockSize]
	clear(u)
	umrCtrlFlags.Put(u, 0x98)
	umrCtrlMkeyMask.Put(u, 0x20006000)
	next := (at + blockSize) & (len(s.b) - 1)
	s.b[next] = 0x40
	binary.BigEndian.PutUint32(s.b[next+4:], 0xffffff00)
	return umrCtrlSize + 64
}
