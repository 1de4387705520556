package be

import (
	"net"
	"testing"
	"time"
	"unsafe"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// instant is a device whose requests complete at once and move nothing, with peers
// that do next to nothing: they grant credits, and let large messages be written
// nowhere. A node with one socket to each peer stands on it, and nothing runs but the
// caller's goroutine: what a message costs is then the cost of this package and of
// be/core.
type instant struct {
	*instantPeer // the first
	peers        []*instantPeer
	w            *worker
	done         instantCQ
	srq          *instantSRQ // nil: each peer has receives of its own
	low, high    uint64      // what is registered is between these
	blocks       [][]byte    // and is these
}

// instantPeer is a queue pair of the device, and the peer at its other end.
type instantPeer struct {
	// A line of the cache is all that a message costs beyond the receive.
	dev               *instant
	first             instantEnd // of the first socket
	consumed, granted uint32     // receives of the peer
	posted, taken     int        // of recvs
	num               qp.Num
	last              uint32 // bytes of the final fragment of the peer's large messages
	sock              *Socket
	used, may         uint32 // shared receives

	recvs [DefaultRecvDepth]instantRecv // posted, in a ring
	ends  []instantEnd                  // of the other sockets, by their number, which is odd
}

// instantRecv is a receive: a line of the cache.
type instantRecv struct {
	id   uint64
	sges [2]qp.SGE
	_    [24]byte
}

// instantSRQ is a shared receive queue.
type instantSRQ struct {
	qp.SRQ
	recvs         []instantRecv
	posted, taken int
}

// PostRecv posts receives.
func (q *instantSRQ) PostRecv(wrs []qp.RecvWR) (int, error) {
	for i := range wrs {
		r := &q.recvs[q.posted%len(q.recvs)]
		q.posted++
		r.id = wrs[i].ID
		copy(r.sges[:], wrs[i].SGEs)
	}
	return len(wrs), nil
}

// oldest is the receive for the peer's next message.
func (d *instantPeer) oldest() *instantRecv {
	if q := d.dev.srq; q != nil {
		return &q.recvs[q.taken%len(q.recvs)]
	}
	return &d.recvs[d.taken%DefaultRecvDepth]
}

// short reports whether the peer has too few credits for a message and what follows it.
func (d *instantPeer) short() bool { return d.dev.srq != nil && int32(d.may-d.used) < 4 }

// instantEnd is the peer's end of a socket.
type instantEnd struct {
	took     uint32 // messages of the node
	sequence uint32 // of the peer's next message
}

// end is the peer's end of the socket with this number.
func (d *instantPeer) end(number uint32) *instantEnd {
	if number == 1 {
		return &d.first
	}
	for uint32(len(d.ends)) <= number/2 {
		d.ends = append(d.ends, instantEnd{})
	}
	return &d.ends[number/2]
}

// instantCQ holds what was not polled.
type instantCQ struct {
	cq.CQ
	list []cq.Completion
}

func (q *instantCQ) Capacity() int { return 1 << 20 }
func (q *instantCQ) Wake()         {}

// add makes room for a completion, which is filled in there.
func (q *instantCQ) add(num qp.Num) *cq.Completion {
	q.list = append(q.list, cq.Completion{})
	c := &q.list[len(q.list)-1]
	c.QPNum = num
	return c
}

func (q *instantCQ) Poll(dst []cq.Completion) (int, error) {
	n := copy(dst, q.list)
	q.list = q.list[:copy(q.list, q.list[n:])]
	return n, nil
}

func (d *instant) Register(b []byte, _ mr.Access) (mr.Region, error) {
	if len(d.blocks) == 0 || mr.Addr(b) < d.low {
		d.low = mr.Addr(b)
	}
	d.high = max(d.high, mr.Addr(b)+uint64(len(b)))
	d.blocks = append(d.blocks, b)
	return mr.Region{Addr: mr.Addr(b), Length: uint64(len(b)), LKey: 1, RKey: 2}, nil
}

func (d *instant) Deregister(mr.Region) error { return nil }

// at gives registered memory by its address: all of it is close together, and a look for
// the block would cost more with a thousand peers than with one.
func (d *instant) at(g *qp.SGE) []byte {
	if g.Addr < d.low || g.Addr+uint64(g.Length) > d.high {
		panic("a request names memory that is not registered")
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&g.Addr)), g.Length)
}

func (d *instantPeer) Num() qp.Num                        { return d.num }
func (d *instantPeer) State() qp.State                    { return qp.RTS }
func (d *instantPeer) Query() (qp.Attr, error)            { return qp.Attr{}, nil }
func (d *instantPeer) Modify(*qp.Attr, qp.AttrMask) error { return nil }
func (d *instantPeer) Close() error                       { return nil }
func (d *instantPeer) Caps() qp.Caps {
	return qp.Caps{SendWR: DefaultSendDepth, RecvWR: DefaultRecvDepth, SendSGE: 2, RecvSGE: 2}
}

func (d *instantPeer) PostRecv(wrs []qp.RecvWR) (int, error) {
	for i := range wrs {
		k := d.posted % DefaultRecvDepth
		d.posted++
		d.recvs[k].id = wrs[i].ID
		copy(d.recvs[k].sges[:], wrs[i].SGEs)
	}
	return len(wrs), nil
}

func (d *instantPeer) PostSend(wrs []qp.SendWR) (int, error) {
	for i := range wrs {
		wr := &wrs[i]
		if wr.Flags&qp.Signaled != 0 {
			c := d.dev.done.add(d.num)
			c.ID = wr.ID
		}
		switch wr.Opcode {
		case qp.Send:
			d.consumed++
			d.react(d.dev.at(&wr.SGEs[0]))
		case qp.WriteWithImm:
			d.consumed++
			d.take(1) // large messages are the first socket's
		}
	}
	if d.granted-d.consumed < DefaultRecvDepth/2 {
		d.arrive(wire.Header{Type: wire.Credit}, nil)
	}
	return len(wrs), nil
}

// react is the peer, which gets a control message.
func (d *instantPeer) react(b []byte) {
	var h wire.Header
	if d.dev.srq != nil {
		_ = h.Parse(b[:wire.HeaderLen], len(b)-wire.HeaderLen)
		d.may = h.Granted
	}
	switch wire.Type(b[0]) {
	case wire.Data:
		d.take(wire.SocketOf(b))
	case wire.RTS:
		_ = h.Parse(b[:wire.HeaderLen], len(b)-wire.HeaderLen)
		var body [16]byte
		g := wire.Grant{Transfer: 1, Addr: 1 << 40, RKey: 3}
		d.arrive(wire.Header{Type: wire.CTS, Socket: h.Socket, Sequence: h.Sequence}, body[:g.Put(body[:])])
	case wire.CTS:
		g := wire.ParseGrant(b[wire.HeaderLen:])
		c := d.complete(d.last)
		c.Opcode, c.Imm, c.Flags = cq.RecvWriteWithImm, g.Transfer, cq.HasImm
	case wire.Open:
		_ = h.Parse(b[:wire.HeaderLen], len(b)-wire.HeaderLen)
		d.arrive(wire.Header{Type: wire.Accept, Socket: h.Socket}, nil)
	}
}

// take takes a message of the node, and tells of it at every half backlog.
func (d *instantPeer) take(number uint32) {
	e := d.end(number)
	if e.took++; e.took%(DefaultBacklog/2) == 0 {
		d.arrive(wire.Header{Type: wire.SocketCredit, Socket: number, Sequence: e.took}, nil)
	}
}

// arrive is a message of the peer.
func (d *instantPeer) arrive(h wire.Header, body []byte) {
	d.granted = d.consumed + DefaultRecvDepth
	h.Granted = d.granted
	s := &d.oldest().sges
	h.Put(d.dev.at(&s[0]))
	if len(body) > 0 {
		copy(d.dev.at(&s[1]), body)
	}
	d.complete(uint32(wire.HeaderLen + len(body)))
}

// complete ends the oldest receive, with n bytes.
func (d *instantPeer) complete(n uint32) *cq.Completion {
	c := d.dev.done.add(d.num)
	c.Opcode, c.ID, c.ByteLen = cq.Recv, d.oldest().id, n
	taken, posted := &d.taken, d.posted
	if q := d.dev.srq; q != nil {
		taken, posted = &q.taken, q.posted
		d.used++
	}
	if *taken == posted {
		panic("the peer sends more than it was granted")
	}
	*taken++
	return c
}

// announce has the peer send a message of n bytes on the first socket. The payload stays
// where it is.
func (d *instantPeer) announce(n int) { d.announceOn(1, n) }

// announceOn is announce on any socket.
func (d *instantPeer) announceOn(number uint32, n int) {
	e := d.end(number)
	h := wire.Header{Type: wire.Data, Socket: number, Sequence: e.sequence}
	e.sequence++
	if n <= DefaultEagerBytes {
		d.arrive(h, nil)
		d.dev.done.list[len(d.dev.done.list)-1].ByteLen += uint32(n)
		return
	}
	h.Type, d.last = wire.RTS, uint32((n-1)%DefaultFragmentBytes+1)
	var body [8]byte
	d.arrive(h, body[:wire.PutU64(body[:], uint64(n))])
}

// newInstant makes a node on such a device, and a socket to each peer. Nobody drives
// its worker: that is what turn is for.
func newInstant(t testing.TB, peers int) *instant { return newInstantShared(t, peers, 0) }

// newInstantShared is newInstant with so many shared receives, if there are any.
func newInstantShared(t testing.TB, peers, shared int) *instant {
	t.Helper()
	d := new(instant)
	cfg, err := Config{SharedReceives: shared}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{cfg: cfg, device: "instant", start: time.Now(), peers: map[lane]*peer{}, routes: map[way]route{}, sockets: map[*Socket]struct{}{}}
	if n.mem, err = newMemory(d, &cfg, 0, n.pokeRetry); err != nil {
		t.Fatal(err)
	}
	n.quota = &quota{limit: cfg.RecvQuotaBytes, poke: n.pokeRetry}
	d.w = newWorker(n, &d.done)
	n.workers = []*worker{d.w}
	line, _ := net.Pipe()
	t.Cleanup(func() {
		for _, p := range d.peers {
			if err := p.sock.Err(); err != nil {
				t.Error(err)
			}
			c := p.sock.conn
			c.e.Fail(d.w.now, ErrClosed)
			for c.index >= 0 { // there is nothing to drain: the time for it is 0
				d.w.touch(c)
				d.turn()
			}
		}
		n.wg.Wait()
		d.w.timer.Stop()
		if s := d.w.shared; s != nil {
			s.Close()
		}
		if err := n.mem.close(); err != nil {
			t.Error(err)
		}
	})
	var receives *core.SharedRecv
	if shared > 0 {
		d.srq = &instantSRQ{recvs: make([]instantRecv, shared)}
		receives, err = core.NewSharedRecv(core.SharedConfig{
			Receives: shared, Least: cfg.RecvDepth, Buffer: cfg.EagerBytes, IDBase: idRecv, Touch: func(h core.Handler) { d.w.touch(h.(*conn)) },
		}, d.srq, n.mem)
		if err != nil {
			t.Fatal(err)
		}
		d.w.shared = &sharedQueue{SharedRecv: receives, srq: d.srq, base: idRecv, byQP: map[qp.Num]*conn{}}
	}
	for i := range peers {
		p := &instantPeer{dev: d, num: qp.Num(7 + i), granted: DefaultRecvDepth, may: uint32(cfg.RecvDepth)}
		c := &conn{n: n, w: d.w, line: line, limit: cfg.MaxMessage, half: DefaultBacklog / 2, eager: cfg.EagerBytes}
		c.index, _ = d.w.reserve()
		c.e, err = core.NewEngine(core.Config{
			SendDepth: cfg.SendDepth, RecvDepth: cfg.RecvDepth, PeerDepth: DefaultRecvDepth, EagerLimit: cfg.EagerBytes, Fragment: cfg.FragmentBytes,
			Window: cfg.WindowBytes, MaxMessage: uint64(cfg.MaxMessage), Backlog: cfg.Backlog, PeerBacklog: cfg.Backlog, MaxSockets: cfg.MaxSockets,
			Initiator: true, IDBase: uint64(c.index) << idIndexShift, RecvBit: idRecv, Scratch: d.w.scratch, Keepalive: cfg.Keepalive, PeerTimeout: cfg.PeerTimeout,
			Shared: receives, Lend: shared > 0,
		}, p, n.mem, n.quota, c)
		if err == nil {
			err = c.e.Prepare()
		}
		if d.srq != nil {
			d.w.shared.byQP[p.num] = c
		}
		if err != nil {
			t.Fatal(err)
		}
		n.wg.Add(1) // until the engine is down
		d.w.add(c)
		c.e.Start(0)
		p.sock = p.open(t)
		d.peers = append(d.peers, p)
	}
	d.instantPeer = d.peers[0]
	return d
}

// open opens a socket.
func (d *instantPeer) open(t testing.TB) *Socket {
	t.Helper()
	c := d.dev.w.conns[d.num-7]
	s := newSocket(c, "cost")
	var err error
	if s.core, err = c.e.Open(1, "cost", s); err != nil {
		t.Fatal(err)
	}
	d.dev.w.touch(c)
	d.dev.turn()
	if !isClosed(s.opened) {
		t.Fatal("the socket did not open")
	}
	return s
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// turn lets the worker do all that there is to do.
func (d *instant) turn() {
	for d.w.turn() || len(d.done.list) > 0 {
	}
}
