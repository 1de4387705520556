package sim_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const allAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead | mr.RemoteAtomic

// end is one end of a connection under test.
type end struct {
	t    testing.TB
	dev  verbs.Device
	ctx  verbs.Context
	pd   verbs.PD
	cq   cq.CQ
	qp   qp.QP
	buf  []byte
	reg  mr.Region
	path qp.Path
	got  [64]cq.Completion

	closed bool
}

// options of a pair of ends.
type options struct {
	caps   qp.Caps
	cqe    int
	buf    int
	sigAll bool
	access mr.Access
	path   qp.Path // quality and agreed values
	devA   sim.DeviceConfig
	devB   sim.DeviceConfig
}

func (o *options) fill() {
	if o.caps == (qp.Caps{}) {
		o.caps = qp.Caps{SendWR: 64, RecvWR: 64, SendSGE: 4, RecvSGE: 4, Inline: 128}
	}
	if o.cqe == 0 {
		o.cqe = 256
	}
	if o.buf == 0 {
		o.buf = 1 << 16
	}
	if o.access == 0 {
		o.access = allAccess
	}
	if o.path.MTU == 0 {
		o.path.MTU = qp.MTU4096
	}
	if o.path.MaxReads == 0 {
		o.path.MaxReads, o.path.MaxDestReads = 16, 16
	}
	if o.path.AckTimeout == 0 {
		o.path.AckTimeout = 31 // hours: no timer runs a NIC beside the test's goroutine
	}
	o.path.Access, o.path.Global, o.path.SGIDIndex = o.access, true, 1
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newEnd(t testing.TB, d verbs.Device, o *options) *end {
	t.Helper()
	e := &end{t: t, dev: d}
	e.ctx = must[verbs.Context](t)(d.Open())
	e.pd = must[verbs.PD](t)(e.ctx.AllocPD())
	e.cq = must[cq.CQ](t)(e.ctx.CreateCQ(verbs.CQConfig{Entries: o.cqe}))
	e.qp = newQPOf(t, e, o)
	e.buf = make([]byte, o.buf)
	e.reg = must[mr.Region](t)(e.pd.Register(e.buf, o.access))
	e.path = o.path
	return e
}

func newQPOf(t testing.TB, e *end, o *options) qp.QP {
	t.Helper()
	return must[qp.QP](t)(e.pd.CreateQP(verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, Caps: o.caps, SigAll: o.sigAll}))
}

// connect joins two ends.
func connect(a, b *end) {
	a.t.Helper()
	a.aim(b)
	b.aim(a)
	check(a.t, a.path.Connect(a.qp))
	check(a.t, b.path.Connect(b.qp))
}

func (e *end) aim(peer *end) {
	gids := must[[]verbs.GIDEntry](e.t)(peer.ctx.GIDs(1))
	e.path.DestNum = peer.qp.Num()
	e.path.DGID = gids[peer.path.SGIDIndex].GID
	e.path.RecvPSN = peer.path.SendPSN
}

func (e *end) close() {
	e.t.Helper()
	if e.closed {
		return
	}
	e.closed = true
	if err := e.qp.Close(); err != nil && !errors.Is(err, qp.ErrClosed) { // a test may have closed it
		e.t.Fatal(err)
	}
	check(e.t, e.pd.Deregister(e.reg))
	check(e.t, e.cq.Close())
	check(e.t, e.pd.Close())
	check(e.t, e.ctx.Close())
}

// newPair makes two connected ends on a fabric of their own.
func newPair(t testing.TB, cfg sim.Config, o options) (a, b *end, f *sim.Fabric) {
	t.Helper()
	o.fill()
	f = sim.NewFabric(cfg)
	f.SetShare(time.Hour) // what a doorbell leads to is done when it returns
	a = newEnd(t, must[*sim.Device](t)(f.NewDevice("a", o.devA)), &o)
	b = newEnd(t, must[*sim.Device](t)(f.NewDevice("b", o.devB)), &o)
	b.path.SendPSN = 0x123456
	a.path.SendPSN = 0xfffffe
	connect(a, b)
	t.Cleanup(func() {
		a.close()
		b.close()
		check(t, f.Close())
	})
	return a, b, f
}

func (e *end) sge(off, n int) []qp.SGE {
	return []qp.SGE{{Addr: e.reg.Addr + uint64(off), Length: uint32(n), LKey: e.reg.LKey}}
}

func (e *end) send(wr qp.SendWR) {
	e.t.Helper()
	_, err := e.qp.PostSend([]qp.SendWR{wr})
	check(e.t, err)
}

func (e *end) recv(id uint64, off, n int) {
	e.t.Helper()
	_, err := e.qp.PostRecv([]qp.RecvWR{{ID: id, SGEs: e.sge(off, n)}})
	check(e.t, err)
}

// next waits for one completion.
func (e *end) next() cq.Completion {
	e.t.Helper()
	c := e.nextN(1)
	return c[0]
}

// nextN waits for n completions.
func (e *end) nextN(n int) []cq.Completion {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var out []cq.Completion
	for {
		k, err := e.cq.Poll(e.got[:min(n-len(out), len(e.got))])
		check(e.t, err)
		if out = append(out, e.got[:k]...); len(out) == n {
			return out
		}
		check(e.t, e.cq.Arm(false))
		if k, err = e.cq.Poll(e.got[:1]); k > 0 {
			if out = append(out, e.got[0]); len(out) == n {
				return out
			}
			continue
		}
		check(e.t, err)
		check(e.t, e.cq.Wait(ctx))
	}
}

// none checks that there is no completion.
func (e *end) none() {
	e.t.Helper()
	if n, err := e.cq.Poll(e.got[:1]); n != 0 || err != nil {
		e.t.Fatalf("poll: got %d, %v (%+v), want nothing", n, err, e.got[0])
	}
}

func wantStatus(t testing.TB, c cq.Completion, id uint64, st cq.Status) {
	t.Helper()
	if c.ID != id || c.Status != st {
		t.Fatalf("completion: got request %#x %v, want request %#x %v", c.ID, c.Status.Name(), id, st.Name())
	}
}

// seed is logged, and taken from SIM_SEED to run a failure again.
func seed(t testing.TB) uint64 {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("SIM_SEED"); v != "" {
		s, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("SIM_SEED=%d", s)
	return s
}

func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}
