//go:build linux

package mlx5

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// queuePair is a reliable-connection queue pair.
type queuePair struct {
	pd    *domain
	cqs   [2]*completionQueue // of sends and of receives
	h     uverbs.QPHandle
	user  uint64
	num   qp.Num
	caps  qp.Caps
	state atomic.Uint32 // qp.State as software knows it

	rings  *mmio.Mapping // receive queue, then send queue
	books  *mmio.Mapping
	record record
	reg    *register // of our own, to be given back
	ends   ends
	srq    *sharedQueue // gives the receives; nil: rq does
	sq     sendQueue    // of PostSend's goroutine
	rq     recvQueue    // of PostRecv's goroutine

	control sync.Mutex // held by whatever uses the handle, but posts
	closed  atomic.Bool
}

func newQP(d *domain, send, recv *completionQueue, srq *sharedQueue, cfg verbs.QPConfig) (*queuePair, error) {
	const op = "create queue pair"
	c := d.ctx
	want := cfg.Caps
	for _, n := range []*int{&want.SendWR, &want.RecvWR, &want.SendSGE, &want.RecvSGE} {
		*n = max(*n, 1)
	}
	if srq != nil {
		want.RecvWR, want.RecvSGE = 0, 0
	}
	s, err := sizeQP(&c.answer.limits, sendOverhead, want)
	if err != nil {
		return nil, c.Fail(op, "", err, "")
	}
	q := &queuePair{pd: d, cqs: [2]*completionQueue{send, recv}, caps: s.caps, srq: srq, ends: ends{id: numberMask}}
	q.caps.Windows = c.Limits.Flags.Windows()
	if err := q.allocate(&s); err != nil {
		q.release()
		return nil, c.Fail(op, "", err, "the process may be out of memory or mappings (vm.max_map_count)")
	}
	uidx := uint32(numberMask)
	if c.answer.cqeVersion == cqeVersionUIDX {
		uidx = c.newUIDX()
		q.ends.id = uidx
	}
	var page *uarPage
	if q.reg = c.uars.take(); q.reg != nil {
		page = q.reg.page
	}
	if cfg.OwnDoorbell && (q.reg == nil || q.reg.shared) {
		q.release()
		return nil, c.Fail(op, "", fmt.Errorf("%w: no doorbell register of its own is left", verbs.ErrLimit), "close queue pairs, or share registers")
	}
	q.user = c.EnterQP(q)
	var resp [createQPRespSize]byte
	ask := &uverbs.QPConfig{PD: d.Handle(), SendCQ: send.h, RecvCQ: recv.h, Caps: kernelCaps(want, &s), SigAll: cfg.SigAll, UserHandle: q.user}
	if srq != nil {
		ask.SRQ = &srq.h
		q.ends.shared = &srq.sharedRecv
	}
	q.h, q.num, _, err = c.K.CreateQP(ask,
		&uverbs.UHW{In: qpRequest(mr.Addr(q.rings.Bytes()), q.record.addr(), &s, uidx, page, c.settings.Inside), Out: resp[:]})
	if err != nil {
		c.Leave(q.user, 0)
		q.release()
		return nil, err
	}
	reg := q.reg
	if reg == nil {
		if reg, err = c.uars.chosen(createQPRespBFReg.Get(resp[:])); err != nil {
			q.Close()
			return nil, err
		}
	}
	q.open(&s, reg, cfg.SigAll)
	c.Numbered(q)
	if uidx == numberMask {
		q.ends.id = uint32(q.num)
	}
	c.enterEnds(&q.ends) // whole: whoever polls may see it from now on
	return q, nil
}

// allocate gets the memory of the queues.
func (q *queuePair) allocate(s *sizes) (err error) {
	if q.rings, err = queueMemory(s.bytes(), q.pd.ctx.settings.QueuePages); err != nil {
		return err
	}
	sendBook := roundUp(bookBytes(s.sendBlocks), bookHeader)
	if q.books, err = mmio.Anonymous(sendBook + bookBytes(s.recvSlots)); err != nil {
		return err
	}
	q.ends.sq, q.ends.rq = newBook(q.books, 0, s.sendBlocks), newBook(q.books, sendBook, s.recvSlots)
	q.record, err = q.pd.ctx.records.take()
	return err
}

// open makes the queues ready to post.
func (q *queuePair) open(s *sizes, reg *register, sigAll bool) {
	q.ends.num = q.num
	every := uint8(0)
	if sigAll {
		every = ctrlCQUpdate
	}
	b, at := q.rings.Bytes(), s.recvBytes()
	q.sq = sendQueue{
		sendRing: sendRing{b: b[at:s.bytes()], mask: uint32(s.sendBlocks - 1), qpn: uint32(q.num), every: every},
		book:     q.ends.sq, reg: reg, record: q.record.word(recordSend), caps: q.caps, max: qp.MaxMessage, noAtomic: !q.pd.ctx.Limits.Atomics,
	}
	if q.pd.ctx.settings.Inside {
		q.ends.inside = &payloads{sends: q.sq.b, recvs: b[:at:at], recvShift: s.recvShift}
	}
	if q.srq != nil {
		return
	}
	q.rq = recvQueue{
		b: b[:at:at], shift: s.recvShift, book: q.ends.rq, record: q.record.word(recordRecv), caps: q.caps,
		observer: q.pd.ctx.observer, addr: q.record.addr(),
	}
}

// release gives back what is not the kernel's.
func (q *queuePair) release() (err error) {
	c := q.pd.ctx
	c.leaveEnds(&q.ends)
	for _, k := range q.cqs {
		k.forget(&q.ends)
	}
	c.uars.give(q.reg)
	c.records.give(q.record)
	for _, m := range []*mmio.Mapping{q.rings, q.books} {
		if m != nil {
			if e := m.Close(); err == nil {
				err = e
			}
		}
	}
	return err
}

// Num is the queue pair's number.
func (q *queuePair) Num() qp.Num { return q.num }

// Caps are the capacities given.
func (q *queuePair) Caps() qp.Caps { return q.caps }

// State is the state as software knows it.
func (q *queuePair) State() qp.State { return qp.State(q.state.Load()) }

// PostSend posts requests with one doorbell. In ERR the NIC flushes them.
func (q *queuePair) PostSend(wrs []qp.SendWR) (n int, err error) {
	if q.closed.Load() {
		return 0, qp.ErrClosed
	}
	if s := q.State(); s != qp.RTS && s != qp.SQD && s != qp.Err {
		return 0, qp.ErrState
	}
	return q.sq.post(wrs)
}

// PostRecv posts receives.
func (q *queuePair) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	switch {
	case q.closed.Load():
		return 0, qp.ErrClosed
	case q.srq != nil:
		return 0, qp.ErrSharedRecv
	case q.State() == qp.Reset:
		return 0, qp.ErrState
	}
	return q.rq.post(wrs)
}

// Failed is told that the queue pair is in ERR.
func (q *queuePair) Failed() { q.state.Store(uint32(qp.Err)) }

// Lost is told that the device is gone.
func (q *queuePair) Lost() { q.state.Store(uint32(qp.Err)) }

// Modify sets attributes.
func (q *queuePair) Modify(a *qp.Attr, mask qp.AttrMask) error {
	q.control.Lock()
	defer q.control.Unlock()
	c := q.pd.ctx
	if q.closed.Load() {
		return c.Fail("modify queue pair", q.name(), qp.ErrClosed, "")
	}
	from := q.State()
	to := from
	if mask&qp.MaskState != 0 {
		to = a.State
	}
	err := qp.CheckTransition(from, to, mask)
	if err == nil {
		err = a.CheckValues(mask)
	}
	if err != nil {
		return c.Fail("modify queue pair", q.name(), err, "")
	}
	if mask&qp.MaskPort != 0 {
		p, err := c.K.QueryPort(int(a.Port))
		if err != nil {
			return err
		}
		q.sq.max = min(p.MaxMessage, qp.MaxMessage)
	}
	if err := c.K.ModifyQP(q.h, a, mask); err != nil {
		return err
	}
	if to == qp.Reset { // what was posted and not run is forgotten, and so is what completed
		for _, k := range q.cqs {
			k.forget(&q.ends)
		}
		q.sq.reset()
		if q.srq == nil {
			q.rq.reset()
		}
	}
	kdev.Moved(&q.state, from, to)
	return nil
}

func (q *queuePair) name() string { return fmt.Sprintf("%#x", uint32(q.num)) }

// Query asks the kernel for the attributes.
func (q *queuePair) Query() (qp.Attr, error) {
	if q.closed.Load() {
		return qp.Attr{}, q.pd.ctx.Fail("query queue pair", q.name(), qp.ErrClosed, "")
	}
	return q.pd.ctx.K.QueryQP(q.h)
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	n, err := q.destroy()
	if err != nil {
		return err
	}
	q.pd.ctx.Leave(q.user, n.Async) // without the lock: an event may be waiting for it
	return q.release()
}

func (q *queuePair) destroy() (uverbs.Reported, error) {
	q.control.Lock()
	defer q.control.Unlock()
	c := q.pd.ctx
	if q.closed.Load() {
		return uverbs.Reported{}, c.Fail("destroy queue pair", q.name(), qp.ErrClosed, "")
	}
	n, err := c.K.DestroyQP(q.h)
	if err := c.Destroyed(err); err != nil {
		return n, err
	}
	q.closed.Store(true)
	return n, nil
}
