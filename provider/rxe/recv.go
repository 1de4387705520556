package rxe

import (
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/qp"
)

// minRecvElem is the fixed part of a receive element; segments follow.
const minRecvElem = recvWQESize

// recvRoom is how many segments a receive element holds.
func recvRoom(log2 uint) int { return (1<<log2 - minRecvElem) / sgeSize }

// putRecv writes a receive, which has passed its check, into an element.
func putRecv(e []byte, w *qp.RecvWR) {
	recvWQEWRID.Put(e, w.ID)
	putDMA(recvWQEDma.In(e), uint32(w.Length()), len(w.SGEs))
	putSGEs(e[minRecvElem:], w.SGEs)
}

// postRecv writes receives from the producer's position on, tells the kernel, and
// gives the new position. wrs[n] was refused if there is an error.
func (q *queue) postRecv(producer mmio.Index, wrs []qp.RecvWR, caps *qp.Caps) (_ mmio.Index, n int, err error) {
	consumer := q.loadConsumer()
	for n < len(wrs) {
		if err = wrs[n].Check(caps); err != nil {
			break
		}
		if q.mask.Full(producer, consumer) {
			err = qp.ErrQueueFull
			break
		}
		putRecv(q.elem(producer), &wrs[n])
		producer = q.mask.Next(producer)
		n++
	}
	if n > 0 {
		mmio.StoreUint32(q.producer, uint32(producer))
	}
	return producer, n, err
}
