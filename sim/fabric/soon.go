package fabric

import (
	"github.com/byteexpress/byteexpress/internal/prefetch"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// In a large network an event finds little of what it needs in the processor's cache: most
// of it was used long ago. So the kernel tells of events while they come nearer, and each
// step has the cache get what the one before it has found.

// Of portKinds: only at hosts there is more to get than a frame.
const (
	ofSwitch = iota
	ofHost
)

// prepare has the kernel tell of what is frequent.
func (f *Fabric) prepare() {
	k := &f.portKinds[ofSwitch]
	out := func(a, _ int32) { f.ports[a].prefetch() }
	f.k.Soon(k.sent, out, nil)
	f.k.Soon(k.kick, out, nil)
	first := func(a, _ int32) {
		if fr := f.ports[a].wire.head; fr != nil {
			prefetch.Part(fr, 0, hopBytes)
		}
	}
	second := func(a, _ int32) {
		if fr := f.ports[a].wire.head; fr != nil && fr.next != nil {
			prefetch.Part(fr.next, 0, hopBytes)
		}
	}
	f.k.Soon(k.arrive, first, second, nil)
	k = &f.portKinds[ofHost]
	for _, kind := range []des.Kind{k.sent, k.kick} {
		f.k.Soon(kind,
			func(a, _ int32) {
				p := f.ports[a]
				p.prefetch()
				p.host.prefetchNext(0)
			},
			func(a, _ int32) { f.ports[a].host.prefetchNext(1) },
			func(a, _ int32) { f.ports[a].host.prefetchNext(2) },
			func(a, _ int32) { f.ports[a].host.prefetchNext(3) },
		)
	}
	f.k.Soon(k.arrive,
		func(a, _ int32) {
			if fr := f.ports[a].wire.head; fr != nil {
				prefetch.Part(fr, 0, headBytes)
			}
		},
		func(a, _ int32) { f.ports[a].arrives(0) },
		func(a, _ int32) { f.ports[a].arrives(1) },
		func(a, _ int32) { f.ports[a].arrives(2) },
		func(a, _ int32) { f.ports[a].arrives(3) },
		second,
	)
	f.k.Soon(f.ringKind,
		func(a, b int32) {
			if qps := f.hosts[a].rings.Look(b); len(qps) > 0 {
				prefetch.Object(&qps[0])
			}
		},
		func(a, b int32) { prefetchQPs(f.hosts[a].rings.Look(b), 0) },
		func(a, b int32) { prefetchQPs(f.hosts[a].rings.Look(b), 1) },
		func(a, b int32) { prefetchQPs(f.hosts[a].rings.Look(b), 2) },
		func(a, b int32) { prefetchQPs(f.hosts[a].rings.Look(b), 3) },
	)
}

func prefetchQPs(qps []*nic.QP, step int) {
	for _, q := range qps {
		prefetchQP(q, step)
	}
}

// prefetchQP gets a queue pair that will send, then its next request and its way, then that
// one's memory.
func prefetchQP(q *nic.QP, step int) {
	q.Prefetch(step)
	prefetchRoute(q, step)
}

// prefetchRoute gets the flow of a queue pair, then the rest of it if it is in use.
func prefetchRoute(q *nic.QP, step int) {
	if step != 1 && step != 2 {
		return
	}
	switch fl, ok := q.Route().(*flow); {
	case !ok:
	case step == 1:
		prefetch.Part(fl, 0, wayBytes)
	case fl.react.active:
		prefetch.Object(&fl.react)
	}
}

// prefetch gets the frame that is on its way out, and the next.
func (p *port) prefetch() {
	if p.tx != nil {
		prefetch.Part(p.tx, 0, hopBytes)
	}
	if fr := p.queue[control].head; fr != nil {
		prefetch.Part(fr, 0, hopBytes)
	}
	if fr := p.queue[data].head; fr != nil {
		prefetch.Part(fr, 0, hopBytes)
	}
}

// prefetchNext gets the queue pair that sends next.
func (h *Host) prefetchNext(step int) {
	if l := &h.ready; !l.empty() {
		prefetchQP(l.qps[l.first], step)
	}
}

// arrives gets what the first frame on the wire to a host needs there.
func (p *port) arrives(step int) {
	fr, h := p.wire.head, p.peer.host
	if fr == nil {
		return
	}
	if fl, ok := fr.pkt.Route.(*flow); ok && step == 0 && (fr.marked || fr.kind == notifyFrame) {
		prefetch.Object(fl)
	}
	if fr.pkt.To == nil || fr.kind != packetFrame {
		return
	}
	h.nic.Prefetch(step, &fr.pkt)
	prefetchRoute(fr.pkt.To, step)
}
