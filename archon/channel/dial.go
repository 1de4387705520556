package channel

import (
	"context"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
)

// dial begins to set a connection up.
func (r *replica) dial(life context.Context, p core.Path) {
	ctx, cancel := context.WithTimeout(life, r.ch.cfg.Recovery.DialTimeout)
	r.lastDial++
	id := r.lastDial
	r.dials[p] = dial{id, cancel}
	r.ch.wg.Go(func() {
		defer cancel()
		d := dialed{id: id, path: p}
		d.client, d.incarnation, d.err = r.connect(ctx, p)
		select {
		case r.events <- d:
		case <-life.Done():
			d.discard()
		}
	})
}

// connect makes a connection and sees that it carries something.
func (r *replica) connect(ctx context.Context, p core.Path) (*archon.Client, uint64, error) {
	t, addr := r.ch.cfg.TCP, r.ep.TCP
	if p == core.RDMA {
		t, addr = r.ch.cfg.RDMA, r.ep.RDMA
	}
	client, err := archon.Dial(ctx, t, addr, r.ch.cfg.Service, r.ch.cfg.Client)
	if err != nil {
		return nil, 0, err
	}
	incarnation, err := client.Ping(ctx)
	if err != nil {
		client.Close()
		<-client.Done()
		return nil, 0, &pingError{err}
	}
	return client, incarnation, nil
}

// discard closes a connection that nobody wants.
func (d *dialed) discard() {
	if d.client != nil {
		d.client.Close()
		<-d.client.Done()
	}
}

// dialEnded takes the end of a set-up.
func (r *replica) dialEnded(d dialed) {
	if r.dials[d.path].id != d.id { // it was dropped meanwhile
		r.ch.wg.Go(d.discard)
		return
	}
	r.dials[d.path] = dial{}
	now := r.ch.now()
	if d.err != nil {
		r.noteFault(d.path, d.err)
		if d.path == core.TCP || r.ch.cfg.paths(&r.ep)&core.TCP == 0 { // there is no other way
			r.core.SetStarting(false)
			r.ch.ready() // for those who waited for it
		}
		r.link.DialEnded(now, d.path, reasonFor(d.path, d.err))
		return
	}
	c := &conn{r: r, client: d.client, path: d.path, received: d.client.Received()}
	c.ponged = func(*archon.Ping) { c.pinging.Store(false) }
	r.conns[d.path] = c
	if r.incarnation != 0 && r.incarnation != d.incarnation {
		r.ch.set.Restarted(&r.core)
		r.mu.Lock()
		r.restarts++
		r.mu.Unlock()
	}
	r.incarnation = d.incarnation
	r.link.DialEnded(now, d.path, core.NoReason)
}
