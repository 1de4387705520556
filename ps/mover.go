package ps

import (
	"context"
	"time"

	"github.com/byteexpress/byteexpress/archon"
)

// The methods of a change of the map.
var (
	methodChange = archon.NewMethod("ps.Change")
	methodPull   = archon.NewMethod("ps.Pull")
)

// registerChange makes a replica take part in changes of the map. The handlers run inline:
// all workers may wait for the change.
func (r *Replica) registerChange(srv *archon.Server) error {
	if err := srv.HandleInline(methodChange, r.handleChange); err != nil {
		return err
	}
	return srv.HandleInline(methodPull, r.handlePull)
}

func (r *Replica) handleChange(call *archon.ServerCall) error {
	req, err := parseChange(call.Payload())
	if err != nil {
		return err
	}
	s := r.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	st, err := r.group.step(&req, r.now())
	r.note()
	if err != nil {
		return err
	}
	r.hurryMover()
	return encodeTo(call, st.append(nil))
}

func (r *Replica) handlePull(call *archon.ServerCall) error {
	req, err := parsePull(call.Payload())
	if err != nil {
		return err
	}
	r.pulling.Lock()
	defer r.pulling.Unlock()
	r.shard.mu.RLock()
	b, err := r.group.pull(r.window[:0], req)
	r.shard.mu.RUnlock()
	r.window = b
	if err != nil {
		return err
	}
	return encodeTo(call, b)
}

func encodeTo(call *archon.ServerCall, b []byte) error {
	out, err := call.Alloc(len(b))
	copy(out, b)
	return err
}

func (r *Replica) hurryMover() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// mover brings rows to a replica, and removes those that have left, a little at a time.
type mover struct {
	r      *Replica
	addr   string
	client *archon.Client // to addr; nil: none
}

// sweepPause is between two steps of a sweep, so that it takes a small part of the time.
const sweepPause = 200 * time.Microsecond

func (m *mover) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer m.hangUp()
	for {
		select {
		case <-m.r.stop:
			return
		case <-m.r.more:
		case <-timer.C:
		}
		m.r.shard.mu.Lock()
		m.r.note() // time has passed, by which a freeze ends: a shard of one replica hears of it here alone
		m.r.shard.mu.Unlock()
		timer.Reset(m.work())
	}
}

// work does a part of what there is, and tells how long to pause then.
func (m *mover) work() time.Duration {
	r, s := m.r, m.r.shard
	idle := r.cfg.Lease / 8
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return idle
	}
	if s.sweep.active {
		s.sweepStep()
		if !s.sweep.waits() {
			s.mu.Unlock()
			return sweepPause
		}
	}
	g := r.group
	i := g.nextPull()
	if i < 0 {
		over := g.stage == nil || g.stage.done
		s.mu.Unlock()
		if over {
			m.hangUp()
		}
		return idle
	}
	st := g.stage
	addr, finish := st.sources[i].addr, st.finish
	ask := g.askPull(nil, i)
	s.mu.Unlock()

	began := time.Now()
	resp, err := m.ask(addr, ask)
	took := time.Since(began)
	s.mu.Lock()
	g.pulled(st, i, resp.Payload(), err)
	waits := err != nil || st.trouble != nil || st.sources[i].left == 0 && !st.finish
	s.mu.Unlock()
	resp.Release()
	switch {
	case waits:
		return idle / 4
	case finish:
		return 0
	}
	return 2 * took // so that rows that move take a third of the time at most
}

// ask asks a source for a window.
func (m *mover) ask(addr string, b []byte) (archon.Response, error) {
	r := m.r
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Lease)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	if m.client == nil || m.addr != addr {
		m.hangUp()
		c, err := archon.Dial(ctx, r.cfg.Moves, addr, "ps", archon.ClientConfig{})
		if err != nil {
			return archon.Response{}, err
		}
		m.client, m.addr = c, addr
	}
	resp, err := m.client.Do(ctx, &archon.Invocation{Method: methodPull, Request: archon.Bytes(b)})
	if err != nil {
		m.hangUp()
	}
	return resp, err
}

func (m *mover) hangUp() {
	if m.client != nil {
		m.client.Close()
		<-m.client.Done()
		m.client = nil
	}
}
