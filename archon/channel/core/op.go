package core

import (
	"math/rand/v2"
	"time"
)

// Slots is how many attempts of a call can be out at a time.
const Slots = 2

// maxTried is how many replicas a call remembers to avoid.
const maxTried = 4

// freeFailovers is how often a call moves to another replica without budget after its
// connection ended. Such moves are no storm: there are no more of them than calls
// outstanding on connections that died, and connections come back with back-off. A
// request that kills every server it reaches stops at that.
const freeFailovers = 2

// Shared is what the calls that one goroutine at a time works on have in common.
type Shared struct {
	Cfg     *Config
	Set     *Set
	Budget  *Budget
	Rng     *rand.Rand
	Latency Latency
}

// Op is one call. Start begins it; Do values say what to do until one of them has End
// set and every attempt that was sent has ended. It belongs to one goroutine at
// a time.
type Op struct {
	Repeatable bool          // it may be sent again though it may have run
	Deadline   time.Duration // 0: none
	Affinity   uint64        // see Wish

	slots [Slots]slot
	tried [maxTried]uint32
	nth   uint8 // attempts made

	moves    uint8 // after lost connections
	backoffs uint8
	unsent   uint8 // attempts that this side could not send
	ended    bool
	hedged   bool
	waiting  bool // for a replica
	token    bool // the next attempt is paid for

	retryAt   time.Duration // 0: not
	hedgeAt   time.Duration // 0: not
	timeoutAt time.Duration // of the present attempt; 0: not
	giveUpAt  time.Duration // of waiting
}

// slot is an attempt that is out.
type slot struct {
	replica *Replica // nil: free
	since   time.Duration
	probe   bool
	late    bool // it timed out, and was counted as failed
	gone    bool // it was cancelled for another to take its place
}

// Do says what is to be done now for an Op.
type Do struct {
	Send   bool // an attempt in Slot to Replica(Slot)
	Slot   int
	Cancel uint8 // attempts to cancel: bit i is slot i
	End    bool  // the call is over; attempts that are out still end
	Won    int   // the slot whose result is the call's; -1: see Why
	Why    Verdict
}

// Start gives the call its first attempt.
func (o *Op) Start(s *Shared, now time.Duration) Do {
	s.Budget.Called()
	return o.launch(s, now, false)
}

// Attempts is how many attempts were made.
func (o *Op) Attempts() int { return int(o.nth) }

// Replica is where a slot's attempt goes.
func (o *Op) Replica(slot int) *Replica { return o.slots[slot].replica }

// Hedged tells whether a hedge was sent.
func (o *Op) Hedged() bool { return o.hedged }

// Waiting tells whether the call waits for a replica to be ready.
func (o *Op) Waiting() bool { return o.waiting }

// Next is when Step wants to be called; 0: not by the clock.
func (o *Op) Next() time.Duration {
	next := time.Duration(0)
	for _, t := range [...]time.Duration{o.retryAt, o.hedgeAt, o.timeoutAt, o.giveUpAt} {
		if t != 0 && (next == 0 || t < next) {
			next = t
		}
	}
	return next
}

// Running is how many attempts are out.
func (o *Op) Running() (n int) {
	for i := range o.slots {
		if o.slots[i].replica != nil {
			n++
		}
	}
	return n
}

// launch begins an attempt in a free slot, of which there is one.
func (o *Op) launch(s *Shared, now time.Duration, other bool) Do {
	w := Wish{Affinity: o.Affinity, Probe: o.Repeatable, Not: o.tried[:min(int(o.nth), maxTried)], Other: other}
	r, probe := s.Set.Pick(now, s.Rng, &w)
	if r == nil {
		if other {
			return Do{}
		}
		return o.wait(s, now)
	}
	o.waiting, o.retryAt, o.giveUpAt, o.token = false, 0, 0, false
	i := 0
	if o.slots[0].replica != nil {
		i = 1
	}
	o.slots[i] = slot{replica: r, since: now, probe: probe}
	o.tried[int(o.nth)%maxTried] = r.ID
	o.nth++
	s.Set.Began(r)
	if o.Repeatable {
		if s.Cfg.AttemptTimeout > 0 {
			o.timeoutAt = now + s.Cfg.AttemptTimeout
		}
		if h := s.Latency.Quantile(); h != 0 && !o.hedged && s.Cfg.HedgeQuantile > 0 && o.nth == 1 {
			o.hedgeAt = now + max(h, s.Cfg.HedgeMin)
		}
	}
	return Do{Send: true, Slot: i}
}

// wait has the call wait for a replica to be ready.
func (o *Op) wait(s *Shared, now time.Duration) Do {
	o.retryAt = 0
	if !o.waiting {
		if s.Cfg.WaitReady <= 0 {
			return o.end(NoReplica)
		}
		o.waiting = true
		o.giveUpAt = o.bounded(now + s.Cfg.WaitReady)
	}
	return Do{}
}

// bounded is t, or the deadline if that is earlier.
func (o *Op) bounded(t time.Duration) time.Duration {
	if o.Deadline != 0 {
		return min(t, o.Deadline)
	}
	return t
}

func (o *Op) end(why Verdict) Do {
	o.over()
	return Do{End: true, Won: -1, Why: why}
}

func (o *Op) over() {
	o.ended, o.waiting = true, false
	o.retryAt, o.hedgeAt, o.timeoutAt, o.giveUpAt = 0, 0, 0, 0
}

// Ready tells a call that waits that a replica may be ready.
func (o *Op) Ready(s *Shared, now time.Duration) Do {
	if !o.waiting || o.ended {
		return Do{}
	}
	return o.launch(s, now, false)
}

// Abort ends the call from outside; its attempts are to be cancelled.
func (o *Op) Abort() Do {
	if o.ended {
		return Do{}
	}
	o.over()
	return Do{End: true, Won: -1, Cancel: o.out(-1)}
}

// out is the mask of attempts that are out, but for one slot.
func (o *Op) out(not int) (mask uint8) {
	for i := range o.slots {
		if i != not && o.slots[i].replica != nil {
			mask |= 1 << i
		}
	}
	return mask
}
