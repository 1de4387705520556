//go:build linux

package rxe

import (
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// sharedQueue is a shared receive queue: a receive queue's ring, from which the
// kernel copies a receive, and frees its slot, when a message takes it.
type sharedQueue struct {
	kdev.SRQ
	ctx *devContext

	// Of PostRecv's goroutine.
	q        *queue
	producer mmio.Index
}

func (c *devContext) newSRQ(d *kdev.PD, want qp.SRQCaps) (qp.SRQ, error) {
	want.RecvSGE = max(want.RecvSGE, 1)
	s := &sharedQueue{ctx: c}
	var resp [createSRQRespSize]byte
	err := s.Create(d, s, want, &uverbs.UHW{Out: resp[:]})
	if err != nil {
		return nil, err
	}
	if s.q, err = c.mapQueue("map shared receive queue", createSRQRespMI.In(resp[:]), minRecvElem); err != nil {
		s.Close()
		return nil, err
	}
	// As for a queue pair the ring tells the number of requests. The driver refuses
	// requests of more segments than it was asked for, even where the element has room.
	s.Given = qp.Caps{RecvWR: s.q.mask.Capacity(), RecvSGE: min(want.RecvSGE, recvRoom(s.q.log2))}
	s.producer = s.q.loadProducer()
	return s, nil
}

// PostRecv posts receives.
func (s *sharedQueue) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	switch {
	case s.Closed():
		return 0, qp.ErrClosed
	case s.ctx.Lost():
		return 0, verbs.ErrDeviceLost
	}
	s.producer, n, err = s.q.postRecv(s.producer, wrs, &s.Given)
	return n, err
}

// Arm asks for one event when fewer than limit receives are left.
func (s *sharedQueue) Arm(limit int) error {
	return s.ArmWith(limit, &uverbs.UHW{In: make([]byte, modifySRQSize)})
}

// Close destroys the queue; EBUSY while a queue pair uses it.
func (s *sharedQueue) Close() error {
	if err := s.Destroy(); err != nil {
		return err
	}
	return s.q.close()
}
