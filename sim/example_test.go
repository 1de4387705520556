package sim_test

import (
	"context"
	"fmt"
	"log"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// side is one end of the example's connection.
type side struct {
	ctx verbs.Context
	pd  verbs.PD
	cq  cq.CQ
	qp  qp.QP
	gid verbs.GIDEntry
}

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func newSide() *side {
	s := &side{}
	s.ctx = try(try(sim.Open("sim:")).Open())
	s.pd = try(s.ctx.AllocPD())
	s.cq = try(s.ctx.CreateCQ(verbs.CQConfig{Entries: 16}))
	s.qp = try(s.pd.CreateQP(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, Caps: qp.Caps{SendWR: 8, RecvWR: 8, SendSGE: 1, RecvSGE: 1}}))
	s.gid = try(s.ctx.GIDs(1))[1]
	return s
}

func (s *side) connect(peer *side) {
	path := qp.Path{
		SGIDIndex: uint8(s.gid.Index), DestNum: peer.qp.Num(), DGID: peer.gid.GID, Global: true,
		MTU: qp.MTU4096, Access: mr.LocalWrite | mr.RemoteWrite,
	}
	if err := path.Connect(s.qp); err != nil {
		log.Fatal(err)
	}
}

// wait sleeps until a completion is there.
func (s *side) wait() cq.Completion {
	var c [1]cq.Completion
	for {
		if try(s.cq.Poll(c[:])) == 1 {
			return c[0]
		}
		if err := s.cq.Arm(false); err != nil {
			log.Fatal(err)
		}
		if try(s.cq.Poll(c[:])) == 1 {
			return c[0]
		}
		if err := s.cq.Wait(context.Background()); err != nil {
			log.Fatal(err)
		}
	}
}

// Example sends a message between two simulated NICs. The same code runs on a real
// device.
func Example() {
	a, b := newSide(), newSide()
	a.connect(b)
	b.connect(a)

	in := try(mmio.Anonymous(64))
	inbox := try(b.pd.Register(in.Bytes(), mr.LocalWrite))
	try(b.qp.PostRecv([]qp.RecvWR{{ID: 7, SGEs: []qp.SGE{{Addr: inbox.Addr, Length: 64, LKey: inbox.LKey}}}}))

	out := try(mmio.Anonymous(64))
	n := copy(out.Bytes(), "hello, RDMA")
	outbox := try(a.pd.Register(out.Bytes(), 0))
	try(a.qp.PostSend([]qp.SendWR{{
		ID: 1, Opcode: qp.SendWithImm, Flags: qp.Signaled, Imm: 42,
		SGEs: []qp.SGE{{Addr: outbox.Addr, Length: uint32(n), LKey: outbox.LKey}},
	}}))

	c := b.wait()
	fmt.Printf("request %d, %v: %q with immediate %d\n", c.ID, c.Opcode, in.Bytes()[:c.ByteLen], c.Imm)
	c = a.wait()
	fmt.Printf("request %d, %v: %v\n", c.ID, c.Opcode, c.Status.Name())

	for _, err := range []error{
		a.qp.Close(), b.qp.Close(), a.cq.Close(), b.cq.Close(), a.pd.Deregister(outbox), b.pd.Deregister(inbox),
		in.Close(), out.Close(), a.pd.Close(), b.pd.Close(), a.ctx.Close(), b.ctx.Close(),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// request 7, RECV: "hello, RDMA" with immediate 42
	// request 1, SEND: SUCCESS
}
