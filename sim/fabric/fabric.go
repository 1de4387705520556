package fabric

import (
	"strconv"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/verbs"
)

// Random streams, by what they are of.
const (
	streamNIC uint32 = iota + 1
	streamPort
	streamSwitch
)

// Fabric is a network of hosts and switches. Add them, join them, then Build.
type Fabric struct {
	cfg      Config
	k        *des.Kernel
	attr     verbs.DeviceAttr
	hosts    []*Host
	switches []*Switch
	ports    []*port
	free     *frame
	flows    uint64 // ever made
	maxFrame int    // bytes
	line     []byte // of the trace
	err      error

	injected, delivered, dropped, lost uint64 // packets

	arrived Datagram // is told

	// naive has every frame and every timer of DCQCN have an event of its own, for a
	// test that this makes no difference. ticks then schedules a flow's.
	naive bool
	ticks func(*flow)

	fetchKind, dmaKind, unstickKind, udKind, rerouteKind des.Kind
	renewKind, expireKind                                des.Kind

	portKinds [2]portKinds // of a switch, of a host

	runKind, wakeKind, bellKind, ringKind, unparkKind des.Kind
}

// New makes an empty fabric with a kernel of its own.
func New(cfg Config) *Fabric {
	cfg.setDefaults()
	f := &Fabric{cfg: cfg, k: des.New(), attr: sim.DefaultAttr()}
	f.attr.Flags &^= verbs.FlagMemWindow | verbs.FlagMemWindow2A | verbs.FlagMemWindow2B // nobody uses them here, and each queue pair has room for them
	f.maxFrame = maxFrame(cfg.NIC.MTU)
	for i := range f.portKinds {
		f.portKinds[i] = portKinds{
			sent:   f.k.Handle(func(a, _ int32) { f.ports[a].sent() }),
			kick:   f.k.Handle(func(a, _ int32) { f.ports[a].kick() }),
			arrive: f.k.Handle(func(a, b int32) { f.ports[a].arrive(b) }),
		}
	}
	f.runKind = f.k.Handle(func(a, _ int32) { f.hosts[a].run() })
	f.wakeKind = f.k.Handle(func(a, _ int32) { f.hosts[a].wake() })
	f.ringKind = f.k.Handle(func(a, b int32) { f.hosts[a].rang(b) })
	f.bellKind = f.k.Handle(func(a, _ int32) { f.hosts[a].rung() })
	f.unparkKind = f.k.Handle(func(a, b int32) { f.hosts[a].unpark(b) })
	f.fetchKind = f.k.Handle(func(a, b int32) { f.hosts[a].fetched(b) })
	f.dmaKind = f.k.Handle(func(a, _ int32) { f.hosts[a].drained() })
	f.unstickKind = f.k.Handle(func(a, _ int32) { f.hosts[a].unstick() })
	f.udKind = f.k.Handle(func(a, b int32) { f.hosts[a].udReady(b) })
	f.rerouteKind = f.k.Handle(func(a, _ int32) { f.reroute(int(a)) })
	f.renewKind = f.k.Handle(func(a, _ int32) { f.ports[a].renew() })
	f.expireKind = f.k.Handle(func(a, _ int32) { f.ports[a].expire() })
	f.prepare()
	return f
}

// Kernel is the clock and the events: run it to run the fabric.
func (f *Fabric) Kernel() *des.Kernel { return f.k }

// Seed is that of the configuration.
func (f *Fabric) Seed() uint64 { return f.cfg.Seed }

// SkipsWrites reports whether the payload of WRITEs stays where it is.
func (f *Fabric) SkipsWrites() bool { return f.cfg.SkipWrites }

// Hosts is how many hosts there are.
func (f *Fabric) Hosts() int { return len(f.hosts) }

// Host gives a host by its number.
func (f *Fabric) Host(i int) *Host { return f.hosts[i] }

// Switches is how many switches there are.
func (f *Fabric) Switches() int { return len(f.switches) }

// Switch gives a switch by its number.
func (f *Fabric) Switch(i int) *Switch { return f.switches[i] }

// Err is why the trace ended, nil if it did not.
func (f *Fabric) Err() error { return f.err }

// Counts are the packets that NICs sent to a host that exists, CNPs included, and
// what became of them.
type Counts struct {
	Injected, Delivered, Dropped, Lost, Queued uint64
}

// Conserved reports whether every packet is somewhere.
func (c Counts) Conserved() bool { return c.Injected == c.Delivered+c.Dropped+c.Lost+c.Queued }

// Counts counts all packets.
func (f *Fabric) Counts() Counts {
	c := Counts{Injected: f.injected, Delivered: f.delivered, Dropped: f.dropped, Lost: f.lost}
	for _, p := range f.ports {
		for i := range p.queue {
			c.Queued += uint64(p.queue[i].n)
		}
		for fr := p.wire.head; fr != nil; fr = fr.next {
			if fr.kind != pauseFrame {
				c.Queued++
			}
		}
		if p.tx != nil && p.tx.kind != pauseFrame {
			c.Queued++
		}
	}
	return c
}

// PortTotals adds up the counters of all ports; the peak is the highest of any.
func (f *Fabric) PortTotals() (t PortStats) {
	for _, p := range f.ports {
		s := &p.stats
		t.Frames += s.Frames
		t.Bytes += s.Bytes
		t.PeakQueueBytes = max(t.PeakQueueBytes, s.PeakQueueBytes)
		t.Drops += s.Drops
		t.Lost += s.Lost
		t.Marked += s.Marked
		t.PausesSent += s.PausesSent
		t.PausesReceived += s.PausesReceived
		t.Paused += s.Paused
	}
	return t
}

// trace writes a line about a frame at a port.
func (f *Fabric) trace(p *port, what string, fr *frame) {
	if f.cfg.Trace == nil || f.err != nil {
		return
	}
	b := strconv.AppendInt(f.line[:0], int64(f.k.Now()), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(p.id), 10)
	b = append(b, ' ')
	b = append(b, what...)
	b = append(b, ' ')
	if fr.kind == packetFrame {
		b = append(b, fr.pkt.Op.String()...)
		b = append(b, ' ')
		b = strconv.AppendUint(b, uint64(fr.pkt.PSN), 10)
		b = append(b, ' ')
	}
	b = strconv.AppendInt(b, int64(fr.size), 10)
	f.line = append(b, '\n')
	if _, err := f.cfg.Trace.Write(f.line); err != nil {
		f.err = errors.Wrap(err, "trace")
	}
}
