package scenario

import (
	"math/rand/v2"
	"time"

	"github.com/byteexpress/byteexpress/archon/channel/core"
	"github.com/byteexpress/byteexpress/sim/des"
)

// shard is what a ranker asks for a part of the parameters: a server, or several that
// have the same, among which the code of archon's channels chooses and repeats. A
// server whose connection broke is not connected again.
type shard struct {
	b       *bench
	calls   []*call // by replica
	tally   *tally  // of attempts
	shared  core.Shared
	hedges  *uint64
	retries *uint64
}

// recovery is how calls to replicated shards recover.
func (w *Workload) recovery() (core.Config, error) {
	return core.Config{AttemptTimeout: w.AttemptTimeout.time().Duration(), EjectBase: 50 * time.Millisecond}.WithDefaults()
}

// newShard makes a shard whose servers are connected.
func (b *bench) newShard(calls []*call, t *tally, cfg *core.Config, budget *core.Budget, random *des.Stream) *shard {
	s := &shard{b: b, calls: calls, tally: t}
	s.shared = core.Shared{Cfg: cfg, Set: core.NewSet(cfg), Budget: budget, Rng: rand.New(random)}
	for i := range calls {
		r := &core.Replica{ID: uint32(i) + 1, Key: random.Uint64()}
		r.SetReady(true)
		s.shared.Set.Add(r)
	}
	return s
}

// repeated is one call to a shard.
type repeated struct {
	s       *shard
	op      core.Op
	outs    [core.Slots]*attempt
	armed   time.Duration
	size    int
	reply   int
	service des.Time
	over    bool
	done    func(ok bool)
}

// attempt is one try of it.
type attempt struct {
	r    *repeated
	slot int
}

// ask begins a call; done is told whether it was answered.
func (s *shard) ask(size, reply int, service des.Time, done func(ok bool)) {
	if len(s.calls) == 1 {
		s.calls[0].askThen(s.b, s.tally, size, reply, service, done)
		return
	}
	r := &repeated{s: s, size: size, reply: reply, service: service, done: done}
	r.op.Repeatable, r.op.Deadline = true, s.now()+s.b.s.Workload.Deadline.time().Duration()
	r.do(r.op.Start(&s.shared, s.now()))
}

func (s *shard) now() time.Duration { return s.b.now().Duration() }

// do carries out what the core said.
func (r *repeated) do(do core.Do) {
	for i, a := range r.outs {
		if do.Cancel>>i&1 == 1 && a != nil {
			r.s.b.at(r.s.b.now(), func() { a.end(core.Dropped) })
		}
	}
	if do.Send {
		a := &attempt{r, do.Slot}
		r.outs[do.Slot] = a
		replica := r.op.Replica(do.Slot)
		c := r.s.calls[replica.ID-1]
		if c.broken {
			replica.SetReady(false)
			r.s.b.at(r.s.b.now(), func() { a.end(core.Refused) })
		} else {
			c.askThen(r.s.b, r.s.tally, r.size, r.reply, r.service, func(ok bool) {
				out := core.Answered
				if !ok {
					out = core.Lost
					replica.SetReady(false)
				}
				a.end(out)
			})
		}
	}
	if do.End && !r.over {
		r.over = true
		if n := r.op.Attempts(); n > 1 {
			*r.s.retries += uint64(n - 1)
		}
		if r.op.Hedged() {
			*r.s.hedges++
		}
		r.done(do.Won >= 0)
		return
	}
	r.arm()
}

// arm has the core called when its time comes.
func (r *repeated) arm() {
	next := r.op.Deadline
	if t := r.op.Next(); t != 0 {
		next = min(next, t)
	}
	if r.over || next == r.armed {
		return
	}
	r.armed = next
	r.s.b.at(des.Of(next), func() {
		if r.over || r.armed != next {
			return
		}
		r.armed = 0
		if r.s.now() >= r.op.Deadline {
			for _, a := range r.outs {
				if a != nil {
					a.end(core.Failed)
				}
			}
		}
		if !r.over {
			r.do(r.op.Step(&r.s.shared, r.s.now()))
		}
	})
}

// end tells the core that an attempt is over. What comes later is too late.
func (a *attempt) end(out core.Outcome) {
	r := a.r
	if r.outs[a.slot] != a {
		return
	}
	r.outs[a.slot] = nil
	do := r.op.Ended(&r.s.shared, r.s.now(), a.slot, out)
	if do != (core.Do{}) || r.op.Next() != 0 {
		r.do(do)
	}
}
