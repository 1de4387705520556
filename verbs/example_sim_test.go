package verbs_test

import (
	"context"
	"fmt"

	"github.com/byteexpress/byteexpress/bemalloc"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// side is all that one end of a connection needs of a device.
type side struct {
	ctx  verbs.Context
	pd   verbs.PD
	pool *bemalloc.Pool
	cq   cq.CQ
	qp   qp.QP
	path qp.Path
}

func open(d verbs.Device, psn qp.PSN) (*side, error) {
	s := &side{path: qp.Path{Access: mr.LocalWrite | mr.RemoteWrite, SendPSN: psn, SGIDIndex: 1, Global: true, MTU: qp.MTU4096}}
	var err error
	if s.ctx, err = d.Open(); err != nil {
		return nil, err
	}
	if s.pd, err = s.ctx.AllocPD(); err != nil {
		return nil, err
	}
	if s.pool, err = bemalloc.New(bemalloc.Config{Registrar: s.pd, Access: s.path.Access}); err != nil {
		return nil, err
	}
	if s.cq, err = s.ctx.CreateCQ(verbs.CQConfig{Entries: 16}); err != nil {
		return nil, err
	}
	s.qp, err = s.pd.CreateQP(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, Caps: qp.Caps{SendWR: 4, RecvWR: 4, SendSGE: 1, RecvSGE: 1, Inline: 16}})
	return s, err
}

// aim fills in what s must know of its peer. Two processes would tell each other
// over TCP.
func (s *side) aim(peer *side) error {
	gids, err := peer.ctx.GIDs(1)
	if err != nil {
		return err
	}
	s.path.DestNum, s.path.RecvPSN, s.path.DGID = peer.qp.Num(), peer.path.SendPSN, gids[peer.path.SGIDIndex].GID
	return s.path.Connect(s.qp)
}

// wait gives the next completion: arm, poll once more, and only then wait.
func (s *side) wait() (cq.Completion, error) {
	var done [1]cq.Completion
	for {
		if n, err := s.cq.Poll(done[:]); n > 0 || err != nil {
			return done[0], err
		}
		if err := s.cq.Arm(false); err != nil {
			return done[0], err
		}
		if n, err := s.cq.Poll(done[:]); n > 0 || err != nil {
			return done[0], err
		}
		if err := s.cq.Wait(context.Background()); err != nil {
			return done[0], err
		}
	}
}

func (s *side) close() error {
	for _, close := range []func() error{s.qp.Close, s.cq.Close, s.pool.Close, s.pd.Close, s.ctx.Close} {
		if err := close(); err != nil {
			return err
		}
	}
	return nil
}

// One side writes into the other's memory and tells it so by an immediate. With a
// device of package provider instead of sim, the code is the same.
func Example() {
	if err := run(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// RECV_RDMA_WITH_IMM of 5 bytes, immediate 42: hello
	// RDMA_WRITE 7: success
}

func run() error {
	var sides [2]*side
	for i := range sides {
		d, err := sim.Open("sim:")
		if err != nil {
			return err
		}
		if sides[i], err = open(d, qp.PSN(100*i)); err != nil {
			return err
		}
	}
	a, b := sides[0], sides[1]
	if err := a.aim(b); err != nil {
		return err
	}
	if err := b.aim(a); err != nil {
		return err
	}

	// b gives a the address and key of a buffer, and posts a receive for the
	// immediate.
	target, err := b.pool.Alloc(64)
	if err != nil {
		return err
	}
	region, err := b.pool.MR(target)
	if err != nil {
		return err
	}
	if _, err := b.qp.PostRecv([]qp.RecvWR{{ID: 1}}); err != nil {
		return err
	}

	source, err := a.pool.Alloc(5)
	if err != nil {
		return err
	}
	copy(source, "hello")
	local, err := a.pool.MR(source)
	if err != nil {
		return err
	}
	_, err = a.qp.PostSend([]qp.SendWR{{
		ID: 7, Opcode: qp.WriteWithImm, Flags: qp.Signaled, Imm: 42, RKey: region.RKey, RemoteAddr: mr.Addr(target),
		SGEs: []qp.SGE{{Addr: mr.Addr(source), Length: 5, LKey: local.LKey}},
	}})
	if err != nil {
		return err
	}

	c, err := b.wait()
	if err != nil {
		return err
	}
	fmt.Printf("%v of %d bytes, immediate %d: %s\n", c.Opcode, c.ByteLen, c.Imm, target[:c.ByteLen])
	if c, err = a.wait(); err != nil {
		return err
	}
	fmt.Printf("%v %d: %s\n", c.Opcode, c.ID, c.Status.String())

	if err := a.pool.Free(source); err != nil {
		return err
	}
	if err := b.pool.Free(target); err != nil {
		return err
	}
	if err := a.close(); err != nil {
		return err
	}
	return b.close()
}
