//go:build linux

package mlx5_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim/mlx5dev"
)

// fill writes seeded bytes into the memory of one end and clears the other's.
func (p *pair) fill(seed uint64) {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(p.a.mem)
	clear(p.b.mem)
}

// sizes around every border: packets of 1024 and 4096 bytes, and the largest asked for.
var sizes = []int{0, 1, 2, 3, 4, 7, 8, 63, 64, 65, 255, 256, 1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537, 1<<20 - 1, 1 << 20}

// kinds are the kinds of driver and firmware.
var kinds = map[string]mlx5dev.Config{
	"today": {}, "registers at once": {BFRegs: 16}, "completions by number": {CQEVersion0: true}, "old": {BFRegs: 16, CQEVersion0: true},
}

func TestOpcodes(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) { testOpcodes(t, kind) })
	}
}

func testOpcodes(t *testing.T, kind mlx5dev.Config) {
	p := connect(t, pairConfig{memory: 1 << 20, model: kind})
	const seed = 1
	t.Logf("seed %d", seed)
	p.fill(seed)
	for i, size := range sizes {
		id := uint64(i)<<32 | 0xabcd
		remote := func(w qp.SendWR) qp.SendWR {
			w.RemoteAddr, w.RKey = p.b.mr.Addr, p.b.mr.RKey
			return w
		}
		same := func(t *testing.T, what string) {
			t.Helper()
			if !bytes.Equal(p.a.mem[:size], p.b.mem[:size]) {
				t.Errorf("%s of %d bytes: data differs", what, size)
			}
			clear(p.b.mem[:size])
		}
		sges := []qp.SGE{p.a.sge(0, size)}
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			p.b.recv(t, id+1, p.b.sge(0, size))
			p.a.send(t, qp.SendWR{ID: id, Opcode: qp.Send, Flags: qp.Signaled, SGEs: sges})
			p.a.want(t, cq.Completion{ID: id, Opcode: cq.Send})
			p.b.want(t, cq.Completion{ID: id + 1, Opcode: cq.Recv, ByteLen: uint32(size)})
			same(t, "SEND")

			p.b.recv(t, id+1, p.b.sge(0, size))
			p.a.send(t, qp.SendWR{ID: id, Opcode: qp.SendWithImm, Imm: 0x01020304, Flags: qp.Signaled, SGEs: sges})
			p.a.want(t, cq.Completion{ID: id, Opcode: cq.Send})
			p.b.want(t, cq.Completion{ID: id + 1, Opcode: cq.Recv, ByteLen: uint32(size), Imm: 0x01020304, Flags: cq.HasImm})
			same(t, "SEND_WITH_IMM")

			p.a.send(t, remote(qp.SendWR{ID: id, Opcode: qp.Write, Flags: qp.Signaled, SGEs: sges}))
			p.a.want(t, cq.Completion{ID: id, Opcode: cq.Write})
			same(t, "WRITE")

			p.b.recv(t, id+1)
			p.a.send(t, remote(qp.SendWR{ID: id, Opcode: qp.WriteWithImm, Imm: 0xfffefdfc, Flags: qp.Signaled, SGEs: sges}))
			p.a.want(t, cq.Completion{ID: id, Opcode: cq.Write})
			p.b.want(t, cq.Completion{ID: id + 1, Opcode: cq.RecvWriteWithImm, ByteLen: uint32(size), Imm: 0xfffefdfc, Flags: cq.HasImm})
			same(t, "WRITE_WITH_IMM")

			p.b.send(t, qp.SendWR{ID: id, Opcode: qp.Read, Flags: qp.Signaled, RemoteAddr: p.a.mr.Addr, RKey: p.a.mr.RKey, SGEs: []qp.SGE{p.b.sge(0, size)}})
			p.b.want(t, cq.Completion{ID: id, Opcode: cq.Read})
			same(t, "READ")
		})
	}
	p.a.empty(t)
	p.b.empty(t)
}

// Every number of segments up to the capacity, of uneven lengths, on both sides.
func TestSegments(t *testing.T) {
	const n = 16
	p := connect(t, pairConfig{caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: n, RecvSGE: n}})
	if c := p.a.qp.Caps(); c.SendSGE < n || c.RecvSGE < n {
		t.Fatalf("capacities %+v", c)
	}
	p.fill(2)
	for k := 1; k <= n; k++ {
		var out, in []qp.SGE
		var want []byte
		for i := range k {
			off, length := i*500+i, 37*i%200 // some are empty
			out = append(out, p.a.sge(off, length))
			want = append(want, p.a.mem[off:off+length]...)
		}
		in = append(in, p.b.sge(0, len(want)/2), p.b.sge(len(want)/2, len(want)-len(want)/2))
		if k == 1 {
			in = []qp.SGE{p.b.sge(0, len(want))}
		}
		p.b.recv(t, uint64(k), in...)
		p.a.send(t, qp.SendWR{ID: uint64(k), Opcode: qp.Send, Flags: qp.Signaled, SGEs: out})
		p.a.want(t, cq.Completion{ID: uint64(k), Opcode: cq.Send})
		p.b.want(t, cq.Completion{ID: uint64(k), Opcode: cq.Recv, ByteLen: uint32(len(want))})
		if !bytes.Equal(p.b.mem[:len(want)], want) {
			t.Errorf("%d segments: data differs", k)
		}
	}
	wr := qp.SendWR{Opcode: qp.Send, SGEs: make([]qp.SGE, p.a.qp.Caps().SendSGE+1)}
	if n, err := p.a.qp.PostSend([]qp.SendWR{wr}); n != 0 || err != qp.ErrTooManySGEs {
		t.Errorf("one segment too many: %d, %v", n, err)
	}
}

// Inline payload comes from any memory and may change as soon as the post returned.
func TestInline(t *testing.T) {
	p := connect(t, pairConfig{})
	limit := p.a.qp.Caps().Inline
	if limit < 64 {
		t.Fatalf("%d inline bytes, asked for 64", limit)
	}
	for n := range limit + 1 {
		payload := bytes.Repeat([]byte{byte(n + 1)}, n)
		p.b.recv(t, uint64(n), p.b.sge(0, limit))
		p.a.send(t, qp.SendWR{ID: uint64(n), Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: payload})
		clear(payload)
		p.a.want(t, cq.Completion{ID: uint64(n), Opcode: cq.Send})
		p.b.want(t, cq.Completion{ID: uint64(n), Opcode: cq.Recv, ByteLen: uint32(n)})
		if got := p.b.mem[:n]; !bytes.Equal(got, bytes.Repeat([]byte{byte(n + 1)}, n)) {
			t.Fatalf("%d inline bytes arrived as % x", n, got)
		}
	}
	p.a.send(t, qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled | qp.Inline, Inline: []byte("hello"), RemoteAddr: p.b.mr.Addr + 9, RKey: p.b.mr.RKey})
	p.a.want(t, cq.Completion{ID: 1, Opcode: cq.Write})
	if got := string(p.b.mem[9:14]); got != "hello" {
		t.Errorf("inline WRITE left %q", got)
	}
	if n, err := p.a.qp.PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Inline, Inline: make([]byte, limit+1)}}); n != 0 || err != qp.ErrInlineTooLong {
		t.Errorf("one inline byte too many: %d, %v", n, err)
	}
}

func TestAtomics(t *testing.T) {
	p := connect(t, pairConfig{})
	word := func(e *end, off int) uint64 { return binary.NativeEndian.Uint64(e.mem[off:]) }
	binary.NativeEndian.PutUint64(p.b.mem[64:], 1000)
	atomic := qp.SendWR{Flags: qp.Signaled, RemoteAddr: p.b.mr.Addr + 64, RKey: p.b.mr.RKey, SGEs: []qp.SGE{p.a.sge(8, 8)}}

	add := atomic
	add.ID, add.Opcode, add.CompareAdd = 1, qp.FetchAdd, 5
	p.a.send(t, add)
	p.a.want(t, cq.Completion{ID: 1, Opcode: cq.FetchAdd})
	if word(&p.a, 8) != 1000 || word(&p.b, 64) != 1005 {
		t.Errorf("fetch-and-add: old value %d, new %d", word(&p.a, 8), word(&p.b, 64))
	}
	swap := atomic
	swap.ID, swap.Opcode, swap.CompareAdd, swap.Swap = 2, qp.CompareSwap, 1005, 77
	p.a.send(t, swap)
	p.a.want(t, cq.Completion{ID: 2, Opcode: cq.CompareSwap})
	if word(&p.a, 8) != 1005 || word(&p.b, 64) != 77 {
		t.Errorf("compare-and-swap: old value %d, new %d", word(&p.a, 8), word(&p.b, 64))
	}
	swap.ID, swap.CompareAdd = 3, 78 // does not match
	p.a.send(t, swap)
	p.a.want(t, cq.Completion{ID: 3, Opcode: cq.CompareSwap})
	if word(&p.a, 8) != 77 || word(&p.b, 64) != 77 {
		t.Errorf("compare-and-swap that does not match: old value %d, new %d", word(&p.a, 8), word(&p.b, 64))
	}
	swap.RemoteAddr++
	if n, err := p.a.qp.PostSend([]qp.SendWR{swap}); n != 0 || err != qp.ErrAtomic {
		t.Errorf("unaligned atomic: %d, %v", n, err)
	}
}

// The ring runs round many times with one signaled request in eight.
func TestSelectiveSignaling(t *testing.T) {
	p := connect(t, pairConfig{})
	depth := p.a.qp.Caps().SendWR
	p.fill(3)
	const rounds, batch = 50, 8
	wrs := make([]qp.SendWR, batch)
	for r := range rounds {
		for i := range wrs {
			off := (r*batch + i) % 512 * 8
			wrs[i] = qp.SendWR{ID: uint64(r), Opcode: qp.Write, SGEs: []qp.SGE{p.a.sge(off, 8)}, RemoteAddr: p.b.mr.Addr + uint64(off), RKey: p.b.mr.RKey}
		}
		wrs[batch-1].Flags = qp.Signaled
		p.a.send(t, wrs...)
		p.a.want(t, cq.Completion{ID: uint64(r), Opcode: cq.Write})
	}
	if !bytes.Equal(p.a.mem[:rounds*batch*8], p.b.mem[:rounds*batch*8]) {
		t.Error("data differs")
	}
	p.a.empty(t)
	if depth >= rounds*batch {
		t.Errorf("queue of %d never ran round", depth)
	}
}

// A full send queue refuses the first request that does not fit, and takes it
// after the queue has moved.
func TestQueueFull(t *testing.T) {
	p := connect(t, pairConfig{})
	depth := p.a.qp.Caps().SendWR
	wrs := make([]qp.SendWR, depth+3)
	for i := range wrs {
		wrs[i] = qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 8)}}
	}
	// The peer has no receive: nothing can complete.
	n, err := p.a.qp.PostSend(wrs)
	if n != depth || err != qp.ErrQueueFull {
		t.Fatalf("posted %d, %v; want %d and a full queue", n, err, depth)
	}
	recvs := p.b.qp.Caps().RecvWR
	posted := 0
	for i := range depth {
		for posted <= i {
			p.b.recv(t, uint64(posted), p.b.sge(0, 8))
			posted++
		}
		p.a.want(t, cq.Completion{ID: uint64(i), Opcode: cq.Send})
		p.b.want(t, cq.Completion{ID: uint64(i), Opcode: cq.Recv, ByteLen: 8})
	}
	full := make([]qp.RecvWR, recvs+1)
	for i := range full {
		full[i].SGEs = []qp.SGE{p.b.sge(0, 8)}
	}
	if n, err := p.b.qp.PostRecv(full); n != recvs || err != qp.ErrQueueFull {
		t.Errorf("posted %d receives, %v; want %d and a full queue", n, err, recvs)
	}
	p.a.send(t, wrs[depth:]...)
	for i := range 3 {
		p.a.want(t, cq.Completion{ID: uint64(depth + i), Opcode: cq.Send})
	}
}

func TestMessageTooLong(t *testing.T) {
	p := connect(t, pairConfig{})
	port, err := p.ctx.Port(1)
	must(t, err)
	if uint64(port.MaxMessage) >= qp.MaxMessage {
		t.Skipf("the port takes messages of %d bytes", port.MaxMessage)
	}
	sge := p.a.sge(0, 0)
	sge.Length = port.MaxMessage + 1
	if n, err := p.a.qp.PostSend([]qp.SendWR{{Opcode: qp.Send, SGEs: []qp.SGE{sge}}}); n != 0 || err != qp.ErrMessageTooLong {
		t.Errorf("posted %d, %v", n, err)
	}
}

// Posting and polling allocate nothing.
func TestNoAllocations(t *testing.T) {
	p := connect(t, pairConfig{})
	sends := []qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.a.sge(0, 64)}}}
	recvs := []qp.RecvWR{{SGEs: []qp.SGE{p.b.sge(0, 64)}}}
	var buf [4]cq.Completion
	poll := func(e *end) {
		for {
			if n, err := e.cq.Poll(buf[:]); n > 0 || err != nil {
				return
			}
		}
	}
	round := func() {
		if n, err := p.b.qp.PostRecv(recvs); n != 1 || err != nil {
			t.Fatal(err)
		}
		must(t, p.a.cq.Arm(false))
		if n, err := p.a.qp.PostSend(sends); n != 1 || err != nil {
			t.Fatal(err)
		}
		poll(&p.a)
		poll(&p.b)
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round of receive, arm, send and two polls", n)
	}
}
