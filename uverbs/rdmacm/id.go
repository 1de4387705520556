package rdmacm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// ID is one end of a connection, or a listener. Its methods may be called from any
// goroutine, Next from one at a time.
type ID struct {
	c       *Channel
	uid     uint64
	handle  uint32        // the kernel's number
	arrived chan struct{} // has an element when there is something to look at
	use     sync.RWMutex  // held for reading by commands: Close waits, for the kernel uses numbers again

	// c.mu guards:
	queue    []Event
	reported uint32 // events that the kernel reported
	closed   bool
}

// CreateID makes an ID for reliable connections (port space TCP).
func (c *Channel) CreateID() (*ID, error) {
	c.mu.Lock()
	c.nextUID++
	id := &ID{c: c, uid: c.nextUID, arrived: make(chan struct{}, 1)}
	c.byUID[id.uid] = id
	c.mu.Unlock()
	b := newBuffer(cmdCreateID)
	createIDUID.Put(b.arg(), id.uid)
	createIDPS.Put(b.arg(), psTCP)
	createIDQPType.Put(b.arg(), qpTypeRC)
	err := c.do(cmdCreateID, b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.byUID, id.uid)
		return nil, fail(cmdCreateID.op, "", err)
	}
	id.handle = createIDRespID.Get(b.resp)
	c.byID[id.handle] = id
	return id, nil
}

// do makes a command whose buffer is filled in.
func (id *ID) do(cmd *command, b *buffer, object string) error {
	id.use.RLock()
	defer id.use.RUnlock()
	id.c.mu.Lock()
	closed := id.closed
	id.c.mu.Unlock()
	if closed {
		return fail(cmd.op, object, verbs.ErrClosed)
	}
	if err := id.c.do(cmd, b); err != nil {
		return fail(cmd.op, object, err)
	}
	return nil
}

// Next waits for the next event. The error is ctx's, or wraps [verbs.ErrClosed] when
// the ID or its channel was closed. An event that reports a failure is an event
// nonetheless, see [Event.Err].
func (id *ID) Next(ctx context.Context) (Event, error) {
	for {
		id.c.mu.Lock()
		switch {
		case id.closed:
			id.c.mu.Unlock()
			return Event{}, verbs.ErrClosed
		case len(id.queue) > 0:
			e := id.queue[0]
			id.queue = id.queue[1:]
			id.c.mu.Unlock()
			return e, nil
		}
		id.c.mu.Unlock()
		select {
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-id.arrived:
		case id.c.turn <- struct{}{}:
			err := id.c.read(ctx, id)
			<-id.c.turn
			if err != nil {
				return Event{}, err
			}
		}
	}
}

// signal makes Next look again. c.mu is held.
func (id *ID) signal() {
	select {
	case id.arrived <- struct{}{}:
	default:
	}
}

// Close destroys the ID: a connection ends, a connection not yet accepted is rejected,
// a listener stops, and the requests that nobody took from it are rejected. Next
// returns [verbs.ErrClosed]. When Close returns, every event that the kernel reported
// for the ID was handed over or dropped.
func (id *ID) Close() error {
	id.c.mu.Lock()
	if id.closed {
		id.c.mu.Unlock()
		return fail(cmdDestroyID.op, "", verbs.ErrClosed)
	}
	id.closed = true
	pending := id.queue
	id.queue = nil
	id.signal()
	id.c.mu.Unlock()
	id.c.nudge()
	id.use.Lock()
	err := id.destroy()
	id.use.Unlock()
	for _, e := range pending {
		if e.New != nil {
			e.New.Close()
		}
	}
	if err != nil {
		return fail(cmdDestroyID.op, "", err)
	}
	return nil
}

// destroy destroys the kernel's object and forgets it. The kernel reports an event
// and the channel counts it under one lock, so both counts agree when the ID is gone.
func (id *ID) destroy() error {
	b := newBuffer(cmdDestroyID)
	destroyIDID.Put(b.arg(), id.handle)
	err := id.c.do(cmdDestroyID, b)
	id.c.mu.Lock()
	defer id.c.mu.Unlock()
	id.closed = true
	delete(id.c.byUID, id.uid)
	if id.c.byID[id.handle] == id { // the number may be in use again
		delete(id.c.byID, id.handle)
	}
	if err != nil {
		return err
	}
	if n := destroyIDRespEvents.Get(b.resp); n != id.reported {
		return fmt.Errorf("%d events were read, but the kernel reported %d", id.reported, n)
	}
	return nil
}

// SetTOS chooses the type of service of the way: on RoCE v2 the traffic class of
// packets, and by the interface's mapping the priority. It is set before ResolveRoute.
func (id *ID) SetTOS(tos uint8) error {
	return id.setOption(idTOS, []byte{tos}, fmt.Sprintf("type of service %d", tos))
}

// SetIPv6Only makes a listener on an IPv6 address, also on ::, take no IPv4. It is set
// before Bind.
func (id *ID) SetIPv6Only() error {
	return id.setOption(idAfonly, binary.NativeEndian.AppendUint32(nil, 1), "IPv6 only")
}

func (id *ID) setOption(name uint32, value []byte, object string) error {
	b := newBuffer(cmdSetOption)
	copy(b.resp, value)
	setOptionID.Put(b.arg(), id.handle)
	setOptionLevel.Put(b.arg(), optionID)
	setOptionName.Put(b.arg(), name)
	setOptionLength.Put(b.arg(), uint32(len(value)))
	return id.do(cmdSetOption, b, object)
}

// Bind gives the ID a local address. An unspecified one (0.0.0.0, ::) is of all
// devices; port 0 takes a free one, see LocalAddr.
func (id *ID) Bind(addr netip.AddrPort) error {
	b := newBuffer(cmdBindIP)
	if err := putAddr(bindIPAddr.In(b.arg()), addr); err != nil {
		return fail(cmdBindIP.op, addr.String(), err)
	}
	bindIPID.Put(b.arg(), id.handle)
	return id.do(cmdBindIP, b, addr.String())
}

// Listen makes the ID a listener for up to backlog requests that nobody took yet; 0 is
// as many as the kernel allows.
func (id *ID) Listen(backlog int) error {
	b := newBuffer(cmdListen)
	listenID.Put(b.arg(), id.handle)
	listenBacklog.Put(b.arg(), uint32(min(max(backlog, 0), math.MaxInt32)))
	return id.do(cmdListen, b, "")
}

// ResolveAddr finds the device and the GIDs of the way to a peer; local may be zero
// for any. Event AddrResolved or AddrError tells the end.
func (id *ID) ResolveAddr(local, remote netip.AddrPort, timeout time.Duration) error {
	b := newBuffer(cmdResolveIP)
	err := putAddr(resolveIPSrc.In(b.arg()), local)
	if err == nil {
		err = putAddr(resolveIPDst.In(b.arg()), remote)
	}
	if err != nil {
		return fail(cmdResolveIP.op, remote.String(), err)
	}
	resolveIPID.Put(b.arg(), id.handle)
	resolveIPTimeout.Put(b.arg(), millis(timeout))
	return id.do(cmdResolveIP, b, remote.String())
}

// ResolveRoute finds the way itself. Event RouteResolved or RouteError tells the end.
func (id *ID) ResolveRoute(timeout time.Duration) error {
	b := newBuffer(cmdResolveRoute)
	resolveRouteID.Put(b.arg(), id.handle)
	resolveRouteTimeout.Put(b.arg(), millis(timeout))
	return id.do(cmdResolveRoute, b, "")
}

func millis(d time.Duration) uint32 { return uint32(min(max(d.Milliseconds(), 1), math.MaxInt32)) }

// Route tells the addresses of the ID and the device that it goes through: after
// AddrResolved, or of a connect request.
func (id *ID) Route() (Route, error) {
	r, err := id.queryRoute()
	if err != nil {
		return Route{}, err
	}
	out := Route{Local: r.local, Remote: r.remote, Port: r.port, SGID: r.sgid, DGID: r.dgid}
	if r.port == 0 {
		return Route{}, fail(cmdQueryRoute.op, r.remote.String(), fmt.Errorf("%w: the address is not resolved", verbs.ErrNotFound))
	}
	if out.Device, err = r.device(id.c.sys.verbs()); err != nil {
		return Route{}, fail(cmdQueryRoute.op, r.remote.String(), err)
	}
	return out, nil
}

// LocalAddr tells the address that the ID is bound to.
func (id *ID) LocalAddr() (netip.AddrPort, error) {
	r, err := id.queryRoute()
	return r.local, err
}

func (id *ID) queryRoute() (rawRoute, error) {
	b := newBuffer(cmdQueryRoute)
	queryID.Put(b.arg(), id.handle)
	if err := id.do(cmdQueryRoute, b, ""); err != nil {
		return rawRoute{}, err
	}
	return decodeRoute(b.resp)
}

// InitQPAttr gives the attributes, and their mask, with which Modify takes the ID's
// queue pair to INIT, RTR or RTS. access is what the peer may do through it.
func (id *ID) InitQPAttr(state qp.State, access mr.Access) (qp.Attr, qp.AttrMask, error) {
	b := newBuffer(cmdInitQPAttr)
	initQPAttrID.Put(b.arg(), id.handle)
	initQPAttrState.Put(b.arg(), uint32(state))
	if err := id.do(cmdInitQPAttr, b, "for "+state.String()); err != nil {
		return qp.Attr{}, 0, err
	}
	return decodeAttr(b.resp, access)
}

// Connect asks the peer for a connection, after RouteResolved. Event ConnectResponse,
// Rejected, Unreachable or ConnectError tells the end. The kernel tries for more than a
// minute: close the ID to give up before.
func (id *ID) Connect(p ConnParam) error {
	if err := checkPrivate(p.Private, MaxRequestPrivate); err != nil {
		return fail(cmdConnect.op, "", err)
	}
	b := newBuffer(cmdConnect)
	p.put(connectParam.In(b.arg()))
	connectID.Put(b.arg(), id.handle)
	return id.do(cmdConnect, b, "")
}

// Establish tells the peer that our queue pair is in RTS: the active side's answer to
// ConnectResponse.
func (id *ID) Establish() error {
	b := newBuffer(cmdEstablish)
	acceptID.Put(b.arg(), id.handle)
	return id.do(cmdEstablish, b, "")
}

// Accept accepts a connect request: our queue pair is in RTS. Event Established tells
// that the peer's is too; until Accept the kernel has no events for the ID.
func (id *ID) Accept(p ConnParam) error {
	if err := checkPrivate(p.Private, MaxAcceptPrivate); err != nil {
		return fail(cmdAccept.op, "", err)
	}
	b := newBuffer(cmdAccept)
	acceptUID.Put(b.arg(), id.uid)
	p.put(acceptParam.In(b.arg()))
	acceptID.Put(b.arg(), id.handle)
	return id.do(cmdAccept, b, "")
}

// Reject refuses a connect request; the peer sees [ReasonConsumer] and private. The ID
// is still to be closed.
func (id *ID) Reject(private []byte) error {
	if err := checkPrivate(private, MaxRejectPrivate); err != nil {
		return fail(cmdReject.op, "", err)
	}
	b := newBuffer(cmdReject)
	rejectID.Put(b.arg(), id.handle)
	copy(rejectPrivate.In(b.arg()), private)
	rejectPrivateLen.Put(b.arg(), uint8(len(private)))
	return id.do(cmdReject, b, "")
}

// Disconnect ends a connection, or answers the peer's end. The peer's event
// Disconnected tells it; ours comes when the peer calls Disconnect too.
func (id *ID) Disconnect() error {
	b := newBuffer(cmdDisconnect)
	disconnectID.Put(b.arg(), id.handle)
	return id.do(cmdDisconnect, b, "")
}

func checkPrivate(b []byte, most int) error {
	if len(b) > most {
		return fmt.Errorf("%w: %d bytes of private data, at most %d", verbs.ErrLimit, len(b), most)
	}
	return nil
}
