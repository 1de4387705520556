package scenario

import (
	"cmp"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/cluster"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// Transports without an engine: what a program that posts to queue pairs has.
const (
	rcTransport = "rc" // SENDs of a reliable connection
	udTransport = "ud" // unreliable datagrams, as many as the message takes
)

// verbs is a network of such programs. Their processors take no time.
type verbs struct {
	f    *fabric.Fabric
	ud   bool
	mtu  int
	s    *Scenario
	poll des.Kind
	ends []*rawEnd
	all  []byte            // memory of every host, if messages are spread over it
	regs map[int]mr.Region // of hosts
}

func newVerbs(s *Scenario, v *Variant) (*verbs, error) {
	f, err := s.buildFabric(v)
	if err != nil {
		return nil, err
	}
	n := &verbs{f: f, ud: v.Transport == udTransport, mtu: mtuOf(v.mtu(s)).Bytes(), s: s, all: make([]byte, s.Workload.MemoryBytes), regs: map[int]mr.Region{}}
	n.poll = f.Kernel().Handle(func(a, _ int32) { n.ends[a].poll() })
	if n.ud {
		for i := range f.Hosts() {
			f.Host(i).HandleDatagrams(func(_ *fabric.Host, d *fabric.Datagram) {
				if done, ok := d.Body.(func()); ok {
					done() // the last of a message
				}
			})
		}
	}
	return n, nil
}

func (n *verbs) fabric() *fabric.Fabric { return n.f }

func (n *verbs) settle() error { return nil }

// fault does what a crash means: the host's link is cut, which is all that its peers see.
func (n *verbs) fault(f *Fault, _ bool) {
	if f.Kind == crashFault {
		n.f.Host(*f.Host).SetDown(true)
	}
}

func (n *verbs) counters(*Run) {}

func (n *verbs) dial(from, to int) (*line, error) {
	l := &line{hosts: [2]int{from, to}}
	if n.ud {
		l.send = func(end, size int, done func(error)) error {
			a, b := n.f.Host(l.hosts[end]), n.f.Host(l.hosts[1-end])
			arrived := func() {
				l.got[1-end](size)
				if done != nil {
					done(nil)
				}
			}
			for left := size; left > n.mtu; left -= n.mtu {
				a.SendUD(b, n.mtu, nil)
			}
			a.SendUD(b, (size-1)%n.mtu+1, arrived)
			return nil
		}
		return l, nil
	}
	var ends [2]*rawEnd
	for i, h := range l.hosts {
		var err error
		if ends[i], err = n.end(h); err != nil {
			return nil, err
		}
		ends[i].got = func(size int) { l.got[i](size) }
	}
	for i, e := range ends {
		p := qp.Path{
			Global: true, MTU: mtuOf(n.mtu), DGID: ends[1-i].h.GID(), DestNum: ends[1-i].q.Num(),
			AckTimeout: qp.AckTimeout(n.s.Engine.AckTimeout), RetryCount: uint8(n.s.Engine.RetryCount),
		}
		if err := p.Connect(e.q); err != nil {
			return nil, errors.Wrapf(err, "host %d to host %d", from, to)
		}
		if err := e.receive(rawDepth); err != nil {
			return nil, err
		}
	}
	l.send = func(end, size int, done func(error)) error { return ends[end].send(size, done) }
	return l, nil
}

const (
	rawDepth   = 256     // requests and receives of an end
	rawMessage = 1 << 20 // longest
)

// sizes are all that messages have.
func (w *Workload) sizes() (list []Sizes) {
	switch w.Kind {
	case flowsKind:
		for i := range w.Flows {
			list = append(list, cmp.Or(w.Flows[i].Size, w.Size))
		}
		return list
	case trainingKind:
		list = []Sizes{{Fixed: w.ReplyBytes}, {Fixed: w.VictimBytes}}
	case inferenceKind:
		list = []Sizes{{Fixed: w.RequestBytes}}
	}
	return append(list, w.Size)
}

// receives is what a receive has room for: as little as there can be.
func (w *Workload) receives() (n int) {
	for _, z := range w.sizes() {
		n = max(n, cmp.Or(z.Fixed, rawMessage))
	}
	return n
}

// checkRaw refuses messages that receives may have no room for.
func (w *Workload) checkRaw() error {
	for _, z := range w.sizes() {
		if z.Fixed > rawMessage || z.P99 > rawMessage/4 {
			return errors.Errorf("workload: messages have up to %d bytes, want at most %d with transport rc, %d if sizes differ: it is what its receives have room for", max(z.Fixed, z.P99), rawMessage, rawMessage/4)
		}
	}
	return nil
}

// rawEnd is a queue pair with memory for all its messages, in the same place or at random.
type rawEnd struct {
	n   *verbs
	h   *fabric.Host
	q   *fabric.QP
	cq  *nic.CQ
	reg mr.Region
	rng *des.Stream // nil: in the same place
	got func(size int)

	waits   des.Table[func(error)]
	posted  int         // requests that did not end
	backlog []qp.SendWR // for which the queue has no room yet
}

func (n *verbs) end(host int) (*rawEnd, error) {
	e := &rawEnd{n: n, h: n.f.Host(host)}
	var err error
	if e.reg, err = n.memory(e.h); err != nil {
		return nil, err
	}
	i := int32(len(n.ends))
	if len(n.all) > 0 {
		rng := des.NewStream(n.s.Seed, streamPlace, uint64(i), 0)
		e.rng = &rng
	}
	e.cq = e.h.NewCQ(2*rawDepth, func() { n.f.Kernel().At(n.f.Kernel().Now(), n.poll, i, 0) })
	e.cq.Arm(false)
	if e.q, err = e.h.NewQP(e.cq, e.cq, qp.Caps{SendWR: rawDepth, RecvWR: rawDepth, SendSGE: 1, RecvSGE: 1}); err != nil {
		return nil, err
	}
	n.ends = append(n.ends, e)
	return e, nil
}

// streamPlace is of random places in memory.
const streamPlace = 1<<20 + 1

// memory is that of one more queue pair of a host.
func (n *verbs) memory(h *fabric.Host) (mr.Region, error) {
	if len(n.all) == 0 {
		return h.Register(make([]byte, rawMessage), mr.LocalWrite)
	}
	reg, ok := n.regs[h.ID()]
	var err error
	if !ok {
		reg, err = h.Register(n.all, mr.LocalWrite)
		n.regs[h.ID()] = reg
	}
	return reg, err
}

func (e *rawEnd) sge(size int) []qp.SGE {
	addr := e.reg.Addr
	if e.rng != nil {
		addr += uint64(cluster.Place(e.rng, int(e.reg.Length), size))
	}
	return []qp.SGE{{Addr: addr, Length: uint32(size), LKey: e.reg.LKey}}
}

func (e *rawEnd) receive(n int) error {
	for range n {
		if _, err := e.q.PostRecv([]qp.RecvWR{{SGEs: e.sge(e.n.s.Workload.receives())}}); err != nil {
			return err
		}
	}
	return nil
}

func (e *rawEnd) send(size int, done func(error)) error {
	wr := qp.SendWR{ID: uint64(e.waits.Put(done)), Opcode: qp.Send, Flags: qp.Signaled, SGEs: e.sge(size)}
	if e.posted == rawDepth {
		e.backlog = append(e.backlog, wr)
		return nil
	}
	e.posted++
	_, err := e.q.PostSend([]qp.SendWR{wr})
	return err
}

// ended is one that did.
func (e *rawEnd) ended() {
	e.posted--
	if len(e.backlog) > 0 {
		wr := e.backlog[0]
		if _, err := e.q.PostSend([]qp.SendWR{wr}); err == nil {
			e.posted++
			e.backlog = e.backlog[1:]
		}
	}
}

func (e *rawEnd) poll() {
	var cs [16]cq.Completion
	e.cq.Arm(false)
	for n := e.cq.Poll(cs[:]); n > 0; n = e.cq.Poll(cs[:]) {
		for i := range cs[:n] {
			c := &cs[i]
			switch {
			case c.Opcode != cq.Recv:
				e.ended()
				if done := e.waits.Take(int32(c.ID)); done != nil {
					done(c.Err())
				}
			case c.Status == cq.Success:
				_ = e.receive(1) // a queue pair that failed takes none, and needs none
				e.got(int(c.ByteLen))
			}
		}
	}
}
