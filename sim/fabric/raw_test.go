package fabric

import (
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/nic"
)

// end is one end of a connection that a test drives without an engine.
type end struct {
	h   *Host
	q   *QP
	cq  *nic.CQ
	buf []byte
	reg mr.Region
	// done is called for each completion, by an event at the time of the first.
	done func(c cq.Completion)
	kind des.Kind
}

func (f *Fabric) end(t testing.TB, host, size int) *end {
	t.Helper()
	e := &end{h: f.Host(host), buf: make([]byte, size)}
	var err error
	if e.reg, err = e.h.Register(e.buf, mr.LocalWrite|mr.RemoteWrite|mr.RemoteRead); err != nil {
		t.Fatal(err)
	}
	e.kind = f.k.Handle(func(int32, int32) { e.poll() })
	e.cq = e.h.NewCQ(4096, func() { f.k.At(f.k.Now(), e.kind, 0, 0) })
	e.cq.Arm(false)
	if e.q, err = e.h.NewQP(e.cq, e.cq, qp.Caps{SendWR: 512, RecvWR: 512, SendSGE: 1, RecvSGE: 1, Inline: 64}); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *end) poll() {
	var cs [16]cq.Completion
	e.cq.Arm(false)
	for n := e.cq.Poll(cs[:]); n > 0; n = e.cq.Poll(cs[:]) {
		for _, c := range cs[:n] {
			if e.done != nil {
				e.done(c)
			}
		}
	}
}

// join connects two hosts by a queue pair with buffers of size bytes.
func (f *Fabric) join(t testing.TB, a, b, size int, change func(*qp.Path)) (x, y *end) {
	t.Helper()
	x, y = f.end(t, a, size), f.end(t, b, size)
	for _, p := range [][2]*end{{x, y}, {y, x}} {
		path := qp.Path{
			Access: mr.RemoteWrite | mr.RemoteRead, Global: true, MTU: f.cfg.NIC.MTU, MaxReads: 16, MaxDestReads: 16,
			DGID: p[1].h.GID(), DestNum: p[1].q.Num(),
		}
		if change != nil {
			change(&path)
		}
		if err := path.Connect(p[0].q); err != nil {
			t.Fatal(err)
		}
	}
	return x, y
}

func (e *end) sge(n int) []qp.SGE {
	return []qp.SGE{{Addr: e.reg.Addr, Length: uint32(n), LKey: e.reg.LKey}}
}

// write posts a signaled WRITE of n bytes to the peer.
func (e *end) write(t testing.TB, peer *end, n int) {
	t.Helper()
	w := qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, SGEs: e.sge(n), RemoteAddr: peer.reg.Addr, RKey: peer.reg.RKey}
	if _, err := e.q.PostSend([]qp.SendWR{w}); err != nil {
		t.Fatal(err)
	}
}

// stream keeps depth WRITEs of size bytes posted, for ever.
func (e *end) stream(t testing.TB, peer *end, size, depth int) {
	e.done = func(c cq.Completion) {
		if c.Status != cq.Success {
			t.Errorf("host %d: %v", e.h.id, c.Err())
			return
		}
		e.write(t, peer, size)
	}
	for range depth {
		e.write(t, peer, size)
	}
}

func runTo(t testing.TB, f *Fabric, until des.Time) {
	t.Helper()
	if err := f.k.Run(until); err != nil {
		t.Fatal(err)
	}
	f.check(t)
}

// check holds the fabric to its accounts.
func (f *Fabric) check(t testing.TB) {
	t.Helper()
	if c := f.Counts(); !c.Conserved() {
		t.Errorf("at %d ps packets: %+v", f.k.Now(), c)
	}
	for _, s := range f.switches {
		held, over, ingress := 0, 0, 0
		for _, p := range s.ports {
			over += p.over
			ingress += p.ingress
			for c := range p.queue {
				for fr := p.queue[c].head; fr != nil; fr = fr.next {
					held += fr.cells()
				}
			}
			if p.tx != nil && p.tx.kind != pauseFrame {
				held += p.tx.cells()
			}
			if p.over > p.headroom || p.ingress < 0 {
				t.Errorf("switch %d port %d: %d bytes, %d of %d in headroom", s.id, p.id, p.ingress, p.over, p.headroom)
			}
		}
		if s.used+s.over != held || s.over != over || s.used < 0 {
			t.Errorf("switch %d holds %d bytes, its accounts say %d and %d", s.id, held, s.used, s.over)
		}
	}
}

// goodput is the payload that a host takes over a span after a warm-up, in Gb/s.
func goodput(t testing.TB, f *Fabric, host int, warm, span des.Time) float64 {
	t.Helper()
	runTo(t, f, warm)
	before := f.Host(host).Stats().BytesReceived
	runTo(t, f, warm+span)
	return float64(f.Host(host).Stats().BytesReceived-before) * 8 / (float64(span) / float64(des.Second)) / 1e9
}

// near reports whether got is within a share of want.
func near(got, want, share float64) bool { return got >= want*(1-share) && got <= want*(1+share) }
