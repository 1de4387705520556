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
	// DefaultLossyShare lets one queue have as much as is left free.
	DefaultLossyShare = 1
	// DefaultLocalRoute and DefaultRoute are assumed.
	DefaultLocalRoute = 50 * des.Microsecond
	DefaultRoute      = des.Millisecond
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
	PauseShare  float64  // of the free buffer that frames of one ingress port may hold before it pauses its peer; 0: an eighth, twice that for each doubling of the slowest port's rate
	PauseBytes  int      // that they may hold whatever is free, instead; 0: a share
	PauseQuanta bool     // a pause ends by itself after 65,535 quanta, and is renewed before
	ECN         ECN      // of the data class
	LossyECN    ECN      // of the lossy class: of datagrams that allow it
	LossyShare  float64  // of the free buffer that one queue of the lossy class may hold; 0: the default
	// LocalRoute is how long a switch takes to stop using a link that died, and Route
	// the whole network to find new ways; 0: the defaults.
	LocalRoute, Route des.Time
}

// ECN marks frames of a class by the length of the queue that they leave: never up
// to KminBytes, always above KmaxBytes, with a probability that grows to Pmax
// between. The zero value marks nothing.
type ECN struct {
	KminBytes, KmaxBytes int
	Pmax                 float64
	Gbps                 int // rate of a port that the thresholds are for; others' are in proportion. 0: the same for all
}

// ECNLarge is the marking of large RDMA networks: 100 and 400 KB for each 25 Gb/s.
func ECNLarge() ECN { return ECN{KminBytes: 100_000, KmaxBytes: 400_000, Pmax: 0.2, Gbps: 25} }

// ECNDCTCP is the single threshold of DCTCP, 30 KB for each 10 Gb/s.
func ECNDCTCP() ECN { return ECN{KminBytes: 30_000, KmaxBytes: 30_000, Pmax: 1, Gbps: 10} }

// at is the marking of a port of some rate.
func (e ECN) at(gbps int) ECN {
	if e.Gbps > 0 {
		e.KminBytes = e.KminBytes * gbps / e.Gbps
		e.KmaxBytes = e.KmaxBytes * gbps / e.Gbps
	}
	return e
}

// NICConfig is what every NIC is like.
type NICConfig struct {
	TxLatency des.Time // from the doorbell until the NIC looks at the request; 0: the default
	RxLatency des.Time // from the last bit until the completion; 0: the default
	Quantum   int      // packets a turn; 0: the default
	MTU       qp.MTU   // of the port; 0: 4096
	DCQCN     DCQCN    // congestion control; the zero value is without
	CNPGap    des.Time // between any two CNPs of a NIC; one that comes sooner is not sent
	Contexts  Contexts // cache of queue pair contexts; the zero value has room for all
	WQEs      Cache    // of work requests, but for one that is posted alone, which its doorbell carries; the zero value has room for all
	Pages     Pages    // cache of the pages of registered memory; the zero value has room for all
	UD        UD       // cost of a datagram
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
	s.LossyShare = cmp.Or(s.LossyShare, DefaultLossyShare)
	s.LocalRoute = cmp.Or(s.LocalRoute, DefaultLocalRoute)
	s.Route = cmp.Or(s.Route, DefaultRoute)
	n.UD.setDefaults()
	n.Contexts.Gap = cmp.Or(n.Contexts.Gap, DefaultPacketGap)
	n.Pages.PageBytes = cmp.Or(n.Pages.PageBytes, DefaultPageBytes)
	n.TxLatency = cmp.Or(n.TxLatency, DefaultTxLatency)
	n.RxLatency = cmp.Or(n.RxLatency, DefaultRxLatency)
	n.Quantum = cmp.Or(n.Quantum, DefaultQuantum)
	n.MTU = cmp.Or(n.MTU, qp.MTU4096)
}

// check refuses what no network has, and with what a simulation would not end.
func (c *Config) check() error {
	s, n, d := &c.Switch, &c.NIC, &c.NIC.DCQCN
	least := least1(d.enabled()) // of what must not be 0 with congestion control
	for _, f := range []struct {
		name         string
		v, low, high int64
	}{
		{"Switch.BufferBytes", int64(s.BufferBytes), 1, math.MaxInt64},
		{"Switch.EgressBytes", int64(s.EgressBytes), 0, math.MaxInt64},
		{"Switch.PauseBytes", int64(s.PauseBytes), 0, math.MaxInt64},
		{"Switch.Latency", int64(s.Latency), 0, int64(des.Second)},
		{"Switch.ECN.KminBytes", int64(s.ECN.KminBytes), 0, int64(s.ECN.KmaxBytes)},
		{"Switch.ECN.Gbps", int64(s.ECN.Gbps), 0, maxGbps},
		{"Switch.LossyECN.KminBytes", int64(s.LossyECN.KminBytes), 0, int64(s.LossyECN.KmaxBytes)},
		{"Switch.LossyECN.Gbps", int64(s.LossyECN.Gbps), 0, maxGbps},
		{"Switch.LocalRoute", int64(s.LocalRoute), 0, int64(des.Never / 2)},
		{"Switch.Route", int64(s.Route), 0, int64(des.Never / 2)},
		{"NIC.CNPGap", int64(n.CNPGap), 0, int64(des.Second)},
		{"NIC.Contexts.Entries", int64(n.Contexts.Entries), 0, math.MaxInt32},
		{"NIC.Contexts.Fetches", int64(n.Contexts.Fetches), least1(n.Contexts.Entries > 0), maxFetches},
		{"NIC.Contexts.Miss", int64(n.Contexts.Miss), 0, int64(des.Second)},
		{"NIC.Contexts.ReadMiss", int64(n.Contexts.ReadMiss), 0, int64(des.Second)},
		{"NIC.Contexts.Gap", int64(n.Contexts.Gap), 0, int64(des.Second)},
		{"NIC.Contexts.ReadGap", int64(n.Contexts.ReadGap), 0, int64(des.Second)},
		{"NIC.WQEs.Entries", int64(n.WQEs.Entries), 0, math.MaxInt32},
		{"NIC.WQEs.Fetches", int64(n.WQEs.Fetches), least1(n.WQEs.Entries > 0), maxFetches},
		{"NIC.WQEs.Miss", int64(n.WQEs.Miss), 0, int64(des.Second)},
		{"NIC.Pages.Entries", int64(n.Pages.Entries), 0, math.MaxInt32},
		{"NIC.Pages.Fetches", int64(n.Pages.Fetches), least1(n.Pages.Entries > 0), maxFetches},
		{"NIC.Pages.Miss", int64(n.Pages.Miss), 0, int64(des.Second)},
		{"NIC.Pages.PageBytes", int64(n.Pages.PageBytes), 1, 1 << 30},
		{"NIC.UD.Message", int64(n.UD.Message), 0, int64(des.Second)},
		{"NIC.UD.Byte", int64(n.UD.Byte), 0, int64(des.Second)},
		{"NIC.TxLatency", int64(n.TxLatency), 0, int64(des.Second)},
		{"NIC.RxLatency", int64(n.RxLatency), 0, int64(des.Second)},
		{"NIC.Quantum", int64(n.Quantum), 1, math.MaxInt32},
		{"NIC.MTU", int64(n.MTU), int64(qp.MTU256), int64(qp.MTU4096)},
		{"NIC.DCQCN.CNPInterval", int64(d.CNPInterval), 0, int64(des.Never / 2)},
		{"NIC.DCQCN.AlphaTimer", int64(d.AlphaTimer), 0, int64(des.Never / 2)},
		{"NIC.DCQCN.IncreaseTimer", int64(d.IncreaseTimer), least, int64(des.Never / 2)},
		{"NIC.DCQCN.IncreaseBytes", d.IncreaseBytes, 0, math.MaxInt64},
		{"NIC.DCQCN.FastSteps", int64(d.FastSteps), 0, math.MaxInt32},
		{"NIC.DCQCN.Gain", d.Gain, 0, gainOne},
		{"NIC.DCQCN.Rai", d.Rai, 0, maxGbps * 1e9},
		{"NIC.DCQCN.Rhai", d.Rhai, 0, maxGbps * 1e9},
		{"NIC.DCQCN.Rmin", d.Rmin, least, maxGbps * 1e9},
		{"NIC.DCQCN.DecreaseGap", int64(d.DecreaseGap), 0, int64(des.Never / 2)},
	} {
		if f.v < f.low || f.v > f.high {
			return errors.Errorf("config: %s is %d, want %d to %d", f.name, f.v, f.low, f.high)
		}
	}
	for _, f := range []struct {
		name    string
		v, most float64
	}{
		{"Switch.ECN.Pmax", s.ECN.Pmax, 1},
		{"Switch.LossyECN.Pmax", s.LossyECN.Pmax, 1},
		{"Switch.LossyShare", s.LossyShare, 1000},
		{"Switch.PauseShare", s.PauseShare, 1000},
	} {
		if !(f.v >= 0 && f.v <= f.most) {
			return errors.Errorf("config: %s is %v, want 0 to %v", f.name, f.v, f.most)
		}
	}
	return nil
}

// maxFetches bounds the fetches of a cache at a time: PCIe has tags for no more.
const maxFetches = 1024

// least1 is 1 for what must not be 0.
func least1(must bool) int64 {
	if must {
		return 1
	}
	return 0
}
