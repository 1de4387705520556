package ps

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel"
)

// way is how a client reaches one shard: a connection, or a channel to its replicas.
type way struct {
	conn     *archon.Client
	ch       *channel.Channel
	number   *atomic.Uint64 // of pushes; another way to the same shard goes on with it
	replicas *replicas      // of ch, by a map; nil: ch has a resolver of its own
	layouts  int            // that it is in; the follower's lock
}

// replicas is a channel.Resolver of a list that is set.
type replicas struct {
	mu   sync.Mutex
	list []channel.Endpoint
	tell func([]channel.Endpoint, error)
}

func (r *replicas) set(list []channel.Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tell != nil && !slices.Equal(r.list, list) {
		r.tell(list, nil)
	}
	r.list = list
}

func (r *replicas) Watch(ctx context.Context, update func([]channel.Endpoint, error)) {
	r.mu.Lock()
	r.tell = update
	update(r.list, nil)
	r.mu.Unlock()
	<-ctx.Done()
}

// alloc makes room for a request of size bytes.
func (w *way) alloc(p *part, size int) (err error) {
	if w.conn != nil {
		if p.call.Request, err = w.conn.Alloc(size); err == nil {
			p.request = p.call.Request.Payload()
		}
		return err
	}
	if cap(p.request) < size {
		p.request = make([]byte, size)
	}
	p.request = p.request[:size]
	return nil
}

// drop gives up a request that is not sent.
func (w *way) drop(p *part) {
	if w.conn != nil {
		w.conn.Free(p.call.Request)
		p.call.Request, p.request = archon.Buf{}, nil
	}
}

// send sends a request; the part ends once, perhaps before send returns.
func (w *way) send(p *part, m archon.Method, timeout time.Duration) {
	if w.conn == nil {
		c := &p.repeated
		// Affinity keeps the pushes of all clients on one replica, in one order.
		c.Method, c.Request, c.Timeout, c.Idempotent, c.Affinity = m, p, timeout, true, 0
		if m == MethodPush {
			c.Affinity = 1
		}
		w.ch.Go(c, p.doneOver)
		return
	}
	p.call.Method, p.call.Timeout, p.request = m, timeout, nil
	if err := w.conn.Go(&p.call, p.done); err != nil {
		p.err = err
		p.fanout.finish()
	}
}

func (w *way) cancel(p *part, err error) {
	if w.conn == nil {
		w.ch.Cancel(&p.repeated, err)
		return
	}
	w.conn.Cancel(&p.call, err)
}

func (w *way) close() error {
	if w.conn == nil {
		return w.ch.Close()
	}
	err := w.conn.Close()
	<-w.conn.Done()
	return err
}
