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

// UnequalMTU: both ends at the lower path MTU take messages of
// every size around it, with a PSN that wraps. The control: each end with its own MTU
// passes what fits in one packet, and fails what does not with an error completion.
func (r *Rig) UnequalMTU(t *testing.T) {
	testdev.Verb(t, "QP: path MTU of both ends")
	r.without(t, testdev.LostErrors)
	const most = 1 << 20
	p := r.Connect(t, Config{Memory: 2 * most, Path: func(p *qp.Path) { p.MTU = qp.MTU512 }})
	for _, e := range []*End{&p.A, &p.B} {
		a, err := e.QP.Query()
		Must(t, err)
		if a.PathMTU != qp.MTU512 {
			t.Errorf("path MTU %v, want %v", a.PathMTU, qp.MTU512)
		}
	}
	for _, size := range []int{1, 511, 512, 513, 4096, 65536, most} {
		for _, way := range [][2]*End{{&p.A, &p.B}, {&p.B, &p.A}} {
			from, to := way[0], way[1]
			for i := range from.Mem[:size] {
				from.Mem[i] = byte(i*i + size)
			}
			for _, op := range []qp.Opcode{qp.Send, qp.WriteWithImm, qp.Read} {
				clear(to.Mem[most:])
				poster := from
				wr := qp.SendWR{ID: 1, Opcode: op, Flags: qp.Signaled, SGEs: []qp.SGE{from.SGE(0, size)}, RemoteAddr: to.MR.Addr + most, RKey: to.MR.RKey}
				if op == qp.Read {
					poster = to
					wr.SGEs, wr.RemoteAddr, wr.RKey = []qp.SGE{to.SGE(most, size)}, from.MR.Addr, from.MR.RKey
				} else {
					to.Recv(t, 2, to.SGE(most, most))
				}
				poster.Send(t, wr)
				if c := poster.Next(t); c.ID != 1 || c.Status != cq.Success {
					t.Fatalf("%v of %d bytes: %+v", op, size, c)
				}
				if op != qp.Read {
					if c := to.Next(t); c.ID != 2 || c.Status != cq.Success {
						t.Fatalf("%v of %d bytes at the receiver: %+v", op, size, c)
					}
				}
				if !bytes.Equal(from.Mem[:size], to.Mem[most:][:size]) {
					t.Fatalf("%v of %d bytes: wrong content", op, size)
				}
			}
		}
	}

	ends := 0
	p = r.Connect(t, Config{Path: func(p *qp.Path) {
		p.MTU, p.AckTimeout, p.RetryCount = []qp.MTU{qp.MTU1024, qp.MTU512}[ends], 10, 1
		ends++
	}})
	write := func(size int) cq.Completion {
		p.A.Send(t, qp.SendWR{ID: 9, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, size)}, RemoteAddr: p.B.MR.Addr, RKey: p.B.MR.RKey})
		return p.A.Next(t)
	}
	if c := write(256); c.Status != cq.Success {
		t.Errorf("one packet: %+v", c)
	}
	if c := write(8192); c.Status == cq.Success {
		t.Error("packets of another MTU than the peer's pass: the test cannot fail")
	}
}

// UsableGID: the best GID of the device takes a queue pair to RTR, and trying it leaves
// nothing behind.
func (r *Rig) UsableGID(t *testing.T) {
	NoLeaks(t)
	ctx, err := r.Device(t).Open()
	Must(t, err)
	CloseLater(t, ctx)
	gids, err := ctx.GIDs(1)
	Must(t, err)
	ranked := verbs.RankGIDs(gids)
	g, err := verbs.UsableGID(ctx, 1, ranked)
	Must(t, err)
	if g != ranked[0] {
		t.Errorf("took %+v, the best is %+v", g, ranked[0])
	}
}
