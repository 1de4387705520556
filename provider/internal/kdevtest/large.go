//go:build linux

package kdevtest

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
)

// Large moves 64 MiB by every operation that can: as one message, or as messages of
// the port's limit where that is lower.
func (r *Rig) Large(t *testing.T) {
	testdev.Verb(t, "QP: 64 MiB")
	const total = 64 << 20
	p := r.Connect(t, Config{Memory: total})
	port, err := p.Ctx.Port(1)
	Must(t, err)
	size := min(total, int(port.MaxMessage))
	t.Logf("%d messages of %d bytes", total/size, size)
	p.fill(5)
	for _, op := range []qp.Opcode{qp.Send, qp.Write, qp.WriteWithImm, qp.Read} {
		clear(p.B.Mem)
		from, to := &p.A, &p.B
		if op == qp.Read { // B fetches
			from, to = to, from
		}
		for off := 0; off < total; off += size {
			n := min(size, total-off)
			w := qp.SendWR{ID: uint64(off), Opcode: op, Flags: qp.Signaled, SGEs: []qp.SGE{from.SGE(off, n)}}
			if op.ConsumesRecv() {
				to.Recv(t, uint64(off)+1, to.SGE(off, n))
			}
			if op != qp.Send {
				w.RemoteAddr, w.RKey = to.MR.Addr+uint64(off), to.MR.RKey
			}
			from.Send(t, w)
			done := cq.Completion{ID: uint64(off), Opcode: cq.Write}
			switch op {
			case qp.Send:
				done.Opcode = cq.Send
			case qp.Read:
				done.Opcode = cq.Read
			}
			from.Want(t, done)
			switch op {
			case qp.Send:
				to.Want(t, cq.Completion{ID: uint64(off) + 1, Opcode: cq.Recv, ByteLen: uint32(n)})
			case qp.WriteWithImm:
				to.Want(t, cq.Completion{ID: uint64(off) + 1, Opcode: cq.RecvWriteWithImm, ByteLen: uint32(n), Flags: cq.HasImm})
			}
		}
		if !bytes.Equal(p.A.Mem, p.B.Mem) {
			t.Errorf("%v: data differs", op)
		}
	}
}
