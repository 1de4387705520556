package qp

// QP is a reliable-connection queue pair of any device.
//
// PostSend belongs to one goroutine at a time, and so does PostRecv; the two may
// run beside each other. Modify, Query and Close are for the control path and
// may be called from any goroutine, though not beside a post.
type QP interface {
	// Num is the queue pair's number, unique on its device.
	Num() Num
	// Caps are the capacities that the device gave.
	Caps() Caps
	// State is the state as software knows it, without asking the device. It
	// becomes Err when an error completion was polled.
	State() State
	// PostSend posts requests in order with one doorbell and says how many were
	// taken. When n < len(wrs), the error tells why wrs[n] was refused
	// (ErrQueueFull, a failed Check, ErrState); those before it are posted. It
	// does not allocate.
	PostSend(wrs []SendWR) (n int, err error)
	// PostRecv posts receives, as PostSend does. A queue pair with a shared receive
	// queue refuses with ErrSharedRecv.
	PostRecv(wrs []RecvWR) (n int, err error)
	// Modify sets the attributes named by mask; see CheckTransition for what each
	// step needs. Moving to Err flushes everything posted.
	Modify(a *Attr, mask AttrMask) error
	// Query asks the device for the attributes.
	Query() (Attr, error)
	// Close destroys the queue pair. Requests not yet completed are forgotten:
	// to get their completions, move it to Err and drain first. The second time
	// it fails with ErrClosed.
	Close() error
}
