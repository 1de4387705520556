package channel

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
)

// shard is the calls that share a lock, a timer and a random source. Calls go to the
// shards by turns.
type shard struct {
	ch *Channel

	mu     sync.Mutex
	shared core.Shared
	live   op // head of the list of calls that are not over
	free   *op
	heap   opHeap
	timer  *time.Timer
	armed  time.Duration // when the timer fires; 0: it does not run
	stats  CallStats
}

// op is a call that runs, or whose attempts have not all ended.
type op struct {
	core     core.Op
	shard    *shard
	call     *Call // nil: it was told how it ended
	attempts [core.Slots]attempt
	final    error // what the call ends with; nil: what the attempt said
	response archon.Response
	over     bool
	encoding int // attempts that may be using the call's request
	causes   []Cause

	place      int // in the heap, 1 the first; 0: not there
	at         time.Duration
	prev, next *op // in the list of calls, or of free ops
}

func newShard(ch *Channel, rng *rand.Rand) *shard {
	s := &shard{ch: ch, shared: core.Shared{Cfg: &ch.cfg.Recovery, Set: ch.set, Budget: ch.budget, Rng: rng}}
	s.live.prev, s.live.next = &s.live, &s.live
	return s
}

// newOp gives an op for a call, in the list of those that run.
func (s *shard) newOp(call *Call) *op {
	o := s.free
	if o == nil {
		o = &op{shard: s}
		for i := range o.attempts {
			a := &o.attempts[i]
			a.op, a.slot, a.done = o, i, a.ended
		}
	} else {
		s.free = o.next
	}
	o.core, o.call, o.final, o.over, o.causes = core.Op{}, call, nil, false, o.causes[:0]
	call.op = o
	o.prev, o.next = s.live.prev, &s.live
	o.prev.next, s.live.prev = o, o
	return o
}

// perform does what the core says, with everything that follows at once. It is called
// with mu held and releases it.
func (s *shard) perform(o *op, do core.Do) {
	var send *attempt
	if do.End {
		s.end(o, do)
	}
	if do.Send {
		send = &o.attempts[do.Slot]
		send.start()
		s.stats.Attempts++
		o.core.Replica(do.Slot).User.(*replica).attempts.Add(1)
		o.encoding++
	}
	var cancel [core.Slots]*attempt
	for i := range cancel {
		if a := &o.attempts[i]; do.Cancel>>i&1 == 1 {
			a.unwanted = true
			if a.held == 0 {
				a.held++
				cancel[i] = a
			}
		}
	}
	s.schedule(o)
	told := s.tell(o)
	s.recycle(o)
	s.mu.Unlock()
	for _, a := range cancel {
		if a != nil {
			a.cancel()
		}
	}
	if told != nil {
		told.done(told)
	}
	if send != nil {
		send.send()
	}
}

// end notes how a call ends.
func (s *shard) end(o *op, do core.Do) {
	o.over = true
	if o.core.Hedged() {
		s.stats.Hedged++
	}
	switch {
	case do.Won >= 0:
		a := &o.attempts[do.Won]
		o.response, a.response = a.response, archon.Response{}
		if o.final == nil && a.err != nil {
			o.final = s.describe(o, a.err, do.Why)
		}
	case o.final != nil: // given up from outside
		o.final = s.describe(o, s.late(o, o.final), do.Why)
	default:
		var last error
		if n := len(o.causes); n > 0 {
			last = o.causes[n-1].Err
		} else if do.Why == core.NoReplica {
			last = s.ch.trouble()
		}
		o.final = s.describe(o, s.late(o, verdictError(do.Why, last)), do.Why)
	}
	if o.final != nil {
		s.stats.Failed++
	}
	o.prev.next, o.next.prev = o.next, o.prev
	o.prev, o.next = nil, nil
}

// late is err, with what keeps replicas from being reached if the deadline passed before
// one was.
func (s *shard) late(o *op, err error) error {
	if err != errDeadline || o.core.Attempts() > 0 || len(o.causes) > 0 {
		return err
	}
	return &archon.Error{Code: archon.DeadlineExceeded, Message: "no replica was reached before the call's deadline", Cause: s.ch.trouble()}
}

// describe makes the error of a call.
func (s *shard) describe(o *op, err error, why core.Verdict) error {
	e := &Error{Service: s.ch.cfg.Service, Method: o.call.Method.String(), Attempts: o.core.Attempts(), Why: why, Err: err}
	e.Causes = append(e.Causes, o.causes...)
	if n := len(o.causes); n > 0 {
		e.Replica = o.causes[n-1].Replica
	}
	return e
}

// tell gives the call that is to hear its end now: it is over, and no attempt uses its
// request.
func (s *shard) tell(o *op) *Call {
	call := o.call
	if !o.over || call == nil || o.encoding > 0 {
		return nil
	}
	call.Response, call.Err = o.response, o.final
	o.response, o.final = archon.Response{}, nil
	o.call, call.op = nil, nil
	return call
}

// recycle keeps an op that nobody uses for the next call.
func (s *shard) recycle(o *op) {
	if !o.over || o.call != nil || o.core.Running() > 0 {
		return
	}
	for i := range o.attempts {
		if o.attempts[i].held > 0 {
			return
		}
	}
	clear(o.causes)
	o.over = false // once only
	o.next, s.free = s.free, o
}

// schedule has the clock look after the call.
func (s *shard) schedule(o *op) {
	at := o.core.Next()
	if o.over {
		at = 0
	}
	s.heap.set(o, at)
	if first := s.heap.first(); first != 0 && (s.armed == 0 || first < s.armed) {
		s.armed = first
		d := first - s.ch.now()
		if s.timer == nil {
			s.timer = time.AfterFunc(d, s.expire)
		} else {
			s.timer.Reset(d)
		}
	}
}

// expire does what is due. It runs on a timer's goroutine.
func (s *shard) expire() {
	s.mu.Lock()
	s.armed = 0
	for {
		now := s.ch.now()
		o := s.heap.due(now)
		if o == nil {
			break
		}
		s.perform(o, o.core.Step(&s.shared, now))
		s.mu.Lock()
	}
	if first := s.heap.first(); first != 0 && s.armed == 0 {
		s.armed = first
		s.timer.Reset(first - s.ch.now())
	}
	s.mu.Unlock()
}

// ready sends the calls that wait for a replica.
func (s *shard) ready() {
	s.mu.Lock()
	for {
		o := s.live.next
		for o != &s.live && !o.core.Waiting() {
			o = o.next
		}
		if o == &s.live {
			break
		}
		do := o.core.Ready(&s.shared, s.ch.now())
		if o.core.Waiting() { // there is none after all
			break
		}
		s.perform(o, do)
		s.mu.Lock()
	}
	s.mu.Unlock()
}

// abort ends every call with err.
func (s *shard) abort(err error) {
	s.mu.Lock()
	for s.live.next != &s.live {
		o := s.live.next
		o.final = err
		s.perform(o, o.core.Abort())
		s.mu.Lock()
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
}
