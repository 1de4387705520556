package rdmacm

import (
	"context"

	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/verbs"
)

// Channel is one descriptor of the connection manager's device node: IDs are made on
// it, and it delivers their events. Its methods may be called from any goroutine.
//
// The kernel gives the events of all IDs in one queue. The goroutine that waits for an
// event of its ID (ID.Next) takes its turn to read, hands each event to the ID it is of,
// and passes the turn on; so there is no goroutine that only reads.
type Channel struct {
	sys  *System
	f    *os.File
	raw  syscall.RawConn
	turn chan struct{} // held by the goroutine that reads

	mu      sync.Mutex // also held over reading an event and handing it over
	event   *buffer
	nextUID uint64
	byUID   map[uint64]*ID
	byID    map[uint32]*ID // by the kernel's number
	refs    int            // of a shared channel: listener and connections
}

// past is a deadline that ends a read at once.
var past = time.Unix(1, 0)

// Open opens the connection manager of the kernel that runs.
func Open() (*Channel, error) { return (&System{}).Open() }

// Open opens the connection manager.
func (s *System) Open() (*Channel, error) {
	fd, err := s.open()
	if err != nil {
		return nil, err
	}
	c := &Channel{
		sys: s, f: os.NewFile(uintptr(fd), s.node()), turn: make(chan struct{}, 1), event: newBuffer(cmdGetEvent),
		byUID: map[uint64]*ID{}, byID: map[uint32]*ID{}, refs: 1,
	}
	if err = c.f.SetReadDeadline(time.Time{}); err == nil {
		c.raw, err = c.f.SyscallConn()
	}
	if err != nil {
		c.f.Close()
		return nil, &verbs.OpError{Op: "open", Device: device, Object: s.node(), Err: errors.Wrap(err, "the descriptor cannot be polled")}
	}
	return c, nil
}

// Close closes the channel. The kernel destroys what is left on it, which ends its
// connections; waiting goroutines get [verbs.ErrClosed].
func (c *Channel) Close() error {
	if err := c.f.Close(); err != nil {
		return fail("close", "", verbs.ErrClosed)
	}
	return nil
}

// do makes a command on the descriptor.
func (c *Channel) do(cmd *command, b *buffer) error {
	var errno syscall.Errno
	if err := c.raw.Control(func(fd uintptr) { errno = b.do(c.sys, cmd, int(fd)) }); err != nil {
		return verbs.ErrClosed
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// nudge ends the read that goes on.
func (c *Channel) nudge() { c.f.SetReadDeadline(past) }

// read reads one event and hands it over, unless id has something to look at before.
// The caller has the turn.
func (c *Channel) read(ctx context.Context, id *ID) error {
	stop := context.AfterFunc(ctx, c.nudge)
	defer stop()
	for {
		// Whoever ends the read says why first and moves the deadline then. So clearing
		// the deadline before looking for a reason loses none.
		if err := c.f.SetReadDeadline(time.Time{}); err != nil {
			return verbs.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var orphan *ID
		var result error
		err := c.raw.Read(func(fd uintptr) bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			if id.closed || len(id.queue) > 0 {
				return true
			}
			errno := c.event.do(c.sys, cmdGetEvent, int(fd))
			switch {
			case errno == syscall.EAGAIN:
				return false
			case errno != 0:
				result = errno
			default:
				orphan, result = c.route(c.event.resp)
			}
			return true
		})
		if orphan != nil {
			orphan.destroy()
		}
		switch {
		case err == nil && result != nil:
			return fail(cmdGetEvent.op, "", result)
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return verbs.ErrClosed
		}
	}
}

// route hands an event to its ID. It gives the ID of a connect request that nobody
// will see. c.mu is held.
func (c *Channel) route(b []byte) (orphan *ID, err error) {
	e, err := decodeEvent(b)
	if err != nil {
		return nil, err
	}
	id := c.byUID[e.uid]
	if id == nil && e.uid == 0 { // kernels of before 2014 lose the uid of Established
		id = c.byID[e.handle]
	}
	if e.Type == ConnectRequest {
		e.New = c.add(e.handle)
	}
	if id == nil {
		return e.New, nil
	}
	id.reported++
	if id.closed || len(id.queue) >= maxQueue {
		return e.New, nil
	}
	id.queue = append(id.queue, e.Event)
	id.signal()
	return nil, nil
}

// maxQueue is how many events wait for an ID's Next. Only a listener can get that
// many; more requests are refused.
const maxQueue = 1024

// add makes an ID of the kernel's. c.mu is held.
func (c *Channel) add(handle uint32) *ID {
	c.nextUID++
	id := &ID{c: c, uid: c.nextUID, handle: handle, arrived: make(chan struct{}, 1)}
	c.byUID[id.uid], c.byID[handle] = id, id
	return id
}

// retain and release count the users of a shared channel; the last one closes it.
func (c *Channel) retain() {
	c.mu.Lock()
	c.refs++
	c.mu.Unlock()
}

func (c *Channel) release() error {
	c.mu.Lock()
	c.refs--
	last := c.refs == 0
	c.mu.Unlock()
	if last {
		return c.Close()
	}
	return nil
}
