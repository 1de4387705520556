package cluster

import (
	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
)

// Cluster is a node on each host of a fabric.
type Cluster struct {
	f     *fabric.Fabric
	k     *des.Kernel
	cfg   Config
	nodes []*Node
	psns  des.Stream

	stepKind, tickKind, pollKind, tellKind des.Kind
}

// New puts a node on every host, or names a value of the configuration that cannot be. Where the fabric leaves WRITEs uncopied, all buffers
// of messages above the eager limit are the same memory.
func New(f *fabric.Fabric, cfg Config) (*Cluster, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	c := &Cluster{f: f, k: f.Kernel(), cfg: cfg, psns: des.NewStream(f.Seed(), streamPSN, 0, 0)}
	c.pollKind = c.k.Handle(func(a, b int32) { c.nodes[a].threads[b].poll() })
	c.tellKind = c.k.Handle(func(a, b int32) { c.nodes[a].tellUpTo(uint32(b)) })
	c.stepKind = c.k.Handle(func(a, b int32) { c.nodes[a].threads[b].step() })
	var step [5]func(a, b int32)
	for i := range step {
		step[i] = func(a, b int32) { c.nodes[a].threads[b].soon(i) }
	}
	c.k.Soon(c.stepKind, step[:]...)
	c.k.Soon(c.pollKind,
		func(a, b int32) { c.nodes[a].threads[b].soonPoll(0) },
		func(a, b int32) { c.nodes[a].threads[b].soonPoll(1) },
		nil,
	)
	c.k.Soon(c.tellKind,
		func(a, _ int32) { c.nodes[a].soonTell(0) },
		func(a, _ int32) { c.nodes[a].soonTell(1) },
		func(a, _ int32) { c.nodes[a].soonTell(2) },
		func(a, _ int32) { c.nodes[a].soonTell(3) },
	)
	c.tickKind = c.k.Handle(func(a, b int32) { c.nodes[a].tick(b) })
	var bulk []byte
	if f.SkipsWrites() {
		bulk = make([]byte, max(cfg.MaxMessage, cfg.SpreadBytes))
	}
	for i := range f.Hosts() {
		n, err := newNode(c, f.Host(i), bulk)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

// streamPSN is the kind of the random stream of first PSNs; those of package fabric
// are small.
const streamPSN = 1 << 16

// streamPlace is that of the places of messages.
const streamPlace = streamPSN + 1

// Node gives the node of a host.
func (c *Cluster) Node(i int) *Node { return c.nodes[i] }

// Fabric is what the nodes are on.
func (c *Cluster) Fabric() *fabric.Fabric { return c.f }

// Now is the time.
func (c *Cluster) Now() des.Time { return c.k.Now() }

// Run lets time pass up to the given moment, or, with des.Never, until nothing is to
// come. The error is a *des.StuckError.
func (c *Cluster) Run(until des.Time) error { return c.k.Run(until) }

// At calls f at the given time.
func (c *Cluster) At(t des.Time, f func()) { c.k.Call(t, f) }

// Connect makes an engine on each of two nodes and joins them. Node a counts as the
// one that dialed. An engine that failed before is replaced.
func (c *Cluster) Connect(a, b int) error {
	if err := c.checkPair(a, b); err != nil {
		return err
	}
	for _, n := range [2]int{a, b} {
		if old := c.nodes[n].toPeer[a+b-n]; old != nil && old.core.Up() {
			return errors.Errorf("connect %d to %d: node %d has an engine to node %d", a, b, n, a+b-n)
		}
	}
	return c.join(a, b)
}

// ConnectMore is Connect, but nodes that have engines to each other get one more,
// which Open uses from now on.
func (c *Cluster) ConnectMore(a, b int) error {
	if err := c.checkPair(a, b); err != nil {
		return err
	}
	return c.join(a, b)
}

func (c *Cluster) checkPair(a, b int) error {
	if a == b || min(a, b) < 0 || max(a, b) >= len(c.nodes) {
		return errors.Errorf("connect %d to %d: want two of %d nodes", a, b, len(c.nodes))
	}
	return nil
}

func (c *Cluster) join(a, b int) error {
	ends := [2]*Node{c.nodes[a], c.nodes[b]}
	var es [2]*engine
	var paths [2]qp.Path
	reads := uint8(1) // what is not used takes room too
	if c.cfg.Get {
		reads = 16
	}
	for i, n := range ends {
		e, err := n.newEngine(ends[1-i].ID(), i == 0)
		if err != nil {
			return errors.Wrapf(err, "connect %d to %d", a, b)
		}
		es[i] = e
		paths[i] = qp.Path{
			Access: access, SendPSN: qp.PSN(c.psns.N(1 << 24)), Global: true, MTU: c.cfg.MTU, MaxReads: reads, MaxDestReads: reads,
			AckTimeout: c.cfg.AckTimeout, RetryCount: c.cfg.RetryCount, RNRTimer: c.cfg.RNRTimer,
		}
	}
	for i, e := range es {
		p, peer := &paths[i], ends[1-i]
		p.DestNum, p.RecvPSN, p.DGID = es[1-i].core.QP().Num(), paths[1-i].SendPSN, peer.host.GID()
		if err := p.ToInit(e.core.QP()); err != nil {
			return errors.Wrapf(err, "connect %d to %d", a, b)
		}
		err := e.core.Prepare()
		for _, step := range []func(qp.QP) error{p.ToRTR, p.ToRTS} {
			if err == nil {
				err = step(e.core.QP())
			}
		}
		if err != nil {
			return errors.Wrapf(err, "connect %d to %d", a, b)
		}
	}
	now := c.k.Now().Duration()
	for i, e := range es {
		e.core.Start(now)
		ends[i].touch(e)
	}
	return nil
}

// Stats adds up the counters of all engines that there ever were.
func (c *Cluster) Stats() (s core.Stats) {
	for _, n := range c.nodes {
		t := n.Stats()
		s.Add(&t)
	}
	return s
}
