package cluster

import (
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// App is what the application of a node wants to hear; what is nil is not told.
type App struct {
	// Opened ends an Open.
	Opened func(k *core.Socket, err error)
	// Incoming tells of a socket that a peer opened. It is taken.
	Incoming func(k *core.Socket, service string)
	// Message brings a message. The bytes are the node's again on return.
	Message func(k *core.Socket, b []byte)
	// Closed is the last that is heard of a socket that was open.
	Closed func(k *core.Socket, err error)
	// Failed tells that the engine to a peer ended.
	Failed func(peer int, err error)
}

// Node drives the engines of one host.
type Node struct {
	// App may be set before the cluster runs.
	App App

	c       *Cluster
	host    *fabric.Host
	threads []*thread
	mem     *memory
	quota   quota
	bound   *core.Cap
	delay   des.Time // of a step
	crashed bool
	engines []*engine
	toPeer  map[int]*engine // looked up only
	later   []note
	first   int // of later

	processor
}

// engine is an engine on its node. It is the core's handler.
type engine struct {
	core    *core.Engine
	qp      *fabric.QP
	n       *Node
	t       *thread
	armed   time.Duration // when it is called by itself
	num     int32
	peer    int32
	isDirty bool
	isDown  bool
}

// note is something that the application is to be told.
type note struct {
	what noteKind
	sock *core.Socket
	e    *engine // noteMessage: of the socket
	text string
	buf  []byte
	held int // bytes of the quota
	err  error
	peer int
	done func(error)
}

type noteKind uint8

const (
	noteOpened noteKind = iota
	noteIncoming
	noteMessage
	noteClosed
	noteFailed
	noteDone
)

func newNode(c *Cluster, h *fabric.Host, bulk []byte) (*Node, error) {
	n := &Node{c: c, host: h, delay: c.cfg.StepDelay, toPeer: map[int]*engine{}, quota: quota{limit: c.cfg.QuotaBytes}}
	if c.cfg.Costs != nil {
		n.cpu, n.costs = hostcpu.New(c.cfg.Threads+1), c.cfg.Costs
	}
	n.mem = &memory{host: h, limit: c.cfg.MemoryBytes, bulk: bulk, bulkFrom: c.cfg.EagerBytes}
	if bulk != nil {
		var err error
		if n.mem.bulkKey, err = h.Register(bulk, access); err != nil {
			return nil, err
		}
		n.mem.spread, n.mem.places = c.cfg.SpreadBytes, des.NewStream(c.f.Seed(), streamPlace, uint64(h.ID()), 0)
	}
	if c.cfg.NodeWindow > 0 {
		n.bound = core.NewCap(c.cfg.NodeWindow, func(h core.Handler) {
			n.touch(h.(*engine))
		})
	}
	var all *core.Inbound
	if c.cfg.WindowTarget > 0 {
		all = core.NewInbound(c.cfg.InboundBytes, c.cfg.Fragment*3/4, uint64(h.ID()), n.admit)
	}
	for i := range c.cfg.Threads {
		t := &thread{n: n, num: i, armed: true, scratch: core.NewScratch(c.cfg.SendDepth, c.cfg.RecvDepth, c.cfg.segments(), exactly{n.mem})}
		if all != nil {
			t.arrivals = core.NewArrivals(all, func(h core.Handler) { n.touch(h.(*engine)) })
		}
		t.cq = h.NewSinkCQ(t.completed)
		t.cq.Owner = t
		n.threads = append(n.threads, t)
	}
	return n, nil
}

// admit has messages that wait for others be answered, by all threads.
func (n *Node) admit() {
	for _, t := range n.threads {
		t.arrivals.Admit(n.now())
	}
}

// ID is the node's number.
func (n *Node) ID() int { return n.host.ID() }

// Host is the machine that the node is on.
func (n *Node) Host() *fabric.Host { return n.host }

// Held is how many buffers are in use, and how many bytes of the quota.
func (n *Node) Held() (buffers, quota int) { return n.mem.held(), n.quota.used }

// Stats adds up the counters of the node's engines.
func (n *Node) Stats() (s core.Stats) {
	for _, e := range n.engines {
		t := e.core.Stats()
		s.Add(&t)
	}
	return s
}

func (n *Node) newEngine(peer int, initiator bool) (*engine, error) {
	cfg, t := &n.c.cfg, n.threads[len(n.engines)%len(n.threads)]
	q, err := n.host.NewQP(t.cq, t.cq, qp.Caps{SendWR: cfg.SendDepth, RecvWR: cfg.RecvDepth, SendSGE: cfg.segments(), RecvSGE: 2})
	if err != nil {
		return nil, err
	}
	e := &engine{n: n, t: t, qp: q, num: int32(len(n.engines)), peer: int32(peer), armed: core.Never}
	n.mem.exact = true
	e.core, err = core.NewEngine(cfg.engine(int(e.num), initiator, n.bound, t), q, n.mem, &n.quota, e)
	n.mem.exact = false
	if err != nil {
		return nil, err
	}
	n.engines = append(n.engines, e)
	n.toPeer[peer] = e
	return e, nil
}

// Engine is the newest engine to a peer, nil if there was none.
func (n *Node) Engine(peer int) *core.Engine {
	if e := n.toPeer[peer]; e != nil {
		return e.core
	}
	return nil
}

// arm sees to it that the engine is called at its deadline. An earlier event that
// is left over costs one look.
func (e *engine) arm(now time.Duration) {
	if e.isDown {
		return
	}
	if d := e.core.Deadline(); d < e.armed {
		e.armed = max(d, now)
		e.n.c.k.At(des.Of(e.armed), e.n.c.tickKind, int32(e.n.ID()), e.num)
	}
}

// tick calls an engine whose deadline may have come.
func (n *Node) tick(num int32) {
	e := n.engines[num]
	now := n.c.k.Now().Duration()
	if e.armed > now || e.isDown || n.crashed {
		return
	}
	e.armed = core.Never
	if e.core.Deadline() <= now {
		e.core.Tick(now)
		n.touch(e)
		n.tell()
	} else {
		e.arm(now)
	}
}

// tell calls the application, or has it called soon.
func (n *Node) tell() {
	if n.cpu != nil {
		n.tellSoon()
		return
	}
	for n.first < len(n.later) {
		n.tellNext()
	}
	n.later, n.first = n.later[:0], 0
}

// tellNext tells of the first note.
func (n *Node) tellNext() {
	l := n.later[n.first]
	n.later[n.first] = note{}
	n.first++
	a := &n.App
	switch l.what {
	case noteOpened:
		if a.Opened != nil {
			a.Opened(l.sock, l.err)
		}
	case noteIncoming:
		if a.Incoming != nil {
			a.Incoming(l.sock, l.text)
		}
	case noteMessage:
		if a.Message != nil {
			a.Message(l.sock, l.buf)
		}
		n.mem.Free(l.buf)
		l.sock.Release(l.held)
		e := l.sock.Engine()
		e.Taken(l.sock, 1)
		if e.Held() > 0 {
			e.Retry(n.c.k.Now().Duration())
		}
		if n.cpu != nil { // outside of a step
			n.touch(n.of(l.sock))
		}
	case noteClosed:
		if a.Closed != nil {
			a.Closed(l.sock, l.err)
		}
	case noteFailed:
		if a.Failed != nil {
			a.Failed(l.peer, l.err)
		}
	case noteDone:
		l.done(l.err)
	}
}
