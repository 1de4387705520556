package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/sim/nic"
)

const (
	// share is how long one doorbell runs NICs before it leaves the rest to a
	// goroutine of its own: some messages of a MiB.
	share = 500 * time.Microsecond
	// A NIC takes so many packets, or packets of so many bytes, in one turn: its
	// answers are not held up for long, and others get theirs.
	batchPackets = 512
	batchBytes   = 256 << 10
)

// node drives one NIC: it has the inbox and the timer.
type node struct {
	fabric *Fabric
	dev    *Device
	nic    *nic.NIC

	inbox struct {
		sync.Mutex
		packets []nic.Packet
		bells   []*nic.QP
		tick    bool
		busy    bool // somebody runs the NIC, or has promised to
		pushed  uint64
	}
	done atomic.Uint64 // packets that were processed, with the answers delivered

	mu      sync.Mutex   // held by whoever runs the NIC; below it only inboxes and other leaves
	packets []nic.Packet // taken from the inbox
	at      int          // of which so many were delivered
	bells   []*nic.QP
	woken   list // NICs that got their first packet from us in this turn

	timer struct {
		*time.Timer
		at     time.Duration // when it fires; 0: not set
		closed bool
	}

	next *node // in a list
}

// list is a list of nodes that its owner promised to run.
type list struct{ first, last *node }

func (l *list) add(n *node) {
	n.next = nil
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
}

func (l *list) addFirst(n *node) {
	if n.next = l.first; l.first == nil {
		l.last = n
	}
	l.first = n
}

func (l *list) addAll(m list) {
	switch {
	case m.first == nil:
	case l.last == nil:
		*l = m
	default:
		l.last.next = m.first
		l.last = m.last
	}
}

func (l *list) pop() *node {
	n := l.first
	if n != nil {
		if l.first = n.next; l.first == nil {
			l.last = nil
		}
		n.next = nil
	}
	return n
}

// ring puts a doorbell in the inbox and runs what there is to run.
func (n *node) ring(q *nic.QP) {
	n.inbox.Lock()
	n.inbox.bells = append(n.inbox.bells, q)
	mine := n.claim()
	n.inbox.Unlock()
	if mine {
		n.fabric.run(list{n, n})
	}
}

// claim reports whether the caller has to run the node. Preconditions: the inbox
// is locked, and something was put in.
func (n *node) claim() (mine bool) {
	mine = !n.inbox.busy
	n.inbox.busy = true
	return mine
}

// run runs nodes, and those they wake, until all are idle or the caller did its
// share.
func (f *Fabric) run(l list) {
	var start time.Duration
	for n := l.pop(); n != nil; n = l.pop() {
		now := f.now()
		if start == 0 {
			start = now
		} else if now-start > f.share {
			l.addFirst(n)
			f.running.Add(1)
			go f.work(l)
			return
		}
		n.step(now, &l)
	}
}

// work runs nodes to the end, in a goroutine of its own.
func (f *Fabric) work(l list) {
	defer f.running.Add(-1)
	for n := l.pop(); n != nil; n = l.pop() {
		n.step(f.now(), &l)
	}
}

// step gives the node a turn and adds to the list what is to be run then.
func (n *node) step(now time.Duration, l *list) {
	woken, again := n.turn(now)
	l.addAll(woken)
	if again {
		l.add(n)
	}
}

// turn lets the NIC work off its inbox once. Preconditions: the caller has the
// promise to run n. again: it still has, and there is more to do.
func (n *node) turn(now time.Duration) (woken list, again bool) {
	n.mu.Lock()
	b := &n.inbox
	b.Lock()
	if n.at == len(n.packets) {
		n.packets, b.packets = b.packets, n.packets[:0]
		n.at = 0
	}
	n.bells, b.bells = b.bells, n.bells[:0]
	b.tick = false
	b.Unlock()

	for _, q := range n.bells {
		n.nic.Ring(q)
	}
	clear(n.bells)
	batch := n.packets[n.at:]
	for i, bytes := 0, 0; i < len(batch); i++ {
		if bytes += batch[i].Payload.Len(); bytes >= batchBytes || i == batchPackets-1 {
			batch = batch[:i+1]
		}
	}
	n.nic.DeliverAll(now, batch)
	more := n.nic.Run(now)
	n.at += len(batch)
	n.done.Add(uint64(len(batch)))
	clear(batch) // lets go of the memory that they refer to
	n.setTimer(now)
	woken, n.woken = n.woken, list{}

	b.Lock()
	again = more || n.at < len(n.packets) || len(b.packets) > 0 || len(b.bells) > 0 || b.tick
	b.busy = again
	b.Unlock()
	n.mu.Unlock()
	return woken, again
}

// control runs f with the NIC to itself, and then what that led to.
func (n *node) control(f func()) {
	n.mu.Lock()
	f()
	n.mu.Unlock()
	n.poke()
}

// poke has the NIC run, as something about it changed.
func (n *node) poke() {
	n.inbox.Lock()
	n.inbox.tick = true
	mine := n.claim()
	n.inbox.Unlock()
	if mine {
		n.fabric.run(list{n, n})
	}
}

// setTimer sees to it that the NIC runs at its deadline. A timer that fires too
// early is cheaper than one that is moved with each message. Preconditions: n.mu
// is held.
func (n *node) setTimer(now time.Duration) {
	at, ok := n.nic.Deadline()
	t := &n.timer
	if !ok || t.closed || t.at != 0 && t.at <= at {
		return
	}
	t.at = at
	if t.Timer == nil {
		t.Timer = time.AfterFunc(at-now, n.fire)
	} else {
		t.Reset(at - now)
	}
}

func (n *node) fire() {
	n.mu.Lock()
	closed := n.timer.closed
	if !closed {
		n.timer.at = 0
		n.fabric.running.Add(1)
	}
	n.mu.Unlock()
	if !closed {
		n.poke()
		n.fabric.running.Add(-1)
	}
}

// idleTimer takes the timer back when no queue pair waits any more.
// Preconditions: n.mu is held.
func (n *node) idleTimer() {
	if _, ok := n.nic.Deadline(); !ok && n.timer.Timer != nil && n.timer.Stop() {
		n.timer.at = 0
	}
}

// stop ends the timer for good.
func (n *node) stop() {
	n.mu.Lock()
	n.timer.closed = true
	if n.timer.Timer != nil {
		n.timer.Stop()
	}
	n.mu.Unlock()
}
