package nic

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vnet drives several NICs in virtual time on the test's goroutine: the same
// seed gives the same run.
type vnet struct {
	t     testing.TB
	rand  *rand.Rand
	now   time.Duration
	seq   int
	queue events
	hosts map[verbs.GID]*vhost
	all   []*vhost

	delay           time.Duration // of each packet
	jitter          time.Duration // on top, drawn for each: packets overtake
	drop, duplicate float64
	filter          func(p *Packet) bool // false: lost
	steps           int
}

type vhost struct {
	net       *vnet
	nic       *NIC
	gid       verbs.GID
	events    []Event
	processed func() bool   // Fabric.Processed; nil: always
	armed     time.Duration // earliest run in the queue
}

type vevent struct {
	at  time.Duration
	seq int
	h   *vhost
	p   *Packet // nil: run
	q   *QP     // ring
}

type events []vevent

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(vevent)) }
func (e *events) Pop() any {
	old := *e
	v := old[len(old)-1]
	*e = old[:len(old)-1]
	return v
}

// seed is logged, and taken from SIM_SEED to run a failure again.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("SIM_SEED"); v != "" {
		s, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("SIM_SEED=%d", s)
	return s
}

func newNet(t testing.TB, seed uint64) *vnet {
	return &vnet{t: t, rand: rand.New(rand.NewPCG(seed, 1)), hosts: make(map[verbs.GID]*vhost), delay: time.Microsecond}
}

func testAttr() verbs.DeviceAttr {
	return verbs.DeviceAttr{
		MaxQP: 1000, MaxQPWR: 4096, MaxSGE: 32, MaxInline: 512, MaxCQ: 100, MaxCQE: 65536, MaxMW: 16, MaxMR: 1000, MaxMRSize: 1 << 30, MaxPD: 10,
		MaxReads: 16, MaxDestReads: 16, Atomics: true, CompVectors: 1,
	}
}

// add makes a host; change may alter its configuration.
func (v *vnet) add(change func(*Config)) *vhost {
	h := &vhost{net: v, gid: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: byte(len(v.all) + 1)}, armed: never}
	cfg := Config{
		Attr: testAttr(), Segment: true, Rand: v.rand, Event: func(e Event) { h.events = append(h.events, e) },
		Ports: []Port{{
			PortAttr: verbs.PortAttr{State: verbs.PortActive, LinkLayer: verbs.LinkEthernet, ActiveMTU: qp.MTU4096, PKeys: 1},
			GIDs:     []GID{{GIDEntry: verbs.GIDEntry{GID: h.gid, Type: verbs.GIDRoCEv2}}},
		}},
	}
	if change != nil {
		change(&cfg)
	}
	h.nic = New(cfg, h)
	v.hosts[h.gid] = h
	v.all = append(v.all, h)
	return h
}

func (v *vnet) push(e vevent) {
	v.seq++
	e.seq = v.seq
	heap.Push(&v.queue, e)
}

func (h *vhost) Route(_ *NIC, _ verbs.GIDEntry, av *qp.AV) (Route, error) {
	return verbs.GID(av.DGID), nil
}

func (h *vhost) Processed(Route, Ticket) bool { return h.processed == nil || h.processed() }

func (h *vhost) Ring(_ *NIC, q *QP) { h.net.push(vevent{at: h.net.now, h: h.net.hostOf(q), q: q}) }

func (v *vnet) hostOf(q *QP) *vhost {
	for _, h := range v.all {
		if h.nic == q.nic {
			return h
		}
	}
	panic("no host")
}

func (h *vhost) Send(_ *NIC, p *Packet) Ticket {
	v := h.net
	dst := v.hosts[p.Route.(verbs.GID)]
	if dst == nil || v.filter != nil && !v.filter(p) || v.rand.Float64() < v.drop {
		return 0
	}
	copies := 1
	if v.rand.Float64() < v.duplicate {
		copies = 2
	}
	for range copies {
		at := v.now + v.delay
		if v.jitter > 0 {
			at += time.Duration(v.rand.Int64N(int64(v.jitter)))
		}
		c := *p
		v.push(vevent{at: at, h: dst, p: &c})
	}
	return 0
}

// ring rings a doorbell now.
func (h *vhost) ring(q *QP) {
	h.nic.Ring(q)
	h.run()
}

// run runs the NIC and plans its next run.
func (h *vhost) run() {
	v := h.net
	if h.nic.Run(v.now) {
		v.push(vevent{at: v.now, h: h})
	}
	if at, ok := h.nic.Deadline(); ok && at < h.armed {
		h.armed = at
		v.push(vevent{at: at, h: h})
	}
}

// step does the next event, false if there is none.
func (v *vnet) step() bool {
	if len(v.queue) == 0 {
		return false
	}
	if v.steps++; v.steps > 20e6 {
		v.t.Fatal("no end in sight")
	}
	e := heap.Pop(&v.queue).(vevent)
	v.now = e.at
	switch {
	case e.p != nil:
		e.h.nic.Deliver(v.now, e.p)
	case e.q != nil:
		e.h.nic.Ring(e.q)
	default:
		e.h.armed = never
	}
	e.h.run()
	return true
}

// idle runs until nothing is to come.
func (v *vnet) idle() {
	for v.step() {
	}
}

// vend is one end of a connection.
type vend struct {
	h    *vhost
	pd   *PD
	cq   *CQ
	q    *QP
	buf  []byte
	reg  *Region
	path qp.Path
}

const rights = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic

// pairOf makes two connected ends with buffers of size bytes. change may alter
// the paths.
func (v *vnet) pairOf(a, b *vhost, size int, change func(pa, pb *qp.Path)) (x, y *vend) {
	x, y = v.end(a, size, 1024), v.end(b, size, 1024)
	x.path.SendPSN, y.path.SendPSN = 0xfffffe, 0x7ffffe
	if change != nil {
		change(&x.path, &y.path)
	}
	v.join(x, y)
	return x, y
}

func (v *vnet) end(h *vhost, size, cqe int) *vend {
	e := &vend{h: h, pd: &PD{}, buf: make([]byte, size)}
	e.cq = h.nic.CreateCQ(cqe, func() {})
	e.reg = e.register(e.buf, rights)
	e.q = e.newQP(qp.Caps{SendWR: 64, RecvWR: 64, SendSGE: 32, RecvSGE: 32, Inline: 512}, e.cq)
	e.path = qp.Path{Access: rights, Global: true, MTU: qp.MTU1024, MaxReads: 16, MaxDestReads: 16}
	return e
}

func (e *vend) newQP(c qp.Caps, recv *CQ) *QP {
	q, err := e.h.nic.CreateQP(e.pd, e.cq, recv, nil, c, false)
	if err != nil {
		e.h.net.t.Fatal(err)
	}
	return q
}

func (e *vend) register(b []byte, access mr.Access) *Region {
	r, err := e.h.nic.CreateRegion(e.pd, b, access)
	if err != nil {
		e.h.net.t.Fatal(err)
	}
	return r
}

// join connects the queue pairs of two ends.
func (v *vnet) join(x, y *vend) {
	v.t.Helper()
	aim := func(e, peer *vend) {
		e.path.DestNum, e.path.DGID, e.path.RecvPSN = peer.q.num, peer.h.gid, peer.path.SendPSN
		if err := e.path.Connect(nicQP{e.q}); err != nil {
			v.t.Fatal(err)
		}
	}
	aim(x, y)
	aim(y, x)
}

// nicQP makes a core queue pair a qp.QP as far as qp.Path needs.
type nicQP struct{ *QP }

func (q nicQP) Modify(a *qp.Attr, m qp.AttrMask) error  { return q.nic.Modify(q.QP, a, m) }
func (q nicQP) Query() (qp.Attr, error)                 { return q.Attr(), nil }
func (q nicQP) Close() error                            { return nil }
func (q nicQP) PostSend(w []qp.SendWR) (int, error)     { return q.QP.PostSend(w, 1<<31) }
func (q nicQP) PostRecv(w []qp.RecvWR) (n int, e error) { return q.QP.PostRecv(w) }

func (e *vend) send(wrs ...qp.SendWR) {
	e.h.net.t.Helper()
	if n, err := e.q.PostSend(wrs, 1<<31); n != len(wrs) {
		e.h.net.t.Fatalf("post: %d of %d, %v", n, len(wrs), err)
	}
	e.h.ring(e.q)
}

func (e *vend) recv(wrs ...qp.RecvWR) {
	e.h.net.t.Helper()
	if n, err := e.q.PostRecv(wrs); n != len(wrs) {
		e.h.net.t.Fatalf("post: %d of %d, %v", n, len(wrs), err)
	}
	if e.q.NeedsRecvBell() {
		e.h.ring(e.q)
	}
}

// sge is a piece of the end's buffer.
func (e *vend) sge(off, n int) qp.SGE {
	return qp.SGE{Addr: e.reg.Addr + uint64(off), Length: uint32(n), LKey: e.reg.LKey}
}

// poll takes all completions.
func (e *vend) poll() []cq.Completion {
	var out []cq.Completion
	var buf [16]cq.Completion
	for n := e.cq.Poll(buf[:]); n > 0; n = e.cq.Poll(buf[:]) {
		out = append(out, buf[:n]...)
	}
	return out
}

// brief shows completions as "id:STATUS", in order.
func brief(cs []cq.Completion) (s string) {
	for i, c := range cs {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%d:%s", c.ID, c.Status.Name())
	}
	return s
}

// eventTypes shows the events of a host.
func (h *vhost) eventTypes() (s []string) {
	for _, e := range h.events {
		s = append(s, e.Type.String())
	}
	return s
}

func wantBrief(t testing.TB, what string, cs []cq.Completion, want string) {
	t.Helper()
	if got := brief(cs); got != want {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}
