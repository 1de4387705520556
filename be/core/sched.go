package core

// ring is a circular list of sockets that have work of one kind. The link of
// that kind is part of the socket, so nothing is allocated and idle sockets cost
// nothing.
type ring struct {
	head *link // next to visit
	n    int
}

// link is a socket's place in the ring of one kind of work.
type link struct {
	prev, next *link
	in         *ring // nil: in none
	sock       *Socket
	round      uint64 // in which it had its last share
	deficit    int    // bytes that are left of that
}

// add puts a socket at the end of the ring. It is in none.
func (r *ring) add(l *link) {
	if r.head == nil {
		l.prev, l.next = l, l
		r.head = l
	} else {
		last := r.head.prev
		l.prev, l.next = last, r.head
		last.next, r.head.prev = l, l
	}
	l.in = r
	r.n++
}

// remove takes a socket out of the ring that it is in, if any.
func (l *link) remove() {
	r := l.in
	if r == nil {
		return
	}
	if l.next == l {
		r.head = nil
	} else {
		l.prev.next, l.next.prev = l.next, l.prev
		if r.head == l {
			r.head = l.next
		}
	}
	l.prev, l.next, l.in = nil, nil, nil
	r.n--
}

// moveTo puts a socket at the end of another ring.
func (l *link) moveTo(r *ring) {
	l.remove()
	r.add(l)
}

// turns is a deficit round robin over the sockets with work of one kind: those
// that may still be visited in the present round, and those that have had their
// share of it. There is one for messages that begin, which need credits, and one
// for fragments, which need room in the window: so that neither has to look at
// sockets that only the other could serve.
type turns struct {
	rings   [2]ring
	now     int // which of the two is the present round
	round   uint64
	quantum int // bytes a round for each of a socket's weight
}

func (t *turns) current() *ring { return &t.rings[t.now] }

// n is the number of sockets with work of this kind.
func (t *turns) n() int { return t.rings[0].n + t.rings[1].n }

// add has a socket visited in the present round, unless it waits for a visit
// already.
func (t *turns) add(l *link) {
	if l.in == nil {
		t.rings[t.now].add(l)
	}
}

// next gives the socket to visit, and begins a round when all have had their
// share. There is one.
func (t *turns) next() *Socket {
	if t.rings[t.now].n == 0 {
		t.now = 1 - t.now
		t.round++
	}
	return t.rings[t.now].head.sock
}

// spend takes n bytes from the share of a socket and ends the visit: the next one
// is in this round if something of the share is left, else in the next round. more
// says whether it has more work of this kind.
//
// A round gives a socket a quantum for each of its weight, less what it overdrew:
// the last piece of a round may be longer than what is left (surplus round robin).
// What it had no use for is gone, so that nobody saves up.
func (t *turns) spend(l *link, n int, more bool) {
	if l.round != t.round {
		l.round = t.round
		l.deficit = min(l.deficit, 0) + t.quantum*l.sock.weight
	}
	l.deficit -= n
	switch {
	case !more:
		l.remove()
	case l.deficit <= 0 && t.n() == 1:
		t.round++ // nobody else is waiting
	case l.deficit <= 0:
		l.moveTo(&t.rings[1-t.now])
	default:
		l.in.head = l.next
	}
}

// MaxWeight is the largest weight of a socket.
const MaxWeight = 1 << 10

// SetWeight gives a socket w shares of a round instead of one; w is 1 to
// MaxWeight. It counts from the socket's next round.
func (e *Engine) SetWeight(s *Socket, w int) { s.weight = min(max(w, 1), MaxWeight) }
