package core

import (
	"slices"
	"time"
)

// Ended tells that the attempt of a slot is over, since which the slot is free.
func (o *Op) Ended(s *Shared, now time.Duration, i int, out Outcome) Do {
	a := o.slots[i]
	o.slots[i] = slot{}
	d := now - a.since
	// Who drains refuses what was on its way: that is no load on it, and no failure.
	leaving := out == Refused && a.replica.draining.Load()
	if o.ended && out != Answered {
		out = Dropped
	}
	counted := out
	if a.late && out != Answered {
		counted = Dropped // as failed already
	}
	s.Set.Ended(a.replica, now, d, counted, a.probe)
	if out == Answered {
		s.Latency.Add(d, s.Cfg.HedgeQuantile)
	}
	switch {
	case o.ended:
		return Do{}
	case out == Answered || out == Invalid || out == Dropped && !a.gone:
		o.over()
		return Do{End: true, Won: i, Cancel: o.out(i)}
	case a.gone:
		return o.launch(s, now, o.Running() > 0)
	case o.Running() > 0:
		return Do{} // the other may yet answer
	}
	o.hedgeAt, o.timeoutAt = 0, 0
	return o.again(s, now, out, leaving)
}

// again decides on a repetition after the last attempt that was out ended without an
// answer.
func (o *Op) again(s *Shared, now time.Duration, out Outcome, leaving bool) Do {
	switch {
	case out == Unsent: // costs nobody anything but time
		o.nth--
		o.token = true
		pause := doubled(unsentPause, unsentMax, int(o.unsent))
		o.unsent = min(o.unsent+1, 100)
		o.retryAt = o.bounded(now + pause/2 + time.Duration(s.Rng.Float64()*float64(pause/2)))
		return Do{}
	case out != Refused && !o.Repeatable:
		return o.end(NotRepeatable)
	case int(o.nth) >= s.Cfg.MaxAttempts:
		return o.end(Exhausted)
	case o.Deadline != 0 && now >= o.Deadline:
		return o.end(Expired)
	case (out == Lost || leaving) && o.moves < freeFailovers:
		o.moves++
		return o.launch(s, now, false)
	case o.moves < freeFailovers && s.Cfg.WaitReady > 0 && s.othersStart(o):
		o.moves++
		return o.wait(s, now)
	}
	return o.pause(s, now)
}

// pause has the call wait before its next attempt.
func (o *Op) pause(s *Shared, now time.Duration) Do {
	limit := doubled(s.Cfg.BackoffBase, s.Cfg.BackoffMax, int(o.backoffs))
	o.backoffs = min(o.backoffs+1, 100)
	o.retryAt = o.bounded(now + 1 + time.Duration(s.Rng.Float64()*float64(limit)))
	return Do{}
}

// A call that this side could not send, since a queue is full or the connection has
// just ended, waits from unsentPause, doubling, to unsentMax.
const (
	unsentPause = 250 * time.Microsecond
	unsentMax   = 4 * time.Millisecond
)

// Step does what the clock has come to.
func (o *Op) Step(s *Shared, now time.Duration) Do {
	switch {
	case o.ended:
	case o.giveUpAt != 0 && now >= o.giveUpAt:
		if o.Deadline != 0 && now >= o.Deadline {
			return o.end(Expired)
		}
		return o.end(NoReplica)
	case o.retryAt != 0 && now >= o.retryAt:
		return o.retry(s, now)
	case o.hedgeAt != 0 && now >= o.hedgeAt:
		o.hedgeAt = 0
		return o.hedge(s, now)
	case o.timeoutAt != 0 && now >= o.timeoutAt:
		return o.timeout(s, now)
	}
	return Do{}
}

// retry begins another attempt if the budget has one. Without, the call waits again,
// longer: others may earn it, all the more if there is a replica that does not fail.
func (o *Op) retry(s *Shared, now time.Duration) Do {
	o.retryAt = 0
	if o.Deadline != 0 && now >= o.Deadline {
		return o.end(Expired)
	}
	if !o.token && !s.Budget.Retry() {
		limit := s.Cfg.MaxAttempts
		if s.wellElsewhere(o) {
			limit *= 2
		}
		if int(o.backoffs) >= limit {
			return o.end(OverBudget)
		}
		return o.pause(s, now)
	}
	o.token = true
	return o.launch(s, now, false)
}

// hedge begins a second attempt on another replica, beside the first.
func (o *Op) hedge(s *Shared, now time.Duration) Do {
	if o.Running() != 1 || !s.otherReady(o) || !s.Budget.Hedge() {
		return Do{}
	}
	do := o.launch(s, now, true)
	o.hedged = o.hedged || do.Send
	return do
}

// timeout begins another attempt, as the present one takes too long: beside it, or
// in place of the older of two. Without budget it goes on; but from a replica that is
// given up meanwhile a call moves as from a lost connection.
func (o *Op) timeout(s *Shared, now time.Duration) Do {
	o.timeoutAt = now + s.Cfg.AttemptTimeout
	o.fail(s, now)
	if int(o.nth) >= s.Cfg.MaxAttempts || !s.otherReady(o) {
		return Do{}
	}
	old := 0
	if b := o.slots[1]; b.replica != nil && (o.slots[0].replica == nil || b.since < o.slots[0].since) {
		old = 1
	}
	switch {
	case o.slots[old].gone:
		return Do{}
	case o.moves < freeFailovers && s.givenUp(o, o.slots[old].replica):
		o.moves++
	case !s.Budget.Retry():
		o.timeoutAt = now + s.Cfg.AttemptTimeout/8
		return Do{}
	}
	if o.Running() < Slots {
		return o.launch(s, now, true)
	}
	o.slots[old].gone = true
	return Do{Cancel: 1 << old}
}

// fail counts attempts that are out for AttemptTimeout as failures, once.
func (o *Op) fail(s *Shared, now time.Duration) {
	for i := range o.slots {
		a := &o.slots[i]
		if a.replica != nil && !a.late && now-a.since >= s.Cfg.AttemptTimeout {
			a.late = true
			s.Set.Overdue(a.replica, now, now-a.since, a.probe)
			a.probe = false
		}
	}
}

// otherReady tells whether a replica is ready that the call's attempts are not on.
func (s *Shared) otherReady(o *Op) bool {
	for _, r := range s.Set.Replicas() {
		if r.Ready() && r != o.slots[0].replica && r != o.slots[1].replica {
			return true
		}
	}
	return false
}

// givenUp tells whether a call is to leave a replica though it answers pings: it is ejected,
// or would be if EjectShare did not keep it, and another answers.
func (s *Shared) givenUp(o *Op, r *Replica) bool {
	return r.Ejected() || s.Cfg.EjectConsecutive > 0 && int(r.row.Load()) >= s.Cfg.EjectConsecutive && s.wellElsewhere(o)
}

// othersStart tells whether all replicas that the call has not tried are still to be
// reached, and one of them is being reached for the first time.
func (s *Shared) othersStart(o *Op) (starting bool) {
	for _, r := range s.Set.Replicas() {
		if slices.Contains(o.tried[:min(int(o.nth), maxTried)], r.ID) {
			continue
		}
		if r.Ready() {
			return false
		}
		starting = starting || r.starting.Load()
	}
	return starting
}

// wellElsewhere tells whether a replica that the call has not tried answers others.
func (s *Shared) wellElsewhere(o *Op) bool {
	tried := o.tried[:min(int(o.nth), maxTried)]
	for _, r := range s.Set.Replicas() {
		if r.Ready() && !r.Ejected() && r.row.Load() == 0 && !slices.Contains(tried, r.ID) {
			return true
		}
	}
	return false
}
