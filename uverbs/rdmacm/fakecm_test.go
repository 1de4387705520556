//go:build linux

package rdmacm

import (
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

// The part of the fake kernel that is the connection manager proper.

// connect gives the listener of the port a request.
func (k *fakeKernel) connect(id *fakeID, p ConnParam) {
	id.param = p
	for _, l := range k.ids {
		if l.listens && l.local.Port() == id.remote.Port() {
			conn := &fakeID{local: id.remote, remote: id.local, peer: id}
			id.peer = conn
			k.push(l, ConnectRequest, 0, &id.param, conn)
			return
		}
	}
	k.push(id, Rejected, int32(ReasonInvalidServiceID), &ConnParam{}, nil)
}

// part ends what joins two IDs.
func (k *fakeKernel) part(id *fakeID) {
	if id.peer != nil {
		id.peer.peer = nil
		id.peer = nil
	}
}

func (k *fakeKernel) destroy(id *fakeID, resp []byte) syscall.Errno {
	ch := k.channels[id.ch]
	kept := ch.events[:0]
	for _, e := range ch.events {
		if e.id != id {
			kept = append(kept, e)
			continue
		}
		var one [1]byte
		syscall.Read(id.ch, one[:])
		if e.conn != nil { // a request that nobody took
			k.push(e.conn.peer, Rejected, int32(ReasonConsumer), &ConnParam{}, nil)
			k.part(e.conn)
		}
	}
	ch.events = kept
	if id.peer != nil {
		k.push(id.peer, Rejected, int32(ReasonConsumer), &ConnParam{}, nil)
		k.part(id)
	}
	delete(k.ids, id.handle)
	destroyIDRespEvents.Put(resp, id.reported+k.lie)
	return 0
}

// Masks as the kernel gives them for RoCE, with its own bits of the RTR mask.
var fakeMasks = map[qp.State]uint32{qp.Init: 0x39, qp.RTR: 0x129181 | 7<<21, qp.RTS: 0x12e01}

func (k *fakeKernel) attr(id *fakeID, state qp.State, b []byte) {
	qpAttrMask.Put(b, fakeMasks[state])
	qpAttrState.Put(b, uint32(state))
	qpAttrAccess.Put(b, 0x30e)
	qpAttrPort.Put(b, 1)
	qpAttrPathMTU.Put(b, uint32(qp.MTU1024))
	if id.peer != nil {
		qpAttrDestNum.Put(b, uint32(id.peer.param.QPNum))
		qpAttrMaxReads.Put(b, id.peer.param.MaxDestReads)
		qpAttrMaxDestReads.Put(b, id.peer.param.MaxReads)
	}
	ah := qpAttrAH.In(b)
	ahIsGlobal.Put(ah, 1)
	ahPort.Put(ah, 1)
	grh := ahGRH.In(ah)
	grhSGIDIndex.Put(grh, 1)
	grhHopLimit.Put(grh, 64)
	if id.remote.IsValid() {
		gid := id.remote.Addr().As16()
		copy(grhDGID.In(grh), gid[:])
	}
}

// fakeQP is a queue pair that knows the legal transitions.
type fakeQP struct {
	qp.QP
	k      *fakeQPs
	num    qp.Num
	state  qp.State
	attrs  map[qp.State]qp.Attr
	closed bool
}

// fakeQPs makes queue pairs and counts them.
type fakeQPs struct {
	t    *testing.T
	open int
	last *fakeQP
	fail map[qp.State]error
}

func (k *fakeQPs) make() *fakeQP {
	k.open++
	k.last = &fakeQP{k: k, num: qp.Num(100 + k.open), attrs: map[qp.State]qp.Attr{}}
	return k.last
}

func (q *fakeQP) Num() qp.Num     { return q.num }
func (q *fakeQP) State() qp.State { return q.state }

func (q *fakeQP) Modify(a *qp.Attr, mask qp.AttrMask) error {
	if err := q.k.fail[a.State]; err != nil {
		return err
	}
	if err := qp.CheckTransition(q.state, a.State, mask); err != nil {
		return err
	}
	q.state = a.State
	q.attrs[a.State] = *a
	return nil
}

func (q *fakeQP) Close() error {
	if q.closed {
		return qp.ErrClosed
	}
	q.closed = true
	q.k.open--
	return nil
}
