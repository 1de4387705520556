package provider_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// The peer is rdma-core's ibv_srq_pingpong (libibverbs/examples/srq_pingpong.c): some
// queue pairs, one shared receive queue, and one buffer for all it sends and
// receives. Both ends tell each other 256 addresses, whatever number they use. The
// client begins with a message on each queue pair, and either answers a message on
// the queue pair that it came by, until both its sends and its receives are iters.
const (
	srqPingpong = "ibv_srq_pingpong"
	srqAddrs    = 256
	srqIters    = 500
	srqDepth    = 24 // receives, fewer than are taken in all
	srqFill     = 0xa5
)

// srqPlayer is our end. The last receive-sized piece of memory is what it sends.
type srqPlayer struct {
	*player
	size    int
	srq     qp.SRQ
	qps     []qp.QP
	locals  []dest
	byNum   map[cq.QPNum]int
	pending []int // of each queue pair: a send and an arrival that must come before the next send
}

const sendPending, recvPending = 1, 2

func newSRQPlayer(t *testing.T, size, n int) *srqPlayer {
	t.Helper()
	p := &srqPlayer{player: newStation(t, (srqDepth+1)*size, srqDepth+2*n), size: size, byNum: map[cq.QPNum]int{}, pending: make([]int, n)}
	var err error
	p.srq, err = p.pd.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: srqDepth, RecvSGE: 1}})
	testdev.Supported(t, err)
	must(t, err)
	closeLater(t, p.srq)
	for i := range n {
		q, err := p.pd.CreateQP(verbs.QPConfig{SendCQ: p.cq, RecvCQ: p.cq, Caps: qp.Caps{SendWR: 1, SendSGE: 1}, SRQ: p.srq})
		must(t, err)
		closeLater(t, q)
		p.qps, p.locals, p.byNum[q.Num()] = append(p.qps, q), append(p.locals, p.dest(q)), i
	}
	for i := range srqDepth {
		p.recvAt(t, uint64(i))
	}
	copy(p.mem[srqDepth*size:], bytes.Repeat([]byte{srqFill}, size))
	return p
}

func (p *srqPlayer) recvAt(t *testing.T, i uint64) {
	t.Helper()
	sge := qp.SGE{Addr: p.mr.Addr + i*uint64(p.size), Length: uint32(p.size), LKey: p.mr.LKey}
	n, err := p.srq.PostRecv([]qp.RecvWR{{ID: i, SGEs: []qp.SGE{sge}}})
	if n != 1 {
		t.Fatalf("receive %d: %v", i, err)
	}
}

func (p *srqPlayer) sendOn(t *testing.T, i int) {
	t.Helper()
	sge := qp.SGE{Addr: p.mr.Addr + uint64(srqDepth*p.size), Length: uint32(p.size), LKey: p.mr.LKey}
	_, err := p.qps[i].PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{sge}}})
	must(t, err)
	p.pending[i] = sendPending | recvPending
}

// addrs is what we tell the peer.
func (p *srqPlayer) addrs() (b []byte) {
	for i := range srqAddrs {
		d := dest{}
		if i < len(p.locals) {
			d = p.locals[i]
		}
		b = d.append(b)
	}
	return b
}

// meet reads the peer's addresses and brings all queue pairs up.
func (p *srqPlayer) meet(t *testing.T, conn io.Reader) {
	t.Helper()
	for i := range srqAddrs {
		d, err := readDest(conn)
		must(t, err)
		if i < len(p.qps) {
			p.join(t, p.qps[i], p.locals[i], d)
		}
	}
}

// play takes part until the peer has what it wants. Until its buffer was first
// written the peer sends zeros, as it does in part while it is written.
func (p *srqPlayer) play(ctx context.Context, t *testing.T, server bool) {
	t.Helper()
	for i := range p.qps {
		if p.pending[i] = recvPending; !server {
			p.sendOn(t, i)
		}
	}
	var buf [16]cq.Completion
	sent, arrived, full := 0, 0, 0
	for sent < srqIters || arrived < srqIters {
		for _, c := range p.next(ctx, t, buf[:]) {
			must(t, c.Err())
			i, ok := p.byNum[c.QPNum]
			switch {
			case !ok:
				t.Fatalf("completion of an unknown queue pair: %+v", c)
			case !c.Opcode.IsRecv():
				sent++
				p.pending[i] &^= sendPending
			default:
				arrived++
				p.pending[i] &^= recvPending
				if p.take(t, &c) {
					full++
				}
			}
			if sent < srqIters && p.pending[i] == 0 {
				p.sendOn(t, i)
			}
		}
	}
	if full < srqIters/2 {
		t.Errorf("%d of %d messages were our own coming back", full, arrived)
	}
}

// take checks a message and posts its receive again. It reports whether the message
// was one of ours, whole.
func (p *srqPlayer) take(t *testing.T, c *cq.Completion) bool {
	t.Helper()
	b := p.mem[int(c.ID)*p.size:][:p.size]
	if int(c.ByteLen) != p.size {
		t.Fatalf("a message of %d bytes, want %d", c.ByteLen, p.size)
	}
	ours := bytes.Count(b, []byte{srqFill})
	if zeros := bytes.Count(b, []byte{0}); ours+zeros != p.size {
		t.Fatalf("a message of %d bytes has %d of our bytes and %d zeros", p.size, ours, zeros)
	}
	clear(b)
	p.recvAt(t, c.ID)
	return ours == p.size
}

func TestSRQPingPong(t *testing.T) {
	testdev.Name(t)
	testdev.Verb(t, "SRQ: create", "SRQ: receive")
	needPeer(t, srqPingpong)
	for _, tt := range []struct{ size, qps int }{{1, 1}, {4096, 16}, {30_001, 5}} {
		for _, flag := range []string{"", "-e"} { // the peer polls, or waits for events
			more := []string{"-q", fmt.Sprint(tt.qps), "-r", "64"}
			if flag != "" {
				more = append(more, flag)
			}
			name := fmt.Sprintf("size=%d/qps=%d%s", tt.size, tt.qps, flag)
			t.Run("peer=server/"+name, func(t *testing.T) { withSRQServer(t, tt.size, tt.qps, more) })
			t.Run("peer=client/"+name, func(t *testing.T) { withSRQClient(t, tt.size, tt.qps, more) })
		}
	}
}

// withSRQServer plays with a peer that listens.
func withSRQServer(t *testing.T, size, qps int, more []string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := newSRQPlayer(t, size, qps)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	wait := p.start(ctx, t, srqPingpong, addr, size, srqIters, more...)
	conn := dialUntil(ctx, t, addr)
	defer conn.Close()
	_, err = conn.Write(p.addrs())
	must(t, err)
	p.meet(t, conn)
	_, err = conn.Write([]byte("done\x00"))
	must(t, err)
	p.play(ctx, t, false)
	wait()
}

// withSRQClient plays with a peer that connects to us.
func withSRQClient(t *testing.T, size, qps int, more []string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := newSRQPlayer(t, size, qps)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	wait := p.start(ctx, t, srqPingpong, l.Addr().String(), size, srqIters, append(more, "127.0.0.1")...)
	deadline, _ := ctx.Deadline()
	must(t, l.(*net.TCPListener).SetDeadline(deadline))
	conn, err := l.Accept()
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(deadline))
	p.meet(t, conn)
	_, err = conn.Write(p.addrs())
	must(t, err)
	_, err = io.ReadFull(conn, make([]byte, len("done\x00")))
	must(t, err)
	p.play(ctx, t, true)
	wait()
}
