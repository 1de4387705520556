package channel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/pkg/errors"
)

// replica is one replica and the connections to it. Its goroutine, run, drives the
// link.
type replica struct {
	ch      *Channel
	core    core.Replica
	name    string
	ep      Endpoint
	stop    context.CancelFunc
	events  chan dialed
	use     atomic.Pointer[conn]  // for new calls
	trouble atomic.Pointer[error] // of the last set-up or connection
	drains  atomic.Bool           // the resolver says so

	attempts atomic.Uint64

	// The goroutine's.
	link        *core.Link
	conns       [core.TCP + 1]*conn // by path
	dials       [core.TCP + 1]dial
	lastDial    uint64
	spares      []*conn
	incarnation uint64

	mu       sync.Mutex // of publishing, and of what follows
	links    core.LinkStats
	fault    Reason
	restarts uint64
}

// conn is a connection.
type conn struct {
	r        *replica
	client   *archon.Client
	path     core.Path
	received uint64 // of the client, when last looked at
	sent     uint64 // likewise
	spareAt  time.Duration
	ping     archon.Ping
	pinging  atomic.Bool
	ponged   func(*archon.Ping)
}

// dial is a set-up under way.
type dial struct {
	id     uint64
	cancel context.CancelFunc
}

// dialed is the end of a set-up.
type dialed struct {
	id          uint64
	path        core.Path
	client      *archon.Client
	incarnation uint64
	err         error
}

// moved tells whether the endpoint is another one than before.
func (r *replica) moved(e *Endpoint) bool {
	return r.ep.RDMA != e.RDMA || r.ep.TCP != e.TCP || r.ep.Zone != e.Zone
}

func (r *replica) setDraining(draining bool) {
	r.drains.Store(draining)
	r.core.SetDraining(draining)
}

// run connects to the replica and keeps the connections until ctx ends.
func (r *replica) run(ctx context.Context) {
	cfg := &r.ch.cfg
	r.link = core.NewLink(&cfg.Recovery, cfg.paths(&r.ep), r.ch.newRand(maxShards+uint64(r.core.ID)))
	if cfg.RDMA != nil && r.ep.RDMA == "" {
		r.link.NoPeerRDMA()
	}
	if cfg.paths(&r.ep) == 0 {
		r.setTrouble(errors.Errorf("%s: no address of a transport that the channel may use", r.name))
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := r.ch.now()
		r.sample(now)
		do := r.link.Step(now)
		r.act(ctx, do)
		r.publish()
		timer.Reset(r.pause(now))
		rdma, tcp := r.conns[core.RDMA], r.conns[core.TCP]
		select {
		case <-ctx.Done():
		case <-timer.C:
		case d := <-r.events:
			r.dialEnded(d)
		case <-rdma.ended():
			r.lost(rdma)
		case <-tcp.ended():
			r.lost(tcp)
		}
	}
	r.shutdown()
}

// pause is how long the goroutine may sleep.
func (r *replica) pause(now time.Duration) time.Duration {
	d := r.link.Next() - r.ch.now()
	if r.conns[core.RDMA] != nil || r.conns[core.TCP] != nil || len(r.spares) > 0 {
		d = min(d, r.ch.cfg.Recovery.SampleInterval())
	}
	return max(d, 0)
}

// spareTime is how long a connection that is no longer used for new calls may keep
// those under way.
const spareTime = time.Minute

// sample looks at the connections.
func (r *replica) sample(now time.Duration) {
	for _, c := range r.conns {
		if c == nil {
			continue
		}
		received, sent := c.client.Received(), c.client.Sent()
		switch {
		case received != c.received:
			r.link.Heard(now, c.path)
		case sent != c.sent && c.pinging.Load() && !c.ping.Left():
			r.link.Busy(now, c.path)
		}
		c.received, c.sent = received, sent
	}
	kept := r.spares[:0]
	for _, c := range r.spares {
		if c.client.Outstanding() > 0 && now < c.spareAt+spareTime && c.client.Err() == nil {
			kept = append(kept, c)
			continue
		}
		r.close(c)
	}
	clear(r.spares[len(kept):])
	r.spares = kept
	if c := r.use.Load(); c != nil {
		r.noteDrain(c)
	}
}

// noteDrain keeps new calls away when the server has said that it takes none.
func (r *replica) noteDrain(c *conn) {
	select {
	case <-c.client.Draining():
		r.core.SetDraining(true)
	default:
	}
}

// act does what the link says.
func (r *replica) act(ctx context.Context, do core.LinkDo) {
	for _, p := range [...]core.Path{core.RDMA, core.TCP} {
		c := r.conns[p]
		if do.Drop&p != 0 {
			if c != nil {
				r.forget(c)
				r.setTrouble(errors.Errorf("%s over %v: no answer to a ping for %v", r.name, p, r.ch.cfg.Recovery.PingTimeout))
				r.close(c)
			}
			if d := r.dials[p]; d.cancel != nil {
				d.cancel()
				r.dials[p] = dial{}
			}
		}
		if do.Spare&p != 0 && c != nil {
			r.forget(c)
			c.spareAt = r.ch.now()
			r.spares = append(r.spares, c)
		}
		if do.Dial&p != 0 {
			r.dial(ctx, p)
		}
		if do.Ping&p != 0 && r.conns[p] != nil {
			r.conns[p].sendPing()
		}
	}
}

// forget takes a connection out of use.
func (r *replica) forget(c *conn) {
	r.unpublish(c)
	r.conns[c.path] = nil
}

// close ends a connection; calls on it end as lost.
func (r *replica) close(c *conn) {
	c.client.Close()
	r.ch.wg.Go(func() { <-c.client.Done() })
}

// sendPing asks whether the server lives, unless an earlier ping still does. It has no
// time-out of its own: that something came is seen by sample, and the link decides.
func (c *conn) sendPing() {
	if c.pinging.Swap(true) {
		return
	}
	if c.client.GoPing(&c.ping, c.ponged) != nil {
		c.pinging.Store(false)
	}
}

// ended is closed when the connection has ended; never for none.
func (c *conn) ended() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.client.Done()
}

// lost tells the link that a connection has ended.
func (r *replica) lost(c *conn) {
	err := c.client.Err()
	r.forget(c)
	r.close(c)
	r.noteFault(c.path, err)
	r.link.Lost(r.ch.now(), c.path, reasonFor(c.path, err))
}

func reasonFor(p core.Path, err error) Reason {
	if p == core.TCP {
		return core.Other
	}
	return ReasonOf(err)
}

// faultHearer is a transport that wants to know why its connections failed.
type faultHearer interface{ Fault(err error) }

func (r *replica) noteFault(p core.Path, err error) {
	r.setTrouble(errors.WithMessagef(err, "%s over %v", r.name, p))
	if t, ok := r.ch.cfg.RDMA.(faultHearer); ok && p == core.RDMA {
		t.Fault(err)
	}
}

func (r *replica) setTrouble(err error) { r.trouble.Store(&err) }

// publish lets calls use the connection that the link chose.
func (r *replica) publish() {
	c := r.conns[r.link.Use()]
	if c != nil && c.client.Err() != nil {
		c = nil // its end is about to be seen
	}
	r.mu.Lock()
	was := r.core.Ready()
	if r.use.Load() != c {
		r.use.Store(c)
		r.core.SetDraining(r.drains.Load())
	}
	r.core.SetReady(c != nil)
	if c != nil {
		r.core.SetStarting(false)
	}
	r.links, r.fault = *r.link.Stats(), r.link.Fault()
	r.mu.Unlock()
	if c != nil && !was {
		r.ch.ready()
	}
}

// unpublish keeps new calls away from a connection that has ended.
func (r *replica) unpublish(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.use.Load() == c {
		r.use.Store(nil)
		r.core.SetReady(false)
	}
}

// shutdown ends everything: at once with the channel, else when the calls under way
// have ended.
func (r *replica) shutdown() {
	list := r.spares
	for _, c := range r.conns {
		if c != nil {
			r.forget(c)
			list = append(list, c)
		}
	}
	r.core.SetReady(false)
	for _, c := range list {
		c.spareAt = r.ch.now()
	}
	tick := time.NewTicker(r.ch.cfg.Recovery.SampleInterval())
	defer tick.Stop()
	for r.spares = list; len(r.spares) > 0 && r.ch.life.Err() == nil; {
		select {
		case <-tick.C:
			r.sample(r.ch.now())
		case <-r.ch.life.Done():
		}
	}
	for _, c := range r.spares {
		r.close(c)
	}
	// Set-ups under way see their context end, and close what they made.
}
