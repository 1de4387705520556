//go:build linux

package kdevtest

import (
	"maps"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// extra makes one more connection with the pair's memory and CQs; change may alter
// the paths, config the second end's configuration.
func (p *Pair) extra(t testing.TB, change func(*qp.Path), config func(b *verbs.QPConfig)) (a, b End) {
	t.Helper()
	return p.extraOf(t, qp.Caps{SendWR: 8, RecvWR: 8, SendSGE: 1, RecvSGE: 1, Inline: 64}, change, config)
}

// extraOf is extra with capacities.
func (p *Pair) extraOf(t testing.TB, caps qp.Caps, change func(*qp.Path), config func(b *verbs.QPConfig)) (a, b End) {
	t.Helper()
	more := &Pair{Ctx: p.Ctx, PD: p.PD, A: p.A, B: p.B}
	for i, e := range []*End{&more.A, &more.B} {
		cfg := verbs.QPConfig{SendCQ: e.CQ, RecvCQ: e.CQ, Caps: caps}
		if i == 1 && config != nil {
			config(&cfg)
		}
		var err error
		e.QP, err = p.PD.CreateQP(cfg)
		Must(t, err)
		CloseLater(t, e.QP)
	}
	more.Join(t, change)
	return more.A, more.B
}

// ManyOnOneCQ: 64 connections have one completion queue for everything, and each
// keeps its order.
func (r *Rig) ManyOnOneCQ(t *testing.T) {
	testdev.Verb(t, "CQ: many queue pairs")
	const conns, rounds = 64, 8
	p := r.Connect(t, Config{})
	q, err := p.Ctx.CreateCQ(verbs.CQConfig{Entries: 2 * conns * rounds})
	Must(t, err)
	CloseLater(t, q)
	type place struct{ conn, end int } // end 0 sends
	of := map[cq.QPNum]place{}
	var ends [conns][2]End
	shared := Pair{Ctx: p.Ctx, PD: p.PD, A: p.A, B: p.B}
	shared.A.CQ, shared.B.CQ = q, q
	for i := range ends {
		a, b := shared.extra(t, nil, nil)
		ends[i] = [2]End{a, b}
		of[a.QP.Num()], of[b.QP.Num()] = place{i, 0}, place{i, 1}
	}
	if len(of) != 2*conns {
		t.Fatalf("%d numbers of %d queue pairs", len(of), 2*conns)
	}
	for round := range rounds {
		for i := range ends {
			ends[i][1].Recv(t, uint64(round), p.B.SGE(8*i, 8))
		}
		for i := range ends {
			ends[i][0].Send(t, qp.SendWR{ID: uint64(round), Opcode: qp.SendWithImm, Imm: uint32(i), Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(8*i, 8)}})
		}
	}
	var next [conns][2]uint64
	all := End{CQ: q}
	for range 2 * conns * rounds {
		c := all.Next(t)
		at, ok := of[c.QPNum]
		if !ok || c.Err() != nil {
			t.Fatalf("completion %+v", c)
		}
		if c.ID != next[at.conn][at.end] || at.end == 1 && (!c.Opcode.IsRecv() || c.Imm != uint32(at.conn)) {
			t.Fatalf("connection %d, end %d, message %d: %+v", at.conn, at.end, next[at.conn][at.end], c)
		}
		next[at.conn][at.end]++
	}
	all.Empty(t)
}

// ManyMadeAndDestroyed: after 1,000 queue pairs, in various states, nothing is left of
// them in the kernel, nor of the shared receive queues, and counters of the device
// say nothing of them.
func (r *Rig) ManyMadeAndDestroyed(t *testing.T) {
	testdev.Verb(t, "QP: nothing left of 1000")
	const total, atOnce = 1000, 50
	p := r.Connect(t, Config{})
	var before map[string]uint64
	if r.Resources != nil {
		before = r.Resources(t)
		t.Logf("before: %v", before)
	}
	numbers := map[qp.Num]int{}
	srqs := true
	for made := 0; made < total; made += 2 * atOnce {
		var all []interface{ Close() error }
		var shared qp.SRQ
		if srqs {
			var err error
			if shared, err = p.PD.CreateSRQ(verbs.SRQConfig{Caps: qp.SRQCaps{RecvWR: 4, RecvSGE: 1}}); err != nil {
				t.Logf("without shared receive queues: %v", err)
				srqs = false
			}
		}
		for i := range atOnce {
			var ends [2]End
			for k, e := range []*End{&p.A, &p.B} {
				cfg := verbs.QPConfig{SendCQ: e.CQ, RecvCQ: e.CQ, Caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: 1, RecvSGE: 1}}
				if i%3 == 0 && srqs {
					cfg.SRQ = shared
				}
				q, err := p.PD.CreateQP(cfg)
				Must(t, err)
				numbers[q.Num()]++
				all = append(all, q)
				ends[k] = *e
				ends[k].QP = q
			}
			if i%2 == 0 {
				(&Pair{Ctx: p.Ctx, PD: p.PD, A: ends[0], B: ends[1]}).Join(t, nil)
			}
			if i%4 == 0 {
				Must(t, ends[0].QP.Modify(&qp.Attr{State: qp.Err}, qp.MaskState))
			}
		}
		for _, c := range all {
			Must(t, c.Close())
		}
		if srqs {
			Must(t, shared.Close())
		}
	}
	t.Logf("%d different numbers", len(numbers))
	if r.Resources == nil {
		return
	}
	if after := r.Resources(t); !maps.Equal(before, after) {
		t.Errorf("resources and counters before: %v\nand after: %v", before, after)
	}
}
