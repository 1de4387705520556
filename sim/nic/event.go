package nic

import "github.com/byteexpress/byteexpress/verbs"

// Event is an asynchronous event of the NIC, for the driver to pass on. QP, CQ
// or SRQ is set for events of such an object, Port for those of a port.
type Event struct {
	Type verbs.EventType
	Port int
	QP   *QP
	CQ   *CQ
	SRQ  *SRQ
}

func (n *NIC) event(e Event) {
	n.stats.Events++
	if n.cfg.Event != nil {
		n.cfg.Event(e)
	}
}

func (n *NIC) qpEvent(q *QP, t verbs.EventType) { n.event(Event{Type: t, QP: q}) }
