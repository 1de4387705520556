package fabric

import (
	"math/bits"
	"slices"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// AddHost adds a host. It needs one link.
func (f *Fabric) AddHost() *Host {
	h := newHost(f, len(f.hosts))
	f.hosts = append(f.hosts, h)
	return h
}

// AddSwitch adds a switch.
func (f *Fabric) AddSwitch() *Switch {
	salt := des.NewStream(f.cfg.Seed, streamSwitch, uint64(len(f.switches)), 0)
	s := &Switch{f: f, id: len(f.switches), salt: salt.Uint64()}
	f.switches = append(f.switches, s)
	return s
}

func (f *Fabric) newPort(l Link, s *Switch, h *Host) *port {
	p := &port{f: f, id: int32(len(f.ports)), sw: s, host: h, cfg: l, pace: paceOf(l.Gbps), kickAt: des.Never, kinds: f.portKinds[ofSwitch]}
	if h != nil {
		p.kinds = f.portKinds[ofHost]
	}
	p.random = des.NewStream(f.cfg.Seed, streamPort, uint64(p.id), 0)
	f.ports = append(f.ports, p)
	if s != nil {
		s.ports = append(s.ports, p)
	}
	return p
}

// maxGbps is the rate at which a byte takes one picosecond.
const maxGbps = 8000

// pace is what a byte takes on a link, in 2^-20 ps: not of all rates it is whole
// picoseconds.
type pace int64

const paceBits = 20

func paceOf(gbps int) pace { return pace(maxGbps << paceBits / gbps) }

// of is what so many bytes take.
func (p pace) of(bytes int) des.Time { return des.Time(int64(bytes) * int64(p) >> paceBits) }

// maxDelay is the longest cable's.
const maxDelay = des.Second

func (l *Link) check() error {
	switch {
	case l.Gbps < 1 || l.Gbps > maxGbps:
		return errors.Errorf("link: %d Gb/s, want 1 to %d", l.Gbps, maxGbps)
	case l.Delay < 0 || l.Delay > maxDelay:
		return errors.Errorf("link: a delay of %d ps, want 0 to %d", l.Delay, maxDelay)
	case !(l.Loss >= 0 && l.Loss <= 1):
		return errors.Errorf("link: a loss of %v, want 0 to 1", l.Loss)
	}
	return nil
}

// join makes the two ports of a link.
func join(a, b *port) {
	a.peer, b.peer = b, a
	for _, p := range []*port{a, b} {
		p.delay = p.cfg.Delay
		if p.peer.host != nil {
			p.delay += p.f.cfg.NIC.RxLatency
		}
	}
	a.kinds.arrive, b.kinds.arrive = b.kinds.arrive, a.kinds.arrive // at the other end
}

// LinkHost joins a host, which must have no link yet, to a switch.
func (f *Fabric) LinkHost(h *Host, s *Switch, l Link) error {
	if err := l.check(); err != nil {
		return err
	}
	if h.port != nil {
		return errors.Errorf("link: host %d has a link", h.id)
	}
	h.port = f.newPort(l, nil, h)
	join(h.port, f.newPort(l, s, nil))
	return nil
}

// LinkHosts joins two hosts directly.
func (f *Fabric) LinkHosts(a, b *Host, l Link) error {
	if err := l.check(); err != nil {
		return err
	}
	if a == b || a.port != nil || b.port != nil {
		return errors.Errorf("link: host %d or %d has a link", a.id, b.id)
	}
	a.port, b.port = f.newPort(l, nil, a), f.newPort(l, nil, b)
	join(a.port, b.port)
	return nil
}

// LinkSwitches joins two switches.
func (f *Fabric) LinkSwitches(a, b *Switch, l Link) error {
	if err := l.check(); err != nil {
		return err
	}
	if a == b {
		return errors.Errorf("link: switch %d to itself", a.id)
	}
	join(f.newPort(l, a, nil), f.newPort(l, b, nil))
	return nil
}

// hostShift is the share of free buffer that the slowest ports of a switch may
// take, as a power of two: an eighth. Each doubling of the rate doubles it.
const hostShift = 3

// reactionBytes is what may still arrive while the peer's NIC or switch reacts to a
// pause.
const reactionBytes = 4096

// headroom is what may come in between the decision to pause and its effect, over a
// link of some rate on which a bit takes that long there and back.
func headroom(both des.Time, gbps, maxFrame int) int {
	n := int(both)*gbps/maxGbps + 2*(maxFrame+gapBytes) + reactionBytes
	return n * 5 / 4 // in whole cells, for frames from a KiB on
}

// HeadroomBytes is what a switch keeps of its buffer for each port to a link, whose
// other end is a host or a switch.
func (c Config) HeadroomBytes(l Link, toHost bool) int {
	c.setDefaults()
	both := 2 * l.Delay
	if toHost {
		both += c.NIC.RxLatency
	}
	return headroom(both, l.Gbps, maxFrame(c.NIC.MTU))
}

// maxFrame is the longest frame at a path MTU, in bytes.
func maxFrame(m qp.MTU) int { return lowerBytes + 40 + m.Bytes() }

// Build finds the ways and shares out the buffers. It is called once, after all
// links were made. Errors name a value of the configuration that cannot be, a host
// without a link, or a buffer that its headroom does not leave anything of.
func (f *Fabric) Build() error {
	if err := f.cfg.check(); err != nil {
		return err
	}
	for _, h := range f.hosts {
		if h.port == nil {
			return errors.Errorf("build: host %d has no link", h.id)
		}
	}
	for _, s := range f.switches {
		s.pool = f.cfg.Switch.BufferBytes
		slowest := maxGbps
		for _, p := range s.ports {
			slowest = min(slowest, p.cfg.Gbps)
		}
		for _, p := range s.ports {
			p.ecn[data], p.ecn[lossy] = f.cfg.Switch.ECN.at(p.cfg.Gbps), f.cfg.Switch.LossyECN.at(p.cfg.Gbps)
			p.dynamic = f.cfg.Switch.PauseShare
			if p.dynamic == 0 {
				p.dynamic = 1 / float64(int(1)<<max(hostShift-bits.Len(uint(p.cfg.Gbps/slowest))+1, 0))
			}
			if f.cfg.Switch.PFC {
				p.headroom = headroom(p.delay+p.peer.delay, p.cfg.Gbps, f.maxFrame)
				s.pool -= p.headroom
			}
		}
		if s.pool <= f.maxFrame {
			return errors.Errorf("build: switch %d: %d bytes of buffer, and %d of them are headroom: give it more", s.id, f.cfg.Switch.BufferBytes, f.cfg.Switch.BufferBytes-s.pool)
		}
	}
	f.findWays()
	return nil
}

// findWays gives every switch its next hops to every switch that has hosts: the ports
// to whatever is nearer to it by links that work.
func (f *Fabric) findWays() {
	far := len(f.switches) + 1
	hops := make([]int, len(f.switches))
	var queue []*Switch
	for _, s := range f.switches {
		s.routes = make([][]*port, len(f.switches))
	}
	for _, to := range f.switches {
		if !slices.ContainsFunc(to.ports, func(p *port) bool { return p.peer.host != nil }) {
			continue
		}
		for i := range hops {
			hops[i] = far
		}
		hops[to.id] = 0
		queue = append(queue[:0], to)
		for at := 0; at < len(queue); at++ {
			near := queue[at]
			for _, p := range near.ports {
				s := p.peer.sw
				if s == nil || p.down || p.peer.down {
					continue
				}
				if hops[s.id] == far {
					hops[s.id] = hops[near.id] + 1
					queue = append(queue, s)
				}
				if hops[s.id] == hops[near.id]+1 {
					s.routes[to.id] = append(s.routes[to.id], p.peer)
				}
			}
		}
	}
}
