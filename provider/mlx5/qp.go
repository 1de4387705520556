//go:build linux

package mlx5

import (
	"fmt"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// queuePair is a reliable-connection queue pair.
type queuePair struct {
	kdev.QP
	ctx *devContext
	cqs [2]*completionQueue // of sends and of receives

	rings  *mmio.Mapping // receive queue, then send queue
	books  *mmio.Mapping
	record record
	reg    *register // of our own, to be given back
	ends   ends
	srq    *sharedQueue // gives the receives; nil: rq does
	sq     sendQueue    // of PostSend's goroutine
	rq     recvQueue    // of PostRecv's goroutine
}

func (c *devContext) newQP(d *kdev.PD, send, recv *completionQueue, srq *sharedQueue, cfg verbs.QPConfig) (qp.QP, error) {
	const op = "create queue pair"
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
	q := &queuePair{ctx: c, cqs: [2]*completionQueue{send, recv}, srq: srq, ends: ends{id: numberMask}}
	q.Given = s.caps
	q.Given.Windows = c.Limits.Flags.Windows()
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
	var resp [createQPRespSize]byte
	ask := uverbs.QPConfig{SendCQ: send.Handle, RecvCQ: recv.Handle, Caps: kernelCaps(want, &s), SigAll: cfg.SigAll}
	if srq != nil {
		ask.SRQ = &srq.Handle
		q.ends.shared = &srq.sharedRecv
	}
	_, err = q.Create(d, q, ask,
		&uverbs.UHW{In: qpRequest(mr.Addr(q.rings.Bytes()), q.record.addr(), &s, uidx, page, c.settings.Inside), Out: resp[:]})
	if err != nil {
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
		q.ends.id = uint32(q.Num())
	}
	c.enterEnds(&q.ends) // whole: whoever polls may see it from now on
	return q, nil
}

// allocate gets the memory of the queues.
func (q *queuePair) allocate(s *sizes) (err error) {
	if q.rings, err = queueMemory(s.bytes(), q.ctx.settings.QueuePages); err != nil {
		return err
	}
	sendBook := roundUp(bookBytes(s.sendBlocks), bookHeader)
	if q.books, err = mmio.Anonymous(sendBook + bookBytes(s.recvSlots)); err != nil {
		return err
	}
	q.ends.sq, q.ends.rq = newBook(q.books, 0, s.sendBlocks), newBook(q.books, sendBook, s.recvSlots)
	q.record, err = q.ctx.records.take()
	return err
}

// open makes the queues ready to post.
func (q *queuePair) open(s *sizes, reg *register, sigAll bool) {
	q.ends.num = q.Num()
	every := uint8(0)
	if sigAll {
		every = ctrlCQUpdate
	}
	b, at := q.rings.Bytes(), s.recvBytes()
	q.sq = sendQueue{
		sendRing: sendRing{b: b[at:s.bytes()], mask: uint32(s.sendBlocks - 1), qpn: uint32(q.Num()), every: every},
		book:     q.ends.sq, reg: reg, record: q.record.word(recordSend), caps: q.Given, max: qp.MaxMessage, noAtomic: !q.ctx.Limits.Atomics,
	}
	if q.ctx.settings.Inside {
		q.ends.inside = &payloads{sends: q.sq.b, recvs: b[:at:at], recvShift: s.recvShift}
	}
	if q.srq != nil {
		return
	}
	q.rq = recvQueue{
		b: b[:at:at], shift: s.recvShift, book: q.ends.rq, record: q.record.word(recordRecv), caps: q.Given,
		observer: q.ctx.observer, addr: q.record.addr(),
	}
}

// release gives back what is not the kernel's.
func (q *queuePair) release() error {
	c := q.ctx
	c.leaveEnds(&q.ends)
	for _, k := range q.cqs {
		k.forget(&q.ends)
	}
	c.uars.give(q.reg)
	c.records.give(q.record)
	return unmap(q.rings, q.books)
}

// PostSend posts requests with one doorbell. In ERR the NIC flushes them.
func (q *queuePair) PostSend(wrs []qp.SendWR) (n int, err error) {
	if q.Closed() {
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
	case q.Closed():
		return 0, qp.ErrClosed
	case q.srq != nil:
		return 0, qp.ErrSharedRecv
	case q.State() == qp.Reset:
		return 0, qp.ErrState
	}
	return q.rq.post(wrs)
}

// Failed is told that the queue pair is in ERR, where the NIC flushes by itself.
func (q *queuePair) Failed() { q.Fail() }

// Modify sets attributes.
func (q *queuePair) Modify(a *qp.Attr, mask qp.AttrMask) error {
	return q.Change(a, mask, func(maxMessage uint32) { q.sq.max = maxMessage }, q.changed)
}

// changed does what a new state needs.
func (q *queuePair) changed(_, to qp.State) error {
	if to == qp.Reset { // what was posted and not run is forgotten, and so is what completed
		for _, k := range q.cqs {
			k.forget(&q.ends)
		}
		q.sq.reset()
		if q.srq == nil {
			q.rq.reset()
		}
	}
	return nil
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	if err := q.Destroy(nil); err != nil {
		return err
	}
	return q.release()
}
