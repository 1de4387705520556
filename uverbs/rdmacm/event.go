package rdmacm

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// EventType is the kind of an event (enum rdma_cm_event_type).
type EventType uint32

// The events of connections. Multicast's are left out.
const (
	AddrResolved    EventType = 0  // RDMA_CM_EVENT_ADDR_RESOLVED
	AddrError       EventType = 1  // RDMA_CM_EVENT_ADDR_ERROR
	RouteResolved   EventType = 2  // RDMA_CM_EVENT_ROUTE_RESOLVED
	RouteError      EventType = 3  // RDMA_CM_EVENT_ROUTE_ERROR
	ConnectRequest  EventType = 4  // RDMA_CM_EVENT_CONNECT_REQUEST
	ConnectResponse EventType = 5  // RDMA_CM_EVENT_CONNECT_RESPONSE
	ConnectError    EventType = 6  // RDMA_CM_EVENT_CONNECT_ERROR
	Unreachable     EventType = 7  // RDMA_CM_EVENT_UNREACHABLE
	Rejected        EventType = 8  // RDMA_CM_EVENT_REJECTED
	Established     EventType = 9  // RDMA_CM_EVENT_ESTABLISHED
	Disconnected    EventType = 10 // RDMA_CM_EVENT_DISCONNECTED
	DeviceRemoval   EventType = 11 // RDMA_CM_EVENT_DEVICE_REMOVAL
	AddrChange      EventType = 14 // RDMA_CM_EVENT_ADDR_CHANGE
	TimewaitExit    EventType = 15 // RDMA_CM_EVENT_TIMEWAIT_EXIT
)

var eventNames = map[EventType]string{
	AddrResolved: "address resolved", AddrError: "address not resolved", RouteResolved: "route resolved", RouteError: "route not resolved",
	ConnectRequest: "connect request", ConnectResponse: "connect response", ConnectError: "connection not made", Unreachable: "peer unreachable",
	Rejected: "rejected by the peer", Established: "established", Disconnected: "disconnected", DeviceRemoval: "device removed",
	AddrChange: "address changed", TimewaitExit: "end of the wait after a connection",
}

// String names the event, as "connect request".
func (t EventType) String() string {
	if s, ok := eventNames[t]; ok {
		return s
	}
	return fmt.Sprintf("event %d", uint32(t))
}

// Event is something that happened to an ID. It is a copy: nothing of the kernel's is
// held, and it needs no acknowledgement.
type Event struct {
	Type   EventType
	Status int32 // 0, a negative errno, or of Rejected a Reason

	// New is the ID of the connection that a ConnectRequest asks for: the receiver's, to
	// accept, reject or close.
	New *ID

	// Param is what the peer told in a ConnectRequest, a ConnectResponse, a Rejected.
	Param ConnParam
}

// Err is nil for an event that reports progress or the end of a connection, and else
// an [EventError].
func (e *Event) Err() error {
	cause := error(nil)
	switch {
	case e.Status < 0:
		cause = syscall.Errno(-int64(e.Status))
	case e.Type == Rejected:
		cause = Reason(e.Status)
	case e.Status > 0:
		cause = fmt.Errorf("status %d", e.Status)
	}
	switch e.Type {
	case AddrError, RouteError, ConnectError, Unreachable, Rejected:
		if cause == nil {
			cause = errNoStatus
		}
	}
	if cause == nil {
		return nil
	}
	return &EventError{Type: e.Type, Err: cause, Private: e.Param.Private}
}

// ErrAddrChanged says that the way of a connection leads to another hardware address
// than when it was made: an interface failed over, or the address moved to another
// host. The queue pair goes on to send to the old one. Make the connection anew.
var ErrAddrChanged = errors.New("the hardware address of the way changed")

// ends is why an event ends a connection, or the making of one; nil if it does not, or
// if the peer wished it.
func (e *Event) ends() error {
	switch e.Type {
	case DeviceRemoval:
		return verbs.ErrDeviceLost
	case AddrChange:
		return ErrAddrChanged
	}
	return e.Err()
}

var errNoStatus = errors.New("the kernel tells no reason")

// EventError is an event that reports a failure.
type EventError struct {
	Type    EventType
	Err     error  // a syscall.Errno, or of Rejected a Reason
	Private []byte // of Rejected: what the peer sent along, see ConnParam.Private
}

// Error is the event and its cause.
func (e *EventError) Error() string { return fmt.Sprintf("%v: %v", e.Type, e.Err) }

// Unwrap gives the cause.
func (e *EventError) Unwrap() error { return e.Err }

// ConnParam is what the two ends of a connection tell each other.
type ConnParam struct {
	QPNum qp.Num // the sender's queue pair
	// Private is the sender's private data. Received, it fills all the room that the
	// message has, with zeros at the end (see Unframe).
	Private []byte
	// MaxReads and MaxDestReads are the READs and atomics that the sender of the message
	// wants to have outstanding, and can serve. In a received request and response the
	// kernel has turned them around: they are what the receiver may have outstanding
	// (MaxReads) and must serve (MaxDestReads).
	MaxReads, MaxDestReads uint8
	RetryCount             uint8 // 0..7: retries for want of an acknowledgement
	RNRRetry               uint8 // 0..7: retries when the receiver is not ready; 7 is for ever
}

// rawEvent is an event as the kernel tells it.
type rawEvent struct {
	uid    uint64
	handle uint32 // the kernel's id
	Event
}

// decodeEvent reads a struct rdma_ucm_event_resp, which may lack what is younger than
// the parameters.
func decodeEvent(b []byte) (rawEvent, error) {
	if len(b) < int(eventConn)+connParamSize {
		return rawEvent{}, fmt.Errorf("event of %d bytes, at least %d needed", len(b), int(eventConn)+connParamSize)
	}
	e := rawEvent{uid: eventUID.Get(b), handle: eventID.Get(b), Event: Event{
		Type: EventType(eventEvent.Get(b)), Status: int32(eventStatus.Get(b)), Param: decodeParam(eventConn.In(b)),
	}}
	return e, nil
}

func decodeParam(b []byte) ConnParam {
	p := ConnParam{
		QPNum: qp.Num(connParamQPNum.Get(b)), MaxReads: connParamMaxReads.Get(b), MaxDestReads: connParamMaxDestReads.Get(b),
		RetryCount: connParamRetry.Get(b), RNRRetry: connParamRNRRetry.Get(b),
	}
	if n := int(connParamPrivateLen.Get(b)); n > 0 { // at most 255, and there is room for 256
		p.Private = append([]byte(nil), connParamPrivate.In(b)[:n]...)
	}
	return p
}

// put writes the parameters to a zeroed struct.
func (p *ConnParam) put(b []byte) {
	connParamQPNum.Put(b, uint32(p.QPNum))
	copy(connParamPrivate.In(b), p.Private)
	connParamPrivateLen.Put(b, uint8(len(p.Private)))
	connParamMaxDestReads.Put(b, p.MaxDestReads)
	connParamMaxReads.Put(b, p.MaxReads)
	connParamRetry.Put(b, p.RetryCount)
	connParamRNRRetry.Put(b, p.RNRRetry)
	connParamValid.Put(b, 1)
}
