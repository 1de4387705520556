package nic

import "github.com/byteexpress/byteexpress/qp"

// qpTable finds queue pairs by their numbers: each has the slot that its number is,
// modulo the number of slots, so that a look-up touches one line of the cache. Numbers
// whose slot is taken are not given out.
type qpTable struct {
	slots []*QP // a power of two, at most half of them in use
	n     int
}

// get gives the queue pair of a number, nil if there is none.
func (t *qpTable) get(num qp.Num) *QP {
	if len(t.slots) == 0 {
		return nil
	}
	if q := t.slots[int(num)&(len(t.slots)-1)]; q != nil && q.num == num {
		return q
	}
	return nil
}

// grow makes room for one more.
func (t *qpTable) grow() {
	if 2*t.n < len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]*QP, max(2*len(old), 4))
	for _, q := range old {
		if q != nil {
			t.slots[int(q.num)&(len(t.slots)-1)] = q
		}
	}
}

// isFree reports whether a number may be given out.
func (t *qpTable) isFree(num qp.Num) bool { return t.slots[int(num)&(len(t.slots)-1)] == nil }

func (t *qpTable) add(q *QP) {
	t.slots[int(q.num)&(len(t.slots)-1)] = q
	t.n++
}

func (t *qpTable) remove(q *QP) {
	t.slots[int(q.num)&(len(t.slots)-1)] = nil
	t.n--
}
