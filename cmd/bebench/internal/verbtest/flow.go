package verbtest

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/hist"
	"github.com/byteexpress/byteexpress/cmd/bebench/internal/peak"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

const (
	// grantSlots is how many grants the initiator can take at a time: the
	// responder has at most 3 under way (see grant).
	grantSlots = 8
	// grantDepth is the responder's send queue for grants.
	grantDepth = 64
	// simSpins is how often an empty queue is polled before other goroutines may run
	// where the device, or all of the program, needs the processor for that.
	simSpins = 64
	// spins is the same on a device of the kernel. Letting others run is not cheap: the
	// scheduler wakes another thread to look for work, which takes a processor from the
	// peer and from a software device.
	spins = 1 << 13
	// pollBatch is how many completions one poll takes.
	pollBatch = 32
)

// flow is one goroutine's work at one end: it initiates operations, or responds
// to those of the same flow at the other end.
type flow struct {
	p         *Params
	index     int
	initiator bool
	lay       layout
	lanes     []*lane
	cq        cq.CQ
	ctx       context.Context // ends waits
	spins     int             // a power of two
	idle      int

	// Scratch of the data path, so that it does not allocate.
	wc    [pollBatch]cq.Completion
	sends []qp.SendWR
	recvs []qp.RecvWR
	sges  []qp.SGE

	// What the session tells the goroutine.
	stop   atomic.Bool             // initiator: finish early
	target atomic.Pointer[[]int64] // responder: messages of each lane, once known
	due    atomic.Int64            // responder: Unix nanoseconds when they must all have come; set before target
	alarm  *time.Timer             // wakes it when due; the session's
	abort  atomic.Bool             // give up at once

	// Results. done tells that the others may be read.
	done    atomic.Bool
	ops     atomic.Int64 // finished so far
	began   time.Time
	wall    time.Duration
	lat     *hist.Recorder
	peak    peak.Meter
	late    bool   // begin nothing more
	stopped bool   // for the session asked so
	bad     string // first mismatch

	doorbells, requests, completions int64
}

var (
	errAborted = errors.New("given up")
	errMissing = errors.New("the peer says that it sent more messages than came")
)

// side tells the two ends of a flow apart in seeds: 1 for the initiator.
func (f *flow) side() uint64 {
	if f.initiator {
		return 1
	}
	return 0
}

// areas tells which slots this end of the flow needs.
func (f *flow) areas() (out, in bool) {
	switch {
	case f.p.Op == Atomic:
		return false, true
	case f.p.Latency && f.p.Op.pingPong():
		return true, true
	case f.p.Op == Read:
		return !f.initiator, f.initiator
	}
	return f.initiator, !f.initiator
}

// newFlow makes the flow's CQ, memory and queue pairs, in state RESET. What was
// made before an error is in the flow: close it.
func newFlow(r *rig, p *Params, index int, initiator bool, lanes, size int) (*flow, error) {
	f := &flow{p: p, index: index, initiator: initiator, lay: p.layout(size), lat: hist.New(), spins: spins}
	if r.ctx.Info().Provider == "sim" || runtime.GOMAXPROCS(0) == 1 {
		f.spins = simSpins
	}
	caps := f.caps()
	batch := max(p.PostList, f.p.rxDepth(f.lay), grantSlots)
	f.sends, f.recvs, f.sges = make([]qp.SendWR, p.PostList), make([]qp.RecvWR, batch), make([]qp.SGE, batch)
	var err error
	f.cq, err = r.ctx.CreateCQ(verbs.CQConfig{Entries: lanes * (caps.SendWR + caps.RecvWR), Vector: index % max(r.attr.CompVectors, 1)})
	if err != nil {
		return f, err
	}
	for i := range lanes {
		l, err := newLane(r, f, i)
		f.lanes = append(f.lanes, l)
		if err != nil {
			return f, err
		}
		l.q, err = r.pd.CreateQP(verbs.QPConfig{SendCQ: f.cq, RecvCQ: f.cq, Caps: caps})
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// caps are the capacities that this end of the flow needs of a queue pair.
func (f *flow) caps() qp.Caps {
	c := qp.Caps{SendWR: f.p.TxDepth, RecvWR: 1, SendSGE: 1, RecvSGE: 1}
	if f.p.Op.tellsReceiver() {
		c.RecvWR = grantSlots
		if !f.initiator || f.p.Latency {
			c.RecvWR = f.p.rxDepth(f.lay)
		}
	}
	if !f.initiator && !f.p.Latency {
		c.SendWR = grantDepth
	}
	if f.inline() {
		c.Inline = f.lay.size
		if f.p.foreign { // for all sizes
			c.Inline = f.p.Inline
		}
	}
	return c
}

// inline reports whether messages go inline.
func (f *flow) inline() bool {
	return f.lay.size <= f.p.Inline && f.p.Op != Read && f.p.Op != Atomic
}

// postFirst posts the receives that must be there before the peer starts.
func (f *flow) postFirst() error {
	if !f.p.Op.tellsReceiver() {
		return nil
	}
	for i, l := range f.lanes {
		if f.initiator && !f.p.Latency {
			if !f.p.grants() {
				continue
			}
			for j := range grantSlots {
				f.recvs[j] = qp.RecvWR{ID: recvID(i)}
			}
			if _, err := l.q.PostRecv(f.recvs[:grantSlots]); err != nil {
				return err
			}
			l.granted = uint32(f.p.rxDepth(f.lay))
			continue
		}
		if err := f.repost(i, int64(f.p.rxDepth(f.lay))); err != nil {
			return err
		}
	}
	return nil
}

// repost posts n more receives on a lane, each with its slot.
func (f *flow) repost(i int, n int64) error {
	l := f.lanes[i]
	if f.p.foreign {
		if n = min(n, int64(f.p.Iters)-l.reposted); n == 0 {
			return nil
		}
	}
	for j := range n {
		f.sges[j] = qp.SGE{Addr: addrOf(l.in) + f.lay.offset(l.reposted+j), Length: uint32(f.lay.size), LKey: l.region.LKey}
		f.recvs[j] = qp.RecvWR{ID: recvID(i), SGEs: f.sges[j : j+1]}
	}
	posted, err := l.q.PostRecv(f.recvs[:n])
	l.reposted += int64(posted)
	return err
}

// post gives the first n of f.sends to a lane's queue pair with one doorbell.
func (f *flow) post(l *lane, n int) (posted int, err error) {
	posted, err = l.q.PostSend(f.sends[:n])
	f.doorbells++
	f.requests += int64(posted)
	return posted, err
}

// A work request's ID is its lane and whether it is a receive.
func sendID(lane int) uint64 { return uint64(lane) << 1 }
func recvID(lane int) uint64 { return uint64(lane)<<1 | 1 }

func split(id uint64) (lane int, recv bool) { return int(id >> 1), id&1 != 0 }

// poll takes completions, if there are any, and checks that all succeeded. When
// the queue is empty it lets others run now and then; with Events, if there is
// nothing else to do (idle), it sleeps for an event.
func (f *flow) poll(idle bool) ([]cq.Completion, error) {
	n, err := f.cq.Poll(f.wc[:])
	if n == 0 && err == nil {
		if f.abort.Load() {
			return nil, errAborted
		}
		if f.overdue() {
			return nil, errMissing
		}
		if !f.p.Events || !idle {
			if f.idle++; f.idle&(f.spins-1) == 0 {
				runtime.Gosched()
			}
			return nil, nil
		}
		if err = f.cq.Arm(false); err != nil {
			return nil, err
		}
		if n, err = f.cq.Poll(f.wc[:]); n == 0 && err == nil {
			return nil, f.cq.Wait(f.ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	f.completions += int64(n)
	for i := range n {
		if f.wc[i].Status != cq.Success {
			return nil, f.wc[i].Err()
		}
	}
	return f.wc[:n], nil
}

// run does the flow's work. It returns when all is done or nothing can be.
func (f *flow) run() error {
	f.began = time.Now()
	defer func() {
		f.wall = time.Since(f.began)
		f.done.Store(true)
	}()
	switch {
	case f.initiator && f.p.Latency && f.p.Op == Write:
		return f.pingMemory()
	case f.initiator && f.p.Latency && f.p.Op.pingPong():
		return f.ping()
	case f.initiator:
		return f.blast()
	case f.p.Latency && f.p.Op == Write:
		return f.pongMemory()
	case f.p.Latency && f.p.Op.pingPong():
		return f.pong()
	case f.p.Op.tellsReceiver():
		return f.receive()
	}
	return f.standBy()
}

// look reads what the session says, and the clock if it matters, once a turn of a
// loop.
func (f *flow) look() {
	f.stopped = f.stopped || f.stop.Load()
	f.late = f.stopped || f.p.Duration > 0 && time.Since(f.began) >= f.p.Duration
}

// since is the time since the flow began. It reads one clock, time.Now two.
func (f *flow) since() time.Duration { return time.Since(f.began) }

// more reports whether the initiator shall begin message m of a lane.
func (f *flow) more(m int64) bool {
	return !f.late && (f.p.Duration > 0 || m < int64(f.p.Iters))
}

// targets gives the number of messages of each lane, nil while the initiator is
// not done.
func (f *flow) targets() []int64 {
	if t := f.target.Load(); t != nil {
		return *t
	}
	return nil
}

// expect tells a responder how many messages there are. They were all acknowledged,
// so none needs longer than limit to be taken.
func (f *flow) expect(counts []int64, limit time.Duration) {
	f.due.Store(time.Now().Add(limit).UnixNano())
	f.target.Store(&counts)
	f.wake()
	f.alarm = time.AfterFunc(limit, f.wake)
}

// overdue looks at the clock now and then.
func (f *flow) overdue() bool {
	return f.idle&(f.spins-1) == 0 && f.targets() != nil && time.Now().UnixNano() > f.due.Load()
}

// counts is what the initiator tells the responder in the end.
func (f *flow) counts() []int64 {
	n := make([]int64, len(f.lanes))
	for i, l := range f.lanes {
		n[i] = l.posted
	}
	return n
}

// mismatch keeps the first wrong message.
func (f *flow) mismatch(lane int, m int64, format string, args ...any) {
	if f.bad == "" {
		f.bad = fmt.Sprintf("flow %d, queue pair %d, message %d: ", f.index, lane, m) + fmt.Sprintf(format, args...)
	}
}

// checkMessage verifies the received message m of a lane.
func (f *flow) checkMessage(lane int, m int64) {
	if !f.p.Verify {
		return
	}
	if at := f.lanes[lane].check(f, m); at >= 0 {
		f.mismatch(lane, m, "byte %d of %d is not what was sent", at, f.lay.size)
	}
}

// wake lets a sleeping flow look at stop, target and abort.
func (f *flow) wake() { f.cq.Wake() }

// close destroys the flow's objects and says what could not be.
func (f *flow) close(r *rig) error {
	var first error
	if f.alarm != nil {
		f.alarm.Stop()
	}
	for _, l := range f.lanes {
		if err := l.close(r); first == nil {
			first = err
		}
	}
	if f.cq != nil {
		if err := f.cq.Close(); first == nil {
			first = err
		}
	}
	return first
}
