package cluster

import (
	"cmp"
	"math"
	"time"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// recvBit marks the IDs of receives; below it is the engine's number on its node.
const recvBit = 1 << 63

// segments is how many a send request may have.
func (c *Config) segments() int {
	if c.PackBytes > 0 {
		return 1 + core.MaxParts
	}
	return 2
}

// Config says how every node works. The zero value takes every default, which are
// those of be.Config where not said otherwise.
type Config struct {
	SendDepth    int    // requests in an engine's chain; 0: 32
	RecvDepth    int    // receives of an engine; 0: 64
	EagerBytes   int    // messages up to here are sent whole; 0: 8 KiB
	PackBytes    int    // messages up to here go several in one SEND, if they wait together; 0: none do
	Fragment     int    // bytes a WRITE; 0: 64 KiB
	Window       int    // bytes of fragments posted and not completed, of one engine, at least Fragment; 0: 256 KiB or that
	InboundBytes int    // of large messages that peers of a node send to it at a time, with WindowTarget; 0: 256 KiB or four fragments
	NodeWindow   int    // the same of all engines of a node; 0: no bound
	MaxMessage   int    // bytes; 0: 64 MiB
	Backlog      int    // messages of a socket that were not taken; 0: 128
	MaxSockets   int    // of an engine and side; 0: 65536
	QuotaBytes   int    // of large messages that a node receives; 0: 1 GiB
	Get          bool   // engines know get mode: Socket's large messages are READ after core.Engine.SetGet
	MTU          qp.MTU // path MTU; 0: the port's, 4096
	MemoryBytes  int    // registered memory of a node; 0: 1 GiB
	SpreadBytes  int    // of memory over which large messages are spread by chance, where WRITEs are not copied; 0: all are in the same place

	// Keepalive and PeerTimeout are as in be.Config, but 0 is never, so that a run
	// can come to rest. Linger and DrainTimeout: 0 is 2 s.
	Keepalive, PeerTimeout, Linger, DrainTimeout time.Duration

	// AckTimeout, RetryCount and RNRTimer of queue pairs; 0: the default of package qp.
	AckTimeout qp.AckTimeout
	RetryCount uint8
	RNRTimer   qp.RNRTimer

	// WindowTarget is of queueing; the window adapts to it between a fragment and
	// Window. 0: it is static.
	WindowTarget time.Duration

	// StepDelay is the time from the first completion, or call of the application,
	// until the node acts on it; 0: 500 ns.
	StepDelay des.Time

	// Costs of a node's processor, instead of StepDelay; nil: it takes no more than
	// that. Nodes then have a core for each thread and one for the application.
	Costs *hostcpu.EngineCosts

	// Threads is how many a node's engines are spread over in turn, as the workers of
	// be.Config; 0: 1.
	Threads int
}

// fill takes the defaults and checks the rest. The bounds are those of be.Config.
func (c *Config) fill() error {
	for _, f := range []struct {
		name          string
		v             *int
		def, min, max int
	}{
		{"SendDepth", &c.SendDepth, 32, 2, 1 << 15},
		{"RecvDepth", &c.RecvDepth, 64, 4, 1 << 15},
		{"EagerBytes", &c.EagerBytes, 8 << 10, 256, 1 << 20},
		{"PackBytes", &c.PackBytes, 0, 0, core.MaxPackLimit},
		{"Fragment", &c.Fragment, 64 << 10, 256, 1 << 30},
		{"Window", &c.Window, max(256<<10, c.Fragment), 256, 1 << 40},
		{"InboundBytes", &c.InboundBytes, core.InboundOf(0, c.Fragment), 256, math.MaxInt},
		{"MaxMessage", &c.MaxMessage, 64 << 20, 1, math.MaxInt32},
		{"Backlog", &c.Backlog, 128, 1, 1 << 20},
		{"MaxSockets", &c.MaxSockets, 1 << 16, 1, 1 << 24},
		{"QuotaBytes", &c.QuotaBytes, 1 << 30, 1, math.MaxInt},
		{"Threads", &c.Threads, 1, 1, 256},
		{"MemoryBytes", &c.MemoryBytes, 1 << 30, 1, math.MaxInt},
		{"SpreadBytes", &c.SpreadBytes, 0, 0, math.MaxInt},
	} {
		if *f.v = cmp.Or(*f.v, f.def); *f.v < f.min || *f.v > f.max {
			return errors.Errorf("config: %s is %d, want %d to %d", f.name, *f.v, f.min, f.max)
		}
	}
	c.MTU = cmp.Or(c.MTU, qp.MTU4096)
	c.Linger = cmp.Or(c.Linger, 2*time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 2*time.Second)
	c.StepDelay = cmp.Or(c.StepDelay, 500*des.Nanosecond)
	switch {
	case c.Window < c.Fragment:
		return errors.Errorf("config: Window is %d, want at least Fragment, %d", c.Window, c.Fragment)
	case c.NodeWindow != 0 && c.NodeWindow < c.Fragment:
		return errors.Errorf("config: NodeWindow is %d, want at least Fragment, %d, or 0", c.NodeWindow, c.Fragment)
	case c.MTU.Bytes() == 0:
		return errors.Errorf("config: MTU is %d, want %d to %d", c.MTU, qp.MTU256, qp.MTU4096)
	case c.StepDelay < 0:
		return errors.Errorf("config: StepDelay is %d ps, want 0 or more", c.StepDelay)
	}
	return nil
}

// engine is the configuration of engine number i of a node.
func (c *Config) engine(i int, initiator bool, bound *core.Cap, t *thread) core.Config {
	cfg := core.Config{
		SendDepth: c.SendDepth, RecvDepth: c.RecvDepth, PeerDepth: c.RecvDepth, EagerLimit: c.EagerBytes, Fragment: c.Fragment, Window: c.Window,
		MaxMessage: uint64(c.MaxMessage), Backlog: c.Backlog, PeerBacklog: c.Backlog, MaxSockets: c.MaxSockets, Initiator: initiator, Get: c.Get,
		Pack: c.PackBytes > 0, PackLimit: c.PackBytes, IDBase: uint64(i) << 32, RecvBit: recvBit, Scratch: t.scratch,
		WindowTarget: c.WindowTarget, Cap: bound, Keepalive: c.Keepalive, PeerTimeout: c.PeerTimeout, DrainTimeout: c.DrainTimeout, Linger: c.Linger,
	}
	if t.arrivals != nil {
		cfg.Arrivals, cfg.PeerExpect = t.arrivals, min(c.InboundBytes/4, c.Window)
	}
	return cfg
}
