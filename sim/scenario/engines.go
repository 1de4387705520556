package scenario

import (
	"cmp"
	"strconv"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/cluster"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

func mtuOf(bytes int) qp.MTU {
	m := qp.MTU256
	for ; m.Bytes() < bytes; m++ {
	}
	return m
}

// engines is a network of ByteExpress engines.
type engines struct {
	c       *cluster.Cluster
	s       *Scenario
	v       *Variant
	joined  map[[2]int]bool // pairs that have an engine; looked up only
	lines   []*engineLine
	waiting int // lines that are not open
	err     error
}

// engineLine is a connection with its sockets.
type engineLine struct {
	ends [2]end // Users of the sockets
	line
	socks [2]*core.Socket
}

// end is what a socket knows: its line and which end of it it is.
type end struct {
	l *engineLine
	i int
}

func newEngines(s *Scenario, v *Variant) (*engines, error) {
	f, err := s.buildFabric(v)
	if err != nil {
		return nil, err
	}
	e := &s.Engine
	var costs *hostcpu.EngineCosts
	if !e.FreeCPU {
		c := hostcpu.DefaultEngine().Percent(e.CPUPercent)
		costs = &c
	}
	c, err := cluster.New(f, cluster.Config{
		SendDepth: e.SendDepth, RecvDepth: e.RecvDepth, EagerBytes: e.EagerBytes, Fragment: e.FragmentBytes,
		Window: cmp.Or(v.WindowBytes, maxWindow), WindowTarget: v.WindowTarget.time().Duration(), NodeWindow: v.NodeWindowBytes, InboundBytes: e.InboundBytes,
		MaxMessage: maxMessage, SpreadBytes: s.Workload.MemoryBytes, Get: v.Get, MTU: mtuOf(v.mtu(s)), StepDelay: e.StepDelay.time(), Costs: costs, Threads: e.Threads,
		AckTimeout: qp.AckTimeout(e.AckTimeout), RetryCount: uint8(e.RetryCount),
		Keepalive: e.Keepalive.time().Duration(), PeerTimeout: e.PeerTimeout.time().Duration(),
	})
	if err != nil {
		return nil, err
	}
	n := &engines{c: c, s: s, v: v, joined: map[[2]int]bool{}}
	for i := range f.Hosts() {
		app := &c.Node(i).App
		app.Opened = n.opened
		app.Incoming = n.incoming
		app.Message = func(k *core.Socket, b []byte) {
			if e := k.User.(*end); e.l.got[e.i] != nil {
				e.l.got[e.i](len(b))
			}
		}
		app.Closed = func(k *core.Socket, err error) {
			if e := k.User.(*end); e.l.failed != nil {
				failed := e.l.failed
				e.l.failed = nil
				failed(err)
			}
		}
	}
	return n, nil
}

func (n *engines) fabric() *fabric.Fabric { return n.c.Fabric() }

// dial opens a socket, on an engine that the hosts share unless the variant has one
// for each.
func (n *engines) dial(from, to int) (*line, error) {
	pair := [2]int{min(from, to), max(from, to)}
	var err error
	switch {
	case n.v.QPPerSocket:
		err = n.c.ConnectMore(from, to)
	case !n.joined[pair]:
		n.joined[pair] = true
		err = n.c.Connect(from, to)
	}
	if err != nil {
		return nil, err
	}
	k, err := n.c.Node(from).Open(to, strconv.Itoa(len(n.lines)))
	if err != nil {
		return nil, errors.Wrapf(err, "host %d to host %d", from, to)
	}
	l := &engineLine{line: line{hosts: [2]int{from, to}}}
	l.ends = [2]end{{l, 0}, {l, 1}}
	l.socks[0] = k
	k.User = &l.ends[0]
	l.send = func(end, size int, done func(error)) error {
		return n.c.Node(l.hosts[end]).SendBytes(l.socks[end], size, done)
	}
	n.lines = append(n.lines, l)
	n.waiting++
	return &l.line, nil
}

// incoming joins the socket at the other end to its line, which its service names.
func (n *engines) incoming(k *core.Socket, service string) {
	i, _ := strconv.Atoi(service)
	l := n.lines[i]
	l.socks[1] = k
	k.User = &l.ends[1]
	if n.v.Get {
		n.fail(k.Engine().SetGet(k, true))
	}
}

func (n *engines) opened(k *core.Socket, err error) {
	n.waiting--
	if err == nil && n.v.Get {
		err = k.Engine().SetGet(k, true)
	}
	n.fail(err)
}

func (n *engines) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

func (n *engines) settle() error {
	for n.waiting > 0 && n.err == nil {
		if ran, err := n.c.Fabric().Kernel().Step(); !ran {
			return cmp.Or(err, errors.New("connections do not come up"))
		}
	}
	return errors.Wrap(n.err, "connect")
}

func (n *engines) counters(r *Run) {
	st := n.c.Stats()
	r.count("messages_sent", st.Sent)
	r.count("eager_messages", st.Eager)
	r.count("rendezvous_messages", st.Rendezvous)
	r.count("offered_messages", st.Offered)
	r.count("fragments", st.Fragments)
	r.count("reads", st.Reads)
	r.count("doorbells", st.Doorbells)
	r.count("requests", st.Requests)
	r.count("credit_stalls", st.CreditStalls)
	r.count("credit_stall_ns", uint64(st.CreditStall))
	r.count("window_stalls", st.WindowStalls)
	r.count("window_stall_ns", uint64(st.WindowStall))
	r.count("slot_stalls", st.SlotStalls)
	r.count("slot_stall_ns", uint64(st.SlotStall))
	r.count("rnr", st.RNR)
	r.count("failures", st.Failures)
	busy, cache := des.Time(0), fabric.CacheStats{}
	for i := range n.fabric().Hosts() {
		if cpu := n.c.Node(i).CPU(); cpu != nil {
			busy += cpu.Busy(hostcpu.Engine)
		}
		cache.Add(n.fabric().Host(i).Caches().Contexts)
	}
	r.count("cpu_ns", uint64(busy/des.Nanosecond))
	r.count("context_hits", cache.Hits)
	r.count("context_misses", cache.Misses)
}
