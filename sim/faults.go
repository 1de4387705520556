package sim

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/sim/nic"
)

// Faults says what a fabric does to packets. Each is drawn for itself from the
// fabric's seeded source; probabilities are 0 to 1. The zero value is a fabric
// that does nothing.
type Faults struct {
	Drop      float64 // the packet is lost
	Corrupt   float64 // the receiver finds a wrong checksum, so it is lost there
	Duplicate float64 // the packet comes twice
	Delay     float64 // the packet comes late, so that others overtake it
	// MaxDelay bounds that time, drawn evenly; 0: 1 ms.
	MaxDelay time.Duration
}

// FaultStats counts what faults did to packets.
type FaultStats struct {
	Dropped, Corrupted, Duplicated, Delayed, Partitioned uint64
}

const defaultMaxDelay = time.Millisecond

// late is a packet to be delivered later.
type late struct {
	at  time.Duration
	dst *node
	p   nic.Packet
}

type pair struct{ a, b *node }

// faults is the part of the fabric that spoils packets.
type faults struct {
	on atomic.Bool // anything to do

	mu     sync.Mutex // leaf
	fabric *Fabric
	rand   *rand.Rand
	set    Faults
	parted map[pair]bool
	stats  FaultStats
	late   []late
	timer  *time.Timer
	closed bool
}

func (x *faults) init(f *Fabric, seed uint64) {
	x.fabric = f
	x.rand = rand.New(rand.NewPCG(seed, 1<<62))
	x.parted = make(map[pair]bool)
}

// SetFaults says what happens to packets from now on.
func (f *Fabric) SetFaults(set Faults) {
	x := &f.faults
	x.mu.Lock()
	defer x.mu.Unlock()
	if set.MaxDelay <= 0 {
		set.MaxDelay = defaultMaxDelay
	}
	x.set = set
	x.update()
}

// FaultStats counts what faults did so far.
func (f *Fabric) FaultStats() FaultStats {
	f.faults.mu.Lock()
	defer f.faults.mu.Unlock()
	return f.faults.stats
}

// Partition loses, or no longer loses, every packet between two devices.
func (f *Fabric) Partition(a, b *Device, parted bool) {
	x := &f.faults
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range []pair{{a.node, b.node}, {b.node, a.node}} {
		if parted {
			x.parted[p] = true
		} else {
			delete(x.parted, p)
		}
	}
	x.update()
}

func (x *faults) update() {
	none := Faults{MaxDelay: x.set.MaxDelay}
	x.on.Store(x.set != none || len(x.parted) > 0)
}

// strike draws what happens to a packet and reports that it is not to be
// delivered now. Preconditions: the caller runs src.
func (x *faults) strike(src, dst *node, p *nic.Packet) (gone bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	hit := func(probability float64, count *uint64) bool {
		if probability > 0 && x.rand.Float64() < probability {
			*count++
			return true
		}
		return false
	}
	switch {
	case x.parted[pair{src, dst}]:
		x.stats.Partitioned++
		return true
	case hit(x.set.Drop, &x.stats.Dropped), hit(x.set.Corrupt, &x.stats.Corrupted):
		return true
	}
	if hit(x.set.Duplicate, &x.stats.Duplicated) {
		x.delay(dst, p)
	}
	if hit(x.set.Delay, &x.stats.Delayed) {
		x.delay(dst, p)
		return true
	}
	return false
}

// delay keeps a packet for a while.
func (x *faults) delay(dst *node, p *nic.Packet) {
	if x.closed {
		return
	}
	now := x.fabric.now()
	d := time.Duration(x.rand.Int64N(int64(x.set.MaxDelay))) + 1
	x.late = append(x.late, late{now + d, dst, *p})
	x.arm(now)
}

// arm sets the timer for the earliest late packet. There are few: a scan does.
func (x *faults) arm(now time.Duration) {
	if len(x.late) == 0 || x.closed {
		return
	}
	first := x.late[0].at
	for i := range x.late {
		first = min(first, x.late[i].at)
	}
	if x.timer == nil {
		x.timer = time.AfterFunc(first-now, x.fire)
	} else {
		x.timer.Reset(first - now)
	}
}

// fire delivers the packets whose time has come.
func (x *faults) fire() {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return
	}
	x.fabric.running.Add(1)
	now := x.fabric.now()
	var due list
	keep := x.late[:0]
	for i := range x.late {
		l := &x.late[i]
		if l.at > now {
			keep = append(keep, *l)
			continue
		}
		b := &l.dst.inbox
		b.Lock()
		b.packets = append(b.packets, l.p)
		b.pushed++
		if l.dst.claim() {
			due.add(l.dst)
		}
		b.Unlock()
	}
	clear(x.late[len(keep):])
	x.late = keep
	x.arm(now)
	x.mu.Unlock()
	x.fabric.run(due)
	x.fabric.running.Add(-1)
}

// stop loses the late packets and ends the timer.
func (x *faults) stop() {
	x.mu.Lock()
	x.closed = true
	x.late = nil
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Unlock()
}
