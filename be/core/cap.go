package core

// Cap bounds the bytes of fragments that many engines together have posted and not
// completed, so that a node with many engines cannot flood its own port. All of
// them are driven by one goroutine. An engine that finds no room queues up; one at
// a time is woken, posts one fragment, and goes to the end of the queue.
type Cap struct {
	limit, posted int
	head, tail    *Engine // that wait
	wake          func(Handler)
}

// capWait is an engine's place in the queue of its Cap.
type capWait struct {
	prev, next *Engine
	waits      bool
	need       int // bytes of its next fragment
}

// NewCap makes a bound of limit bytes, at least a fragment of each engine. wake is
// called with the handler of an engine that has room now: its Flush is due. It
// must not call Flush itself.
func NewCap(limit int, wake func(Handler)) *Cap { return &Cap{limit: limit, wake: wake} }

// Posted is the number of bytes posted and not completed.
func (c *Cap) Posted() int { return c.posted }

func (c *Cap) fits(n int) bool { return c.posted == 0 || c.posted+n <= c.limit }

// room reports whether an engine may post n bytes: they fit, and nobody waits who
// came before.
func (c *Cap) room(e *Engine, n int) bool {
	return (c.head == nil || c.head == e) && c.fits(n)
}

// wait puts an engine at the end of the queue, if it is not in it.
func (c *Cap) wait(e *Engine, n int) {
	w := &e.capWait
	w.need = n
	if w.waits {
		return
	}
	w.waits, w.prev, w.next = true, c.tail, nil
	if c.tail != nil {
		c.tail.capWait.next = e
	} else {
		c.head = e
	}
	c.tail = e
}

// take counts n bytes that an engine posts. If it was its turn, the next one's
// has come.
func (c *Cap) take(e *Engine, n int) {
	c.posted += n
	c.leave(e)
}

// leave takes an engine out of the queue, if it is in it. The Cap may be nil.
func (c *Cap) leave(e *Engine) {
	if c == nil || !e.capWait.waits {
		return
	}
	w := e.capWait
	e.capWait = capWait{}
	if w.prev != nil {
		w.prev.capWait.next = w.next
	} else {
		c.head = w.next
	}
	if w.next != nil {
		w.next.capWait.prev = w.prev
	} else {
		c.tail = w.prev
	}
	if w.prev == nil {
		c.call()
	}
}

// release counts n completed bytes.
func (c *Cap) release(n int) {
	if n > 0 {
		c.posted -= n
		c.call()
	}
}

// call wakes the engine whose turn it is, if there is room for it.
func (c *Cap) call() {
	if e := c.head; e != nil && c.fits(e.capWait.need) {
		c.wake(e.h)
	}
}
