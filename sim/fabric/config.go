package fabric

import (
	"cmp"
	"io"

	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
)

// Defaults of a [Config].
const (
	// DefaultBufferBytes is the buffer of a 32 x 100 Gb/s switch chip.
	DefaultBufferBytes = 16 << 20
	// DefaultSwitchLatency is that of a chip with such a buffer, first bit in to
	// first bit out less the time of the frame.
	DefaultSwitchLatency = 500 * des.Nanosecond
	// DefaultTxLatency and DefaultRxLatency make half of the 1.63 us that a 64-byte
	// message takes there and back between two NICs that are joined directly.
	DefaultTxLatency = 420 * des.Nanosecond
	DefaultRxLatency = 390 * des.Nanosecond
	// DefaultQuantum is how many packets a queue pair sends in its turn.
	DefaultQuantum = 1
)

// Config is what a fabric is made of. The zero value takes every default. It is not
// changed after New.
type Config struct {
	Seed   uint64 // of keys, numbers, ways, losses and marks
	Switch SwitchConfig
	NIC    NICConfig
	// SkipWrites leaves the payload of WRITEs uncopied (see nic.Config): buffers that
	// only WRITEs touch may then be the same memory.
	SkipWrites bool
	// Trace is told of every frame that arrives or is lost, one line each:
	// picoseconds, the port's number, what happened, bytes. nil: nothing. A write
	// that fails ends the trace; Fabric.Err tells.
	Trace io.Writer
}

// SwitchConfig is what every switch is like.
type SwitchConfig struct {
	BufferBytes int      // shared by its ports; 0: the default
	EgressBytes int      // what one egress queue of a class may hold; 0: the whole buffer
	Latency     des.Time // 0: the default
	PFC         bool     // pause instead of dropping
	ECN         ECN
}

// ECN marks data frames by the length of the queue that they leave: never up to
// KminBytes, always above KmaxBytes, with a probability that grows to Pmax between.
// The zero value marks nothing.
type ECN struct {
	KminBytes, KmaxBytes int
	Pmax                 float64
}

// NICConfig is what every NIC is like.
type NICConfig struct {
	TxLatency des.Time // from the doorbell until the NIC looks at the request; 0: the default
	RxLatency des.Time // from the last bit until the completion; 0: the default
	Quantum   int      // packets a turn; 0: the default
	MTU       qp.MTU   // of the port; 0: 4096
	DCQCN     DCQCN    // congestion control; the zero value is without
}

// Link is a cable: both directions alike.
type Link struct {
	Gbps  int      // rate
	Delay des.Time // propagation, PHYs included
	Loss  float64  // share of frames that do not arrive
}

func (c *Config) setDefaults() {
	s, n := &c.Switch, &c.NIC
	s.BufferBytes = cmp.Or(s.BufferBytes, DefaultBufferBytes)
	s.Latency = cmp.Or(s.Latency, DefaultSwitchLatency)
	n.TxLatency = cmp.Or(n.TxLatency, DefaultTxLatency)
	n.RxLatency = cmp.Or(n.RxLatency, DefaultRxLatency)
	n.Quantum = cmp.Or(n.Quantum, DefaultQuantum)
	n.MTU = cmp.Or(n.MTU, qp.MTU4096)
}
