//go:build linux

package kdevtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// fill writes seeded bytes into the memory of one end and clears the other's.
func (p *Pair) fill(seed uint64) {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(p.A.Mem)
	clear(p.B.Mem)
}

// sizes around every border: packets of 1024 and 4096 bytes, and the largest asked for.
var sizes = []int{0, 1, 2, 3, 4, 7, 8, 63, 64, 65, 255, 256, 1023, 1024, 1025, 4095, 4096, 4097, 65535, 65536, 65537, 1<<20 - 1, 1 << 20}

// Opcodes runs every opcode with every size, on each kind of the device.
func (r *Rig) Opcodes(t *testing.T) {
	testdev.Verb(t, "QP: send", "QP: send with immediate", "QP: write", "QP: write with immediate", "QP: read")
	if r.Kinds == nil {
		opcodesOf(t, r.Device)
	}
	for name, device := range r.Kinds {
		t.Run(name, func(t *testing.T) { opcodesOf(t, device) })
	}
}

func opcodesOf(t *testing.T, device func(testing.TB) verbs.Device) {
	NoLeaks(t)
	p := Connect(t, device(t), Config{Memory: 1 << 20})
	const seed = 1
	t.Logf("seed %d", seed)
	p.fill(seed)
	for i, size := range sizes {
		id := uint64(i)<<32 | 0xabcd
		remote := func(w qp.SendWR) qp.SendWR {
			w.RemoteAddr, w.RKey = p.B.MR.Addr, p.B.MR.RKey
			return w
		}
		same := func(t *testing.T, what string) {
			t.Helper()
			if !bytes.Equal(p.A.Mem[:size], p.B.Mem[:size]) {
				t.Errorf("%s of %d bytes: data differs", what, size)
			}
			clear(p.B.Mem[:size])
		}
		sges := []qp.SGE{p.A.SGE(0, size)}
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			p.B.Recv(t, id+1, p.B.SGE(0, size))
			p.A.Send(t, qp.SendWR{ID: id, Opcode: qp.Send, Flags: qp.Signaled, SGEs: sges})
			p.A.Want(t, cq.Completion{ID: id, Opcode: cq.Send})
			p.B.Want(t, cq.Completion{ID: id + 1, Opcode: cq.Recv, ByteLen: uint32(size)})
			same(t, "SEND")

			p.B.Recv(t, id+1, p.B.SGE(0, size))
			p.A.Send(t, qp.SendWR{ID: id, Opcode: qp.SendWithImm, Imm: 0x01020304, Flags: qp.Signaled, SGEs: sges})
			p.A.Want(t, cq.Completion{ID: id, Opcode: cq.Send})
			p.B.Want(t, cq.Completion{ID: id + 1, Opcode: cq.Recv, ByteLen: uint32(size), Imm: 0x01020304, Flags: cq.HasImm})
			same(t, "SEND_WITH_IMM")

			p.A.Send(t, remote(qp.SendWR{ID: id, Opcode: qp.Write, Flags: qp.Signaled, SGEs: sges}))
			p.A.Want(t, cq.Completion{ID: id, Opcode: cq.Write})
			same(t, "WRITE")

			p.B.Recv(t, id+1)
			p.A.Send(t, remote(qp.SendWR{ID: id, Opcode: qp.WriteWithImm, Imm: 0xfffefdfc, Flags: qp.Signaled, SGEs: sges}))
			p.A.Want(t, cq.Completion{ID: id, Opcode: cq.Write})
			p.B.Want(t, cq.Completion{ID: id + 1, Opcode: cq.RecvWriteWithImm, ByteLen: uint32(size), Imm: 0xfffefdfc, Flags: cq.HasImm})
			same(t, "WRITE_WITH_IMM")

			p.B.Send(t, qp.SendWR{ID: id, Opcode: qp.Read, Flags: qp.Signaled, RemoteAddr: p.A.MR.Addr, RKey: p.A.MR.RKey, SGEs: []qp.SGE{p.B.SGE(0, size)}})
			p.B.Want(t, cq.Completion{ID: id, Opcode: cq.Read})
			same(t, "READ")
		})
	}
	p.A.Empty(t)
	p.B.Empty(t)
}

// Segments uses every number of segments up to the capacity, of uneven lengths, on
// both sides.
func (r *Rig) Segments(t *testing.T) {
	testdev.Verb(t, "QP: several segments")
	p := r.Connect(t, Config{})
	attr, err := p.Ctx.Attr()
	Must(t, err)
	n := attr.MaxSGE
	p.A, p.B = p.extraOf(t, qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: n, RecvSGE: n}, nil, nil)
	t.Logf("%d segments", n)
	if c := p.A.QP.Caps(); c.SendSGE < n || c.RecvSGE < n {
		t.Fatalf("capacities %+v", c)
	}
	p.fill(2)
	for k := 1; k <= n; k++ {
		var out, in []qp.SGE
		var want []byte
		for i := range k {
			off, length := i*500+i, 37*i%200 // some are empty
			out = append(out, p.A.SGE(off, length))
			want = append(want, p.A.Mem[off:off+length]...)
		}
		in = append(in, p.B.SGE(0, len(want)/2), p.B.SGE(len(want)/2, len(want)-len(want)/2))
		if k == 1 {
			in = []qp.SGE{p.B.SGE(0, len(want))}
		}
		p.B.Recv(t, uint64(k), in...)
		p.A.Send(t, qp.SendWR{ID: uint64(k), Opcode: qp.Send, Flags: qp.Signaled, SGEs: out})
		p.A.Want(t, cq.Completion{ID: uint64(k), Opcode: cq.Send})
		p.B.Want(t, cq.Completion{ID: uint64(k), Opcode: cq.Recv, ByteLen: uint32(len(want))})
		if !bytes.Equal(p.B.Mem[:len(want)], want) {
			t.Errorf("%d segments: data differs", k)
		}
	}
	wr := qp.SendWR{Opcode: qp.Send, SGEs: make([]qp.SGE, p.A.QP.Caps().SendSGE+1)}
	if n, err := p.A.QP.PostSend([]qp.SendWR{wr}); n != 0 || err != qp.ErrTooManySGEs {
		t.Errorf("one segment too many: %d, %v", n, err)
	}
}

// Inline posts payload from any memory, which may change as soon as the post returned.
func (r *Rig) Inline(t *testing.T) {
	testdev.Verb(t, "QP: inline data")
	p := r.Connect(t, Config{})
	limit := p.A.QP.Caps().Inline
	if limit < 64 {
		t.Fatalf("%d inline bytes, asked for 64", limit)
	}
	for n := range limit + 1 {
		payload := bytes.Repeat([]byte{byte(n + 1)}, n)
		p.B.Recv(t, uint64(n), p.B.SGE(0, limit))
		p.A.Send(t, qp.SendWR{ID: uint64(n), Opcode: qp.Send, Flags: qp.Signaled | qp.Inline, Inline: payload})
		clear(payload)
		p.A.Want(t, cq.Completion{ID: uint64(n), Opcode: cq.Send})
		p.B.Want(t, cq.Completion{ID: uint64(n), Opcode: cq.Recv, ByteLen: uint32(n)})
		if got := p.B.Mem[:n]; !bytes.Equal(got, bytes.Repeat([]byte{byte(n + 1)}, n)) {
			t.Fatalf("%d inline bytes arrived as % x", n, got)
		}
	}
	p.A.Send(t, qp.SendWR{ID: 1, Opcode: qp.Write, Flags: qp.Signaled | qp.Inline, Inline: []byte("hello"), RemoteAddr: p.B.MR.Addr + 9, RKey: p.B.MR.RKey})
	p.A.Want(t, cq.Completion{ID: 1, Opcode: cq.Write})
	if got := string(p.B.Mem[9:14]); got != "hello" {
		t.Errorf("inline WRITE left %q", got)
	}
	if n, err := p.A.QP.PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Inline, Inline: make([]byte, limit+1)}}); n != 0 || err != qp.ErrInlineTooLong {
		t.Errorf("one inline byte too many: %d, %v", n, err)
	}
}

// Atomics runs fetch-and-add and compare-and-swap, with a match and without.
func (r *Rig) Atomics(t *testing.T) {
	testdev.Verb(t, "QP: compare and swap", "QP: fetch and add")
	p := r.Connect(t, Config{})
	word := func(e *End, off int) uint64 { return binary.NativeEndian.Uint64(e.Mem[off:]) }
	binary.NativeEndian.PutUint64(p.B.Mem[64:], 1000)
	atomic := qp.SendWR{Flags: qp.Signaled, RemoteAddr: p.B.MR.Addr + 64, RKey: p.B.MR.RKey, SGEs: []qp.SGE{p.A.SGE(8, 8)}}

	add := atomic
	add.ID, add.Opcode, add.CompareAdd = 1, qp.FetchAdd, 5
	p.A.Send(t, add)
	p.A.Want(t, cq.Completion{ID: 1, Opcode: cq.FetchAdd})
	if word(&p.A, 8) != 1000 || word(&p.B, 64) != 1005 {
		t.Errorf("fetch-and-add: old value %d, new %d", word(&p.A, 8), word(&p.B, 64))
	}
	swap := atomic
	swap.ID, swap.Opcode, swap.CompareAdd, swap.Swap = 2, qp.CompareSwap, 1005, 77
	p.A.Send(t, swap)
	p.A.Want(t, cq.Completion{ID: 2, Opcode: cq.CompareSwap})
	if word(&p.A, 8) != 1005 || word(&p.B, 64) != 77 {
		t.Errorf("compare-and-swap: old value %d, new %d", word(&p.A, 8), word(&p.B, 64))
	}
	swap.ID, swap.CompareAdd = 3, 78 // does not match
	p.A.Send(t, swap)
	p.A.Want(t, cq.Completion{ID: 3, Opcode: cq.CompareSwap})
	if word(&p.A, 8) != 77 || word(&p.B, 64) != 77 {
		t.Errorf("compare-and-swap that does not match: old value %d, new %d", word(&p.A, 8), word(&p.B, 64))
	}
	swap.RemoteAddr++
	if n, err := p.A.QP.PostSend([]qp.SendWR{swap}); n != 0 || err != qp.ErrAtomic {
		t.Errorf("unaligned atomic: %d, %v", n, err)
	}
}

// SelectiveSignaling lets the ring run round many times with one signaled request in
// eight.
func (r *Rig) SelectiveSignaling(t *testing.T) {
	testdev.Verb(t, "QP: unsignaled requests")
	p := r.Connect(t, Config{})
	depth := p.A.QP.Caps().SendWR
	p.fill(3)
	const rounds, batch = 50, 8
	wrs := make([]qp.SendWR, batch)
	for r := range rounds {
		for i := range wrs {
			off := (r*batch + i) % 512 * 8
			wrs[i] = qp.SendWR{ID: uint64(r), Opcode: qp.Write, SGEs: []qp.SGE{p.A.SGE(off, 8)}, RemoteAddr: p.B.MR.Addr + uint64(off), RKey: p.B.MR.RKey}
		}
		wrs[batch-1].Flags = qp.Signaled
		p.A.Send(t, wrs...)
		p.A.Want(t, cq.Completion{ID: uint64(r), Opcode: cq.Write})
	}
	if !bytes.Equal(p.A.Mem[:rounds*batch*8], p.B.Mem[:rounds*batch*8]) {
		t.Error("data differs")
	}
	p.A.Empty(t)
	if depth >= rounds*batch {
		t.Errorf("queue of %d never ran round", depth)
	}
}

// QueueFull: a full send queue refuses the first request that does not fit, and takes
// it after the queue has moved.
func (r *Rig) QueueFull(t *testing.T) {
	testdev.Verb(t, "QP: requests wait for receives")
	r.without(t, testdev.RNRLoop)
	p := r.Connect(t, Config{})
	depth := p.A.QP.Caps().SendWR
	wrs := make([]qp.SendWR, depth+3)
	for i := range wrs {
		wrs[i] = qp.SendWR{ID: uint64(i), Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}}
	}
	// The peer has no receive: nothing can complete.
	n, err := p.A.QP.PostSend(wrs)
	if n != depth || err != qp.ErrQueueFull {
		t.Fatalf("posted %d, %v; want %d and a full queue", n, err, depth)
	}
	recvs := p.B.QP.Caps().RecvWR
	posted := 0
	for i := range depth {
		for posted <= i {
			p.B.Recv(t, uint64(posted), p.B.SGE(0, 8))
			posted++
		}
		p.A.Want(t, cq.Completion{ID: uint64(i), Opcode: cq.Send})
		p.B.Want(t, cq.Completion{ID: uint64(i), Opcode: cq.Recv, ByteLen: 8})
	}
	full := make([]qp.RecvWR, recvs+1)
	for i := range full {
		full[i].SGEs = []qp.SGE{p.B.SGE(0, 8)}
	}
	if n, err := p.B.QP.PostRecv(full); n != recvs || err != qp.ErrQueueFull {
		t.Errorf("posted %d receives, %v; want %d and a full queue", n, err, recvs)
	}
	p.A.Send(t, wrs[depth:]...)
	for i := range 3 {
		p.A.Want(t, cq.Completion{ID: uint64(depth + i), Opcode: cq.Send})
	}
}

// MessageTooLong: a message longer than the port's limit is refused.
func (r *Rig) MessageTooLong(t *testing.T) {
	p := r.Connect(t, Config{})
	port, err := p.Ctx.Port(1)
	Must(t, err)
	if uint64(port.MaxMessage) >= qp.MaxMessage {
		t.Skipf("the port takes messages of %d bytes", port.MaxMessage)
	}
	sge := p.A.SGE(0, 0)
	sge.Length = port.MaxMessage + 1
	if n, err := p.A.QP.PostSend([]qp.SendWR{{Opcode: qp.Send, SGEs: []qp.SGE{sge}}}); n != 0 || err != qp.ErrMessageTooLong {
		t.Errorf("posted %d, %v", n, err)
	}
}

// NoAllocations: posting and polling allocate nothing.
func (r *Rig) NoAllocations(t *testing.T) {
	p := r.Connect(t, Config{})
	sends := []qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 64)}}}
	recvs := []qp.RecvWR{{SGEs: []qp.SGE{p.B.SGE(0, 64)}}}
	var buf [4]cq.Completion
	poll := func(e *End) {
		for {
			if n, err := e.CQ.Poll(buf[:]); n > 0 || err != nil {
				return
			}
		}
	}
	round := func() {
		if n, err := p.B.QP.PostRecv(recvs); n != 1 || err != nil {
			t.Fatal(err)
		}
		Must(t, p.A.CQ.Arm(false))
		if n, err := p.A.QP.PostSend(sends); n != 1 || err != nil {
			t.Fatal(err)
		}
		poll(&p.A)
		poll(&p.B)
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round of receive, arm, send and two polls", n)
	}
}
