package sim_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/mmio"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/sim"
	"github.com/byteexpress/byteexpress/verbs"
)

// A buffer longer than the device's regions is registered in pieces of whole huge
// pages, as case C09 has it, and a peer writes all of it. Control: cut elsewhere,
// the device refuses it.
func TestSplitBuffer(t *testing.T) {
	const huge, limit, size = 2 << 20, 5<<20 - 4096, 10 << 20
	a, b, _ := newPair(t, sim.Config{}, options{buf: huge, devB: sim.DeviceConfig{PageSize: 4096, Limits: verbs.DeviceAttr{MaxMRSize: limit}}})
	m := must[*mmio.Mapping](t)(mmio.Anonymous(size))
	defer m.Close()
	buf := m.Bytes()
	if _, err := b.pd.Register(buf, allAccess); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("registered whole: %v", err)
	}
	if _, err := mr.RegisterSplit(b.pd, buf, allAccess, 4095); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("cut within pages: %v", err)
	}
	if _, err := mr.RegisterSplit(b.pd, buf, allAccess, 0); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("not cut: %v", err)
	}
	attr := must[verbs.DeviceAttr](t)(b.ctx.Attr())
	s := must[*mr.Split](t)(mr.RegisterSplit(b.pd, buf, allAccess, attr.MaxMRSize))
	for _, r := range s.Regions() {
		if r.Length%huge != 0 && r != s.Regions()[len(s.Regions())-1] {
			t.Errorf("region %v is cut within a huge page", r)
		}
	}
	for off := uint64(0); off < size; {
		r, left := s.At(off)
		n := min(left, huge-4096) // pieces that are not those of the regions
		for i := range a.buf[:n] {
			a.buf[i] = byte(off>>12 + uint64(i))
		}
		a.send(qp.SendWR{Opcode: qp.Write, Flags: qp.Signaled, RKey: r.RKey, RemoteAddr: mr.Addr(buf) + off, SGEs: a.sge(0, int(n))})
		wantStatus(t, a.next(), 0, cq.Success)
		if string(buf[off:off+n]) != string(a.buf[:n]) {
			t.Fatalf("wrong content at %d", off)
		}
		off += n
	}
	check(t, s.Close())
}
