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

// queue is a heap with four children a node: half as deep as a binary one, and the
// four lie in two cache lines.
type queue []event

const arity = 4

func (q *queue) push(e event) {
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
func (q *queue) pop() event {
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
