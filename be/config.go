package be

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/qp"
)

// Defaults of a [Config] and the limits of its fields.
const (
	// DefaultSendDepth is the paper's: shallow, but deep enough for several
	// fragments and the control messages beside them.
	DefaultSendDepth = 32
	// DefaultRecvDepth gives a peer two chains' worth of small messages before it
	// has to wait for news.
	DefaultRecvDepth = 64
	// DefaultSharedDepth is what an engine is promised of shared receives: so many small
	// messages can come at once until more is lent.
	DefaultSharedDepth = 8
	// DefaultEagerBytes: up to here a receive buffer held ready (RecvDepth of
	// them an engine: 512 KiB) costs less than the round trip of a rendezvous.
	DefaultEagerBytes = 8 << 10
	// DefaultPackBytes: to copy so much at the receiver costs less than a work request.
	DefaultPackBytes     = 1 << 10
	DefaultFragmentBytes = 64 << 10
	DefaultWindowBytes   = 256 << 10
	DefaultInboundBytes  = core.MinInbound
	// DefaultMaxMessage is one byte less than 2^31, the longest message of an RC
	// queue pair.
	DefaultMaxMessage  = math.MaxInt32
	DefaultBacklog     = 128
	DefaultMaxSockets  = 1 << 16
	DefaultCQEntries   = 1 << 14
	DefaultQuotaBytes  = 1 << 30
	DefaultStepTimeout = 5 * time.Second
	DefaultKeepalive   = 10 * time.Second
	DefaultPeerTimeout = 30 * time.Second
	DefaultLinger      = 2 * time.Second

	quotaShare   = 16   // of the quota of a node, that of one socket
	maxWorkers   = 64   // of one node, and lanes that a peer may ask for: a socket's worth of cores
	maxCPU       = 1023 // CPU_SETSIZE of the C library's cpu_set_t, less 1
	maxShared    = 1 << 20
	minRecvDepth = 4 // with fewer, the reserve cannot keep both sides going
	maxDepth     = 1 << 15
	minEager     = 256 // control messages must fit
)

// Config says how a node works. The zero value takes every default; a field left
// 0 is a default too: the Default constant of that name, unless the field says
// otherwise. It is copied by [NewNode].
type Config struct {
	// Bootstrap carries what two nodes say before their engine is up, and then tells
	// whether the peer lives; nil: [TCP]. Both nodes need the same kind.
	Bootstrap Bootstrap

	Port     int  // physical port of the device, counted from 1; 0: the best, see verbs.RankPorts
	GIDIndex *int // index in the port's GID table; nil: the best one, RoCE v2 with IPv4 first

	// Workers is the number of goroutines that drive engines, each with a completion
	// queue of its own; 0: 1. Sockets that this node dials go to them by turns, so
	// there are as many engines to one peer as pairs of a worker of each side, if that many
	// sockets are dialed.
	Workers int
	// LockThreads gives each worker an operating-system thread of its own, which the
	// Go scheduler uses for nothing else. Worth it only with a core to spare for each:
	// else each change between worker and application is one of threads, which takes
	// ten times as long. It gives the worker no turn sooner where goroutines of the
	// application compute on every core; GOMAXPROCS above the number of these does.
	LockThreads bool
	// PinCPUs keeps worker i on the CPU PinCPUs[i modulo its length], numbered as the
	// kernel does; it locks the threads too. Nil: on any. Linux only.
	PinCPUs []int
	// Spin is how long a worker that finds nothing to do goes on looking, and lets
	// other goroutines run in between, before it has the device wake it: a lower
	// latency after a pause, for a busy core. 0: a few looks.
	Spin time.Duration

	SendDepth int // work requests of one engine's chain
	RecvDepth int // receives posted by each engine, at least 4; the peer's credits
	// SharedReceives has all engines of a worker take their receives from one shared
	// queue of that many, for nodes with very many peers: RecvDepth (0: then
	// DefaultSharedDepth) is what each engine is promised, and the rest goes to those
	// that receive, and comes back when they rest. 0: each engine has RecvDepth of its
	// own. verbs.ErrUnsupported on a device without shared receive queues. Peers that do
	// not know the mode keep to RecvDepth.
	SharedReceives int
	EagerBytes     int // messages up to here are sent whole; the smaller value of both sides counts
	// PackBytes: messages up to here that would be posted one right after another, of
	// any sockets to one peer, go in one SEND, at most 16; none waits for others. The
	// receiver copies each of them to a buffer of its own. Negative: none go together,
	// and none come, so that no payload is ever copied.
	PackBytes     int
	FragmentBytes int // bytes a WRITE; the smaller value of both sides counts
	WindowBytes   int // of fragments posted and not completed, of one engine; at least one fragment
	// NodeWindowBytes is the same of all engines together (each worker has its part of
	// it): a node with many peers then has no more than this on its way through its own
	// port, and engines take turns. 0: no bound.
	NodeWindowBytes int
	// WindowTarget makes the window adaptive: between one fragment and WindowBytes, so
	// that a request waits behind others in ports and switches for about this long. A
	// good value is the time of four fragments on the link, 21 µs for 64 KiB at 100
	// Gb/s: one engine alone then fills the link, and many that send to one receiver
	// keep a fragment each. What a peer has let in by its InboundBytes is sent whatever
	// the window is. On devices of software, whose delays are the scheduler's,
	// leave it 0: the window is static.
	WindowTarget time.Duration
	// InboundBytes bounds, with WindowTarget, the large messages that peers send to this
	// node at a time, a quarter of it for each that is longer: further ones are answered
	// as those arrive, a message of each peer in turn. So many senders to one node do not fill
	// the switches before it, and few have no window to wait for. 0: 256 KiB, or four
	// fragments, or what the port carries in 10 µs, whichever is most.
	InboundBytes int
	MaxMessage   int // bytes; the smaller value of both sides counts
	Backlog      int // messages that a peer may send on a socket ahead of Recv
	MaxSockets   int // of one engine and side
	CQEntries    int // completions that each worker's queue can hold: each engine needs SendDepth+RecvDepth

	// RecvQuotaBytes bounds the large messages of the node that are on their way in or not
	// yet taken by Recv; further ones wait, at their senders. A long message counts as 15/16
	// of it at most, so that what few sockets hold does not keep it out for ever.
	RecvQuotaBytes int64
	// SocketQuotaBytes is the same of one socket, so that one that nobody reads holds up
	// its own messages and not those of the others. One message passes, whatever its length,
	// when its socket holds no other. 0: a sixteenth of RecvQuotaBytes or, if that is less, of
	// PoolBytes: 64 MiB.
	SocketQuotaBytes int
	// PoolBytes is the registered memory of the node; 0: no limit. It comes in blocks
	// of 4 MiB, apart for what is sent, what peers write, and what they read in get
	// mode: with less than two blocks no large message comes in.
	PoolBytes int64

	MTU          qp.MTU        // path MTU at most; 0: the port's active MTU
	AckTimeout   qp.AckTimeout // 0: qp.DefaultAckTimeout
	RetryCount   int           // 0: qp.DefaultRetryCount
	RNRTimer     qp.RNRTimer   // 0: qp.DefaultRNRTimer
	HopLimit     int           // routers that packets may pass; 0: qp.DefaultHopLimit
	FlowLabel    uint32        // 20 bits; on RoCE v2 it spreads engines over paths
	TrafficClass uint8         // on RoCE v2: DSCP << 2 | ECN
	ServiceLevel uint8

	// Debug turns on checks of the node's memory, and BEMALLOC_DEBUG adds to them. With
	// Check, the node also holds the application to the rule that a buffer has one owner,
	// at some cost: see [OwnerError].
	Debug bemalloc.Debug

	// HoldTimeout is how long a large message of a peer waits for memory, of the quotas
	// or of PoolBytes, before the peer is told that it is rejected. 0: until there is
	// some, or the peer gives the message up.
	HoldTimeout time.Duration
	StepTimeout time.Duration // of each step of the bootstrap
	Keepalive   time.Duration // idle time after which a peer is pinged; negative: never
	PeerTimeout time.Duration // silence after which a peer is given up; negative: never
	Linger      time.Duration // how long Close goes on sending what was queued

	// Seed is of the pauses before engines that failed are brought up again, so that a
	// test can be repeated; 0: it is drawn.
	Seed uint64
}

// withDefaults fills in what is left 0 and checks the rest.
func (c Config) withDefaults() (Config, error) {
	recvDepth := DefaultRecvDepth
	if c.SharedReceives > 0 {
		recvDepth = DefaultSharedDepth
	}
	for _, f := range []struct {
		name          string
		v             *int
		def, min, max int
	}{
		{"Port", &c.Port, 1, 1, 255},
		{"Workers", &c.Workers, 1, 1, maxWorkers},
		{"SendDepth", &c.SendDepth, DefaultSendDepth, 2, maxDepth},
		{"RecvDepth", &c.RecvDepth, recvDepth, minRecvDepth, maxDepth},
		{"SharedReceives", &c.SharedReceives, 0, 0, maxShared},
		{"EagerBytes", &c.EagerBytes, DefaultEagerBytes, minEager, 1 << 20},
		{"PackBytes", &c.PackBytes, DefaultPackBytes, -1, core.MaxPackLimit},
		{"FragmentBytes", &c.FragmentBytes, DefaultFragmentBytes, 256, 1 << 30},
		{"WindowBytes", &c.WindowBytes, max(DefaultWindowBytes, c.FragmentBytes), 256, 1 << 40},
		{"InboundBytes", &c.InboundBytes, core.InboundOf(0, c.FragmentBytes), 1024, 1 << 40},
		{"MaxMessage", &c.MaxMessage, DefaultMaxMessage, 1, DefaultMaxMessage},
		{"Backlog", &c.Backlog, DefaultBacklog, 1, 1 << 20},
		{"MaxSockets", &c.MaxSockets, DefaultMaxSockets, 1, 1 << 24},
		{"CQEntries", &c.CQEntries, DefaultCQEntries, 1, 1 << 24},
		{"RetryCount", &c.RetryCount, qp.DefaultRetryCount, 1, 7},
		{"HopLimit", &c.HopLimit, qp.DefaultHopLimit, 1, 255},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < f.min || *f.v > f.max {
			return c, &ConfigError{f.name, int64(*f.v), fmt.Sprintf("%d to %d, or 0 for %d", f.min, f.max, f.def)}
		}
	}
	if n := c.SharedReceives; n != 0 && n < 2*c.RecvDepth {
		return c, &ConfigError{"SharedReceives", int64(n), fmt.Sprintf("at least twice RecvDepth, %d, or 0 for none", c.RecvDepth)}
	}
	if c.WindowBytes < c.FragmentBytes {
		return c, &ConfigError{"WindowBytes", int64(c.WindowBytes), fmt.Sprintf("at least FragmentBytes, %d", c.FragmentBytes)}
	}
	if n := c.NodeWindowBytes; n != 0 && n < c.FragmentBytes {
		return c, &ConfigError{"NodeWindowBytes", int64(n), fmt.Sprintf("at least FragmentBytes, %d, or 0 for no bound", c.FragmentBytes)}
	}
	if _, known := qp.MTUOf(c.MTU.Bytes()); c.MTU != 0 && !known {
		return c, &ConfigError{"MTU", int64(c.MTU), "one of qp.MTU256 to qp.MTU4096, or 0 for the port's"}
	}
	for _, cpu := range c.PinCPUs {
		if cpu < 0 || cpu > maxCPU {
			return c, &ConfigError{"PinCPUs", int64(cpu), fmt.Sprintf("0 to %d", maxCPU)}
		}
	}
	c.PinCPUs = slices.Clone(c.PinCPUs)
	c.LockThreads = c.LockThreads || len(c.PinCPUs) > 0
	if c.Bootstrap == nil {
		c.Bootstrap = TCP{}
	}
	gid := 0
	if c.GIDIndex != nil {
		gid = *c.GIDIndex
	}
	for _, f := range []struct {
		name   string
		v, max int64
	}{
		{"GIDIndex", int64(gid), 255}, {"AckTimeout", int64(c.AckTimeout), 31}, {"ServiceLevel", int64(c.ServiceLevel), 7},
		{"RNRTimer", int64(c.RNRTimer), 31}, {"FlowLabel", int64(c.FlowLabel), 1<<20 - 1},
		{"RecvQuotaBytes", c.RecvQuotaBytes, math.MaxInt64}, {"SocketQuotaBytes", int64(c.SocketQuotaBytes), math.MaxInt64},
		{"PoolBytes", c.PoolBytes, math.MaxInt64}, {"WindowTarget", int64(c.WindowTarget), math.MaxInt64}, {"Spin", int64(c.Spin), math.MaxInt64}, {"HoldTimeout", int64(c.HoldTimeout), math.MaxInt64},
	} {
		if f.v < 0 || f.v > f.max {
			must := "0 or more"
			if f.max < math.MaxInt64 {
				must = fmt.Sprintf("0 to %d", f.max)
			}
			return c, &ConfigError{f.name, f.v, must}
		}
	}
	if c.PoolBytes > 0 && c.PoolBytes < bemalloc.MinBytes {
		return c, &ConfigError{"PoolBytes", c.PoolBytes, fmt.Sprintf("at least %d, or 0 for no limit", int64(bemalloc.MinBytes))}
	}
	if c.RecvQuotaBytes == 0 {
		c.RecvQuotaBytes = DefaultQuotaBytes
	}
	if c.SocketQuotaBytes == 0 {
		quota := c.RecvQuotaBytes
		if c.PoolBytes > 0 {
			quota = min(quota, c.PoolBytes)
		}
		c.SocketQuotaBytes = int(max(quota/quotaShare, 1))
	}
	for _, f := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.StepTimeout, DefaultStepTimeout}, {&c.Keepalive, DefaultKeepalive}, {&c.PeerTimeout, DefaultPeerTimeout}, {&c.Linger, DefaultLinger},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		*f.v = max(*f.v, 0)
	}
	return c, nil
}
