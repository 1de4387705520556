package be_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/be"
	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// rawPeer speaks the bootstrap by hand and then posts whatever it likes.
type rawPeer struct {
	t    *testing.T
	tcp  net.Conn
	q    qp.QP
	cq   cq.CQ
	pool *bemalloc.Pool
	lkey mr.LKey
	buf  []byte
	sent int // SENDs, whose bytes lie apart: the device may not have read the last one's yet
}

// newRawPeer connects to a listener as a well-behaved dialer would, one that knows some
// features.
func newRawPeer(t *testing.T, f *sim.Fabric, name, addr string, features ...string) *rawPeer {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dev, err := f.NewDevice(name, sim.DeviceConfig{})
	must(err)
	ctx, err := dev.Open()
	must(err)
	pd, err := ctx.AllocPD()
	must(err)
	c, err := ctx.CreateCQ(verbs.CQConfig{Entries: 256})
	must(err)
	p := &rawPeer{t: t, cq: c}
	p.q, err = pd.CreateQP(verbs.QPConfig{SendCQ: c, RecvCQ: c, Caps: qp.Caps{SendWR: 64, RecvWR: 64, SendSGE: 1, RecvSGE: 1}})
	must(err)
	p.pool, err = bemalloc.New(bemalloc.Config{Registrar: pd, Access: mr.LocalWrite | mr.RemoteWrite})
	must(err)
	p.buf, err = p.pool.Alloc(1 << 16)
	must(err)
	r, err := p.pool.MR(p.buf)
	must(err)
	p.lkey = r.LKey
	gids, err := ctx.GIDs(1)
	must(err)
	gid := gids[len(gids)-1]

	p.tcp, err = net.Dial("tcp", addr)
	must(err)
	h := with(peerHello(), "qp_num", p.q.Num())
	h["incarnation"] = strings.Repeat("0", 32-2*len(name)) + hex.EncodeToString([]byte(name))
	h["gid"], h["gid_type"], h["features"] = gid.GID, gid.Type.String(), features
	p.tcp.Write(frame(h))
	own, err := readFrame(p.tcp)
	must(err)
	if own["refused"] != nil {
		t.Fatalf("refused: %v", own["refused"])
	}
	var dgid verbs.GID
	must(dgid.UnmarshalText([]byte(own["gid"].(string))))
	path := qp.Path{
		SGIDIndex: uint8(gid.Index), Access: mr.LocalWrite | mr.RemoteWrite, SendPSN: 5, DestNum: qp.Num(own["qp_num"].(float64)),
		RecvPSN: qp.PSN(own["psn"].(float64)), DGID: dgid, Global: true, MTU: qp.MTU4096, MaxReads: 1,
	}
	must(path.ToInit(p.q))
	for i := range 64 {
		_, err := p.q.PostRecv([]qp.RecvWR{{ID: uint64(i), SGEs: []qp.SGE{{Addr: mr.Addr(p.received(i)), Length: rawReceive, LKey: p.lkey}}}})
		must(err)
	}
	must(path.ToRTR(p.q))
	must(path.ToRTS(p.q))
	p.tcp.Write(frame(map[string]any{"incarnation": h["incarnation"], "peer": own["incarnation"]}))
	_, err = readFrame(p.tcp)
	must(err)
	t.Cleanup(func() {
		p.tcp.Close()
		p.q.Close()
		c.Close()
		p.pool.Free(p.buf)
		p.pool.Close()
		pd.Close()
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// rawReceive is the length of each of the 64 receives: enough for control messages.
const rawReceive = 512

// received is the buffer of receive i, in the first half of p.buf.
func (p *rawPeer) received(i int) []byte { return p.buf[i*rawReceive : (i+1)*rawReceive] }

// reached is where reach READs to and WRITEs from.
func (p *rawPeer) reached() []byte { return p.buf[3<<14:] }

// send posts a SEND of these bytes.
func (p *rawPeer) send(b []byte) {
	p.t.Helper()
	at := p.buf[1<<15:]
	if len(b) <= rawReceive {
		at = at[p.sent%32*rawReceive:]
	}
	p.sent++
	n := copy(at, b)
	wr := qp.SendWR{Opcode: qp.Send, SGEs: []qp.SGE{{Addr: mr.Addr(at), Length: uint32(n), LKey: p.lkey}}}
	if _, err := p.q.PostSend([]qp.SendWR{wr}); err != nil {
		p.t.Fatal(err)
	}
}

// wait gives the next completion that is meant.
func (p *rawPeer) wait(meant func(*cq.Completion) bool) *cq.Completion {
	p.t.Helper()
	c := make([]cq.Completion, 1)
	eventually(p.t, "a completion of the raw peer", func() bool {
		n, err := p.cq.Poll(c)
		if err != nil {
			p.t.Fatal(err)
		}
		return n > 0 && meant(&c[0])
	})
	return &c[0]
}

// reach READs or WRITEs n bytes at an address of the peer and says how that ended.
func (p *rawPeer) reach(op qp.Opcode, addr uint64, key mr.RKey, n int) cq.Status {
	p.t.Helper()
	const id = 1 << 20
	wr := qp.SendWR{ID: id, Opcode: op, Flags: qp.Signaled, RemoteAddr: addr, RKey: key, SGEs: []qp.SGE{{Addr: mr.Addr(p.reached()), Length: uint32(n), LKey: p.lkey}}}
	if _, err := p.q.PostSend([]qp.SendWR{wr}); err != nil {
		p.t.Fatal(err)
	}
	return p.wait(func(c *cq.Completion) bool { return c.ID == id }).Status
}

// control encodes a control message.
func control(typ byte, granted, socket, seq uint32, body ...byte) []byte {
	b := []byte{typ, 0, 16, 0}
	b = binary.LittleEndian.AppendUint32(b, granted)
	b = binary.LittleEndian.AppendUint32(b, socket)
	b = binary.LittleEndian.AppendUint32(b, seq)
	return append(b, body...)
}

// TestHostilePeersOverRealQueuePairs: each bad message ends its own engine and
// its liveness line, and a good peer beside them does not notice (case C22).
func TestHostilePeersOverRealQueuePairs(t *testing.T) {
	p := newPair(t, be.Config{})
	server, client := p.connect(t, "good")
	open := control(1, 64, 1, 0, 1, 0, 0, 0, 'x')
	for i, tt := range []struct {
		desc string
		do   func(r *rawPeer)
	}{
		{"unknown type", func(r *rawPeer) { r.send(control(200, 64, 0, 0)) }},
		{"short", func(r *rawPeer) { r.send([]byte{1, 2, 3}) }},
		{"socket", func(r *rawPeer) { r.send(control(4, 64, 9, 0)) }},
		{"granted", func(r *rawPeer) { r.send(control(10, 1<<30, 0, 0)) }},
		{"length", func(r *rawPeer) {
			r.send(open)
			r.send(control(5, 64, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f))
		}},
		{"immediate", func(r *rawPeer) {
			wr := qp.SendWR{Opcode: qp.SendWithImm, Imm: 12345, SGEs: []qp.SGE{{Addr: mr.Addr(r.buf), Length: 1, LKey: r.lkey}}}
			r.q.PostSend([]qp.SendWR{wr})
		}},
		{"WRITE without a grant", func(r *rawPeer) {
			wr := qp.SendWR{Opcode: qp.WriteWithImm, Imm: 7, RemoteAddr: 4096, RKey: 99, SGEs: []qp.SGE{{Addr: mr.Addr(r.buf), Length: 64, LKey: r.lkey}}}
			r.q.PostSend([]qp.SendWR{wr})
		}},
		{"too long for a receive", func(r *rawPeer) { r.send(make([]byte, 1<<14)) }},
		{"bytes on the liveness line", func(r *rawPeer) { io.WriteString(r.tcp, "hello?") }},
	} {
		t.Run(tt.desc, func(t *testing.T) {
			r := newRawPeer(t, p.fabric, "raw"+string(rune('0'+i)), p.listener.Addr().String())
			eventually(t, "engine up", func() bool { return p.nodes[0].Stats().Engines == 2 })
			tt.do(r)
			r.tcp.SetReadDeadline(time.Now().Add(30 * time.Second))
			if last, err := readFrame(r.tcp); err != nil || last["error"] == "" {
				t.Errorf("last words: %v %v", last, err)
			}
			if _, err := r.tcp.Read(make([]byte, 1)); err == nil {
				t.Error("the liveness line is open")
			} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Error("the engine did not end")
			}
			eventually(t, "engine gone", func() bool { return p.nodes[0].Stats().Engines == 1 })
			b := alloc(t, p.nodes[1], 20000, byte(i))
			if err := client.Send(limit(t), b); err != nil {
				t.Fatal(err)
			}
			p.nodes[1].Free(b)
			got, err := server.Recv(limit(t))
			if err != nil {
				t.Fatal(err)
			}
			check(t, got, 20000, byte(i))
			p.nodes[0].Free(got)
		})
	}
	// Sockets that hostile peers opened are in the accept queue, and ended.
	for {
		s, err := p.listener.Accept(expired())
		if err != nil {
			break
		}
		if _, err := s.Recv(limit(t)); !errors.Is(err, be.ErrProtocol) {
			t.Errorf("socket of a hostile peer: %v", err)
		}
		var pe *be.PeerError
		if !errors.As(s.Err(), &pe) || pe.Device != "sim0" {
			t.Errorf("error %v does not name the device", s.Err())
		}
	}
	var st cq.Status
	if errors.As(client.Err(), &st) {
		t.Errorf("good client: %v", client.Err())
	}
}
