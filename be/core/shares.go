package core

// The account of a shared receive queue. Its receives serve whichever engine's peer
// sends next, so what is granted to all peers together must never be more than what
// is posted: then no message finds the queue empty.
//
// Each engine has a share of the receives, and its peer's unused credits are never
// more than that. All shares together are never more than the queue has. A share is
// at least the engine's least, which the hello promised and which keeps both sides
// going (see Credits), and at most its most. What is above the least is lent: a share
// doubles when half of it was used, as far as receives are left and up to an equal
// part for each engine that receives; it shrinks to that part as it is used. When
// an engine has received nothing for an epoch, what its peer has above the least is
// recalled: the peer gives credits back that it has not used. The least of one more
// engine is not lent: if shares are larger when one has joined, they shrink until it is
// there for the next.

// shares is the account of one queue, and part of one comparable state of a test.
type shares struct {
	least  int // what each engine is promised
	n      int // engines
	total  int // receives that the queue has
	posted int // of them, posted and not taken by a message
	out    int // granted and not used, of all engines
	lent   int // all shares together
	active int // engines that received in this epoch or the last
	epoch  uint32
}

// share is one engine's part.
type share struct {
	most     int
	size     int    // receives that may be granted and not used; at least out
	out      int    // granted and not used
	epoch    uint32 // in which it received last
	recalled bool   // the peer was asked to give back
}

// join grants a new engine its least. It is false when all receives are promised, or
// too few are posted.
func (p *shares) join(s *share) bool {
	if p.lent+p.least > p.total || p.out+p.least > p.posted {
		return false
	}
	s.size, s.out, s.epoch = p.least, p.least, p.epoch-2
	p.n++
	p.lent += s.size
	p.out += s.out
	return true
}

// leave takes an engine's share back: its peer can use no credit any more. broken says
// that its queue pair may have ended in the middle of a message, and so with a receive
// that nobody will complete. leave reports whether that is counted.
func (p *shares) leave(s *share, broken bool) bool {
	if s.active(p) {
		p.active--
	}
	lost := broken && s.out > 0
	p.n--
	p.lent -= s.size
	p.out -= s.out
	if lost {
		p.total--
		p.posted--
	}
	s.size, s.out = 0, 0
	return lost
}

func (s *share) active(p *shares) bool { return int32(p.epoch-s.epoch) <= 1 }

// arrived counts a message of an engine's peer. It is false if the peer had no
// credit: it took another one's receive.
func (p *shares) arrived(s *share) bool {
	p.posted--
	if s.out == 0 {
		return false
	}
	s.out--
	p.out--
	if !s.active(p) {
		p.active++
	}
	s.epoch, s.recalled = p.epoch, false
	return true
}

// returned counts credits that a peer gives back, false if it has not that many.
func (p *shares) returned(s *share, n int) bool {
	if n < 0 || n > s.out {
		return false
	}
	s.out -= n
	p.out -= n
	return true
}

// due reports whether an engine is to grant anew: half of its share is used.
func (s *share) due() bool { return 2*s.out <= s.size }

// adapt moves the size of a share that is due.
func (p *shares) adapt(s *share) {
	p.resize(s, min(2*s.size, p.total/max(p.active, 1), s.most))
}

// room reports whether all engines and one more can have their least.
func (p *shares) room() bool { return (p.n+1)*p.least <= p.total }

func (p *shares) resize(s *share, want int) {
	left := p.total - p.lent // less than nothing: to be won back
	if p.room() {
		left -= p.least
	}
	want = max(min(want, s.size+left), s.out, p.least)
	p.lent += want - s.size
	s.size = want
}

// grant gives an engine's peer what its share and the posted receives allow, and says
// how many those are.
func (p *shares) grant(s *share) int {
	n := max(min(s.size-s.out, p.posted-p.out), 0)
	s.out += n
	p.out += n
	return n
}

// rest shrinks the share of an engine that receives nothing, and reports whether its
// peer is to give back.
func (p *shares) rest(s *share) (recall bool) {
	if s.active(p) {
		return false
	}
	p.resize(s, p.least)
	return p.recall(s)
}

// recall reports whether a peer is to give back what it has above the least.
func (p *shares) recall(s *share) bool {
	if s.out <= p.least+1 || s.recalled { // with the message that it takes, nothing would be won
		return false
	}
	s.recalled = true
	return true
}
