package verbtest

import (
	"encoding/binary"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/pattern"
	"github.com/byteexpress/byteexpress/qp"
)

// receive takes messages, checks them, posts their receives again in halves of
// the depth and grants these to the initiator, until all have come.
func (f *flow) receive() error {
	for !f.allReceived() {
		wcs, err := f.poll(true)
		if err != nil {
			return err
		}
		for i := range wcs {
			lane, recv := split(wcs[i].ID)
			l := f.lanes[lane]
			if !recv {
				l.grantsOut--
				continue
			}
			f.take(lane, wcs[i].ByteLen, wcs[i].Imm)
			if half := max(1, int64(f.p.rxDepth(f.lay))/2); l.received-(l.reposted-int64(f.p.rxDepth(f.lay))) >= half {
				if err := f.refill(lane, half); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// take checks the next message of a lane.
func (f *flow) take(lane int, length, imm uint32) {
	l := f.lanes[lane]
	m := l.received
	if length != uint32(f.lay.size) {
		f.mismatch(lane, m, "%d bytes came, %d were sent", length, f.lay.size)
	}
	if imm != uint32(m) && !f.p.foreign {
		f.mismatch(lane, m, "message %d came instead", imm)
	}
	f.checkMessage(lane, m)
	l.received++
	f.ops.Add(1)
}

// refill posts n receives, and grants them if the peer waits for that.
func (f *flow) refill(lane int, n int64) error {
	if f.p.grants() {
		return f.grant(lane, n)
	}
	return f.repost(lane, n)
}

// grant posts n receives and tells the initiator with a SEND without payload how
// many there ever were. The initiator cannot send what was not granted, so at
// most 3 grants are under way: the one that it uses up, and two half depths.
func (f *flow) grant(lane int, n int64) error {
	if err := f.repost(lane, n); err != nil {
		return err
	}
	l := f.lanes[lane]
	f.sends[0] = qp.SendWR{ID: sendID(lane), Opcode: qp.SendWithImm, Flags: qp.Signaled, Imm: uint32(l.reposted)}
	if _, err := f.post(l, 1); err != nil {
		return err
	}
	l.grantsOut++
	return nil
}

// allReceived reports whether every lane has all messages and no grant of ours
// is under way.
func (f *flow) allReceived() bool {
	t := f.targets()
	if t == nil {
		return false
	}
	for i, l := range f.lanes {
		if l.received < t[i] || l.grantsOut > 0 {
			return false
		}
	}
	return true
}

// standBy waits while the peer reads or writes our memory without our doing.
func (f *flow) standBy() error {
	for f.targets() == nil {
		if f.abort.Load() {
			return errAborted
		}
		if err := f.cq.Wait(f.ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkMemory verifies what one-sided operations of the peer left in our memory.
// Both ends are done with the round.
func (f *flow) checkMemory() {
	if !f.p.Verify {
		return
	}
	switch {
	case f.p.Op == Write && f.p.Latency:
		f.checkStamped()
	case f.p.Op == Write && !f.initiator:
		for i := range f.lanes {
			for m := range min(f.targets()[i], int64(f.lay.slots)) {
				f.checkMessage(i, m)
			}
		}
	case f.p.Op == Atomic && !f.initiator:
		for i, l := range f.lanes {
			n := f.targets()[i]
			if got := binary.NativeEndian.Uint64(l.in); got != uint64(n) {
				f.mismatch(i, n, "the counter is %d after %d additions of 1", got, n)
			}
		}
	}
}

// checkStamped verifies the only slot of the ping-pong of WRITEs: the last byte
// is the stamp, which was seen to come, the rest the slot's sequence.
func (f *flow) checkStamped() {
	n := f.ops.Load()
	if n == 0 {
		return
	}
	l := f.lanes[0]
	if at := pattern.Check(l.in[:f.lay.size-1], pattern.Seed(l.inSeed, 0)); at >= 0 {
		f.mismatch(0, n-1, "byte %d of %d is not what was sent", at, f.lay.size)
	}
}
