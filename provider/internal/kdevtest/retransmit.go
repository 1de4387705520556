//go:build linux

package kdevtest

import (
	"bytes"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Retransmission: messages of many packets arrive once and whole over queue pairs that
// wait for acknowledgements so short a time (8 us) that a busy device sends again what is
// only late, and then again before it is through with that.
func (r *Rig) Retransmission(t *testing.T) {
	testdev.Verb(t, "QP: retransmission of long messages")
	r.without(t, testdev.PhantomPacket)
	for _, op := range []qp.Opcode{qp.Write, qp.Send} {
		t.Run(op.String(), func(t *testing.T) {
			const conns, depth, size, rounds = 16, 32, 64 << 10, 2
			p := r.Connect(t, Config{Memory: conns * size})
			q, err := p.Ctx.CreateCQ(verbs.CQConfig{Entries: 2 * conns * depth})
			Must(t, err)
			CloseLater(t, q)
			p.fill(7)
			clear(p.B.Mem)
			shared := Pair{Ctx: p.Ctx, PD: p.PD, A: p.A, B: p.B}
			shared.A.CQ, shared.B.CQ = q, q
			var ends [conns][2]End
			for i := range ends {
				caps := qp.Caps{SendWR: depth, RecvWR: depth, SendSGE: 1, RecvSGE: 1}
				ends[i][0], ends[i][1] = shared.extraOf(t, caps, func(p *qp.Path) { p.AckTimeout = 1 }, nil)
			}
			all := End{CQ: q}
			for range rounds {
				want := 0
				for i := range ends {
					a, b := &ends[i][0], &ends[i][1]
					var batch []qp.SendWR
					for range depth {
						if op.ConsumesRecv() {
							b.Recv(t, 0, b.SGE(i*size, size))
							want++
						}
						batch = append(batch, qp.SendWR{Opcode: op, Flags: qp.Signaled, SGEs: []qp.SGE{a.SGE(i*size, size)},
							RemoteAddr: b.MR.Addr + uint64(i*size), RKey: b.MR.RKey})
						want++
					}
					a.Send(t, batch...)
				}
				for range want {
					if c := all.Next(t); c.Err() != nil || c.Opcode == cq.Recv && c.ByteLen != size {
						t.Fatalf("completion %+v: %v", c, c.Err())
					}
				}
			}
			all.Empty(t)
			if !bytes.Equal(p.A.Mem, p.B.Mem) {
				t.Error("data differs")
			}
		})
	}
}
