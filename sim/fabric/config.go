package fabric

import (
	"cmp"
	"io"
	"math"

	"github.com/pkg/errors"

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

// check refuses what no network has, and with what a simulation would not end.
func (c *Config) check() error {
	s, n, d := &c.Switch, &c.NIC, &c.NIC.DCQCN
	least := int64(0) // of what must not be 0 with congestion control
	if d.enabled() {
		least = 1
	}
	for _, f := range []struct {
		name         string
		v, low, high int64
	}{
		{"Switch.BufferBytes", int64(s.BufferBytes), 1, math.MaxInt64},
		{"Switch.EgressBytes", int64(s.EgressBytes), 0, math.MaxInt64},
		{"Switch.Latency", int64(s.Latency), 0, int64(des.Second)},
		{"Switch.ECN.KminBytes", int64(s.ECN.KminBytes), 0, int64(s.ECN.KmaxBytes)},
		{"NIC.TxLatency", int64(n.TxLatency), 0, int64(des.Second)},
		{"NIC.RxLatency", int64(n.RxLatency), 0, int64(des.Second)},
		{"NIC.Quantum", int64(n.Quantum), 1, math.MaxInt32},
		{"NIC.MTU", int64(n.MTU), int64(qp.MTU256), int64(qp.MTU4096)},
		{"NIC.DCQCN.CNPInterval", int64(d.CNPInterval), 0, int64(des.Never / 2)},
		{"NIC.DCQCN.AlphaTimer", int64(d.AlphaTimer), 0, int64(des.Never / 2)},
		{"NIC.DCQCN.IncreaseTimer", int64(d.IncreaseTimer), least, int64(des.Never / 2)},
		{"NIC.DCQCN.IncreaseBytes", d.IncreaseBytes, 0, math.MaxInt64},
		{"NIC.DCQCN.FastSteps", int64(d.FastSteps), 0, math.MaxInt32},
		{"NIC.DCQCN.GainShift", int64(d.GainShift), 0, 20},
		{"NIC.DCQCN.Rai", d.Rai, 0, maxGbps * 1e9},
		{"NIC.DCQCN.Rhai", d.Rhai, 0, maxGbps * 1e9},
		{"NIC.DCQCN.Rmin", d.Rmin, least, maxGbps * 1e9},
		{"NIC.DCQCN.DecreaseGap", int64(d.DecreaseGap), 0, int64(des.Never / 2)},
	} {
		if f.v < f.low || f.v > f.high {
			return errors.Errorf("config: %s is %d, want %d to %d", f.name, f.v, f.low, f.high)
		}
	}
	if p := s.ECN.Pmax; !(p >= 0 && p <= 1) {
		return errors.Errorf("config: Switch.ECN.Pmax is %v, want 0 to 1", p)
	}
	return nil
}
