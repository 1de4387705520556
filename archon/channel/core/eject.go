package core

import (
	"slices"
	"time"
)

// Began counts an attempt on r.
func (s *Set) Began(r *Replica) { r.outstanding.Add(1) }

// Ended counts the end of an attempt after d, as the probe of r or not.
func (s *Set) Ended(r *Replica, now, d time.Duration, o Outcome, probe bool) {
	r.outstanding.Add(-1)
	switch o {
	case Answered:
		if probe {
			r.ewma.Store(0) // the penalties of the time when it failed say nothing of now
		}
		r.sample(now, d)
		r.row.Store(0)
		s.count(r, now, 1<<32)
		if probe {
			s.admit(r, now)
		}
	case Failed, Lost:
		r.penalize(now, d)
		row := int(r.row.Add(1))
		answers, failures := s.count(r, now, 1)
		bad := s.cfg.EjectConsecutive > 0 && row >= s.cfg.EjectConsecutive ||
			s.cfg.EjectRatio > 0 && answers+failures >= s.cfg.EjectVolume && float64(failures) >= s.cfg.EjectRatio*float64(answers+failures)
		if probe || bad {
			s.eject(r, now, probe)
		}
	case Refused:
		r.penalize(now, d)
	case Dropped:
		if now > time.Duration(r.stamp.Load()) && int64(d) > r.ewma.Load() { // it was slower than it says
			r.sample(now, d)
		}
	}
	if probe {
		r.probing.Store(false)
	}
}

// count adds to the window of r, which begins anew every EjectInterval.
func (s *Set) count(r *Replica, now time.Duration, add uint64) (answers, failures int) {
	if opened := r.opened.Load(); now-time.Duration(opened) > s.cfg.EjectInterval && r.opened.CompareAndSwap(opened, int64(now)) {
		r.window.Store(0)
	}
	v := r.window.Add(add)
	return int(v >> 32), int(v & (1<<32 - 1))
}

// eject keeps calls away from r for a while, unless too many are kept out.
func (s *Set) eject(r *Replica, now time.Duration, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := *s.list.Load()
	if !slices.Contains(list, r) || r.until.Load() != 0 && !again {
		return
	}
	if r.until.Load() == 0 {
		allowed := max(int(s.cfg.EjectShare*float64(len(list))), 1)
		if len(list) < 2 || s.cfg.EjectShare < 0 || int(s.out.Load()) >= allowed {
			return
		}
		if now-r.admitted > s.cfg.EjectMax {
			r.ejections = 0
		}
	}
	r.until.Store(int64(now + doubled(s.cfg.EjectBase, s.cfg.EjectMax, r.ejections)))
	r.ejections++
	r.row.Store(0)
	r.window.Store(0)
	s.recount()
	s.ejections.Add(1)
}

// admit ends the ejection of r.
func (s *Set) admit(r *Replica, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.until.Load() != 0 {
		r.until.Store(0)
		r.admitted = now
		s.recount()
	}
}

// Restarted forgets what r's earlier process did.
func (s *Set) Restarted(r *Replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ejections = 0
	r.restarted()
	s.recount()
}

// Overdue counts an attempt that goes on as a failure of r, since it takes too long.
func (s *Set) Overdue(r *Replica, now, d time.Duration, probe bool) {
	r.outstanding.Add(1) // Ended comes again
	s.Ended(r, now, d, Failed, probe)
}
