package des

// ring is events in order.
type ring struct {
	events []event // a power of two of them, or none
	first  int
	n      int
}

// at is the i-th of them.
func (r *ring) at(i int) *event { return &r.events[(r.first+i)&(len(r.events)-1)] }

// insert puts an event in its place, which mostly is at the end.
func (r *ring) insert(e *event) {
	if r.n == len(r.events) {
		r.grow()
	}
	i := r.n
	r.n++
	for ; i > 0; i-- {
		p := r.at(i - 1)
		if !e.before(p) {
			break
		}
		*r.at(i) = *p
	}
	*r.at(i) = *e
}

func (r *ring) grow() {
	events := make([]event, max(2*len(r.events), 4*ahead))
	for i := range r.n {
		events[i] = *r.at(i)
	}
	r.events, r.first = events, 0
}

// pop takes the first event. Preconditions: there is one.
func (r *ring) pop() event {
	e := *r.at(0)
	r.first++
	r.n--
	return e
}
