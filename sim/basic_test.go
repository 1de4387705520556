package sim_test

import (
	"encoding/binary"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
)

func TestSendWriteReadAtomics(t *testing.T) {
	a, b, _ := newPair(t, sim.Config{}, options{})
	copy(a.buf, "hello over there")
	b.recv(7, 100, 64)
	a.send(qp.SendWR{ID: 1, Opcode: qp.SendWithImm, Flags: qp.Signaled, Imm: 0xabcdef01, SGEs: a.sge(0, 16)})
	c := b.next()
	wantStatus(t, c, 7, cq.Success)
	if c.Opcode != cq.Recv || c.ByteLen != 16 || c.Imm != 0xabcdef01 || c.Flags != cq.HasImm || string(b.buf[100:116]) != "hello over there" {
		t.Fatalf("receive: %+v %q", c, b.buf[100:116])
	}
	wantStatus(t, a.next(), 1, cq.Success)

	a.send(qp.SendWR{ID: 2, Opcode: qp.Write, Flags: qp.Signaled, RemoteAddr: b.reg.Addr + 1000, RKey: b.reg.RKey, SGEs: a.sge(0, 5)})
	wantStatus(t, a.next(), 2, cq.Success)
	if string(b.buf[1000:1005]) != "hello" {
		t.Fatalf("write: %q", b.buf[1000:1005])
	}
	b.none()
	copy(b.buf[2000:], "read this")
	a.send(qp.SendWR{ID: 3, Opcode: qp.Read, Flags: qp.Signaled, RemoteAddr: b.reg.Addr + 2000, RKey: b.reg.RKey, SGEs: a.sge(3000, 9)})
	c = a.next()
	wantStatus(t, c, 3, cq.Success)
	if c.Opcode != cq.Read || c.ByteLen != 9 || string(a.buf[3000:3009]) != "read this" {
		t.Fatalf("read: %+v %q", c, a.buf[3000:3009])
	}
	word := b.buf[4096:4104]
	binary.NativeEndian.PutUint64(word, 40)
	a.send(qp.SendWR{ID: 4, Opcode: qp.FetchAdd, Flags: qp.Signaled, RemoteAddr: b.reg.Addr + 4096, RKey: b.reg.RKey, CompareAdd: 2, SGEs: a.sge(8, 8)})
	wantStatus(t, a.next(), 4, cq.Success)
	a.send(qp.SendWR{ID: 5, Opcode: qp.CompareSwap, Flags: qp.Signaled, RemoteAddr: b.reg.Addr + 4096, RKey: b.reg.RKey, CompareAdd: 42, Swap: 99, SGEs: a.sge(16, 8)})
	wantStatus(t, a.next(), 5, cq.Success)
	if x, y, z := binary.NativeEndian.Uint64(a.buf[8:]), binary.NativeEndian.Uint64(a.buf[16:]), binary.NativeEndian.Uint64(word); x != 40 || y != 42 || z != 99 {
		t.Fatalf("atomics: got %d %d, then %d", x, y, z)
	}
	b.recv(8, 0, 0)
	a.send(qp.SendWR{ID: 6, Opcode: qp.WriteWithImm, Flags: qp.Signaled | qp.Inline, Imm: 5, RemoteAddr: b.reg.Addr, RKey: b.reg.RKey, Inline: []byte("inline")})
	c = b.next()
	wantStatus(t, c, 8, cq.Success)
	if c.Opcode != cq.RecvWriteWithImm || c.Imm != 5 || c.ByteLen != 6 || string(b.buf[:6]) != "inline" {
		t.Fatalf("write with immediate: %+v", c)
	}
	wantStatus(t, a.next(), 6, cq.Success)
}
