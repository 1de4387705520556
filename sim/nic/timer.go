package nic

import "time"

// never is no deadline.
const never = time.Duration(1<<63 - 1)

// timers is a binary heap of queue pairs by the time at which they are looked at
// next. That time may be earlier than the queue pair's true deadline, since
// acknowledgement deadlines move on with each message: a queue pair is put back
// lazily when its time comes. The times lie in the heap, so that to look at the first, as
// each event does, touches no queue pair.
type timers []timer

type timer struct {
	at time.Duration // q.wakeAt
	q  *QP
}

// arm makes sure that q is looked at by its deadline.
func (t *timers) arm(q *QP) {
	d := q.deadline()
	if d == never || q.timerAt >= 0 && q.wakeAt <= d {
		return
	}
	q.wakeAt = d
	if q.timerAt < 0 {
		q.timerAt = int32(len(*t))
		*t = append(*t, timer{q: q})
	}
	(*t)[q.timerAt].at = d
	t.up(int(q.timerAt))
}

// pop removes and gives a queue pair whose time has come, nil if none.
func (t *timers) pop(now time.Duration) *QP {
	if len(*t) == 0 || (*t)[0].at > now {
		return nil
	}
	q := (*t)[0].q
	t.remove(q)
	return q
}

func (t *timers) remove(q *QP) {
	i := int(q.timerAt)
	if i < 0 {
		return
	}
	h := *t
	last := len(h) - 1
	h[i] = h[last]
	h[i].q.timerAt = int32(i)
	h[last] = timer{}
	*t = h[:last]
	q.timerAt = -1
	if i < last {
		t.down(i)
		t.up(i)
	}
}

func (t timers) swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].q.timerAt, t[j].q.timerAt = int32(i), int32(j)
}

func (t timers) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if t[p].at <= t[i].at {
			return
		}
		t.swap(p, i)
		i = p
	}
}

func (t timers) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(t) {
			return
		}
		if c+1 < len(t) && t[c+1].at < t[c].at {
			c++
		}
		if t[i].at <= t[c].at {
			return
		}
		t.swap(i, c)
		i = c
	}
}
