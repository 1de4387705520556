package channel

import (
	"github.com/byteexpress/byteexpress/archon"
	"github.com/byteexpress/byteexpress/archon/channel/core"
)

// attempt is one sending of a call to one replica. Its fields are under the shard's
// lock, except call, conn and err while it is being sent.
type attempt struct {
	op   *op
	slot int
	done func(*archon.Call) // ended, bound once

	call     archon.Call
	inv      archon.Invocation
	conn     *conn
	response archon.Response
	err      error
	unsent   bool // it did not leave this side
	// held counts who works on the attempt without the lock: its end waits for them, so
	// that the slot is not used again under their hands.
	held     int
	finished bool // it ended while held
	unwanted bool // it is to be cancelled
}

// start takes the slot for a new attempt.
func (a *attempt) start() {
	a.err, a.unsent, a.finished, a.unwanted = nil, false, false, false
	a.held = 1
}

// send encodes the request into the connection's memory and sends it. It runs without
// the lock.
func (a *attempt) send() {
	o := a.op
	s, call := o.shard, o.call                  // call stays: encoding holds it
	r := o.core.Replica(a.slot).User.(*replica) // the slot is taken, so it stays
	a.conn = r.use.Load()
	sent := false
	err := error(errNoConn)
	if c := a.conn; c != nil {
		a.inv = archon.Invocation{Method: call.Method, Request: call.Request, Metadata: call.Metadata}
		if a.call.Request, err = c.client.Encode(&a.inv); err == nil {
			a.call.Method, a.call.Timeout = call.Method, 0
			if o.core.Deadline != 0 {
				a.call.Timeout = max(o.core.Deadline-s.ch.now(), 1)
			}
			err = c.client.Go(&a.call, a.done)
			sent = err == nil
		}
		a.inv = archon.Invocation{}
	}
	s.mu.Lock()
	o.encoding--
	if !sent {
		a.err, a.unsent, a.finished = err, true, true
	}
	a.release()
}

var errNoConn = &archon.Error{Code: archon.Unavailable, Message: "the connection has just ended", Retryable: true}

// release ends the work on an attempt without the lock, and does what had to wait for
// it. It is called with the lock held and releases it.
func (a *attempt) release() {
	o := a.op
	s := o.shard
	a.held--
	switch {
	case a.held > 0:
	case a.finished:
		a.conclude()
		return
	case a.unwanted:
		a.held++
		told := s.tell(o)
		s.mu.Unlock()
		if told != nil {
			told.done(told)
		}
		a.cancel()
		return
	}
	told := s.tell(o)
	s.recycle(o)
	s.mu.Unlock()
	if told != nil {
		told.done(told)
	}
}

// cancel has the client give the attempt up. held keeps the attempt as it is.
func (a *attempt) cancel() {
	a.conn.client.Cancel(&a.call, errGivenUp)
	a.op.shard.mu.Lock()
	a.unwanted = false
	a.release()
}

// ended is the end of the archon call.
func (a *attempt) ended(call *archon.Call) {
	s := a.op.shard
	s.mu.Lock()
	a.response, a.err = call.Response, call.Err
	call.Response = archon.Response{}
	if a.held > 0 {
		a.finished = true
		s.mu.Unlock()
		return
	}
	a.conclude()
}

// conclude tells the core how the attempt ended. It is called with the lock held and
// releases it.
func (a *attempt) conclude() {
	o := a.op
	s, c := o.shard, a.conn
	out := core.Unsent
	if c != nil {
		out = outcomeOf(a.err, c.client, !a.unsent)
		switch out {
		case core.Lost, core.Unsent:
			if c.client.Err() != nil {
				c.r.unpublish(c)
			}
			c.r.noteDrain(c)
		case core.Refused:
			c.r.noteDrain(c)
		}
	}
	if a.err != nil && !o.over && out != core.Unsent {
		if len(o.causes) == maxCauses {
			o.causes = append(o.causes[:0], o.causes[1:]...)
		}
		o.causes = append(o.causes, Cause{Replica: c.r.name, Path: c.path, Err: a.err})
	}
	a.finished, a.conn = false, nil
	do := o.core.Ended(&s.shared, s.ch.now(), a.slot, out)
	if !do.End || do.Won != a.slot {
		a.response.Release()
	}
	s.perform(o, do)
}
