//go:build linux

package kdevtest

import (
	"errors"
	"testing"

	"github.com/byteexpress/byteexpress/cq"
	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/mr"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/verbs"
)

// Reregister: the rights of a region change in place, both ways, and so does its
// memory where the driver can.
func (r *Rig) Reregister(t *testing.T) {
	testdev.Verb(t, "MR: re-register with other rights")
	p := r.Connect(t, Config{})
	mem, err := verbs.MemoryOf(p.PD)
	SkipUnsupported(t, err)
	region, err := p.PD.Register(p.B.Mem[:4096], mr.LocalWrite)
	Must(t, err)
	defer func() { Must(t, p.PD.Deregister(region)) }()
	write := func(want cq.Completion) {
		t.Helper()
		p.A.Send(t, qp.SendWR{ID: 2, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 8)}, RemoteAddr: region.Addr, RKey: region.RKey})
		p.A.Want(t, want)
	}
	change := func(buf []byte, access mr.Access) error {
		next, err := mem.Reregister(region, buf, access)
		if err == nil {
			region = next
		}
		return err
	}
	other := func(err error) {
		t.Run("other memory", func(t *testing.T) {
			testdev.Verb(t, "MR: re-register with other memory")
			SkipUnsupported(t, err)
		})
	}
	if err = change(nil, allAccess); err != nil {
		other(err)
		SkipUnsupported(t, err)
	}
	r.without(t, testdev.LostErrors)
	write(cq.Completion{ID: 2, Opcode: cq.Write})
	err = change(p.B.Mem[8192:12288], allAccess)
	other(err)
	copy(p.A.Mem, "moved.!?")
	write(cq.Completion{ID: 2, Opcode: cq.Write}) // without new memory as before
	if err == nil && string(p.B.Mem[8192:8200]) != "moved.!?" {
		t.Error("the write went elsewhere")
	}
	if err := change(nil, mr.RemoteWrite); !errors.Is(err, mr.ErrAccess) {
		t.Errorf("bad access: %v", err)
	}
	if _, err := mem.Reregister(mr.Region{Handle: 1 << 20}, nil, 0); err == nil {
		t.Error("a region of nobody was changed")
	}
	Must(t, change(nil, mr.LocalWrite|mr.RemoteRead))
	write(cq.Completion{ID: 2, Status: cq.RemoteAccessError})
}

// DMABuf: memory that comes as a dmabuf is registered and written by a peer.
func (r *Rig) DMABuf(t *testing.T) {
	testdev.Verb(t, "MR: register a dmabuf")
	p := r.Connect(t, Config{})
	mem, err := verbs.MemoryOf(p.PD)
	SkipUnsupported(t, err)
	for name, b := range map[string]verbs.DMABuf{
		"empty": {FD: -1}, "wraps": {Length: 4096, Offset: ^uint64(0) &^ 4095}, "askew": {Length: 4096, Offset: 1},
	} {
		if _, err := mem.RegisterDMABuf(b, 0); !errors.Is(err, verbs.ErrLimit) && !errors.Is(err, verbs.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const size = 16384
	fd, view := dmabuf(t, size)
	buf := verbs.DMABuf{FD: fd, Offset: 4096, Length: size - 4096, Addr: 1<<40 + 4096}
	region, err := mem.RegisterDMABuf(buf, allAccess)
	if fd < 0 && err != nil {
		testdev.Supported(t, err)
		t.Skipf("no dmabuf to test with: %v", err)
	}
	SkipUnsupported(t, err)
	if region.Addr != buf.Addr || region.Length != buf.Length {
		t.Errorf("region %v of %+v", region, buf)
	}
	copy(p.A.Mem, "through a dmabuf")
	p.A.Send(t, qp.SendWR{ID: 2, Opcode: qp.Write, Flags: qp.Signaled, SGEs: []qp.SGE{p.A.SGE(0, 16)}, RemoteAddr: region.Addr + 100, RKey: region.RKey})
	p.A.Want(t, cq.Completion{ID: 2, Opcode: cq.Write})
	if got := string(view[4196:4212]); got != "through a dmabuf" {
		t.Errorf("the memory has %q", got)
	}
	Must(t, p.PD.Deregister(region))
}

// Advise: pages of an on-demand region are fetched before they are used.
func (r *Rig) Advise(t *testing.T) {
	testdev.Verb(t, "MR: advise")
	p := r.Connect(t, Config{})
	mem, err := verbs.MemoryOf(p.PD)
	SkipUnsupported(t, err)
	attr, err := p.Ctx.Attr()
	Must(t, err)
	access := allAccess
	if attr.OnDemand.Supported {
		access |= mr.OnDemand
	}
	region, err := p.PD.Register(p.B.Mem, access)
	Must(t, err)
	defer func() { Must(t, p.PD.Deregister(region)) }()
	if err := mem.Advise(mr.Prefetch, true, nil); !errors.Is(err, verbs.ErrLimit) && !errors.Is(err, verbs.ErrUnsupported) {
		t.Errorf("no range: %v", err)
	}
	for _, advice := range []mr.Advice{mr.Prefetch, mr.PrefetchWrite, mr.PrefetchNoFault} {
		SkipUnsupported(t, mem.Advise(advice, true, []qp.SGE{{Addr: region.Addr, Length: 8192, LKey: region.LKey}}))
	}
}
