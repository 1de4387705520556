package scenario

import "github.com/byteexpress/byteexpress/sim/des"

// call is a connection on which requests are answered, in order: a message of one end
// and, some time after it arrived, one of the other end.
type call struct {
	l      *line
	under  []pending // requests that were not answered
	waits  []pending // of those, the ones that have not arrived
	broken bool
}

// pending is a request.
type pending struct {
	mark    mark
	size    int      // of the request
	reply   int      // bytes of the answer
	service des.Time // until the server answers
	done    func(ok bool)
}

func (b *bench) newCall(from, to int) (*call, error) {
	l, err := b.n.dial(from, to)
	if err != nil {
		return nil, err
	}
	c := &call{l: l}
	l.got[1] = func(size int) {
		p := c.waits[0]
		c.waits = c.waits[1:]
		b.received(size)
		answer := func() {
			if !c.broken {
				b.sent(c, l.send(1, p.reply, nil))
			}
		}
		if p.service == 0 {
			answer()
		} else {
			b.at(b.now()+p.service, answer)
		}
	}
	l.got[0] = func(size int) {
		p := c.under[0]
		c.under = c.under[1:]
		b.received(size)
		b.done(p.mark, p.size+p.reply)
		if p.done != nil {
			p.done(true)
		}
	}
	l.failed = func(error) { c.fail(b) }
	return c, nil
}

// ask sends a request of some class.
func (c *call) ask(b *bench, t *tally, size, reply int, service des.Time) {
	c.askThen(b, t, size, reply, service, nil)
}

// askThen is ask that calls done when the answer is here, or will not come.
func (c *call) askThen(b *bench, t *tally, size, reply int, service des.Time, done func(ok bool)) {
	p := pending{b.begin(t), size, reply, service, done}
	if c.broken {
		p.fail(b)
		return
	}
	c.under, c.waits = append(c.under, p), append(c.waits, p)
	b.sent(c, c.l.send(0, size, nil))
}

// fail ends what is under way without success.
func (c *call) fail(b *bench) {
	if c.broken {
		return
	}
	c.broken = true
	all := c.under
	c.under, c.waits = nil, nil
	for _, p := range all {
		p.fail(b)
	}
}

func (p *pending) fail(b *bench) {
	b.fail(p.mark)
	if p.done != nil {
		p.done(false)
	}
}

// sent looks at whether a message could be sent: where there are faults, the
// connection may have ended.
func (b *bench) sent(c *call, err error) {
	if err == nil {
		return
	}
	if len(b.s.Faults) == 0 {
		b.broke(err)
	}
	c.fail(b)
}

func (b *bench) failAll(m *marks) {
	for len(m.list) > 0 {
		b.fail(m.pop())
	}
}
