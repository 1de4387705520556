package rxe

import (
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// minSendElem is the fixed part of a send element; segments or inline bytes follow.
const minSendElem = sendWQESize

// sendRoom is how many bytes of segments or inline payload a send element holds.
func sendRoom(log2 uint) int { return 1<<log2 - minSendElem }

// putSend writes a send request, which has passed its check against the queue's
// capacities, into an element. It writes what the kernel reads and leaves alone
// what the kernel fills in itself (status, mask, PSNs).
func putSend(e []byte, w *qp.SendWR, signalAll bool) {
	clear(e[:sendWRSize])
	sendWRWRID.Put(e, w.ID)
	sendWROpcode.Put(e, uint32(w.Opcode))
	flags := w.Flags
	if signalAll {
		flags |= qp.Signaled
	}
	sendWRSendFlags.Put(e, uint32(flags))
	if w.Opcode.HasImm() {
		sendWRImmData.Put(e, w.Imm)
	}
	iova := uint64(0)
	switch w.Opcode {
	case qp.Write, qp.WriteWithImm, qp.Read:
		iova = w.RemoteAddr
		sendWRRdmaRemoteAddr.Put(e, w.RemoteAddr)
		sendWRRdmaRkey.Put(e, uint32(w.RKey))
	case qp.CompareSwap:
		sendWRSwap.Put(e, w.Swap)
		fallthrough
	case qp.FetchAdd:
		iova = w.RemoteAddr
		sendWRAtomicRemoteAddr.Put(e, w.RemoteAddr)
		sendWRCompareAdd.Put(e, w.CompareAdd)
		sendWRAtomicRkey.Put(e, uint32(w.RKey))
	}
	sendWQEState.Put(e, 0) // posted
	sendWQEIova.Put(e, iova)
	if w.Flags&qp.Inline != 0 {
		n := copy(e[minSendElem:], w.Inline)
		putDMA(sendWQEDma.In(e), uint32(n), 1)
		return
	}
	putDMA(sendWQEDma.In(e), uint32(w.Length()), len(w.SGEs))
	putSGEs(e[minSendElem:], w.SGEs)
}

// putDMA writes the state of the data transfer, which the kernel advances in place.
func putDMA(b []byte, length uint32, segments int) {
	dmaLength.Put(b, length)
	dmaResid.Put(b, length)
	dmaCurSGE.Put(b, 0)
	dmaNumSGE.Put(b, uint32(segments))
	dmaSGEOffset.Put(b, 0)
}

func putSGEs(b []byte, sges []qp.SGE) {
	for i := range sges {
		sgeAddr.Put(b, sges[i].Addr)
		sgeLength.Put(b, sges[i].Length)
		sgeLkey.Put(b, uint32(sges[i].LKey))
		b = b[sgeSize:]
	}
}

// readSend is the inverse of putSend, for tests and fakes: what the kernel would
// run. It refuses an element that does not hold what it says.
func readSend(e []byte) (w qp.SendWR, ok bool) {
	if len(e) < minSendElem {
		return w, false
	}
	w = qp.SendWR{ID: sendWRWRID.Get(e), Opcode: qp.Opcode(sendWROpcode.Get(e)), Flags: qp.SendFlags(sendWRSendFlags.Get(e))}
	if w.Opcode.HasImm() {
		w.Imm = sendWRImmData.Get(e)
	}
	switch {
	case w.Opcode == qp.Write || w.Opcode == qp.WriteWithImm || w.Opcode == qp.Read:
		w.RemoteAddr, w.RKey = sendWRRdmaRemoteAddr.Get(e), mr.RKey(sendWRRdmaRkey.Get(e))
	case w.Opcode.IsAtomic():
		w.RemoteAddr, w.RKey, w.CompareAdd = sendWRAtomicRemoteAddr.Get(e), mr.RKey(sendWRAtomicRkey.Get(e)), sendWRCompareAdd.Get(e)
		if w.Opcode == qp.CompareSwap {
			w.Swap = sendWRSwap.Get(e)
		}
	}
	d, rest := sendWQEDma.In(e), e[minSendElem:]
	if w.Flags&qp.Inline != 0 {
		n := dmaLength.Get(d)
		if uint64(n) > uint64(len(rest)) {
			return w, false
		}
		w.Inline = rest[:n]
		return w, true
	}
	w.SGEs, ok = readSGEs(rest, dmaNumSGE.Get(d))
	return w, ok
}

func readSGEs(b []byte, n uint32) (sges []qp.SGE, ok bool) {
	if uint64(n)*sgeSize > uint64(len(b)) {
		return nil, false
	}
	for range n {
		sges = append(sges, qp.SGE{Addr: sgeAddr.Get(b), Length: sgeLength.Get(b), LKey: mr.LKey(sgeLkey.Get(b))})
		b = b[sgeSize:]
	}
	return sges, true
}
