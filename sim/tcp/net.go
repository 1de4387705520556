package tcp

import (
	"github.com/byteexpress/byteexpress/sim/des"
	"github.com/byteexpress/byteexpress/sim/fabric"
	"github.com/byteexpress/byteexpress/sim/hostcpu"
)

// headerBytes are Ethernet's with its checksum, IPv4's and TCP's, without options.
const headerBytes = 18 + 20 + 20

// minFrame is the least that Ethernet carries.
const minFrame = 64

// Net is TCP on every host of a fabric.
type Net struct {
	f      *fabric.Fabric
	k      *des.Kernel
	cfg    Config
	stacks []*Stack
	conns  []*Conn
	bursts des.Table[burst]
	free   *segment
	stats  Stats

	pollKind, polledKind, readKind, wroteKind, burstKind, timerKind des.Kind
}

// Stats counts what all connections did.
type Stats struct {
	Segments    uint64 // with data, sent
	Retransmits uint64 // of them, sent again
	Recoveries  uint64 // times that acknowledgements told of loss
	Timeouts    uint64
	Undone      uint64 // recoveries and timeouts that turned out to be for nothing
	Probes      uint64
	Acks        uint64 // sent without data
	Marks       uint64 // segments that came with a mark
	Polls       uint64 // of NICs
}

// New puts TCP on every host, or names a value of the configuration that cannot be.
// It takes all datagrams of the fabric.
func New(f *fabric.Fabric, cfg Config) (*Net, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	n := &Net{f: f, k: f.Kernel(), cfg: cfg}
	n.pollKind = n.k.Handle(func(a, b int32) { n.stacks[a].poll(b) })
	n.polledKind = n.k.Handle(func(a, b int32) { n.stacks[a].polled(b) })
	n.readKind = n.k.Handle(func(a, b int32) { n.stacks[a].read(b) })
	n.wroteKind = n.k.Handle(func(a, b int32) { n.conns[a].wrote(int(b)) })
	n.burstKind = n.k.Handle(func(a, _ int32) { n.leave(n.bursts.Take(a)) })
	n.timerKind = n.k.Handle(func(a, _ int32) { n.conns[a].timer() })
	for i := range f.Hosts() {
		n.stacks = append(n.stacks, newStack(n, f.Host(i)))
	}
	return n, nil
}

// Host gives the TCP of a host.
func (n *Net) Host(i int) *Stack { return n.stacks[i] }

// Stats gives the counters.
func (n *Net) Stats() Stats { return n.stats }

// Dial joins two hosts by a connection and gives its ends, that of host a first.
func (n *Net) Dial(a, b int) (from, to *Conn) {
	from, to = n.newConn(n.stacks[a]), n.newConn(n.stacks[b])
	from.peer, to.peer = to, from
	there, back := n.stacks[a].host, n.stacks[b].host
	from.handshake = there.Unloaded(back, headerBytes) + back.Unloaded(there, headerBytes)
	to.handshake = from.handshake
	return from, to
}

func (n *Net) newConn(s *Stack) *Conn {
	c := &Conn{n: n, s: s, id: int32(len(n.conns)), core: int32(s.conns % s.cpu.Cores()), timerAt: des.Never, groBatch: -1}
	c.ackBy = des.Never
	s.conns++
	c.startSender()
	n.conns = append(n.conns, c)
	return c
}

// segment is what a frame carries.
type segment struct {
	next *segment // in the pool
	to   *Conn
	seq  uint64
	n    int // bytes of data
	ack  uint64
	edge uint64 // end of the receiver's window
	echo bool   // a marked segment is acknowledged
	// Ranges that came out of order, the latest first.
	spans  [3]span
	nspans int
	dups   int // segments that came again (RFC 2883)
}

// span is a range of sequence numbers.
type span struct{ from, to uint64 }

func (n *Net) newSegment() *segment {
	g := n.free
	if g == nil {
		return new(segment)
	}
	n.free = g.next
	g.next = nil
	return g
}

func (n *Net) recycle(g *segment) {
	*g = segment{next: n.free}
	n.free = g
}

// arrival is a segment that a NIC has received.
type arrival struct {
	g      *segment
	marked bool
	first  bool // of its aggregate
}

// Stack is the TCP of one host.
type Stack struct {
	n     *Net
	host  *fabric.Host
	cpu   *hostcpu.CPU
	conns int
	queue []pollQueue // by core
	apps  []app       // by core
	batch int         // numbers polls
}

func newStack(n *Net, h *fabric.Host) *Stack {
	s := &Stack{n: n, host: h, cpu: hostcpu.New(n.cfg.Cores)}
	s.queue, s.apps = make([]pollQueue, n.cfg.Cores), make([]app, n.cfg.Cores)
	h.HandleDatagrams(s.arrive)
	return s
}

// CPU is the host's processor.
func (s *Stack) CPU() *hostcpu.CPU { return s.cpu }
