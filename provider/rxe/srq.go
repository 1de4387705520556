//go:build linux

package rxe

import (
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// sharedQueue is a shared receive queue: a receive queue's ring, from which the
// kernel copies a receive, and frees its slot, when a message takes it.
type sharedQueue struct {
	pd   *domain
	h    uverbs.SRQHandle
	user uint64
	caps qp.Caps // of the receive side

	// Of PostRecv's goroutine.
	q        *queue
	producer mmio.Index

	control sync.Mutex // held by whatever uses the handle
	closed  atomic.Bool
}

func newSRQ(d *domain, want qp.SRQCaps) (*sharedQueue, error) {
	c := d.ctx
	want.RecvSGE = max(want.RecvSGE, 1)
	s := &sharedQueue{pd: d}
	s.user = c.EnterSRQ(s)
	var resp [createSRQRespSize]byte
	var err error
	s.h, _, err = c.K.CreateSRQ(&uverbs.SRQConfig{PD: d.Handle(), Caps: want, UserHandle: s.user}, &uverbs.UHW{Out: resp[:]})
	if err != nil {
		c.Leave(s.user, 0)
		return nil, err
	}
	if s.q, err = c.mapQueue("map shared receive queue", createSRQRespMI.In(resp[:]), minRecvElem); err != nil {
		s.Close()
		return nil, err
	}
	// As for a queue pair the ring tells the number of requests. The driver refuses
	// requests of more segments than it was asked for, even where the element has room.
	s.caps = qp.Caps{RecvWR: s.q.mask.Capacity(), RecvSGE: min(want.RecvSGE, recvRoom(s.q.log2))}
	s.producer = s.q.loadProducer()
	return s, nil
}

// Caps are the capacities given.
func (s *sharedQueue) Caps() qp.SRQCaps {
	return qp.SRQCaps{RecvWR: s.caps.RecvWR, RecvSGE: s.caps.RecvSGE}
}

// Domain is the protection domain of the queue.
func (s *sharedQueue) Domain() *kdev.PD { return s.pd.PD }

// PostRecv posts receives.
func (s *sharedQueue) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	switch {
	case s.closed.Load():
		return 0, qp.ErrClosed
	case s.pd.ctx.Lost():
		return 0, verbs.ErrDeviceLost
	}
	s.producer, n, err = s.q.postRecv(s.producer, wrs, &s.caps)
	return n, err
}

// Arm asks for one event when fewer than limit receives are left.
func (s *sharedQueue) Arm(limit int) error {
	const op = "arm shared receive queue"
	s.control.Lock()
	defer s.control.Unlock()
	c := s.pd.ctx
	if s.closed.Load() {
		return c.Fail(op, "", qp.ErrClosed, "")
	}
	if err := s.Caps().CheckLimit(limit); err != nil {
		return c.Fail(op, "", err, "")
	}
	return c.K.ArmSRQ(s.h, limit, &uverbs.UHW{In: make([]byte, modifySRQSize)})
}

// Query asks the kernel for the limit. The capacities are the queue's own: what the
// driver says of them differs between kernel releases.
func (s *sharedQueue) Query() (qp.SRQAttr, error) {
	s.control.Lock()
	defer s.control.Unlock()
	c := s.pd.ctx
	if s.closed.Load() {
		return qp.SRQAttr{}, c.Fail("query shared receive queue", "", qp.ErrClosed, "")
	}
	a, err := c.K.QuerySRQ(s.h)
	a.Caps = s.Caps()
	return a, err
}

// Closed reports whether the queue was closed.
func (s *sharedQueue) Closed() bool { return s.closed.Load() }

// Close destroys the queue; EBUSY while a queue pair uses it.
func (s *sharedQueue) Close() error {
	n, err := s.destroy()
	if err != nil {
		return err
	}
	s.pd.ctx.Leave(s.user, n.Async) // without the lock: an event may be waiting for it
	return s.q.close()
}

func (s *sharedQueue) destroy() (uverbs.Reported, error) {
	s.control.Lock()
	defer s.control.Unlock()
	c := s.pd.ctx
	if s.closed.Load() {
		return uverbs.Reported{}, c.Fail("destroy shared receive queue", "", qp.ErrClosed, "")
	}
	n, err := c.K.DestroySRQ(s.h)
	if err := c.Destroyed(err); err != nil {
		return n, err
	}
	s.closed.Store(true)
	return n, nil
}
