//go:build linux

package rxe

import (
	"errors"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/provider/internal/kdevtest"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs"
	"github.com/byteexpress/byteexpress/verbs"
)

var rig = kdevtest.Rig{
	Device: device,
	Also: map[cq.Status][]cq.Status{
		// Kernel 6.1 gives the first; 6.12 loses the cause and gives the second.
		cq.LocalProtectionError: {cq.LocalQPOperationError, cq.WRFlushError},
		cq.MWBindError:          {cq.WRFlushError},
		// Kernel 6.1 does this.
		cq.RemoteInvalidRequestError: {cq.RemoteOperationError},
		cq.LocalLengthError:          {cq.LocalQPOperationError},
	},
	Refused:   tooMuchInline,
	Resources: resources,
}

// Names that the tests use on every other line.
var must, closeLater, noLeaks, openFDs = kdevtest.Must, kdevtest.CloseLater, kdevtest.NoLeaks, kdevtest.OpenFDs

// device finds the device that the tests may use.
func device(t testing.TB) verbs.Device {
	t.Helper()
	sys := &uverbs.System{}
	name := testdev.Name(t)
	devs, err := sys.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devs {
		if d.Name != name {
			continue
		}
		if d.Driver != uverbs.DriverRXE {
			t.Skipf("%s has the driver %v, not rxe", name, d.Driver)
		}
		return New(sys, d)
	}
	t.Fatalf("no device %s among %v", name, devs)
	return nil
}

// tooMuchInline asks for more than the driver has: it does not tell its limit.
func tooMuchInline(t *testing.T, p *kdevtest.Pair) {
	caps := qp.Caps{SendWR: 1, RecvWR: 1, SendSGE: 1, RecvSGE: 1, Inline: 1 << 15}
	var op *verbs.OpError
	if _, err := p.PD.CreateQP(verbs.QPConfig{SendCQ: p.A.CQ, RecvCQ: p.A.CQ, Caps: caps}); !errors.Is(err, syscall.EINVAL) || !errors.As(err, &op) || op.Remedy == "" {
		t.Errorf("too much inline: %v", err)
	}
}

// The kernel moved the queue pair to ERR unknown to software, and a receive is
// posted then: the first error completion makes it flushed as well.
func TestFlushOfReceivePostedUnaware(t *testing.T) {
	testdev.Verb(t, "QP: flush in ERR")
	testdev.LostErrors.Skip(t, testdev.Name(t))
	p := rig.Connect(t, kdevtest.Config{})
	q := p.B.QP.(*queuePair)
	must(t, q.ctx.K.ModifyQP(q.Handle, &qp.Attr{State: qp.Err}, qp.MaskState)) // behind its back
	if q.State() != qp.RTS {
		t.Fatal("software knows")
	}
	p.B.Recv(t, 1, p.B.SGE(0, 8))
	p.B.Send(t, qp.SendWR{ID: 2, Opcode: qp.Send, Flags: qp.Signaled, SGEs: []qp.SGE{p.B.SGE(0, 8)}})
	seen := map[uint64]bool{}
	for range 2 {
		c := p.B.Next(t)
		if c.Status != cq.WRFlushError || seen[c.ID] {
			t.Errorf("completion %+v", c)
		}
		seen[c.ID] = true
	}
	if q.State() != qp.Err {
		t.Errorf("state is %v", q.State())
	}
}
