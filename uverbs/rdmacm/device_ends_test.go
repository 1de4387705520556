//go:build linux

package rdmacm_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/byteexpress/byteexpress/internal/testdev"
	"github.com/byteexpress/byteexpress/qp"
	"github.com/byteexpress/byteexpress/uverbs/rdmacm"
	"github.com/byteexpress/byteexpress/verbs"
)

// The kernel takes what Options say of the way, and data passes.
func TestDeviceQuality(t *testing.T) {
	testdev.Verb(t, "rdma_cm: MTU, timers and traffic class")
	noLeaks(t)
	ctx := patient(t)
	a, p := newSide(t, 4096), newSide(t, 4096)
	l, err := rdmacm.Listen(localAddr(t, 0))
	must(t, err)
	quality := func(o rdmacm.Options) rdmacm.Options {
		o.MTU, o.AckTimeout, o.RNRTimer, o.TrafficClass, o.RetryCount, o.RNRRetry = qp.MTU512, 15, 3, 104, 2, 1
		return o
	}
	oa, op := quality(a.options("ping")), quality(p.options("pong"))
	oa.Ready = func(q qp.QP) error { return a.recv(q, 0, 64) }
	op.Ready = func(q qp.QP) error { return p.recv(q, 0, 64) }
	errs := make(chan error, 1)
	var passive *rdmacm.Conn
	go func() {
		var err error
		passive, err = l.Accept(ctx, op)
		errs <- err
	}()
	active, err := rdmacm.Dial(ctx, l.Addr(), oa)
	must(t, errors.Join(err, <-errs))
	talk(ctx, t, a, p)
	for _, s := range []*side{a, p} {
		got, err := s.qp.Query()
		must(t, err)
		if got.PathMTU != qp.MTU512 || got.AckTimeout != 15 || got.RNRTimer != 3 || got.AV.TrafficClass != 104 || got.RetryCount != 2 {
			t.Errorf("attributes %+v", got)
		}
	}
	must(t, active.Close())
	must(t, passive.Close())
	must(t, l.Close())
}

// The contexts of a dial and of an acceptance end while they wait for the peer.
func TestDeviceCanceled(t *testing.T) {
	noLeaks(t)
	a, p := newSide(t, 4096), newSide(t, 4096)
	l, err := rdmacm.Listen(localAddr(t, 0))
	must(t, err)
	ctx, cancel := context.WithCancel(patient(t))
	errs := make(chan error, 1)
	dialed := make(chan struct{})
	go func() {
		r, err := l.Next(ctx)
		if err == nil { // and says nothing, until it is too late
			cancel()
			<-dialed
			err = r.Reject(nil)
		}
		errs <- err
	}()
	if _, err := rdmacm.Dial(ctx, l.Addr(), a.options("")); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "connect "+l.Addr().String()) {
		t.Errorf("dial: %v", err)
	}
	close(dialed)
	if err := <-errs; err != nil {
		t.Logf("reject: %v", err) // the peer may be gone
	}
	must(t, l.Close())

	l, err = rdmacm.Listen(localAddr(t, 0))
	must(t, err)
	ctx, cancel = context.WithCancel(patient(t))
	o := a.options("")
	o.MakeQP = func(context.Context, rdmacm.Route) (qp.QP, error) { cancel(); return nil, context.Canceled }
	if _, err := rdmacm.Dial(ctx, l.Addr(), o); !errors.Is(err, context.Canceled) {
		t.Errorf("dial: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx, p.options("")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept: %v", err)
	}
	must(t, l.Close())
}

// spareDevice makes a software device of its own, on an interface of its own, and
// gives its name and address. It is gone at the end of the test.
func spareDevice(t *testing.T) (name string, addr netip.Addr) {
	t.Helper()
	const ifname, dev = "cmtest0", "rxecm0"
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: ifname, MTU: 1500}}
	if err := netlink.LinkAdd(link); err != nil {
		t.Skipf("a network interface of our own: %v", err)
	}
	t.Cleanup(func() { netlink.LinkDel(link) })
	a, err := netlink.ParseAddr("10.77.0.1/24")
	must(t, err)
	must(t, netlink.AddrAdd(link, a))
	must(t, netlink.LinkSetUp(link))
	if err := netlink.RdmaLinkAdd(dev, "rxe", ifname); err != nil {
		t.Skipf("a software device of our own: %v", err)
	}
	return dev, netip.MustParseAddr("10.77.0.1")
}

// The device is removed under a connection and its listener: all who wait hear of it,
// what is closed is given back, and then the removal ends.
func TestDeviceRemoved(t *testing.T) {
	testdev.Verb(t, "device: removal while open")
	noLeaks(t)
	ctx := patient(t)
	testdev.Name(t)
	name, addr := spareDevice(t)
	var sides [2]*side
	for i := range sides {
		var err error
		sides[i], err = openSide(name, 4096)
		must(t, err)
	}
	var l *rdmacm.Listener
	for { // the address becomes a GID a little later
		var err error
		if l, err = rdmacm.Listen(netip.AddrPortFrom(addr, 0)); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	active, passive := pair(ctx, t, sides[0], sides[1], l)
	talk(ctx, t, sides[0], sides[1])
	removed := make(chan error, 1)
	go func() { removed <- netlink.RdmaLinkDel(name) }()
	heard := 0
	for _, c := range []*rdmacm.Conn{active, passive} {
		switch err := c.Wait(ctx); {
		case errors.Is(err, verbs.ErrDeviceLost):
			heard++
		case err != nil: // nil: the other end, on the same device, went first
			t.Errorf("wait: %v", err)
		}
	}
	if heard == 0 {
		t.Error("no end heard that the device is removed")
	}
	if _, err := l.Next(ctx); !errors.Is(err, verbs.ErrDeviceLost) {
		t.Errorf("listener: %v", err)
	}
	for _, c := range []*rdmacm.Conn{active, passive} {
		if err := c.Close(); err != nil && !errors.Is(err, verbs.ErrDeviceLost) {
			t.Errorf("close: %v", err)
		}
	}
	must(t, l.Close())
	for _, s := range sides {
		if err := s.close(); err != nil {
			t.Log(err)
		}
	}
	must(t, <-removed)
	if _, err := rdmacm.Listen(netip.AddrPortFrom(addr, 0)); err == nil {
		t.Error("a listener on the address of a removed device")
	}
}
