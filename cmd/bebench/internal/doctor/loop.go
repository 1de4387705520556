package doctor

import (
	"bytes"
	"context"
	"fmt"

	"github.com/pkg/errors"

	"github.com/byteexpress/byteexpress/cmd/bebench/internal/pages"
	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Loop is what a test of a device did.
type Loop struct {
	Port     int
	GID      string
	MTUBytes int
	Bytes    int // of each message
}

// loopBytes is the length of each message.
const loopBytes = 64

// LoopTest opens a device, registers memory, connects two queue pairs with each other
// on the best port, and sends a message each way. It gives everything back. An error
// names the step that failed.
func LoopTest(ctx context.Context, dev verbs.Device) (Loop, error) {
	t := &loopTest{}
	l, err := t.run(ctx, dev)
	for i := len(t.undo) - 1; i >= 0; i-- {
		if e := t.undo[i](); err == nil && e != nil {
			err = errors.Wrap(e, "loop test: close")
		}
	}
	return l, err
}

// loopTest has the objects of one test, and how to give them back.
type loopTest struct {
	undo []func() error
	cq   cq.CQ
	ends [2]qp.QP
	mem  []byte
	mr   mr.Region
}

func (t *loopTest) later(f func() error) { t.undo = append(t.undo, f) }

func (t *loopTest) run(ctx context.Context, dev verbs.Device) (l Loop, err error) {
	l.Bytes = loopBytes
	c, err := dev.Open()
	if err != nil {
		return l, errors.WithMessage(err, "loop test: open")
	}
	t.later(c.Close)
	ports, err := verbs.RankPorts(c)
	if err != nil {
		return l, errors.WithMessage(err, "loop test: ports")
	}
	if len(ports) == 0 || !ports[0].Usable {
		return l, errors.New("loop test: no port can be used")
	}
	l.Port, l.MTUBytes, l.GID = ports[0].Port, ports[0].Attr.ActiveMTU.Bytes(), "none"
	if len(ports[0].GIDs) > 0 {
		l.GID = ports[0].GIDs[0].GID.String()
	}
	if err := t.make(c); err != nil {
		return l, errors.WithMessage(err, "loop test")
	}
	if err := t.connect(&ports[0]); err != nil {
		return l, errors.WithMessage(err, "loop test: connect")
	}
	return l, errors.WithMessage(t.exchange(ctx), "loop test: send")
}

// make makes all objects. The memory has what each end sends, then what it receives.
func (t *loopTest) make(c verbs.Context) error {
	pd, err := c.AllocPD()
	if err != nil {
		return err
	}
	t.later(pd.Close)
	if t.mem, err = pages.Alloc(4 * loopBytes); err != nil {
		return err
	}
	t.later(func() error { return pages.Free(t.mem) })
	if t.mr, err = pd.Register(t.mem, mr.LocalWrite); err != nil {
		return err
	}
	t.later(func() error { return pd.Deregister(t.mr) })
	if t.cq, err = c.CreateCQ(verbs.CQConfig{Entries: 16}); err != nil {
		return err
	}
	t.later(t.cq.Close)
	for i := range t.ends {
		t.ends[i], err = pd.CreateQP(verbs.QPConfig{SendCQ: t.cq, RecvCQ: t.cq, Caps: qp.Caps{SendWR: 2, RecvWR: 2, SendSGE: 1, RecvSGE: 1}})
		if err != nil {
			return err
		}
		t.later(t.ends[i].Close)
	}
	return nil
}

// connect aims the two queue pairs at each other.
func (t *loopTest) connect(p *verbs.RankedPort) error {
	path := qp.Path{Port: uint8(p.Port), MTU: p.Attr.ActiveMTU, LID: p.Attr.LID}
	if len(p.GIDs) > 0 {
		path.Global, path.SGIDIndex, path.DGID = p.Attr.LinkLayer != verbs.LinkInfiniBand, uint8(p.GIDs[0].Index), p.GIDs[0].GID
	}
	for i := range t.ends {
		path.SendPSN, path.RecvPSN, path.DestNum = qp.PSN(100+i), qp.PSN(101-i), t.ends[1-i].Num()
		if err := path.Connect(t.ends[i]); err != nil {
			return err
		}
	}
	return nil
}

// sent and received are the end's halves of the memory.
func (t *loopTest) sent(end int) []byte     { return t.mem[end*loopBytes:][:loopBytes] }
func (t *loopTest) received(end int) []byte { return t.mem[(2+end)*loopBytes:][:loopBytes] }

func (t *loopTest) sge(b []byte) []qp.SGE {
	return []qp.SGE{{Addr: mr.Addr(b), Length: loopBytes, LKey: t.mr.LKey}}
}

// exchange sends both messages and compares what arrived.
func (t *loopTest) exchange(ctx context.Context) error {
	for i, end := range t.ends {
		for j := range t.sent(i) {
			t.sent(i)[j] = byte(7*j + 100*i + 1)
		}
		if _, err := end.PostRecv([]qp.RecvWR{{SGEs: t.sge(t.received(i))}}); err != nil {
			return err
		}
	}
	for i, end := range t.ends {
		if _, err := end.PostSend([]qp.SendWR{{Opcode: qp.Send, Flags: qp.Signaled, SGEs: t.sge(t.sent(i))}}); err != nil {
			return err
		}
	}
	if err := t.await(ctx, 4); err != nil {
		return err
	}
	for i := range t.ends {
		if !bytes.Equal(t.received(i), t.sent(1-i)) {
			return errors.New("a message arrived with other bytes than were sent")
		}
	}
	return nil
}

// await takes completions, each of which must be good.
func (t *loopTest) await(ctx context.Context, want int) error {
	var done [4]cq.Completion
	got, armed := 0, false
	for got < want {
		n, err := t.cq.Poll(done[:])
		if err != nil {
			return err
		}
		for _, c := range done[:n] {
			if err := c.Err(); err != nil {
				return err
			}
		}
		got += n
		switch {
		case n > 0:
			armed = false
		case !armed:
			if err := t.cq.Arm(false); err != nil {
				return err
			}
			armed = true
		default:
			if err := t.cq.Wait(ctx); err != nil {
				return fmt.Errorf("%d of %d completions: %w", got, want, err)
			}
			armed = false
		}
	}
	return nil
}
