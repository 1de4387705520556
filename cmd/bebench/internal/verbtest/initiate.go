package verbtest

import (
	"encoding/binary"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// blast keeps every lane full until all its messages have completed. With a
// depth of 1 it is the latency test of READ and atomics.
func (f *flow) blast() error {
	f.peak.Start(f.began, f.lay.size, len(f.lanes)*f.p.txDepth(f.lay))
	for {
		open, idle := false, true
		f.look()
		for i := range f.lanes {
			l := f.lanes[i]
			for {
				before := l.posted
				if err := f.fill(i); err != nil {
					return err
				}
				if l.posted == before {
					break
				}
				idle = false
			}
			open = open || l.completed < l.posted || f.more(l.posted)
		}
		if !open {
			f.peak.End(time.Now(), f.ops.Load())
			return nil
		}
		wcs, err := f.poll(idle)
		if err != nil {
			return err
		}
		if len(wcs) == 0 {
			continue
		}
		var now time.Time
		if !f.p.NoPeak {
			now = time.Now()
		}
		for i := range wcs {
			lane, recv := split(wcs[i].ID)
			if recv {
				err = f.takeGrant(lane, wcs[i].Imm)
			} else {
				f.complete(lane, now)
			}
			if err != nil {
				return err
			}
		}
		if !f.p.NoPeak {
			f.peak.At(now, f.ops.Load())
		}
	}
}

// fill posts one doorbell's worth of requests on a lane, if there is room.
func (f *flow) fill(i int) error {
	l := f.lanes[i]
	room := int64(f.p.txDepth(f.lay)) - (l.posted - l.completed)
	if f.p.grants() {
		room = min(room, int64(l.granted-uint32(l.posted)))
	}
	if room <= 0 {
		return nil
	}
	n := 0
	for ; n < f.p.PostList && int64(n) < room && f.more(l.posted+int64(n)); n++ {
		f.request(i, n, l.posted+int64(n))
	}
	if n == 0 {
		if l.signaled == l.posted {
			return nil
		}
		// The end came between two signaled requests: one more tells of the rest.
		f.request(i, 0, l.posted)
		f.sends[0].Flags |= qp.Signaled
		n = 1
	}
	if !f.p.NoPeak && signaled(f.sends[:n]) {
		l.began = time.Now()
	}
	posted, err := f.post(l, n)
	for j := range posted {
		l.posted++
		if f.sends[j].Flags&qp.Signaled != 0 {
			l.signaled = l.posted
			l.pushMark(mark{l.posted, l.began})
		}
	}
	if errors.Is(err, qp.ErrQueueFull) && posted > 0 {
		err = nil
	}
	return err
}

// signaled reports whether any of the requests will tell of its completion.
func signaled(wrs []qp.SendWR) bool {
	for i := range wrs {
		if wrs[i].Flags&qp.Signaled != 0 {
			return true
		}
	}
	return false
}

// request builds the request of message m at index n of the doorbell.
func (f *flow) request(i, n int, m int64) {
	l := f.lanes[i]
	w := &f.sends[n]
	*w = qp.SendWR{
		ID: sendID(i), Opcode: f.p.Op.opcode(), Imm: uint32(m), RKey: mr.RKey(l.remote.RKey), RemoteAddr: l.remote.Addr + f.lay.offset(m),
	}
	if f.p.foreign && w.Opcode == qp.SendWithImm {
		w.Opcode = qp.Send
	}
	last := f.p.Duration == 0 && m == int64(f.p.Iters)-1
	if (m+1)%int64(f.cqMod()) == 0 || last {
		w.Flags |= qp.Signaled
	}
	area := l.out
	switch f.p.Op {
	case Atomic:
		w.CompareAdd, w.RemoteAddr, area = 1, l.remote.Addr, l.in
	case Read:
		area = l.in
	}
	if f.inline() {
		w.Flags |= qp.Inline
		w.Inline = f.lay.slot(area, m)
		return
	}
	f.sges[n] = qp.SGE{Addr: addrOf(area) + f.lay.offset(m), Length: uint32(f.lay.size), LKey: l.region.LKey}
	w.SGEs = f.sges[n : n+1]
}

// cqMod is the distance of signaled requests: at most half the depth, so that
// there is always one outstanding that frees room.
func (f *flow) cqMod() int { return max(1, min(f.p.CQMod, f.p.txDepth(f.lay)/2)) }

// complete books the oldest signaled request of a lane, and with it all before.
func (f *flow) complete(i int, now time.Time) {
	l := f.lanes[i]
	m := l.popMark()
	if f.p.Verify && f.p.Op == Read {
		for k := l.completed; k < m.upTo; k++ {
			f.checkMessage(i, k)
		}
	}
	if f.p.Verify && f.p.Op == Atomic {
		for k := l.completed; k < m.upTo; k++ {
			if old := binary.NativeEndian.Uint64(f.lay.slot(l.in, k)); old != uint64(k) {
				f.mismatch(i, k, "fetch-and-add found %d, want %d", old, k)
			}
		}
	}
	f.ops.Add(m.upTo - l.completed)
	l.completed = m.upTo
	if !f.p.NoPeak {
		f.lat.Record(now.Sub(m.at))
	}
}

// takeGrant learns how many receives the peer ever posted, and makes room for
// the next grant. An older value than known changes nothing.
func (f *flow) takeGrant(i int, granted uint32) error {
	l := f.lanes[i]
	if int32(granted-l.granted) > 0 {
		l.granted = granted
	}
	f.recvs[0] = qp.RecvWR{ID: recvID(i)}
	_, err := l.q.PostRecv(f.recvs[:1])
	return err
}
