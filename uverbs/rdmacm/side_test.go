//go:build linux

package rdmacm_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/provider"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/verbs"
)

// patience is how long a test waits before it fails. It is not a measurement: an
// emulated machine may be slow.
const patience = 60 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func openFDs(t testing.TB) int {
	t.Helper()
	e, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(e)
}

// noLeaks fails the test if descriptors, mappings or the kernel's IDs are left at its
// end. The kernel gives the lowest free number to a new ID.
func noLeaks(t testing.TB) {
	t.Helper()
	testdev.Name(t)
	fds, maps, id := openFDs(t), mmio.Live(), freeID(t)
	t.Cleanup(func() {
		if n := openFDs(t); n != fds {
			t.Errorf("%d descriptors open at the end, %d at the start", n, fds)
		}
		if n := mmio.Live(); n != maps {
			t.Errorf("%d mappings at the end, %d at the start", n, maps)
		}
		if n := freeID(t); n != id {
			t.Errorf("the lowest free ID is %d at the end, %d at the start", n, id)
		}
	})
}

func freeID(t testing.TB) uint32 {
	t.Helper()
	ch, err := rdmacm.Open()
	must(t, err)
	defer ch.Close()
	id, err := ch.CreateID()
	must(t, err)
	defer id.Close()
	return id.Handle()
}

// localAddr is an IPv4 address of the device, with a port.
func localAddr(t testing.TB, port uint16) netip.AddrPort {
	t.Helper()
	dev, err := provider.Open(testdev.Name(t))
	must(t, err)
	ctx, err := dev.Open()
	must(t, err)
	defer ctx.Close()
	gids, err := ctx.GIDs(1)
	must(t, err)
	for _, g := range gids {
		if g.Type == verbs.GIDRoCEv2 && g.GID.IsIPv4() {
			return netip.AddrPortFrom(g.GID.Addr(), port)
		}
	}
	t.Skipf("%s has no RoCE v2 GID for IPv4: %v", dev.Info().Name, gids)
	return netip.AddrPort{}
}

const allAccess = mr.LocalWrite | mr.RemoteWrite | mr.RemoteRead

// side is what one end has of a device: a queue pair, its completion queue, and memory.
type side struct {
	dev  verbs.Context
	pd   verbs.PD
	cq   cq.CQ
	qp   qp.QP // the last one that was made
	pin  *mmio.Mapping
	mem  []byte
	mr   mr.Region
	got  []cq.Completion
	name string // of the device
}

// newSide opens the test's device. Close it after the connection.
func newSide(t testing.TB, memory int) *side {
	t.Helper()
	s, err := openSide(testdev.Name(t), memory)
	must(t, err)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openSide(name string, memory int) (s *side, err error) {
	s = &side{name: name}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	dev, err := provider.Open(name)
	if err != nil {
		return s, err
	}
	if s.dev, err = dev.Open(); err != nil {
		return s, err
	}
	if s.pd, err = s.dev.AllocPD(); err != nil {
		return s, err
	}
	if s.pin, err = mmio.Anonymous(memory); err != nil {
		return s, err
	}
	s.mem = s.pin.Bytes()
	if s.mr, err = s.pd.Register(s.mem, allAccess); err != nil {
		return s, err
	}
	s.cq, err = s.dev.CreateCQ(verbs.CQConfig{Entries: 128})
	return s, err
}

func (s *side) close() error {
	var errs []error
	if s.cq != nil {
		errs = append(errs, s.cq.Close())
	}
	if s.mr.Length > 0 {
		errs = append(errs, s.pd.Deregister(s.mr))
	}
	if s.pin != nil {
		errs = append(errs, s.pin.Close())
	}
	if s.pd != nil {
		errs = append(errs, s.pd.Close())
	}
	if s.dev != nil {
		errs = append(errs, s.dev.Close())
	}
	return errors.Join(errs...)
}

// options make queue pairs of the side.
func (s *side) options(private string) rdmacm.Options {
	return rdmacm.Options{MakeQP: s.makeQP, Access: allAccess, MaxReads: 4, MaxDestReads: 2, Private: []byte(private), ConnectTimeout: patience, ResolveTimeout: patience}
}

func (s *side) makeQP(_ context.Context, r rdmacm.Route) (qp.QP, error) {
	if r.Device.Name != s.name || r.Port != 1 {
		return nil, errors.New("the route goes by device " + r.Device.Name)
	}
	q, err := s.pd.CreateQP(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, Caps: qp.Caps{SendWR: 16, RecvWR: 16, SendSGE: 1, RecvSGE: 1}})
	s.qp = q
	return q, err
}

func (s *side) sge(off, n int) []qp.SGE {
	return []qp.SGE{{Addr: s.mr.Addr + uint64(off), Length: uint32(n), LKey: s.mr.LKey}}
}

func (s *side) recv(q qp.QP, off, n int) error {
	_, err := q.PostRecv([]qp.RecvWR{{SGEs: s.sge(off, n)}})
	return err
}

// post posts a signaled request.
func (s *side) post(wr qp.SendWR) error {
	wr.Flags |= qp.Signaled
	_, err := s.qp.PostSend([]qp.SendWR{wr})
	return err
}

// more waits for completions and adds them to those got.
func (s *side) more(ctx context.Context) error {
	var buf [8]cq.Completion
	for armed := false; ; {
		n, err := s.cq.Poll(buf[:])
		switch {
		case err != nil:
		case n > 0:
			s.got = append(s.got, buf[:n]...)
			return nil
		case !armed:
			err, armed = s.cq.Arm(false), true
		default:
			err, armed = s.cq.Wait(ctx), false
		}
		if err != nil {
			return err
		}
	}
}

// next takes the next completion, of success.
func (s *side) next(ctx context.Context) (cq.Completion, error) {
	return s.take(ctx, func(cq.Completion) bool { return true })
}

// want takes the next completion of a receive (arrived) or of a send.
func (s *side) want(ctx context.Context, arrived bool) (cq.Completion, error) {
	return s.take(ctx, func(c cq.Completion) bool { return c.Opcode.IsRecv() == arrived })
}

// take takes the first completion that fits, or that failed.
func (s *side) take(ctx context.Context, fits func(cq.Completion) bool) (cq.Completion, error) {
	for {
		for i, c := range s.got {
			if c.Status != cq.Success || fits(c) {
				s.got = slices.Delete(s.got, i, i+1)
				return c, c.Err()
			}
		}
		if err := s.more(ctx); err != nil {
			return cq.Completion{}, err
		}
	}
}
