package rxe

import "github.com/byteexpress/byteexpress/qp"

// minRecvElem is the fixed part of a receive element; segments follow.
const minRecvElem = recvWQESize

// putRecv writes a receive, which has passed its check, into an element.
func putRecv(e []byte, w *qp.RecvWR) {
	recvWQEWRID.Put(e, w.ID)
	putDMA(recvWQEDma.In(e), uint32(w.Length()), len(w.SGEs))
	putSGEs(e[minRecvElem:], w.SGEs)
}
