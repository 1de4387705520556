package core

// ring is a circular list of sockets that have work of one kind, for the round
// robin. The link of that kind is part of the socket, so nothing is allocated
// and idle sockets cost nothing.
type ring struct {
	head *link // next to visit
	n    int
}

type link struct {
	prev, next *link
	sock       *Socket
}

// add puts a socket at the end of the round, unless it is in the ring already.
func (r *ring) add(l *link) {
	if l.next != nil {
		return
	}
	if r.head == nil {
		l.prev, l.next = l, l
		r.head = l
	} else {
		last := r.head.prev
		l.prev, l.next = last, r.head
		last.next, r.head.prev = l, l
	}
	r.n++
}

// remove takes a socket out, if it is in the ring.
func (r *ring) remove(l *link) {
	if l.next == nil {
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
	l.prev, l.next = nil, nil
	r.n--
}

// rotate ends the visit of the head.
func (r *ring) rotate() {
	if r.head != nil {
		r.head = r.head.next
	}
}
