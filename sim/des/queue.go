package des

// Kind names the handler of an event; Kernel.Handle gives it.
type Kind uint16

// event is one entry of the queue.
type event struct {
	at   Time
	seq  uint64 // order of scheduling
	kind Kind
	a, b int32
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// reach is how far ahead of the first event the near ones are. Almost everything
// that a network does takes less, from frames to system calls.
const reach = 16 * Microsecond

// queue is the events to come, in two heaps: the many that come soon, and those that
// come later, such as timers and the plans of applications. The first stays small
// and in the processor's cache, whatever waits in the second.
type queue struct {
	near, far heap
	limit     Time // near events are before it, far ones are not
}

func (q *queue) len() int { return len(q.near) + len(q.far) }

// next is the time of the first event, Never if there is none.
func (q *queue) next() Time {
	switch {
	case len(q.near) > 0:
		return q.near[0].at
	case len(q.far) > 0:
		return q.far[0].at
	}
	return Never
}

func (q *queue) push(e event) {
	if e.at < q.limit {
		q.near.push(e)
	} else {
		q.far.push(e)
	}
}

// pop takes the first event. Preconditions: there is one.
func (q *queue) pop() event {
	if len(q.near) == 0 {
		q.limit = q.far[0].at
		q.limit += min(reach, Never-q.limit)
		q.near.push(q.far.pop()) // also if it comes at Never, which no limit is above
		for len(q.far) > 0 && q.far[0].at < q.limit {
			q.near.push(q.far.pop())
		}
	}
	return q.near.pop()
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
