//go:build linux

package rxe

import (
	"sync/atomic"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// queuePair is a reliable-connection queue pair.
type queuePair struct {
	kdev.QP
	ctx    *devContext
	sigAll bool

	maxMessage atomic.Uint64 // bytes, of the port

	// The send side, of PostSend's goroutine.
	sq         *queue
	sqProducer mmio.Index
	bell       *uverbs.Doorbell

	// The receive side, of PostRecv's goroutine.
	rq         *queue // nil with a shared receive queue
	rqProducer mmio.Index
}

func (c *devContext) newQP(d *kdev.PD, send, recv *completionQueue, srq *sharedQueue, cfg verbs.QPConfig) (qp.QP, error) {
	q := &queuePair{ctx: c, sigAll: cfg.SigAll}
	q.maxMessage.Store(qp.MaxMessage)
	caps := cfg.Caps
	for _, n := range []*int{&caps.SendWR, &caps.RecvWR, &caps.SendSGE, &caps.RecvSGE} {
		*n = max(*n, 1) // a queue of no slots has no valid header
	}
	ask := uverbs.QPConfig{SendCQ: send.Handle, RecvCQ: recv.Handle, SigAll: cfg.SigAll}
	if srq != nil {
		caps.RecvWR, caps.RecvSGE = 0, 0
		ask.SRQ = &srq.Handle
	}
	ask.Caps = caps
	var resp [createQPRespSize]byte
	var err error
	if q.Given, err = q.Create(d, q, ask, &uverbs.UHW{Out: resp[:]}); err != nil {
		return nil, err
	}
	if err := q.open(resp[:], srq != nil); err != nil {
		q.Close()
		return nil, err
	}
	c.Numbered(q)
	return q, nil
}

// open maps the queues and settles the capacities: the number of requests is that
// of the ring (what the kernel's answer says differs between releases), and no
// request may be larger than an element.
func (q *queuePair) open(resp []byte, shared bool) (err error) {
	c := q.ctx
	if q.sq, err = c.mapQueue("map send queue", createQPRespSQMI.In(resp), minSendElem); err != nil {
		return err
	}
	if !shared {
		if q.rq, err = c.mapQueue("map receive queue", createQPRespRQMI.In(resp), minRecvElem); err != nil {
			return err
		}
	}
	if q.bell, err = c.K.NewDoorbell(q.Handle); err != nil {
		return err
	}
	room := sendRoom(q.sq.log2)
	q.Given.SendWR = q.sq.mask.Capacity()
	q.Given.Windows = c.Limits.Flags.Windows()
	q.Given.SendSGE = min(q.Given.SendSGE, room/sgeSize)
	q.Given.Inline = min(q.Given.Inline, room)
	q.sqProducer = q.sq.loadProducer()
	if shared {
		q.Given.RecvWR, q.Given.RecvSGE = 0, 0
		return nil
	}
	q.Given.RecvWR = q.rq.mask.Capacity()
	q.Given.RecvSGE = min(q.Given.RecvSGE, recvRoom(q.rq.log2))
	q.rqProducer = q.rq.loadProducer()
	return nil
}

// PostSend posts requests with one doorbell. In ERR they are flushed.
func (q *queuePair) PostSend(wrs []qp.SendWR) (n int, err error) {
	if q.Closed() {
		return 0, qp.ErrClosed
	}
	if s := q.State(); s != qp.RTS && s != qp.SQD && s != qp.Err {
		return 0, qp.ErrState
	}
	mask, producer, consumer := q.sq.mask, q.sqProducer, q.sq.loadConsumer()
	limit := q.maxMessage.Load()
	for n < len(wrs) {
		w := &wrs[n]
		if err = w.Check(&q.Given); err != nil {
			break
		}
		if w.Length() > limit {
			err = qp.ErrMessageTooLong
			break
		}
		if mask.Full(producer, consumer) {
			err = qp.ErrQueueFull
			break
		}
		if w.Opcode.IsLocal() && !q.noteWindow(w) {
			err = qp.ErrBind
			break
		}
		putSend(q.sq.elem(producer), w, q.sigAll)
		producer = mask.Next(producer)
		n++
	}
	if n == 0 {
		return 0, err
	}
	q.sqProducer = producer
	mmio.StoreUint32(q.sq.producer, uint32(producer))
	if q.State() == qp.Err {
		q.flush()
		return n, err
	}
	if ring := q.bell.Ring(); ring != nil {
		// The requests are in the queue and cannot be taken back: the queue pair
		// is of no use any more.
		q.Failed()
		return n, ring
	}
	return n, err
}

// noteWindow notes a request for a window, and reports whether it may be posted. A
// LOCAL_INV of a window that is not bound would crash the kernel: rxe_do_invalidate_mw
// of drivers/infiniband/sw/rxe/rxe_mw.c follows the window's pointer to its queue
// pair, which is nil then.
func (q *queuePair) noteWindow(w *qp.SendWR) bool {
	if w.Opcode == qp.LocalInv {
		return q.ctx.Invalidate(w.RKey, q.Num())
	}
	q.ctx.Bind(w.RKey, q.Num())
	return true
}

// PostRecv posts receives. In ERR they are flushed like those posted before.
func (q *queuePair) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	switch {
	case q.Closed():
		return 0, qp.ErrClosed
	case q.rq == nil:
		return 0, qp.ErrSharedRecv
	case q.State() == qp.Reset:
		return 0, qp.ErrState
	}
	producer, n, err := q.rq.postRecv(q.rqProducer, wrs, &q.Given)
	if n == 0 {
		return 0, err
	}
	q.rqProducer = producer
	if q.State() == qp.Err {
		q.flush()
	}
	return n, err
}

// Failed is told that the queue pair is in ERR.
func (q *queuePair) Failed() {
	if q.Fail() {
		q.flush()
	}
}

// flush makes the kernel flush what is posted. On its own it flushes only once,
// when the queue pair fails: a receive posted after that, or by another goroutine
// just before software learned of it, would never complete. Moving the queue pair
// to ERR again makes it look again. Whoever publishes a request looks at the state
// after that, whoever sets the state flushes after that; so none is missed.
func (q *queuePair) flush() { q.FailAgain() }

// Modify sets attributes.
func (q *queuePair) Modify(a *qp.Attr, mask qp.AttrMask) error {
	return q.Change(a, mask, func(maxMessage uint32) { q.maxMessage.Store(uint64(maxMessage)) }, q.changed)
}

// changed does what a new state needs.
func (q *queuePair) changed(from, to qp.State) error {
	if to == qp.Reset { // what was posted and not run is forgotten
		q.sqProducer = q.sq.loadConsumer()
		mmio.StoreUint32(q.sq.producer, uint32(q.sqProducer))
		if q.rq != nil {
			q.rqProducer = q.rq.loadConsumer()
			mmio.StoreUint32(q.rq.producer, uint32(q.rqProducer))
		}
	}
	if from == qp.SQD && to == qp.RTS { // kernel 6.1 does not look by itself at what was posted meanwhile
		return q.bell.Ring()
	}
	return nil
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	if err := q.Destroy(q.ctx.CheckUnbound); err != nil {
		return err
	}
	if q.bell != nil {
		q.bell.Close()
	}
	err := q.sq.close()
	if err2 := q.rq.close(); err == nil {
		err = err2
	}
	return err
}
