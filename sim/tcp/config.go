package tcp

import (
	"cmp"
	"math"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// Control is how the congestion window moves.
type Control uint8

// The ways of congestion control.
const (
	Cubic Control = iota // RFC 9438, with the region in which it is as fast as Reno
	DCTCP                // RFC 8257; switches must mark (fabric.SwitchConfig.LossyECN)
	Reno                 // RFC 5681
)

// String is the control's name.
func (c Control) String() string { return [...]string{"cubic", "dctcp", "reno", "?"}[min(c, Reno+1)] }

// Config says how every host's TCP works. The zero value is stock: see [Stock].
type Config struct {
	Control       Control
	MSS           int      // bytes of payload a segment; 0: 1460
	InitialWindow int      // segments; 0: 10 (RFC 6928)
	MinRTO        des.Time // least retransmission timeout; 0: 200 ms
	MinProbe      des.Time // least time to a tail loss probe; 0: 2 ms
	AckSegments   int      // segments that are acknowledged at once; 0: 2
	AckDelay      des.Time // after which fewer are; 0: 40 ms
	SendBuffer    int      // bytes not acknowledged that a connection keeps; 0: 4 MiB
	RecvBuffer    int      // bytes not read that a connection keeps; 0: 6 MiB
	TSOBytes      int      // of a burst that the stack handles as one; 0: 64 KiB, less is MSS
	GROBytes      int      // of received segments that are merged; 0: 64 KiB, less is none
	KeepWindow    bool     // after idle times; otherwise it falls back to the initial one
	Lossless      bool     // segments go in the class of RDMA, which PFC protects
	Cores         int      // of a host; 0: 16
	Costs         *hostcpu.TCPCosts
}

// Stock is Linux as it comes: Cubic, and no timeout below 200 ms.
func Stock() Config { return Config{} }

// Tuned is Cubic with a least timeout of 5 ms: what RDMA is compared with.
func Tuned() Config { return Config{MinRTO: 5 * des.Millisecond} }

// TunedDCTCP is DCTCP with a least timeout of 5 ms.
func TunedDCTCP() Config { return Config{Control: DCTCP, MinRTO: 5 * des.Millisecond} }

// minBuffer is two of the largest segments.
const minBuffer = 18_000

// probeFactor is how many round trips a tail loss probe waits (RFC 8985, 7.2).
const probeFactor = 2

// fill takes the defaults and checks the rest.
func (c *Config) fill() error {
	if c.Control > Reno {
		return errors.Errorf("config: Control is %d, want %d to %d", c.Control, Cubic, Reno)
	}
	for _, f := range []struct {
		name     string
		v        *int
		def, min int
	}{
		{"MSS", &c.MSS, 1460, 100},
		{"InitialWindow", &c.InitialWindow, 10, 1},
		{"AckSegments", &c.AckSegments, 2, 1},
		{"SendBuffer", &c.SendBuffer, 4 << 20, minBuffer},
		{"RecvBuffer", &c.RecvBuffer, 6 << 20, minBuffer},
		{"TSOBytes", &c.TSOBytes, 64 << 10, 1},
		{"GROBytes", &c.GROBytes, 64 << 10, 1},
		{"Cores", &c.Cores, 16, 1},
	} {
		if *f.v = cmp.Or(*f.v, f.def); *f.v < f.min || *f.v > math.MaxInt32 {
			return errors.Errorf("config: %s is %d, want %d to %d", f.name, *f.v, f.min, math.MaxInt32)
		}
	}
	if most := 9000 - headerBytes; c.MSS > most {
		return errors.Errorf("config: MSS is %d, want at most %d", c.MSS, most)
	}
	for _, f := range []struct {
		name string
		v    *des.Time
		def  des.Time
	}{
		{"MinRTO", &c.MinRTO, 200 * des.Millisecond},
		{"MinProbe", &c.MinProbe, 2 * des.Millisecond},
		{"AckDelay", &c.AckDelay, 40 * des.Millisecond},
	} {
		if *f.v = cmp.Or(*f.v, f.def); *f.v < 1 || *f.v > des.Second {
			return errors.Errorf("config: %s is %d ps, want 1 to %d", f.name, *f.v, des.Second)
		}
	}
	if c.Costs == nil {
		d := hostcpu.DefaultTCP()
		c.Costs = &d
	}
	return nil
}
