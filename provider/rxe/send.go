package rxe

import "github.com/byteexpress/byteexpress/qp"

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
	if w.Opcode > qp.FetchAdd {
		putWindow(e, w)
	}
	iova := uint64(0)
	switch w.Opcode {
	case qp.Write, qp.WriteWithImm, qp.Read:
		iova = w.RemoteAddr
		sendWRRdmaRemoteAddr.Put(e, w.RemoteAddr)
		sendWRRdmaRkey.Put(e, uint32(w.RKey))
	case qp.CompareSwap, qp.FetchAdd:
		sendWRSwap.Put(e, w.Swap) // of no meaning to the latter
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

// putWindow writes what requests for memory windows have.
func putWindow(e []byte, w *qp.SendWR) {
	if w.Opcode != qp.BindMW {
		sendWRInvalidateRkey.Put(e, uint32(w.RKey))
		return
	}
	b := w.Bind
	sendWRMWAddr.Put(e, b.Addr)
	sendWRMWLength.Put(e, b.Length)
	sendWRMWMRLkey.Put(e, uint32(b.Region))
	sendWRMWRkey.Put(e, uint32(w.RKey))
	sendWRMWNewRkey.Put(e, uint32(b.RKey))
	sendWRMWAccess.Put(e, uint32(b.Access))
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
