package hostcpu

import "github.com/byteexpress/byteexpress/sim/des"

// EngineCosts are those of a messaging engine on its core. The values of
// DefaultEngine are assumed.
type EngineCosts struct {
	WQE        des.Time // to build one
	Doorbell   des.Time // of each post of sends
	Receive    des.Time // to post one, in a batch
	EmptyPoll  des.Time // of the completion queue
	Completion des.Time // to take one
	Message    des.Time // of an engine: dispatch, window, credits
	Deliver    des.Time // a message reaches the application's thread, which polls for it; no core is busy for it
}

// DefaultEngine are the costs that simulations use if not told otherwise.
func DefaultEngine() EngineCosts {
	return EngineCosts{
		WQE: 60 * des.Nanosecond, Doorbell: 100 * des.Nanosecond, Receive: 30 * des.Nanosecond,
		EmptyPoll: 40 * des.Nanosecond, Completion: 80 * des.Nanosecond, Message: 300 * des.Nanosecond, Deliver: 500 * des.Nanosecond,
	}
}

// Percent are so many hundredths of the costs.
func (c EngineCosts) Percent(p int) EngineCosts {
	for _, t := range []*des.Time{&c.WQE, &c.Doorbell, &c.Receive, &c.EmptyPoll, &c.Completion, &c.Message, &c.Deliver} {
		*t = *t * des.Time(p) / 100
	}
	return c
}

// TCPCosts are those of the kernel's TCP stack. The values of DefaultTCP are
// assumed, and held to published throughput and latency by a test of package tcp.
type TCPCosts struct {
	SendCall    des.Time // system call
	SendSegment des.Time // of up to 64 KB: the stack
	Driver      des.Time // the same segment in the driver
	SendByte    des.Time // copied in
	Interrupt   des.Time // from the arrival of a packet until the stack polls the NIC; no core is busy for it
	Aggregate   des.Time // of received segments that GRO merged
	Ack         des.Time // received, without data
	RecvByte    des.Time // copied out
	Wake        des.Time // of a thread that sleeps
	RecvCall    des.Time // system call
}

// DefaultTCP are the costs that simulations use if not told otherwise.
func DefaultTCP() TCPCosts {
	return TCPCosts{
		SendCall: 1200 * des.Nanosecond, SendSegment: 2 * des.Microsecond, Driver: 800 * des.Nanosecond, SendByte: 80 * des.Picosecond,
		Interrupt: 8 * des.Microsecond, Aggregate: 2500 * des.Nanosecond, Ack: 500 * des.Nanosecond,
		RecvByte: 140 * des.Picosecond, Wake: 4 * des.Microsecond, RecvCall: 1500 * des.Nanosecond,
	}
}
