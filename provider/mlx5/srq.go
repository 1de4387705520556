//go:build linux

package mlx5

import (
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// sharedQueue is a shared receive queue.
type sharedQueue struct {
	sharedRecv
	pd   *domain
	h    uverbs.SRQHandle
	user uint64
	m    *mmio.Mapping
	ids  *mmio.Mapping // the book
	rec  record

	control sync.Mutex // held by whatever uses the handle
	closed  atomic.Bool
}

func newSRQ(d *domain, want qp.SRQCaps) (*sharedQueue, error) {
	const op = "create shared receive queue"
	c := d.ctx
	slots, shift, caps, err := sizeSRQ(&c.answer.limits, want)
	if err != nil {
		return nil, c.Fail(op, "", err, "")
	}
	s := &sharedQueue{pd: d}
	if err := s.allocate(slots, shift, caps); err != nil {
		s.release()
		return nil, c.Fail(op, "", err, "the process may be out of memory or mappings (vm.max_map_count)")
	}
	s.user = c.EnterSRQ(s)
	var resp [createSRQRespSize]byte
	s.h, _, err = c.K.CreateSRQ(&uverbs.SRQConfig{PD: d.Handle(), Caps: caps, UserHandle: s.user},
		&uverbs.UHW{In: srqRequest(mr.Addr(s.m.Bytes()), s.rec.addr()), Out: resp[:]})
	if err != nil {
		c.Leave(s.user, 0)
		s.release()
		return nil, err
	}
	return s, nil
}

// allocate gets the memory and lays the queue out in it.
func (s *sharedQueue) allocate(slots int, shift uint, caps qp.SRQCaps) (err error) {
	c := s.pd.ctx
	n := slots << shift
	if s.m, err = queueMemory(n, c.settings.QueuePages); err != nil {
		return err
	}
	if s.ids, err = mmio.Anonymous(bookBytes(slots)); err != nil {
		return err
	}
	if s.rec, err = c.records.take(); err != nil {
		return err
	}
	s.b, s.shift, s.book = s.m.Bytes()[:n:n], shift, newBook(s.ids, 0, slots)
	s.record, s.observer, s.addr = s.rec.word(recordRecv), c.observer, s.rec.addr()
	s.caps = qp.Caps{RecvWR: caps.RecvWR, RecvSGE: caps.RecvSGE}
	s.link()
	return nil
}

// release gives back what is not the kernel's.
func (s *sharedQueue) release() (err error) {
	s.pd.ctx.records.give(s.rec)
	for _, m := range []*mmio.Mapping{s.m, s.ids} {
		if m != nil {
			if e := m.Close(); err == nil {
				err = e
			}
		}
	}
	return err
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
	return s.post(wrs)
}

// Arm asks for one event when fewer than limit receives are left.
func (s *sharedQueue) Arm(limit int) error {
	const op = "arm shared receive queue"
	s.control.Lock()
	defer s.control.Unlock()
	c, caps := s.pd.ctx, s.Caps()
	if s.closed.Load() {
		return c.Fail(op, "", qp.ErrClosed, "")
	}
	if err := caps.CheckLimit(limit); err != nil {
		return c.Fail(op, "", err, "")
	}
	return c.K.ArmSRQ(s.h, limit, nil)
}

// Query asks the kernel for the limit.
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
	return s.release()
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
