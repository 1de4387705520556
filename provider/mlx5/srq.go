//go:build linux

package mlx5

import (
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// sharedQueue is a shared receive queue.
type sharedQueue struct {
	kdev.SRQ
	sharedRecv
	ctx *devContext
	m   *mmio.Mapping
	ids *mmio.Mapping // the book
	rec record
}

func (c *devContext) newSRQ(d *kdev.PD, want qp.SRQCaps) (qp.SRQ, error) {
	const op = "create shared receive queue"
	slots, shift, caps, err := sizeSRQ(&c.answer.limits, want)
	if err != nil {
		return nil, c.Fail(op, "", err, "")
	}
	s := &sharedQueue{ctx: c}
	if err := s.allocate(slots, shift, caps); err != nil {
		s.release()
		return nil, c.Fail(op, "", err, "the process may be out of memory or mappings (vm.max_map_count)")
	}
	var resp [createSRQRespSize]byte
	if err := s.Create(d, s, caps, &uverbs.UHW{In: srqRequest(mr.Addr(s.m.Bytes()), s.rec.addr()), Out: resp[:]}); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// allocate gets the memory and lays the queue out in it.
func (s *sharedQueue) allocate(slots int, shift uint, caps qp.SRQCaps) (err error) {
	c := s.ctx
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
	s.Given = qp.Caps{RecvWR: caps.RecvWR, RecvSGE: caps.RecvSGE}
	s.caps = s.Given
	s.link()
	return nil
}

// release gives back what is not the kernel's.
func (s *sharedQueue) release() error {
	s.ctx.records.give(s.rec)
	return unmap(s.m, s.ids)
}

// PostRecv posts receives.
func (s *sharedQueue) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	switch {
	case s.Closed():
		return 0, qp.ErrClosed
	case s.ctx.Lost():
		return 0, verbs.ErrDeviceLost
	}
	return s.post(wrs)
}

// Close destroys the queue; EBUSY while a queue pair uses it.
func (s *sharedQueue) Close() error {
	if err := s.Destroy(); err != nil {
		return err
	}
	return s.release()
}
