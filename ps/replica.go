package ps

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/pkg/errors"
)

// maxReplicas bounds the replicas of a shard.
const maxReplicas = 64

// ReplicaConfig sets a Replica up. All replicas of a shard have the same, but Self.
type ReplicaConfig struct {
	Peers []string // where each replica listens, this one too; at most 64
	Self  int      // which of Peers this is
	// Transport dials the others; nil: archon.TCP{}.
	Transport archon.Transport
	// Moves dials replicas of other shards, at the TCP addresses of the maps, for the rows
	// that Rebalance moves here; nil: archon.TCP{}.
	Moves archon.Transport
	// Lease is how long a replica may be fetched from without news of the others. A
	// Push waits for up to as long, and fetches find no replica for up to twice as
	// long, when one is lost. 0: 500 ms.
	Lease time.Duration
	// LogBytes is the memory of the log from which a replica that was away for a
	// while catches up; after a longer while it copies everything. 0: 16 MiB.
	LogBytes int
}

// Replica is one of several servers that hold the same shard. Its methods may be called
// from any goroutine.
type Replica struct {
	shard *Shard
	cfg   ReplicaConfig
	start time.Time

	group   *group       // under shard.mu
	changed *sync.Cond   // with shard.mu: a peer took or granted something, or time passed
	until   atomic.Int64 // servesUntil, as of the last change
	stop    chan struct{}
	once    sync.Once
	wg      sync.WaitGroup
	links   []*link

	life    context.Context // ends with stop
	end     context.CancelFunc
	more    chan struct{} // there is something for the mover
	pulling sync.Mutex    // windows are made one at a time
	window  []byte        // under pulling
}

// The methods between replicas.
var (
	methodReplicate = archon.NewMethod("ps.Replicate")
	methodSnapshot  = archon.NewMethod("ps.Snapshot")
)

// Replicate makes the shard one of several replicas, which the others reach at srv. It
// serves once it has what the others have: it copies one that serves, or, when none does
// and all can be reached, the one that has the most pushes begins. Restore the shard
// before, Register it after, best at a server of its own that listens when Wait has
// returned: so clients do not come for nothing. The caller closes the replica before the
// shard, and before the servers are closed.
func (s *Shard) Replicate(srv *archon.Server, cfg ReplicaConfig) (*Replica, error) {
	if cfg.Transport == nil {
		cfg.Transport = archon.TCP{}
	}
	if cfg.Moves == nil {
		cfg.Moves = archon.TCP{}
	}
	if cfg.Lease == 0 {
		cfg.Lease = 500 * time.Millisecond
	}
	if cfg.LogBytes == 0 {
		cfg.LogBytes = 16 << 20
	}
	switch {
	case len(cfg.Peers) < 1 || len(cfg.Peers) > maxReplicas || cfg.Self < 0 || cfg.Self >= len(cfg.Peers):
		return nil, errors.Errorf("ps: replica %d of %d: there may be 1 to %d, counted from 0", cfg.Self, len(cfg.Peers), maxReplicas)
	case cfg.Lease < time.Millisecond || cfg.LogBytes < 4096:
		return nil, errors.Errorf("ps: a lease of %v and a log of %d bytes, must be 1 ms and 4096 at least", cfg.Lease, cfg.LogBytes)
	}
	var inc [8]byte
	rand.Read(inc[:]) // never fails
	r := &Replica{shard: s, cfg: cfg, start: time.Now(), changed: sync.NewCond(&s.mu), stop: make(chan struct{}), more: make(chan struct{}, 1)}
	r.life, r.end = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.replica != nil {
		return nil, errors.New("ps: the shard is closed, or a replica already")
	}
	r.group = newGroup(s, cfg.Self, len(cfg.Peers), cfg.LogBytes, binary.LittleEndian.Uint64(inc[:])|1, cfg.Lease)
	for c := s.clients.used.next; c != &s.clients.used; c = c.next {
		for _, sp := range c.spans {
			r.group.count += sp.last - sp.first + 1
		}
	}
	for _, err := range []error{
		srv.HandleInline(methodReplicate, r.handleReplicate), srv.HandleStream(methodSnapshot, r.handleSnapshot),
	} {
		if err != nil {
			return nil, err
		}
	}
	s.replica = r
	r.note()
	for i := range cfg.Peers {
		l := &link{r: r, peer: i, more: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
		l.done = func(*archon.Call) { l.wake <- struct{}{} }
		r.links = append(r.links, l)
	}
	for i, l := range r.links {
		if i != cfg.Self {
			r.wg.Go(l.run)
		}
	}
	if s.own.m != nil {
		m := &mover{r: r}
		r.wg.Go(m.run)
	}
	return r, nil
}

// Close ends what the replica does with the others. Pushes that wait for them fail.
func (r *Replica) Close() error {
	r.once.Do(func() {
		r.shard.mu.Lock()
		close(r.stop)
		r.end()
		r.changed.Broadcast()
		r.shard.mu.Unlock()
	})
	r.wg.Wait()
	return nil
}

// ReplicaStats is the state of a replica.
type ReplicaStats struct {
	Serving   bool   // it answers Fetch and Push
	Joining   bool   // it has yet to copy another
	Pushes    uint64 // that it applied, those before a copy included
	Forgotten uint64 // pushes of others that it could not tell from repetitions and left out
	Trouble   error  // why it does not get on, if it knows
}

// Stats gives the state.
func (r *Replica) Stats() ReplicaStats {
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	g := r.group
	return ReplicaStats{Serving: g.serves(r.now()) == nil, Joining: g.joining, Pushes: g.count, Forgotten: g.forgot, Trouble: g.trouble}
}

// Begin has a replica serve what it holds although not all others can be reached, when
// they will not come back: what only they had is lost.
func (r *Replica) Begin() {
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	if r.group.joining {
		r.group.joined(r.now())
		r.note()
	}
}

func (r *Replica) now() time.Duration { return time.Since(r.start) }

// Wait waits until the replica has what the others have, and serves.
func (r *Replica) Wait(ctx context.Context) error {
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		r.shard.mu.Lock()
		defer r.shard.mu.Unlock()
		r.changed.Broadcast()
	})()
	for r.group.serves(r.now()) != nil {
		if r.closed() {
			return errReplicaClosed
		}
		if err := ctx.Err(); err != nil {
			return &archon.Error{Code: archon.CodeOf(err), Message: "the replica is not up to date", Cause: r.group.trouble}
		}
		r.changed.Wait()
	}
	return nil
}

func (r *Replica) closed() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// ready waits until rows may be fetched: two leases at most, in which a peer that is lost
// is found to be down.
func (r *Replica) ready() error {
	if r.until.Load() > int64(r.now()) {
		return nil
	}
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	return r.readyLocked()
}

func (r *Replica) readyLocked() error {
	for end := r.now() + 2*r.cfg.Lease; ; r.changed.Wait() {
		now := r.now()
		err := r.group.serves(now)
		switch {
		case r.closed():
			return errReplicaClosed
		case err == nil || err == errJoining || now > end: //nolint:errorlint // it is not wrapped
			return err
		}
	}
}

// note tells of a change of the group, which may have come by itself. The caller holds
// the shard's lock.
func (r *Replica) note() {
	r.group.begin(r.now())
	r.until.Store(int64(r.group.servesUntil()))
	r.changed.Broadcast()
	for i, l := range r.links {
		if i != r.cfg.Self && r.group.pending(i) {
			l.hurry()
		}
	}
}

// errNotTaken is not final: the push is applied here, and a repetition waits again.
var errNotTaken = archon.Errorf(archon.Unavailable, "another replica can be reached and does not take the push: see its Stats")

var errReplicaClosed = &archon.Error{Code: archon.Unavailable, Message: "the replica is closed", Retryable: false}

func (r *Replica) handleReplicate(call *archon.ServerCall) error {
	out, err := call.Alloc(replyBytes)
	if err != nil {
		return err
	}
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	if r.shard.closed {
		return errClosed
	}
	if _, err = r.group.answer(out[:0], call.Payload(), r.now()); err != nil {
		return err
	}
	r.note()
	return nil
}
