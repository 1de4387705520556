//go:build linux

package rxe

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/provider/internal/kdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

// queuePair is a reliable-connection queue pair.
type queuePair struct {
	pd     *domain
	h      uverbs.QPHandle
	user   uint64
	num    qp.Num
	caps   qp.Caps
	sigAll bool
	state  atomic.Uint32 // qp.State as software knows it

	maxMessage atomic.Uint64 // bytes, of the port

	// The send side, of PostSend's goroutine.
	sq         *queue
	sqProducer mmio.Index
	bell       *uverbs.Doorbell

	// The receive side, of PostRecv's goroutine.
	rq         *queue // nil with a shared receive queue
	rqProducer mmio.Index

	control sync.Mutex // held by whatever uses the handle, but posts
	closed  atomic.Bool
}

func newQP(d *domain, send, recv *completionQueue, srq *sharedQueue, cfg verbs.QPConfig) (*queuePair, error) {
	c := d.ctx
	q := &queuePair{pd: d, sigAll: cfg.SigAll}
	q.maxMessage.Store(qp.MaxMessage)
	q.user = c.EnterQP(q)
	caps := cfg.Caps
	for _, n := range []*int{&caps.SendWR, &caps.RecvWR, &caps.SendSGE, &caps.RecvSGE} {
		*n = max(*n, 1) // a queue of no slots has no valid header
	}
	ask := uverbs.QPConfig{PD: d.Handle(), SendCQ: send.h, RecvCQ: recv.h, SigAll: cfg.SigAll, UserHandle: q.user}
	if srq != nil {
		caps.RecvWR, caps.RecvSGE = 0, 0
		ask.SRQ = &srq.h
	}
	ask.Caps = caps
	var resp [createQPRespSize]byte
	var err error
	q.h, q.num, q.caps, err = c.K.CreateQP(&ask, &uverbs.UHW{Out: resp[:]})
	if err != nil {
		c.Leave(q.user, 0)
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
	c := q.pd.ctx
	if q.sq, err = c.mapQueue("map send queue", createQPRespSQMI.In(resp), minSendElem); err != nil {
		return err
	}
	if !shared {
		if q.rq, err = c.mapQueue("map receive queue", createQPRespRQMI.In(resp), minRecvElem); err != nil {
			return err
		}
	}
	if q.bell, err = c.K.NewDoorbell(q.h); err != nil {
		return err
	}
	room := sendRoom(q.sq.log2)
	q.caps.SendWR = q.sq.mask.Capacity()
	q.caps.Windows = c.Limits.Flags.Windows()
	q.caps.SendSGE = min(q.caps.SendSGE, room/sgeSize)
	q.caps.Inline = min(q.caps.Inline, room)
	q.sqProducer = q.sq.loadProducer()
	if shared {
		q.caps.RecvWR, q.caps.RecvSGE = 0, 0
		return nil
	}
	q.caps.RecvWR = q.rq.mask.Capacity()
	q.caps.RecvSGE = min(q.caps.RecvSGE, recvRoom(q.rq.log2))
	q.rqProducer = q.rq.loadProducer()
	return nil
}

// Num is the queue pair's number.
func (q *queuePair) Num() qp.Num { return q.num }

// Caps are the capacities given.
func (q *queuePair) Caps() qp.Caps { return q.caps }

// State is the state as software knows it.
func (q *queuePair) State() qp.State { return qp.State(q.state.Load()) }

// PostSend posts requests with one doorbell. In ERR they are flushed.
func (q *queuePair) PostSend(wrs []qp.SendWR) (n int, err error) {
	if q.closed.Load() {
		return 0, qp.ErrClosed
	}
	if s := q.State(); s != qp.RTS && s != qp.SQD && s != qp.Err {
		return 0, qp.ErrState
	}
	mask, producer, consumer := q.sq.mask, q.sqProducer, q.sq.loadConsumer()
	limit := q.maxMessage.Load()
	for n < len(wrs) {
		w := &wrs[n]
		if err = w.Check(&q.caps); err != nil {
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
		return q.pd.ctx.Invalidate(w.RKey, q.num)
	}
	q.pd.ctx.Bind(w.RKey, q.num)
	return true
}

// PostRecv posts receives. In ERR they are flushed like those posted before.
func (q *queuePair) PostRecv(wrs []qp.RecvWR) (n int, err error) {
	switch {
	case q.closed.Load():
		return 0, qp.ErrClosed
	case q.rq == nil:
		return 0, qp.ErrSharedRecv
	case q.State() == qp.Reset:
		return 0, qp.ErrState
	}
	producer, n, err := q.rq.postRecv(q.rqProducer, wrs, &q.caps)
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
	if qp.State(q.state.Swap(uint32(qp.Err))) != qp.Err {
		q.flush()
	}
}

// Lost is told that the device is gone, and what is posted with it.
func (q *queuePair) Lost() { q.state.Store(uint32(qp.Err)) }

// flush makes the kernel flush what is posted. On its own it flushes only once,
// when the queue pair fails: a receive posted after that, or by another goroutine
// just before software learned of it, would never complete. Moving the queue pair
// to ERR again makes it look again. Whoever publishes a request looks at the state
// after that, whoever sets the state flushes after that; so none is missed.
func (q *queuePair) flush() {
	q.control.Lock()
	defer q.control.Unlock()
	if q.closed.Load() || q.State() != qp.Err {
		return // the handle may be another's by now, or the queue pair was reset
	}
	q.pd.ctx.K.ModifyQP(q.h, &qp.Attr{State: qp.Err}, qp.MaskState) // fails only if the device or the queue pair is gone
}

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
		q.maxMessage.Store(min(uint64(p.MaxMessage), qp.MaxMessage))
	}
	if err := c.K.ModifyQP(q.h, a, mask); err != nil {
		return err
	}
	kdev.Moved(&q.state, from, to)
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
	c := q.pd.ctx
	n, err := q.destroy()
	if err != nil {
		return err
	}
	c.Leave(q.user, n.Async) // without the lock: an event may be waiting for it
	if q.bell != nil {
		q.bell.Close()
	}
	err = q.sq.close()
	if err2 := q.rq.close(); err == nil {
		err = err2
	}
	return err
}

func (q *queuePair) destroy() (uverbs.Reported, error) {
	q.control.Lock()
	defer q.control.Unlock()
	c := q.pd.ctx
	if q.closed.Load() {
		return uverbs.Reported{}, c.Fail("destroy queue pair", q.name(), qp.ErrClosed, "")
	}
	if err := q.pd.ctx.CheckUnbound(q.num); err != nil {
		return uverbs.Reported{}, err
	}
	n, err := c.K.DestroyQP(q.h)
	if err := c.Destroyed(err); err != nil {
		return n, err
	}
	q.closed.Store(true)
	return n, nil
}
