package provider_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// The peer is rdma-core's ibv_rc_pingpong (libibverbs/examples/rc_pingpong.c). Both
// ends learn of each other by one line of text over TCP, and then send one message
// to and fro. It sends from the buffer that it receives into, so that it is an echo.
const (
	pingpong = "ibv_rc_pingpong"
	// lid, queue pair number, PSN, GID
	destFormat = "%04x:%06x:%06x:%s"
	destLen    = len("0000:000000:000000:00000000000000000000000000000000") + 1 // and a zero byte
	peerFill   = 0x7b                                                           // of the buffer of a client
	rounds     = 100
)

// dest is what the ends tell each other.
type dest struct {
	lid uint16
	num qp.Num
	psn qp.PSN
	gid verbs.GID
}

func (d dest) append(b []byte) []byte {
	return append(fmt.Appendf(b, destFormat, d.lid, d.num, d.psn, hex.EncodeToString(d.gid[:])), 0)
}

func readDest(r io.Reader) (d dest, err error) {
	b := make([]byte, destLen)
	if _, err := io.ReadFull(r, b); err != nil {
		return d, fmt.Errorf("reading the peer's address: %w", err)
	}
	var gid string
	if _, err := fmt.Sscanf(string(b[:destLen-1]), "%4x:%6x:%6x:%32s", &d.lid, &d.num, &d.psn, &gid); err != nil {
		return d, fmt.Errorf("the peer's address %q: %w", b, err)
	}
	raw, err := hex.DecodeString(gid)
	if err == nil && len(raw) != len(d.gid) {
		err = fmt.Errorf("the peer's GID %q: %d bytes", gid, len(raw))
	}
	copy(d.gid[:], raw)
	return d, err
}

// player is our end.
type player struct {
	dev      string
	gid      verbs.GIDEntry
	lid      uint16
	local    dest
	pd       verbs.PD
	qp       qp.QP
	cq       cq.CQ
	mr       mr.Region
	mem      []byte
	out, in  []byte // halves of the memory
	outgoing int    // sends without a completion
}

// newPlayer makes an end with room for a message of size bytes. All of it is
// closed when the test ends.
func newPlayer(t *testing.T, size int) *player {
	t.Helper()
	p := newStation(t, 2*size, 8)
	p.out, p.in = p.mem[:size], p.mem[size:2*size]
	var err error
	p.qp, err = p.pd.CreateQP(verbs.QPConfig{SendCQ: p.cq, RecvCQ: p.cq, Caps: qp.Caps{SendWR: 2, RecvWR: 2, SendSGE: 1, RecvSGE: 1}})
	must(t, err)
	closeLater(t, p.qp)
	p.local = p.dest(p.qp)
	return p
}

// dest is how the peer reaches a queue pair, which starts at a random PSN.
func (p *player) dest(q qp.QP) dest {
	return dest{lid: p.lid, num: q.Num(), psn: qp.PSN(rand.Uint32()) & qp.PSNMask, gid: p.gid.GID}
}

// newStation makes an end without queue pairs, with so many bytes of memory and room
// for so many completions.
func newStation(t *testing.T, bytes, entries int) *player {
	t.Helper()
	p := &player{dev: testdev.Name(t)}
	dev, err := provider.Open(p.dev)
	must(t, err)
	ctx, err := dev.Open()
	must(t, err)
	closeLater(t, ctx)
	port, err := ctx.Port(1)
	must(t, err)
	gids, err := ctx.GIDs(1)
	must(t, err)
	for _, g := range gids {
		if p.gid.GID.IsZero() && g.Type == verbs.GIDRoCEv2 && g.GID.IsIPv4() {
			p.gid = g
		}
	}
	if p.gid.GID.IsZero() {
		t.Skipf("%s has no RoCE v2 GID for IPv4: %v", p.dev, gids)
	}
	p.lid = port.LID
	p.pd, err = ctx.AllocPD()
	must(t, err)
	closeLater(t, p.pd)
	mem, err := mmio.Anonymous(max(bytes, 1))
	must(t, err)
	closeLater(t, mem)
	p.mem = mem.Bytes()
	p.mr, err = p.pd.Register(p.mem, mr.LocalWrite)
	must(t, err)
	t.Cleanup(func() {
		if err := p.pd.Deregister(p.mr); err != nil {
			t.Error(err)
		}
	})
	p.cq, err = ctx.CreateCQ(verbs.CQConfig{Entries: entries})
	must(t, err)
	closeLater(t, p.cq)
	return p
}

// connect brings our end up and posts its first receive.
func (p *player) connect(t *testing.T, peer dest) {
	t.Helper()
	p.join(t, p.qp, p.local, peer)
	p.recv(t)
}

// join brings a queue pair up.
func (p *player) join(t *testing.T, q qp.QP, local, peer dest) {
	t.Helper()
	path := qp.Path{
		SGIDIndex: uint8(p.gid.Index), SendPSN: local.psn, DestNum: peer.num, RecvPSN: peer.psn,
		DGID: peer.gid, Global: true, MTU: qp.MTU1024, MaxReads: 1, MaxDestReads: 1,
	}
	must(t, path.Connect(q))
}

func (p *player) recv(t *testing.T) {
	t.Helper()
	sge := qp.SGE{Addr: p.mr.Addr + uint64(len(p.out)), Length: uint32(len(p.in)), LKey: p.mr.LKey}
	_, err := p.qp.PostRecv([]qp.RecvWR{{SGEs: []qp.SGE{sge}}})
	must(t, err)
}

func (p *player) send(t *testing.T) {
	t.Helper()
	sge := qp.SGE{Addr: p.mr.Addr, Length: uint32(len(p.out)), LKey: p.mr.LKey}
	_, err := p.qp.PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{sge}}})
	must(t, err)
	p.outgoing++
}

// next waits for completions and gives those that came.
func (p *player) next(ctx context.Context, t *testing.T, buf []cq.Completion) []cq.Completion {
	t.Helper()
	for armed := false; ; armed = !armed {
		n, err := p.cq.Poll(buf)
		must(t, err)
		switch {
		case n > 0:
			return buf[:n]
		case !armed:
			must(t, p.cq.Arm(false))
		default:
			must(t, p.cq.Wait(ctx))
		}
	}
}

// await waits until a message arrived and all of ours are acknowledged.
func (p *player) await(ctx context.Context, t *testing.T, arrivals int) {
	t.Helper()
	var buf [8]cq.Completion
	for arrivals > 0 || p.outgoing > 0 {
		for _, c := range p.next(ctx, t, buf[:]) {
			must(t, c.Err())
			switch {
			case !c.Opcode.IsRecv():
				p.outgoing--
			case int(c.ByteLen) != len(p.in):
				t.Fatalf("a message of %d bytes, want %d", c.ByteLen, len(p.in))
			default:
				arrivals--
			}
		}
	}
}

// play sends a new message in each round and checks that the last one comes back.
// A server gets the peer's own first, and its last message stays with the peer.
func (p *player) play(ctx context.Context, t *testing.T, server bool, seed uint64) {
	t.Helper()
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	want := bytes.Repeat([]byte{peerFill}, len(p.in))
	for i := range rounds {
		if server {
			p.await(ctx, t, 1)
			p.same(t, i, want)
			if i < rounds-1 {
				p.recv(t)
			}
		}
		r.Read(p.out)
		want = append(want[:0], p.out...)
		p.send(t)
		if server {
			continue
		}
		p.await(ctx, t, 1)
		p.same(t, i, want)
		if i < rounds-1 {
			p.recv(t)
		}
	}
	p.await(ctx, t, 0)
}

func (p *player) same(t *testing.T, round int, want []byte) {
	t.Helper()
	if !bytes.Equal(p.in, want) {
		t.Fatalf("round %d: the message of %d bytes is not the one expected", round, len(want))
	}
	clear(p.in)
}

func TestPingPong(t *testing.T) {
	testdev.Name(t)
	needPeer(t, pingpong)
	const seed = 1
	t.Logf("seed %d", seed)
	for _, size := range []int{1, 4096, 100_003} {
		for _, flag := range []string{"", "-e"} { // the peer polls, or waits for events
			t.Run(fmt.Sprintf("peer=server/size=%d%s", size, flag), func(t *testing.T) { withServer(t, size, flag, seed) })
			t.Run(fmt.Sprintf("peer=client/size=%d%s", size, flag), func(t *testing.T) { withClient(t, size, flag, seed) })
		}
	}
}

// needPeer skips a test whose peer is not there.
func needPeer(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed (Debian: apt-get install ibverbs-utils)", program)
	}
}

// withServer plays with a peer that listens.
func withServer(t *testing.T, size int, flag string, seed uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := newPlayer(t, size)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	wait := p.start(ctx, t, pingpong, addr, size, rounds, flag)
	conn := dialUntil(ctx, t, addr)
	defer conn.Close()
	_, err = conn.Write(p.local.append(nil))
	must(t, err)
	peer, err := readDest(conn)
	must(t, err)
	p.connect(t, peer)
	_, err = conn.Write([]byte("done\x00"))
	must(t, err)
	p.play(ctx, t, false, seed)
	wait()
}

// withClient plays with a peer that connects to us.
func withClient(t *testing.T, size int, flag string, seed uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := newPlayer(t, size)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	wait := p.start(ctx, t, pingpong, l.Addr().String(), size, rounds, flag, "127.0.0.1")
	deadline, _ := ctx.Deadline()
	must(t, l.(*net.TCPListener).SetDeadline(deadline))
	conn, err := l.Accept()
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(deadline))
	peer, err := readDest(conn)
	must(t, err)
	p.connect(t, peer)
	_, err = conn.Write(p.local.append(nil))
	must(t, err)
	_, err = io.ReadFull(conn, make([]byte, len("done\x00")))
	must(t, err)
	p.play(ctx, t, true, seed)
	wait()
}

// start runs the peer; what it gives waits for the peer's end, which must be a good
// one.
func (p *player) start(ctx context.Context, t *testing.T, program, addr string, size, iters int, more ...string) (wait func()) {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	args := []string{"-d", p.dev, "-g", strconv.Itoa(p.gid.Index), "-p", port, "-s", strconv.Itoa(size), "-n", strconv.Itoa(iters)}
	for _, a := range more {
		if a != "" {
			args = append(args, a)
		}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	waited := false
	t.Cleanup(func() {
		if !waited {
			cmd.Process.Kill()
			t.Logf("%s: %v: %s", cmd, <-ended, &out)
		}
	})
	return func() {
		t.Helper()
		waited = true
		if err := <-ended; err != nil {
			t.Errorf("%s: %v: %s", cmd, err, &out)
		}
	}
}

// dialUntil connects as soon as the peer listens.
func dialUntil(ctx context.Context, t *testing.T, addr string) net.Conn {
	t.Helper()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			deadline, _ := ctx.Deadline()
			must(t, conn.SetDeadline(deadline))
			return conn
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the peer does not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func closeLater(t testing.TB, c io.Closer) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
