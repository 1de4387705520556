package be

import (
	"net"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be/core"
	"github.com/byteexpress/byteexpress/be/internal/wire"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
)

// instant is a device whose requests complete at once and move nothing, with a peer
// that does next to nothing: it grants credits, and lets large messages be written
// nowhere. A node with one socket stands on it, and nothing runs but the caller's
// goroutine: what a message costs is then the cost of this package and of be/core.
type instant struct {
	w    *worker
	sock *Socket

	done   instantCQ
	blocks [][]byte                    // registered
	recvs  [DefaultRecvDepth]qp.RecvWR // posted, in a ring
	sges   [DefaultRecvDepth][2]qp.SGE // of them
	posted int
	taken  int

	consumed, granted uint32       // receives of the peer
	ends              []instantEnd // by the socket's number, which is odd
	last              uint32       // bytes of the final fragment of the peer's large messages
}

// instantEnd is the peer's end of a socket.
type instantEnd struct {
	took     uint32 // messages of the node
	sequence uint32 // of the peer's next message
}

// end is the peer's end of the socket with this number.
func (d *instant) end(number uint32) *instantEnd {
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

func (q *instantCQ) Poll(dst []cq.Completion) (int, error) {
	n := copy(dst, q.list)
	q.list = q.list[:copy(q.list, q.list[n:])]
	return n, nil
}

func (d *instant) Register(b []byte, _ mr.Access) (mr.Region, error) {
	d.blocks = append(d.blocks, b)
	return mr.Region{Addr: mr.Addr(b), Length: uint64(len(b)), LKey: 1, RKey: 2}, nil
}

func (d *instant) Deregister(mr.Region) error { return nil }

// at gives registered memory by its address.
func (d *instant) at(g *qp.SGE) []byte {
	for _, b := range d.blocks {
		if off := g.Addr - mr.Addr(b); off < uint64(len(b)) {
			return b[off : off+uint64(g.Length)]
		}
	}
	panic("a request names memory that is not registered")
}

func (d *instant) Num() qp.Num                        { return 7 }
func (d *instant) State() qp.State                    { return qp.RTS }
func (d *instant) Query() (qp.Attr, error)            { return qp.Attr{}, nil }
func (d *instant) Modify(*qp.Attr, qp.AttrMask) error { return nil }
func (d *instant) Close() error                       { return nil }
func (d *instant) Caps() qp.Caps {
	return qp.Caps{SendWR: DefaultSendDepth, RecvWR: DefaultRecvDepth, SendSGE: 2, RecvSGE: 2}
}

func (d *instant) PostRecv(wrs []qp.RecvWR) (int, error) {
	for i := range wrs {
		k := d.posted % DefaultRecvDepth
		d.posted++
		d.recvs[k].ID = wrs[i].ID
		copy(d.sges[k][:], wrs[i].SGEs)
	}
	return len(wrs), nil
}

func (d *instant) PostSend(wrs []qp.SendWR) (int, error) {
	for i := range wrs {
		wr := &wrs[i]
		if wr.Flags&qp.Signaled != 0 {
			d.done.list = append(d.done.list, cq.Completion{ID: wr.ID, QPNum: d.Num()})
		}
		switch wr.Opcode {
		case qp.Send:
			d.consumed++
			d.react(d.at(&wr.SGEs[0]))
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
func (d *instant) react(b []byte) {
	var h wire.Header
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
		d.complete(cq.Completion{Opcode: cq.RecvWriteWithImm, Imm: g.Transfer, Flags: cq.HasImm, ByteLen: d.last})
	case wire.Open:
		_ = h.Parse(b[:wire.HeaderLen], len(b)-wire.HeaderLen)
		d.arrive(wire.Header{Type: wire.Accept, Socket: h.Socket}, nil)
	}
}

// take takes a message of the node, and tells of it at every half backlog.
func (d *instant) take(number uint32) {
	e := d.end(number)
	if e.took++; e.took%(DefaultBacklog/2) == 0 {
		d.arrive(wire.Header{Type: wire.SocketCredit, Socket: number, Sequence: e.took}, nil)
	}
}

// arrive is a message of the peer.
func (d *instant) arrive(h wire.Header, body []byte) {
	d.granted = d.consumed + DefaultRecvDepth
	h.Granted = d.granted
	s := &d.sges[d.taken%DefaultRecvDepth]
	h.Put(d.at(&s[0]))
	if len(body) > 0 {
		copy(d.at(&s[1]), body)
	}
	d.complete(cq.Completion{Opcode: cq.Recv, ByteLen: uint32(wire.HeaderLen + len(body))})
}

// complete ends the oldest receive.
func (d *instant) complete(c cq.Completion) {
	if d.taken == d.posted {
		panic("the peer sends more than it was granted")
	}
	c.ID, c.QPNum = d.recvs[d.taken%DefaultRecvDepth].ID, d.Num()
	d.taken++
	d.done.list = append(d.done.list, c)
}

// announce has the peer send a message of n bytes on the first socket. The payload stays
// where it is.
func (d *instant) announce(n int) { d.announceOn(1, n) }

// announceOn is announce on any socket.
func (d *instant) announceOn(number uint32, n int) {
	e := d.end(number)
	h := wire.Header{Type: wire.Data, Socket: number, Sequence: e.sequence}
	e.sequence++
	if n <= DefaultEagerBytes {
		d.arrive(h, nil)
		d.done.list[len(d.done.list)-1].ByteLen += uint32(n)
		return
	}
	h.Type, d.last = wire.RTS, uint32((n-1)%DefaultFragmentBytes+1)
	var body [8]byte
	d.arrive(h, body[:wire.PutU64(body[:], uint64(n))])
}

// newInstant makes a node on such a device, and a socket. Nobody drives its worker:
// that is what turn is for.
func newInstant(t testing.TB) *instant {
	t.Helper()
	d := new(instant)
	cfg, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{cfg: cfg, device: "instant", start: time.Now(), peers: map[lane]*peer{}, routes: map[way]route{}, sockets: map[*Socket]struct{}{}}
	if n.mem, err = newMemory(d, 0, 0, n.pokeRetry); err != nil {
		t.Fatal(err)
	}
	n.quota = &quota{limit: cfg.RecvQuotaBytes, poke: n.pokeRetry}
	d.w = newWorker(n, &d.done)
	n.workers = []*worker{d.w}
	line, _ := net.Pipe()
	c := &conn{n: n, w: d.w, line: line, limit: cfg.MaxMessage, half: DefaultBacklog / 2, eager: cfg.EagerBytes}
	c.index, _ = d.w.reserve()
	c.e, err = core.NewEngine(core.Config{
		SendDepth: cfg.SendDepth, RecvDepth: cfg.RecvDepth, PeerDepth: cfg.RecvDepth, EagerLimit: cfg.EagerBytes, Fragment: cfg.FragmentBytes,
		Window: cfg.WindowBytes, MaxMessage: uint64(cfg.MaxMessage), Backlog: cfg.Backlog, PeerBacklog: cfg.Backlog, MaxSockets: cfg.MaxSockets,
		Initiator: true, RecvBit: idRecv, Keepalive: cfg.Keepalive, PeerTimeout: cfg.PeerTimeout,
	}, d, n.mem, n.quota, c)
	if err == nil {
		err = c.e.Prepare()
	}
	if err != nil {
		t.Fatal(err)
	}
	n.wg.Add(1) // until the engine is down
	d.granted = DefaultRecvDepth
	d.w.add(c)
	c.e.Start(0)
	d.sock = d.open(t)
	t.Cleanup(func() {
		if err := d.sock.Err(); err != nil {
			t.Error(err)
		}
		c.e.Fail(d.w.now, ErrClosed)
		for c.index >= 0 { // there is nothing to drain: the time for it is 0
			d.w.next = 0
			d.turn()
		}
		n.wg.Wait()
		d.w.timer.Stop()
		if err := n.mem.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// open opens a socket.
func (d *instant) open(t testing.TB) *Socket {
	t.Helper()
	c := d.w.conns[0]
	s := newSocket(c, "cost")
	var err error
	if s.core, err = c.e.Open(1, "cost", s); err != nil {
		t.Fatal(err)
	}
	d.w.touch(c)
	d.turn()
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
