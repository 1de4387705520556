package des

// Kind names the handler of an event; Kernel.Handle gives it.
type Kind uint16

// event is one entry of the queue.
type event struct {
	at   Time
	seq  uint64 // order of scheduling
	a, b int32
	link int32 // in a slot of the wheel; 0 elsewhere
	kind Kind
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue is the events to come: a few that come next, in order; those that come soon,
// in a wheel by time; and the others, such as timers and the plans of applications, in a
// heap, from which they go to the wheel. Almost everything that a network does is soon,
// from frames to system calls, and costs the same whatever else waits.
type queue struct {
	next  ring
	wheel wheel
	later heap
	base  Time // what is in next comes before it, what is elsewhere does not
}

const (
	// reach is how far the wheel goes from the base on.
	reach = (wheelSlots - 1) * slotTime
	// ahead is how many events are in next, if they are that near, and near how near. What
	// is scheduled before the last of them has to find its place among them.
	ahead = 32
	near  = 16 * Nanosecond
)

func (q *queue) len() int { return q.next.n + q.wheel.n + len(q.later) }

// time is that of the first event, Never if there is none.
func (q *queue) time() Time {
	switch {
	case q.next.n > 0:
		return q.next.at(0).at
	case q.wheel.n > 0:
		return q.wheel.first(q.base)
	case len(q.later) > 0:
		return q.later[0].at
	}
	return Never
}

func (q *queue) push(e event) {
	switch {
	case e.at < q.base:
		q.next.insert(&e)
	case e.at-q.base < reach:
		q.wheel.add(&e)
	default:
		q.later.push(e)
	}
}

// pop takes the first event. Preconditions: there is one.
func (q *queue) pop() event {
	if q.next.n == 0 {
		if q.wheel.n == 0 {
			at := q.later[0].at
			if at > Never-2*reach { // the end of time
				return q.later.pop()
			}
			q.setBase(at &^ (slotTime - 1))
		}
		q.turn(q.wheel.next(q.base))
	}
	e := q.next.pop()
	for q.next.n < ahead && q.wheel.n > 0 {
		at := q.wheel.next(q.base)
		if at-e.at > near {
			break
		}
		q.turn(at)
	}
	return e
}

// turn takes what is in the slot of a time into next.
func (q *queue) turn(at Time) {
	q.wheel.take(at, &q.next)
	q.setBase(at + slotTime)
}

// setBase moves the base on, and what comes soon then to the wheel.
func (q *queue) setBase(at Time) {
	q.base = at
	for len(q.later) > 0 && q.later[0].at-at < reach {
		e := q.later.pop()
		q.wheel.add(&e)
	}
}

// heap has four children a node: half as deep as a binary one, and the four lie in
// two cache lines.
type heap []event

const arity = 4

func (q *heap) push(e event) {
	h := append(*q, e)
	*q = h
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / arity
		if !e.before(&h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
}

// pop takes the first event. Preconditions: there is one.
func (q *heap) pop() event {
	h := *q
	first := h[0]
	n := len(h) - 1
	e := h[n]
	h = h[:n]
	*q = h
	if n == 0 {
		return first
	}
	i := 0
	for {
		c := arity*i + 1
		if c >= n {
			break
		}
		least := c
		for j := c + 1; j < min(c+arity, n); j++ {
			if h[j].before(&h[least]) {
				least = j
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
	return first
}
