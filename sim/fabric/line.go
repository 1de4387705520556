package fabric

import "github.com/byteexpress/byteexpress/sim/nic"

// line is queue pairs that wait, first in, first out.
type line struct {
	qps   []*nic.QP
	first int
}

func (l *line) empty() bool { return l.first == len(l.qps) }

func (l *line) push(q *nic.QP) {
	if l.first > 32 && l.first > len(l.qps)/2 { // most of it is behind us
		n := copy(l.qps, l.qps[l.first:])
		clear(l.qps[n:])
		l.qps, l.first = l.qps[:n], 0
	}
	l.qps = append(l.qps, q)
}

// pop takes the first. Preconditions: there is one.
func (l *line) pop() *nic.QP {
	q := l.qps[l.first]
	l.qps[l.first] = nil
	if l.first++; l.first == len(l.qps) {
		l.qps, l.first = l.qps[:0], 0
	}
	return q
}
