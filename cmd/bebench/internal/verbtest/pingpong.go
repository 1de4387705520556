package verbtest

import (
	"runtime"
	"time"

	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// ping sends a message, waits for the answer, and records the round trip.
func (f *flow) ping() error {
	start := f.since()
	for m := int64(0); f.more(m); m++ {
		if err := f.sendOne(m); err != nil {
			return err
		}
		if err := f.recvOne(m); err != nil {
			return err
		}
		f.lat.Record(f.since() - start)
		f.ops.Store(m + 1)
		if err := f.settle(m); err != nil {
			return err
		}
		start = f.since()
		f.look()
	}
	return f.drain()
}

// pong answers each message with one of its own.
func (f *flow) pong() error {
	// With one slot the next message would meet the one that is being checked.
	early := f.lay.slots == 1 || f.p.rxDepth(f.lay) == 1
	for m := int64(0); ; m++ {
		for f.lanes[0].received <= m {
			if t := f.targets(); t != nil && t[0] == m {
				return f.drain()
			}
			if err := f.collect(); err != nil {
				return err
			}
		}
		if early {
			if err := f.settle(m); err != nil {
				return err
			}
		}
		if err := f.sendOne(m); err != nil {
			return err
		}
		f.ops.Store(m + 1)
		if !early {
			if err := f.settle(m); err != nil {
				return err
			}
		}
	}
}

// sendOne posts message m of the only lane.
func (f *flow) sendOne(m int64) error {
	l := f.lanes[0]
	for l.posted-l.completed >= int64(f.p.txDepth(f.lay)) {
		if err := f.collect(); err != nil {
			return err
		}
	}
	f.request(0, 0, m)
	if _, err := f.post(l, 1); err != nil {
		return err
	}
	l.posted++
	if f.sends[0].Flags&qp.Signaled != 0 {
		l.signaled = l.posted
		l.pushMark(mark{upTo: l.posted})
	}
	return nil
}

// recvOne waits for message m.
func (f *flow) recvOne(m int64) error {
	for f.lanes[0].received <= m {
		if err := f.collect(); err != nil {
			return err
		}
	}
	return nil
}

// collect polls once and books what came.
func (f *flow) collect() error {
	wcs, err := f.poll(true)
	for i := range wcs {
		l := f.lanes[0]
		if _, recv := split(wcs[i].ID); !recv {
			l.completed = l.popMark().upTo
			continue
		}
		if wcs[i].ByteLen != uint32(f.lay.size) {
			f.mismatch(0, l.received, "%d bytes came, %d were sent", wcs[i].ByteLen, f.lay.size)
		}
		if wcs[i].Imm != uint32(l.received) && !f.p.foreign {
			f.mismatch(0, l.received, "message %d came instead", wcs[i].Imm)
		}
		l.received++
	}
	return err
}

// settle checks message m and posts its receive again.
func (f *flow) settle(m int64) error {
	f.checkMessage(0, m)
	return f.repost(0, 1)
}

// drain waits for the completions of our signaled requests.
func (f *flow) drain() error {
	l := f.lanes[0]
	for l.completed < l.signaled {
		if err := f.collect(); err != nil {
			return err
		}
	}
	return nil
}

// pingMemory writes into the peer's memory, watches its own for the answer, and
// records the round trip. No completion tells of a WRITE: the last byte of the
// slot carries the message's number, as in perftest.
func (f *flow) pingMemory() error {
	start := f.since()
	for m := int64(0); f.more(m); m++ {
		if err := f.writeOne(m); err != nil {
			return err
		}
		for !f.arrived(m) {
			if err := f.watch(); err != nil {
				return err
			}
		}
		now := f.since()
		f.lat.Record(now - start)
		f.ops.Store(m + 1)
		start = now
		f.look()
	}
	return f.drain()
}

// pongMemory answers each WRITE with one of its own. Against perftest, where this is
// the client's end, it records the time from one answer to the next.
func (f *flow) pongMemory() error {
	var last time.Duration
	for m := int64(0); ; m++ {
		for !f.arrived(m) {
			if t := f.targets(); t != nil && t[0] == m {
				return f.drain()
			}
			if err := f.watch(); err != nil {
				return err
			}
		}
		if f.p.foreign {
			now := f.since()
			if m > 0 {
				f.lat.Record(now - last)
			}
			last = now
		}
		if err := f.writeOne(m); err != nil {
			return err
		}
		f.ops.Store(m + 1)
	}
}

// writeOne stamps the slot and writes it to the peer. The previous WRITE has
// been answered, so the device does not read the slot any more.
func (f *flow) writeOne(m int64) error {
	l := f.lanes[0]
	l.out[f.lay.size-1] = stamp(m)
	for l.posted-l.completed >= int64(f.p.txDepth(f.lay)) {
		if err := f.collect(); err != nil {
			return err
		}
	}
	f.request(0, 0, m)
	w := &f.sends[0]
	w.RemoteAddr = l.remote.Addr
	if len(w.SGEs) > 0 {
		w.SGEs[0].Addr = addrOf(l.out)
	} else {
		w.Inline = l.out[:f.lay.size]
	}
	if _, err := f.post(l, 1); err != nil {
		return err
	}
	l.posted++
	if w.Flags&qp.Signaled != 0 {
		l.signaled = l.posted
		l.pushMark(mark{upTo: l.posted})
	}
	return nil
}

// stamp is the last byte of message m: never what the message before it had, and
// not the 0 of fresh memory for the first.
func stamp(m int64) byte { return byte(m + 1) }

// arrived looks whether the peer's WRITE of message m is there.
func (f *flow) arrived(m int64) bool {
	if !memoryIs(f.lanes[0].in, f.lay.size-1, stamp(m)) {
		return false
	}
	mmio.ReadBarrier()
	return true
}

// watch lets others run now and then while memory is watched, and looks for
// errors of the queue pair.
func (f *flow) watch() error {
	if f.idle++; f.idle&(f.spins-1) == 0 {
		runtime.Gosched()
		return f.collect()
	}
	return nil
}

// memoryIs reads a byte that a device writes, so it must be neither moved nor
// kept by the compiler; the race detector, which does not see devices, is told to
// leave it alone.
//
//go:noinline
//go:norace
func memoryIs(b []byte, off int, want byte) bool { return b[off] == want }

func addrOf(b []byte) uint64 { return mr.Addr(b) }
