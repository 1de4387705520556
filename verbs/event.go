package verbs

import (
	"fmt"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
)

// EventType is the kind of an asynchronous event (enum ib_event_type).
type EventType uint8

// The events of enum ib_event_type, by their standard names. A device reports
// those of the objects that it has: path migration and subnet management are not
// used by this module.
const (
	EventCQError          EventType = 0
	EventQPFatal          EventType = 1
	EventQPRequestError   EventType = 2
	EventQPAccessError    EventType = 3
	EventCommEstablished  EventType = 4
	EventSQDrained        EventType = 5
	EventPathMigrated     EventType = 6
	EventPathMigrateError EventType = 7
	EventDeviceFatal      EventType = 8
	EventPortActive       EventType = 9
	EventPortError        EventType = 10
	EventLIDChange        EventType = 11
	EventPKeyChange       EventType = 12
	EventSMChange         EventType = 13
	EventSRQError         EventType = 14
	EventSRQLimit         EventType = 15
	EventLastWQEReached   EventType = 16
	EventClientReregister EventType = 17
	EventGIDChange        EventType = 18
)

var eventNames = [...]string{
	"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG", "PATH_MIG_ERR", "DEVICE_FATAL",
	"PORT_ACTIVE", "PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR", "SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED",
	"CLIENT_REREGISTER", "GID_CHANGE",
}

// String is the event's standard name.
func (t EventType) String() string {
	if int(t) < len(eventNames) {
		return eventNames[t]
	}
	return fmt.Sprintf("EVENT_%d", uint8(t))
}

// Event is an asynchronous event: something happened that no work request asked
// for. Which of the fields is set follows from the type.
type Event struct {
	Type EventType
	Port int    // port events
	QP   qp.Num // queue pair events
	CQ   cq.CQ  // EventCQError
	SRQ  qp.SRQ // EventSRQLimit, EventSRQError
}

// String names the event and its object.
func (e Event) String() string {
	switch {
	case e.Port != 0:
		return fmt.Sprintf("%v on port %d", e.Type, e.Port)
	case e.QP != 0:
		return fmt.Sprintf("%v on qp %#x", e.Type, uint32(e.QP))
	}
	return e.Type.String()
}
